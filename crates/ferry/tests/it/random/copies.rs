//! Copies with GNU cp and with ferry, and compares.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_tree::compare::{Difference, Mismatch, Options, snapshots};
use ferry_tree::random::Knobs;
use ferry_tree::{Acl, Node, Snapshot, Tree, capture, make, remove};

use super::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, place_program};

const NOBODY: u32 = 65_534;

/// User that copies. The test's own user makes and compares the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The test's user.
    Myself,
    Root,
    /// The user nobody, which owns every other tree.
    Nobody,
    /// Root of a user namespace, where other users' files belong to nobody.
    Namespace,
}

impl Whom {
    fn command(self, program: &Path) -> Command {
        let words: &[&str] = match self {
            Self::Myself | Self::Root => &[],
            Self::Nobody => &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
            Self::Namespace => &["unshare", "--map-root-user"],
        };
        let Some((first, others)) = words.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(others).arg(program);
        command
    }

    /// Limits the trees. In a user namespace, every other source has many owners, and some have ACLs that
    /// can't be preserved; GNU cp makes no hard links to such copies.
    pub(crate) fn knobs(self, seed: u64, all: &Knobs) -> Knobs {
        let has_acls = seed.is_multiple_of(4);
        match self {
            Self::Myself | Self::Root | Self::Nobody => all.clone(),
            Self::Namespace => Knobs {
                owners: all.owners && has_owners(self, seed),
                acls: all.acls && has_acls,
                hard_links: !has_acls,
                ..all.clone()
            },
        }
    }

    pub(crate) fn is_possible(self) -> bool {
        self.command(Path::new("true")).output().is_ok_and(|output| output.status.success())
    }
}

pub(crate) struct Variant {
    pub(crate) options: &'static str,
    /// Attributes that must be equal.
    pub(crate) compared: Options,
    /// True if root's copy must also equal the source.
    pub(crate) keeps_all: bool,
}

/// A source and the place of its copies.
pub(crate) struct Copies<'a> {
    place: PathBuf,
    gnu: &'a Path,
    whom: Whom,
    seed: u64,
    keeps_access_times: bool,
}

/// Returns true if a source has many owners: every other one for root of a user namespace.
fn has_owners(whom: Whom, seed: u64) -> bool {
    whom != Whom::Namespace || seed.is_multiple_of(2)
}

struct Outcome {
    code: Option<i32>,
    messages: BTreeSet<String>,
    /// The copy, and the destinations of its links.
    trees: Vec<Snapshot>,
}

impl<'a> Copies<'a> {
    pub(crate) fn new(filesystem: &Filesystem, gnu: &'a Path, whom: Whom, seed: u64) -> Self {
        let place = filesystem.path().join("place");
        std::fs::create_dir(&place).unwrap();
        // Other users must be able to run it.
        place_program(Path::new(FERRY), &place.join("cp"));
        Self { place, gnu, whom, seed, keeps_access_times: filesystem.keeps_access_times() }
    }

    pub(crate) fn make_source(&self, tree: &Tree) {
        let source = self.place.join("source");
        make::make(tree, &source).unwrap();
        if self.whom == Whom::Nobody && self.seed.is_multiple_of(2) {
            for (path, _) in tree.nodes() {
                let path = source.join(crate::scene::name(path));
                lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
    }

    /// Copies with both programs onto `existing`, and panics if they differ.
    pub(crate) fn compare(&self, variant: &Variant, existing: Option<&Tree>) {
        let expected = self.run(self.gnu, variant, &[], existing);
        for backend in ["uring", "posix"] {
            let workers = (1 + self.seed % 4).to_string();
            let own = ["--backend", backend, "--workers", &workers];
            let actual = self.run(&self.place.join("cp"), variant, &own, existing);
            // Files whose owner can't be set stay private, with another mode in GNU cp's copy; links have
            // today's time.
            let private = self.whom == Whom::Namespace && has_owners(self.whom, self.seed);
            let all = &variant.compared;
            let compared =
                Options { mode: all.mode && !private, mtime: all.mtime && !private, ..all.clone() };
            let mut report = differences(&expected, &actual, &compared);
            if self.keeps_access_times && compared.mtime && existing.is_none() {
                access_times(&expected.trees, &actual.trees, &mut report);
            }
            if variant.keeps_all && existing.is_none() && self.keeps_all() {
                let source = capture::capture(&self.place.join("source")).unwrap();
                for difference in snapshots(&source, &actual.trees[0], &variant.compared) {
                    writeln!(report, "from the source: {difference}").unwrap();
                }
            }
            assert!(
                report.is_empty(),
                "FERRY_SEED={}, by {:?} in {}: cp {} {}\n{report}",
                self.seed,
                self.whom,
                self.place.display(),
                variant.options,
                own.join(" ")
            );
        }
    }

    fn keeps_all(&self) -> bool {
        self.whom == Whom::Root || self.whom == Whom::Myself && is_root()
    }

    fn run(&self, program: &Path, variant: &Variant, own: &[&str], existing: Option<&Tree>) -> Outcome {
        let target = self.make_target(variant, existing);
        let mut command = self.whom.command(Path::new("sh"));
        command.args(["-c", "umask $0; exec \"$@\"", self.umask()]).arg(program);
        command.current_dir(&self.place).env("LC_ALL", "C.UTF-8");
        command.args(variant.options.split_whitespace()).args(own).args(["-T", "source", "target/copy"]);
        let output = command.output().unwrap();
        let trees = ["copy", "aside"].map(|name| target.join(name));
        let trees = trees.iter().filter(|path| path.symlink_metadata().is_ok());
        let trees = trees.map(|path| capture::capture(path).unwrap()).collect();
        remove::remove(&target).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // GNU cp quotes some names differently or not at all.
        let said = said.replace("'$'", "$").replace(['\'', '"', '‘', '’'], "");
        let messages = said.lines().map(|line| line.split_once("cp: ").map_or(line, |(_, text)| text));
        // If a name ends within a character, GNU cp prints the memory behind it.
        let messages = messages.map(|line| line.split_once(is_odd).map_or(line, |(text, _)| text));
        Outcome { code: output.status.code(), messages: messages.map(str::to_owned).collect(), trees }
    }

    fn umask(&self) -> &'static str {
        if self.seed.is_multiple_of(2) { "022" } else { "007" }
    }

    /// Returns true if the target's directory passes on an ACL. GNU cp keeps it if unknown users prevent
    /// setting the source's ACL.
    fn gives_acl(&self) -> bool {
        is_root() && self.whom != Whom::Namespace && self.seed % 3 == 1
    }

    /// Makes the target's directory; every third one passes on its group and an ACL.
    fn make_target(&self, variant: &Variant, existing: Option<&Tree>) -> PathBuf {
        let target = self.place.join("target");
        let mut root = Node::directory().mtime(1_700_000_000, 0).mode(0o777);
        if self.gives_acl() {
            // GNU cp keeps an inherited setgid bit on directories, and removes it for users.
            let keeps = variant.compared.mtime || self.whom == Whom::Nobody;
            let mode = if keeps { 0o777 } else { 0o2777 };
            root = root.mode(mode).owner(0, 1000);
            root = root.default_acl(Acl::from_mode(0o777).user(1000, 7));
        }
        if make::make(&Tree::new().root(root), &target).is_err() {
            // ACLs are unsupported.
            std::fs::set_permissions(&target, PermissionsExt::from_mode(0o777)).unwrap();
        }
        if let Some(existing) = existing {
            make::make(existing, &target.join("copy")).unwrap();
            std::fs::create_dir(target.join("aside")).unwrap();
            for path in crate::random::overlay::aside(existing) {
                std::fs::write(target.join(crate::scene::name(&path)), path).unwrap();
            }
        }
        target
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() || std::env::var_os("FERRY_KEEP").is_none() {
            remove::remove(&self.place).unwrap();
        }
    }
}

fn access_times(expected: &[Snapshot], actual: &[Snapshot], report: &mut String) {
    for (expected, actual) in expected.iter().zip(actual) {
        for (path, facts) in &expected.entries {
            let (expected, actual) =
                (facts.attributes.atime, actual.entries.get(path).map(|f| f.attributes.atime));
            if actual.is_some_and(|actual| actual != expected) {
                writeln!(
                    report,
                    "{}: time of access is {actual:?}, should be {expected:?}",
                    path.escape_ascii()
                )
                .unwrap();
            }
        }
    }
}

/// Characters whose quoting differs between the programs.
fn is_odd(c: char) -> bool {
    matches!(c, '$' | '\\' | char::REPLACEMENT_CHARACTER) || c.is_control()
}

fn differences(expected: &Outcome, actual: &Outcome, options: &Options) -> String {
    let mut report = String::new();
    if expected.code != actual.code {
        writeln!(report, "exit code is {:?}, should be {:?}", actual.code, expected.code).unwrap();
    }
    let stops = |message: &&String| message.contains(" into itself, ");
    if expected.messages.iter().any(|message| stops(&message)) {
        // GNU cp stops copying then.
        if !expected.messages.iter().filter(stops).eq(actual.messages.iter().filter(stops)) {
            writeln!(report, "does not refuse to copy a folder into itself").unwrap();
        }
        return report;
    }
    for line in actual.messages.difference(&expected.messages) {
        writeln!(report, "says {line}").unwrap();
    }
    for line in expected.messages.difference(&actual.messages) {
        writeln!(report, "does not say {line}").unwrap();
    }
    if expected.trees.len() != actual.trees.len() {
        report.push_str("only one of them made a copy\n");
    }
    for (expected, actual) in expected.trees.iter().zip(&actual.trees) {
        // *Inherited ACLs* in docs/cp-differences.md: with `-p`, only GNU cp keeps the directory's ACL.
        let is_inherited = |found: &Difference| {
            // *Special bits*: the sticky bit of a directory.
            let is_sticky = |source: u32, target: u32| target & !source == 0o1000 && source & !target == 0;
            matches!(found.mismatch, Mismatch::Acl { source: Some(_), target: None, .. })
                || matches!(found.mismatch, Mismatch::Mode { source, target } if is_sticky(source, target))
        };
        for difference in
            snapshots(expected, actual, options).into_iter().filter(|found| !is_inherited(found))
        {
            writeln!(report, "{difference}").unwrap();
        }
    }
    report
}
