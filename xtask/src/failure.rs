//! Errors of tasks: their messages and exit codes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: cargo xtask TASK

  acceptance-sync pairs --count N
                   compare ferry sync with rsync on N random pairs of trees
  acceptance-sync kills --count N
                   kill N runs of ferry sync that copy large files; each next run has to end equal
  test             run all checks and most tests; name the tests left out. With CI=true, a SKIP is a failure
  test --all       run all checks and all tests
  test --rest      run all checks and the tests that test leaves out
  bench            measure all copies of the table in docs/performance.md, unless their records are finished, and write it and its chart
  bench --cell NAME
                   measure only this cell; an unknown NAME lists them
  bench --records DIR
                   write the table and its chart from these records
  check-architecture
                   check ARCHITECTURE.md against the tree: its length, its code map, a regular file's way
  check-confinement
                   check that the tests of races fail in a build that follows links
  check-documents  run the commands of README.md, ARCHITECTURE.md and docs/*.md
  check-examples   check that an example uses each public function, method and type of ferry-io
  check-guards     check that the tests exist which documents and comments name as guards
  check-imports    check imports between crates and between files, and that only ferry-io has unsafe code or names io_uring
  check-imports --graph CRATE
                   print the imports between a crate's files, its cycles, and the imports that close them
  compare          check and test the package compare, which has ferry-io beside other runtimes, and a service on tokio
  deb              build the Debian package and print its path
  fuzz             run each fuzz target for half a minute
  gnu-cp           build the newest GNU cp, with which tests compare ferry, unless it is built
  hyperfine --in DIR [--rounds N] [--hyperfine PROGRAM] [--ferry PROGRAM]
                   measure two commands with ferry lab run and with hyperfine; the medians may differ by 2 %
  install --prefix DIR
                   build a release and install it with manual pages and completions
  mpi              check ferry-mpi, and run its tests by mpirun
  neighbour --in DIR [--rounds N] [--max-load PERCENT] [--ferry PROGRAM]
                   measure what ferry sync leaves to a program that reads from the disk of DIR
  pictures DIR     build a release and draw the pictures of docs/ with it
  python           build the Python wheel of the profile dev, test it in a fresh virtual environment, and uninstall it
  python --release
                   the same with a release, and with the whole table of speeds
  publishable      check that ferry-io can be published: its features in every combination, examples, package, interface
  semver-checks    build cargo-semver-checks, with which publishable compares interfaces, unless it is built
  tools            install the Debian packages that the whole test suite uses";

/// The reason why a task failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Unknown task or wrong arguments.
    Usage,
    /// Not started by Cargo, so that the workspace is unknown.
    WithoutCargo,
    /// A path could not be read or written.
    Path { verb: &'static str, path: PathBuf, source: io::Error },
    /// A command could not be started, or its output could not be read.
    Start { command: &'static str, source: io::Error },
    /// A command's exit status was not zero.
    Command { command: &'static str },
    /// A check found breaches, which it printed one a line.
    Breaches { check: &'static str, count: usize },
    /// CI skipped tests.
    Skips { count: usize },
    /// CI ignored tests.
    Ignored { count: usize },
    /// Tests failed, or a test binary broke off.
    Tests { count: usize },
    /// No test ran.
    NoTests,
    /// Fewer rounds ran than were asked for, because tests were skipped.
    FewRounds { wanted: u64, done: u64 },
    /// The output of a program was not understood.
    Output { command: &'static str },
    /// A fuzz target failed; `failures` holds its inputs.
    Fuzzed { target: &'static str, failures: PathBuf },
    /// The program is larger than a release.
    Large { path: PathBuf, mib: u64 },
    /// The program contains a path of this machine.
    Tells { binary: PathBuf, path: PathBuf },
    /// Neither SOURCE_DATE_EPOCH nor git has the age of the sources.
    NoTime,
    /// None of the machine's package sources has this suite of Debian.
    NoArchive { suite: &'static str },
    /// The archive's GNU cp is older than the version that ferry follows.
    OldCp { least: (u32, u32) },
    /// The program lacks a library.
    Without { program: PathBuf, library: &'static str },
    /// Records are older than the program.
    OldRecords { folder: PathBuf, cells: Vec<&'static str> },
    /// A folder lacks finished records of cells.
    NoRecords { folder: PathBuf, cells: Vec<&'static str> },
    /// There is no such cell.
    NoCell { name: String, known: Vec<&'static str> },
    /// A document lacks the markers of the part that is to be written.
    Markers { document: PathBuf },
    /// The user interrupted a command.
    Interrupted,
    /// Some parts of a task failed, each already reported.
    Parts { count: usize },
}

impl Failure {
    /// Returns a closure for `map_err` that adds the verb and the path.
    pub(crate) fn path(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Path { verb, path: path.to_owned(), source }
    }

    /// Returns a closure for `map_err` that adds the command.
    pub(crate) fn start(command: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Start { command, source }
    }

    /// Returns 2 for wrong usage and 1 for everything else.
    pub(crate) fn exit_code(&self) -> u8 {
        if matches!(self, Self::Usage | Self::NoCell { .. }) { 2 } else { 1 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => f.write_str(USAGE),
            Self::WithoutCargo => f.write_str("CARGO_MANIFEST_DIR is not set: run this as `cargo xtask`"),
            Self::Path { verb, path, source } => write!(f, "cannot {verb} '{}': {source}", path.display()),
            Self::Start { command, source } => write!(f, "cannot run `{command}`: {source}"),
            Self::Command { command } => write!(f, "`{command}` failed"),
            Self::Breaches { check, count } => write!(f, "{check}: {count} breaches"),
            Self::Skips { count } => write!(f, "{count} tests were skipped; with CI=true, none may be"),
            Self::Ignored { count } => write!(f, "{count} tests were ignored; with CI=true, none may be"),
            Self::Tests { count } => write!(f, "{count} tests failed"),
            Self::NoTests => f.write_str("no test ran"),
            Self::FewRounds { wanted, done } => write!(f, "{done} of {wanted} rounds ran"),
            Self::Output { command } => write!(f, "the output of `{command}` was not understood"),
            Self::Fuzzed { target, failures } => {
                write!(f, "fuzz target {target} failed; its inputs are in '{}'", failures.display())
            }
            Self::Large { path, mib } => write!(f, "'{}' is larger than {mib} MiB", path.display()),
            Self::Tells { binary, path } => {
                write!(f, "'{}' contains this machine's path '{}'", binary.display(), path.display())
            }
            Self::NoTime => f.write_str("no commit tells the age of the sources: set SOURCE_DATE_EPOCH"),
            Self::NoArchive { suite } => {
                write!(
                    f,
                    "no package source of apt-get has Debian's suite {suite}: see `apt-get indextargets`"
                )
            }
            Self::OldCp { least: (major, minor) } => write!(f, "GNU cp is older than {major}.{minor}"),
            Self::Without { program, library } => {
                let program = program.display();
                write!(f, "'{program}' was built without {library}: install libacl1-dev and libattr1-dev")
            }
            Self::OldRecords { folder, cells } => {
                let (cells, folder) = (cells.join(", "), folder.display());
                write!(f, "records of an older build in '{folder}', remove them to measure again: {cells}")
            }
            Self::NoRecords { folder, cells } => {
                let (cells, folder) = (cells.join(", "), folder.display());
                write!(
                    f,
                    "no finished record of {cells} in '{folder}': run `cargo xtask bench` without --records"
                )
            }
            Self::NoCell { name, known } => write!(f, "'{name}' is none of {}", known.join(", ")),
            Self::Markers { document } => {
                write!(f, "'{}' lacks the two markers of the speeds", document.display())
            }
            Self::Interrupted => {
                f.write_str("interrupted; the finished runs are kept, and the same command continues")
            }
            Self::Parts { count } => write!(f, "{count} parts failed"),
        }
    }
}
