//! One small tree with everything that cp's options tell apart, and commands run in it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ferry_tree::attributes::Time;
use ferry_tree::compare::{Difference, Holes, Mismatch, Options, snapshots};
use ferry_tree::{Node, Snapshot, Tree, capture, make};
use tempfile::TempDir;

/// All nodes of the scene are older than anything made in it.
pub(crate) const OLD: i64 = 1_700_000_000;

/// The tree in which commands are run.
fn tree() -> Tree {
    let old = |node: Node| node.mtime(OLD, 123_456_789);
    let files = [("f", "f's text", 0o644), ("g", "g's text, longer", 0o640), ("exec", "#!/bin/sh", 0o755)];
    let mut tree = Tree::new().root(old(Node::directory()));
    for (name, text, mode) in files {
        tree = tree.with(name, old(Node::file(text).mode(mode)));
    }
    let names: [&[u8]; 5] = [b"it's", b"sp ace", b"new\nline", b"bad\xff", "é".as_bytes()];
    for name in names {
        tree = tree.with(name, old(Node::file("named")));
    }
    tree.with("hard", Node::hard_link("f"))
        .with("setid", old(Node::file("set").mode(0o6755)))
        .with("newer", Node::file("newer").mtime(OLD + 1000, 1))
        .with("attributed", old(Node::file("attributes").xattr("user.color", "blue")))
        .with("fifo", old(Node::fifo().mode(0o600)))
        .with("socket", old(Node::socket()))
        .with("to_f", Node::symlink("f"))
        .with("to_src", Node::symlink("src"))
        .with("to_full", Node::symlink("full"))
        .with("dangling", Node::symlink("nowhere"))
        .with("loop", Node::symlink("loop"))
        .with("empty", old(Node::directory()))
        .with("other/f", old(Node::file("another f")))
        .with("full/f", old(Node::file("f of full")))
        .with("full/src/a", Node::file("newer a").mtime(OLD + 1000, 1))
        .with("full/src/extra", old(Node::file("extra")))
        .with("full/exec", old(Node::directory()))
        .with("src", old(Node::directory().mode(0o750)))
        .with("src/a", old(Node::file("a of src").mode(0o600)))
        .with("src/b", old(Node::seeded(300_000, 7)))
        .with("src/twin", Node::hard_link("src/a"))
        .with("src/link", Node::symlink("a"))
        .with("src/up", Node::symlink("../f"))
        .with("src/nothing", Node::symlink("nowhere"))
        .with("src/pipe", old(Node::fifo()))
        .with("src/sub", old(Node::directory().mode(0o555)))
        .with("src/sub/deep", old(Node::file("deep").mode(0o444)))
        .with("src/sub/to_dir", Node::symlink("../other_sub"))
        .with("src/other_sub", old(Node::directory()))
        .with("sparse", old(Node::sparse(4 << 20, 3, [(0, 4096), (2 << 20, 65_536)])))
        .with("zeros", old(Node::file(vec![0; 1 << 20])))
}

/// What a command did in the scene.
pub(crate) struct Outcome {
    code: Option<i32>,
    lines: BTreeSet<String>,
    messages: BTreeSet<String>,
    tree: Snapshot,
}

impl Outcome {
    /// Whether it succeeded and printed just this line.
    pub(crate) fn printed(&self, line: &str) -> bool {
        self.code == Some(0) && self.lines.iter().eq([line])
    }

    /// Whether it ended well.
    pub(crate) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// What it said on standard error.
    pub(crate) fn messages(&self) -> &BTreeSet<String> {
        &self.messages
    }

    /// Whether it failed with just this message.
    pub(crate) fn said(&self, message: &str) -> bool {
        self.code == Some(1) && self.messages.iter().eq([message])
    }
}

/// A place where the scene can be set again and again, at the same path.
pub(crate) struct Stage {
    place: TempDir,
    tree: Tree,
}

impl Stage {
    /// An empty stage that every user may enter, for the usual scene.
    pub(crate) fn new() -> Self {
        Self::with(tree())
    }

    /// The same for another scene.
    pub(crate) fn with(tree: Tree) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { place, tree }
    }

    /// Where commands are run.
    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().join("scene")
    }

    /// ferry by the name `cp`, readable for every user.
    pub(crate) fn ferry(&self) -> PathBuf {
        let path = self.place.path().join("bin/cp");
        if !path.exists() {
            std::fs::create_dir(self.place.path().join("bin")).unwrap();
            match std::fs::hard_link(FERRY, &path) {
                Ok(()) => {}
                Err(_) => drop(std::fs::copy(FERRY, &path).unwrap()),
            }
        }
        path
    }

    /// A copy of a program that every user may run, wherever the program is.
    fn readable(&self, program: &Path) -> PathBuf {
        let path = self.place.path().join("gnu-cp");
        std::fs::copy(program, &path).unwrap();
        path
    }

    /// Sets the scene anew.
    pub(crate) fn set(&self) {
        if self.root().symlink_metadata().is_ok() {
            ferry_tree::remove::remove(&self.root()).unwrap();
        }
        make::make(&self.tree, &self.root()).unwrap();
    }

    /// Runs `program` in a fresh scene.
    pub(crate) fn run(&self, program: &Path, line: &str, dress: impl Fn(&mut Command)) -> Outcome {
        self.set();
        let mut command = Command::new(program);
        command.arg0("cp").current_dir(self.root()).env("LC_ALL", "C.UTF-8").args(words(line, &self.root()));
        dress(&mut command);
        let Output { status, stdout, stderr } = command.output().unwrap();
        Outcome {
            code: status.code(),
            lines: lines(&stdout),
            messages: lines(&stderr),
            tree: capture::capture(&self.root()).unwrap(),
        }
    }
}

/// The binary under test.
pub(crate) const FERRY: &str = env!("CARGO_BIN_EXE_ferry");

/// `@bad` stands for a name that is not UTF-8, `@line` for one of two lines, `@it` and `@sp` for those with an
/// apostrophe and a space, `@/` for the scene's own path.
fn words(line: &str, root: &Path) -> Vec<OsString> {
    let special = |word: &str| match word {
        "@bad" => OsString::from_vec(b"bad\xff".to_vec()),
        "@gone" => OsString::from_vec(b"gone\xff\n".to_vec()),
        "@line" => "new\nline".into(),
        "@it" => "it's".into(),
        "@sp" => "sp ace".into(),
        "@empty" => OsString::new(),
        word => match word.strip_prefix("@/") {
            Some(name) => root.join(name).into_os_string(),
            None => word.into(),
        },
    };
    line.split_whitespace().map(special).collect()
}

/// The lines as a set: the order is nobody's business.
fn lines(output: &[u8]) -> BTreeSet<String> {
    String::from_utf8_lossy(output).lines().map(str::to_owned).collect()
}

/// Runs each line with GNU cp and with ferry, and panics with all that differs.
#[track_caller]
pub(crate) fn same_as_gnu(table: &[&str]) {
    same_as_gnu_with(table, &comparison(), |_| {});
}

/// As [`same_as_gnu`], comparing these parts of the trees and dressing each command.
#[track_caller]
pub(crate) fn same_as_gnu_with(table: &[&str], options: &Options, dress: impl Fn(&mut Command)) {
    compare_with_gnu(table, Some(options), dress);
}

/// As [`same_as_gnu`], comparing what is said and not what is left behind: where GNU cp leaves an empty file or a
/// piece of a tree, ferry leaves nothing.
#[track_caller]
pub(crate) fn same_words_as_gnu(table: &[&str]) {
    compare_with_gnu(table, None, |_| {});
}

#[track_caller]
fn compare_with_gnu(table: &[&str], options: Option<&Options>, dress: impl Fn(&mut Command)) {
    compare_in(&Stage::new(), table, options, dress);
}

/// The same in a scene of one's own.
#[track_caller]
pub(crate) fn compare_in(
    stage: &Stage,
    table: &[&str],
    options: Option<&Options>,
    dress: impl Fn(&mut Command),
) {
    let Some(gnu) = gnu() else { return };
    let gnu = stage.readable(&gnu);
    let mut report = String::new();
    for line in table {
        let expected = stage.run(&gnu, line, &dress);
        let actual = stage.run(&stage.ferry(), line, &dress);
        for difference in differences(&expected, &actual, options) {
            writeln!(report, "cp {line}: {difference}").unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Everything, times as far as they were kept.
pub(crate) fn comparison() -> Options {
    Options { threads: 1, holes: Holes::Ignore, ..Options::all() }
}

/// What one command did and another did not.
pub(crate) fn differences(expected: &Outcome, actual: &Outcome, options: Option<&Options>) -> Vec<String> {
    let mut found = Vec::new();
    if expected.code != actual.code {
        found.push(format!("exit code is {:?}, should be {:?}", actual.code, expected.code));
    }
    for (what, expected, actual) in
        [("prints", &expected.lines, &actual.lines), ("says", &expected.messages, &actual.messages)]
    {
        found.extend(actual.difference(expected).map(|line| format!("{what} {line}")));
        found.extend(expected.difference(actual).map(|line| format!("lacks, {what} not: {line}")));
    }
    let compare = |options| snapshots(&expected.tree, &actual.tree, options);
    let trees = options.map(compare).unwrap_or_default();
    found.extend(trees.iter().filter(|difference| !only_now(difference)).map(ToString::to_string));
    found
}

/// Times that were not kept are those of two moments of today.
fn only_now(difference: &Difference) -> bool {
    let now = |time: &Time| time.seconds > OLD + 100_000;
    match &difference.mismatch {
        Mismatch::Mtime { source, target } => now(source) && now(target),
        Mismatch::MissingInTarget(_)
        | Mismatch::ExtraInTarget(_)
        | Mismatch::Kind { .. }
        | Mismatch::Content { .. }
        | Mismatch::Size { .. }
        | Mismatch::Mode { .. }
        | Mismatch::Owner { .. }
        | Mismatch::Xattr { .. }
        | Mismatch::Acl { .. }
        | Mismatch::SymlinkTarget { .. }
        | Mismatch::Device { .. }
        | Mismatch::HardLink { .. }
        | Mismatch::Holes { .. }
        | Mismatch::Unreadable { .. } => false,
    }
}

/// GNU cp as `cargo xtask gnu-cp` built it: ferry follows the newest one, and others' words differ in places.
pub(crate) fn gnu() -> Option<PathBuf> {
    const LEAST: (u32, u32) = (9, 10);
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("gnu-cp").join("cp");
    // A link to the version that was built.
    let Ok(path) = built.canonicalize() else {
        return skip(&format!("GNU cp is not at '{}': build it with `cargo xtask gnu-cp`", built.display()));
    };
    let said = Command::new(&path).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let version = said.lines().next().and_then(|line| line.strip_prefix("cp (GNU coreutils) "));
    let number = |text: &str| text.parse::<u32>().ok();
    let parts = version.and_then(|version| version.split_once('.'));
    match parts.and_then(|(major, minor)| Some((number(major)?, number(minor)?))) {
        Some(version) if version >= LEAST => Some(path),
        Some(_) | None => skip(&format!(
            "'{}' is not GNU cp {}.{} or newer: build it with `cargo xtask gnu-cp`",
            path.display(),
            LEAST.0,
            LEAST.1
        )),
    }
}

/// Says why a test does nothing.
pub(crate) fn skip<T>(why: &str) -> Option<T> {
    eprintln!("SKIP: {why}");
    None
}

/// Runs ferry itself in `folder`.
pub(crate) fn ferry(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(FERRY).current_dir(folder).args(arguments).output().unwrap()
}

/// What was printed, as text.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Any name.
pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
