//! What can go wrong in a task, how it is said, and with which exit code.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: cargo xtask TASK

  check-guards     whether the tests exist that ARCHITECTURE.md and comments say guard something
  check-confinement
                   whether the tests of races fail in a build that follows links
  check-imports    which crate may import which, and that only ferry-io is unsafe or names io_uring
  check-documents  run the commands of README.md, ARCHITECTURE.md and docs/*.md
  deb              build the Debian package, and print its path
  install --prefix DIR  build a release, and install it with manual pages and completions
  fuzz             run each fuzz target for a minute
  gnu-cp           build the newest GNU cp, which tests compare ferry with, unless it is built
  pictures DIR     build a release, and draw the pictures of docs/ with it
  test             everything: all checks, then all tests; with CI=true, a SKIP and an ignored test are failures";

/// Why a task failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Not a task, or too many arguments.
    Usage,
    /// Started without Cargo, which says where the workspace is.
    WithoutCargo,
    /// A path could not be read or written.
    Path { verb: &'static str, path: PathBuf, source: io::Error },
    /// A command could not be started, or its output not be read.
    Start { command: &'static str, source: io::Error },
    /// A command ended with another status than zero.
    Command { command: &'static str },
    /// A check found breaches, printed one a line.
    Breaches { check: &'static str, count: usize },
    /// Tests were skipped where nothing may be.
    Skips { count: usize },
    /// Tests were ignored where nothing may be.
    Ignored { count: usize },
    /// Cargo said that all is well and no test ran.
    NoTests,
    /// A fuzz target failed; its inputs that did are in that folder.
    Fuzzed { target: &'static str, failures: PathBuf },
    /// The program is larger than one that is released.
    Large { path: PathBuf, mib: u64 },
    /// The program holds a path of the machine that it was built on.
    Tells { binary: PathBuf, path: PathBuf },
    /// There is nothing that says when the sources were made.
    NoTime,
    /// None of the machine's package sources has Debian's newest packages.
    NoArchive { suite: &'static str },
    /// The archive's GNU cp is older than the version that ferry follows.
    OldCp { least: (u32, u32) },
    /// The program was built without a library that it should use.
    Without { program: PathBuf, library: &'static str },
    /// Some parts of a task failed, each already reported.
    Parts { count: usize },
}

impl Failure {
    /// A closure for `map_err`: adds what was done to which path.
    pub(crate) fn path(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Path { verb, path: path.to_owned(), source }
    }

    /// A closure for `map_err`: adds which command could not be run.
    pub(crate) fn start(command: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Start { command, source }
    }

    /// 2 for wrong use, 1 for everything else.
    pub(crate) fn exit_code(&self) -> u8 {
        if matches!(self, Self::Usage) { 2 } else { 1 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => f.write_str(USAGE),
            Self::WithoutCargo => f.write_str("run it as `cargo xtask`: CARGO_MANIFEST_DIR is not set"),
            Self::Path { verb, path, source } => write!(f, "cannot {verb} '{}': {source}", path.display()),
            Self::Start { command, source } => write!(f, "cannot run `{command}`: {source}"),
            Self::Command { command } => write!(f, "`{command}` failed"),
            Self::Breaches { check, count } => write!(f, "{check}: {count} breaches"),
            Self::Skips { count } => write!(f, "{count} tests skipped, and CI=true allows none"),
            Self::Ignored { count } => write!(f, "{count} tests ignored, and CI=true allows none"),
            Self::NoTests => f.write_str("`cargo test` succeeded without running any test"),
            Self::Fuzzed { target, failures } => {
                write!(f, "the fuzz target {target} failed; what it was given is in '{}'", failures.display())
            }
            Self::Large { path, mib } => write!(f, "'{}' is larger than {mib} MiB", path.display()),
            Self::Tells { binary, path } => {
                write!(f, "'{}' holds this machine's path '{}'", binary.display(), path.display())
            }
            Self::NoTime => f.write_str("no commit says how old the sources are: set SOURCE_DATE_EPOCH"),
            Self::NoArchive { suite } => {
                write!(f, "apt-get has no source with Debian's suite {suite}: see `apt-get indextargets`")
            }
            Self::OldCp { least: (major, minor) } => write!(f, "GNU cp is older than {major}.{minor}"),
            Self::Without { program, library } => {
                let program = program.display();
                write!(f, "'{program}' was built without {library}: install libacl1-dev and libattr1-dev")
            }
            Self::Parts { count } => write!(f, "{count} parts failed"),
        }
    }
}
