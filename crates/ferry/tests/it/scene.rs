//! A small tree with everything that cp's options distinguish, and commands run in it.

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

/// Time of all entries, older than anything that a test makes.
pub(crate) const OLD: i64 = 1_700_000_000;

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

pub(crate) struct Outcome {
    code: Option<i32>,
    lines: BTreeSet<String>,
    messages: BTreeSet<String>,
    tree: Snapshot,
}

impl Outcome {
    /// Returns true if it succeeded and printed only this line.
    pub(crate) fn printed(&self, line: &str) -> bool {
        self.code == Some(0) && self.lines.iter().eq([line])
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    pub(crate) fn messages(&self) -> &BTreeSet<String> {
        &self.messages
    }

    /// Returns true if it failed with only this message.
    pub(crate) fn said(&self, message: &str) -> bool {
        self.code == Some(1) && self.messages.iter().eq([message])
    }
}

/// A directory in which the scene is set up at the same path each time.
pub(crate) struct Stage {
    place: TempDir,
    tree: Tree,
}

impl Stage {
    /// An empty stage that every user may enter, for the usual scene.
    pub(crate) fn new() -> Self {
        Self::with(tree())
    }

    pub(crate) fn with(tree: Tree) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { place, tree }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().join("scene")
    }

    /// Path of ferry as `cp`, readable for every user.
    pub(crate) fn ferry(&self) -> PathBuf {
        let path = self.place.path().join("bin/cp");
        if !path.exists() {
            std::fs::create_dir(self.place.path().join("bin")).unwrap();
            place_program(Path::new(FERRY), &path);
        }
        path
    }

    /// Copies a program to where every user may run it.
    fn readable(&self, program: &Path) -> PathBuf {
        let path = self.place.path().join("gnu-cp");
        place_program(program, &path);
        path
    }

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

pub(crate) const FERRY: &str = env!("CARGO_BIN_EXE_ferry");

/// Copies a program. Another process writes it: a file that a fork of this one still has open for writing can't be run
/// (ETXTBSY), and other tests fork at any time.
#[track_caller]
pub(crate) fn place_program(program: &Path, path: &Path) {
    let status = Command::new("cp").arg("--remove-destination").arg(program).arg(path).status().unwrap();
    assert!(status.success(), "cp {} {}: {status}", program.display(), path.display());
}

/// Parses a command line. `@bad` is a name that is not UTF-8, `@line` has two lines, `@it` an apostrophe,
/// `@sp` a space; `@/` is the scene's path.
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

/// Lines as a set, because their order is undefined.
fn lines(output: &[u8]) -> BTreeSet<String> {
    String::from_utf8_lossy(output).lines().map(str::to_owned).collect()
}

/// Runs each line with GNU cp and with ferry, and panics if they differ.
#[track_caller]
pub(crate) fn same_as_gnu(table: &[&str]) {
    same_as_gnu_with(table, &comparison(), |_| {});
}

/// Runs [`same_as_gnu`] with these options of comparison and a prepared command.
#[track_caller]
pub(crate) fn same_as_gnu_with(table: &[&str], options: &Options, dress: impl Fn(&mut Command)) {
    compare_with_gnu(table, Some(options), dress);
}

/// Runs [`same_as_gnu`] on messages only: GNU cp leaves empty or partial files where ferry leaves none.
#[track_caller]
pub(crate) fn same_words_as_gnu(table: &[&str]) {
    compare_with_gnu(table, None, |_| {});
}

#[track_caller]
fn compare_with_gnu(table: &[&str], options: Option<&Options>, dress: impl Fn(&mut Command)) {
    compare_in(&Stage::new(), table, options, dress);
}

/// Runs [`same_words_as_gnu`] in another scene.
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

/// Compares everything, times as far as they were preserved.
pub(crate) fn comparison() -> Options {
    Options { threads: 1, holes: Holes::Ignore, ..Options::all() }
}

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

/// Ignores times that were not preserved.
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

/// GNU cp as built by `cargo xtask gnu-cp`; messages of other versions differ.
pub(crate) fn gnu() -> Option<PathBuf> {
    const LEAST: (u32, u32) = (9, 10);
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("gnu-cp").join("cp");
    // A link to the built version.
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

/// The number of rounds of a test, multiplied by `FERRY_SEEDS`: a number, or a fraction such as 1/8. If it is `=100`, there are
/// 100 rounds.
pub(crate) fn scaled(count: u64) -> u64 {
    let factor = std::env::var("FERRY_SEEDS").unwrap_or_else(|_| "1".to_owned());
    if let Some(rounds) = factor.strip_prefix('=') {
        return rounds.parse::<u64>().expect("FERRY_SEEDS=N has a number").max(1);
    }
    let (times, parts) = factor.split_once('/').unwrap_or((&factor, "1"));
    let number = |text: &str| text.parse::<u64>().expect("FERRY_SEEDS is a number or a fraction");
    (count * number(times)).div_ceil(number(parts)).max(1)
}

pub(crate) fn skip<T>(why: &str) -> Option<T> {
    eprintln!("SKIP: {why}");
    None
}

/// Returns true if PATH has a program of this name.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

pub(crate) fn ferry(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(FERRY).current_dir(folder).args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
