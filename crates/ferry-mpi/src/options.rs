//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use ferry::job::Stats;
use ferry_cluster::Settings;

/// Copies, compares and syncs trees by the processes of an MPI job: `mpirun -np N ferry-mpi cp -a SOURCE TARGET`.
#[derive(Debug, Parser)]
#[command(name = "ferry-mpi", version, after_help = AFTER)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "Exit codes: 0 all done, 1 something failed, 2 wrong use (of `ferry-mpi cp`: 1), 130 interrupted.\n\
    A copy that was killed or stopped goes on if the same command is run again.\n\
    `ferry-mpi help COMMAND` lists the options that ferry's command of this name lacks.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy a directory, as `ferry cp` does: `ferry-mpi cp --help` lists its options.
    #[command(disable_help_flag = true)]
    Cp(Cp),
    /// Compare two directories, as `ferry verify` does: `ferry-mpi verify --help` lists its options.
    #[command(disable_help_flag = true)]
    Verify(Verify),
    /// Make a directory equal to another one, as `ferry sync` does: `ferry-mpi sync --help` lists its options.
    #[command(disable_help_flag = true)]
    Sync(Sync),
}

/// Options by which work is divided.
#[derive(Debug, Clone, Args)]
pub(crate) struct Division {
    /// Divide files of at least twice SIZE into ranges of SIZE [default: 64 to 256 MiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) range: Option<u64>,
    /// Give a rank NUMBER entries at a time [default: 2,048, more with up to 8 ranks].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lease: Option<u64>,
}

impl Division {
    /// Returns the sizes by which work is divided among so many ranks.
    pub(crate) fn settings(&self, ranks: u32) -> Settings {
        let mut settings = Settings::new(ranks);
        if let Some(entries) = self.lease {
            // The bytes are those of many ranks.
            settings = Settings { lease_entries: entries, ranks, ..Settings::new(u32::MAX) };
        }
        self.range.map_or(settings, |range| settings.in_ranges(range))
    }
}

/// Options about the journal of a copy.
#[derive(Debug, Clone, Args)]
pub(crate) struct Journaling {
    /// Copy large files in multiples of SIZE [default: what the target's filesystem prefers].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) stripe: Option<u64>,
    /// Keep the journal in FILE [default: `.NAME.ferry-mpi` beside the copy].
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Forget an interrupted job, and begin anew.
    #[arg(long)]
    pub(crate) restart: bool,
}

/// Options of `verify`, which come first.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) division: Division,
    /// Options and operands of `ferry verify`.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Options of `sync`, which come first.
#[derive(Debug, Args)]
pub(crate) struct Sync {
    #[command(flatten)]
    pub(crate) division: Division,
    #[command(flatten)]
    pub(crate) journaling: Journaling,
    /// Print totals of all ranks at the end: text (to standard error) or json (to standard output).
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text",
        value_parser = stats)]
    pub(crate) stats: Option<Stats>,
    /// Record what the ranks copy to FILE, for `ferry trace`.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Options and operands of `ferry sync`.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Options of `cp`, which stand anywhere before `--`.
#[derive(Debug, Args)]
pub(crate) struct Cp {
    #[command(flatten)]
    pub(crate) division: Division,
    #[command(flatten)]
    pub(crate) journaling: Journaling,
    /// Options and operands of `ferry cp`.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

impl Options {
    pub(crate) fn task(&self) -> &Command {
        &self.command
    }
}

/// Reads the command line.
pub(crate) fn parse() -> Result<Options, clap::Error> {
    parse_words(std::env::args_os().collect())
}

pub(crate) fn parse_words(words: Vec<OsString>) -> Result<Options, clap::Error> {
    let words = if words.get(1).is_some_and(|word| word == "cp") { own_first(words) } else { words };
    let mut options = Options::try_parse_from(&words)?;
    let (Command::Cp(Cp { arguments, .. })
    | Command::Verify(Verify { arguments, .. })
    | Command::Sync(Sync { arguments, .. })) = &mut options.command;
    keep_separator(&words, arguments);
    Ok(options)
}

/// Moves the options that `ferry cp` lacks before all others.
fn own_first(words: Vec<OsString>) -> Vec<OsString> {
    const VALUED: [&str; 4] = ["--stripe", "--range", "--lease", "--journal"];
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    own.extend(words.by_ref().take(2));
    while let Some(word) = words.next() {
        let name = word.to_str().and_then(|text| text.split('=').next()).unwrap_or_default().to_owned();
        if word == "--" {
            others.push(word);
            break;
        }
        if word == "--restart" {
            own.push(word);
        } else if VALUED.contains(&name.as_str()) {
            let has_value = word.len() > name.len();
            own.push(word);
            if !has_value {
                own.extend(words.next());
            }
        } else {
            others.push(word);
        }
    }
    own.extend(others);
    own.extend(words);
    own
}

/// Restores a `--` before the arguments of ferry's command: clap has removed it.
fn keep_separator(words: &[OsString], arguments: &mut Vec<OsString>) {
    let before = words.len().checked_sub(arguments.len() + 1).and_then(|at| words.get(at));
    if before.is_some_and(|word| word == "--") {
        arguments.insert(0, "--".into());
    }
}

/// Reads the form of totals.
fn stats(text: &str) -> Result<Stats, String> {
    match text {
        "text" => Ok(Stats::Text),
        "json" => Ok(Stats::Json),
        _ => Err("expected text or json".to_owned()),
    }
}

/// Reads a size: a number with K, M, G or T for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("expected a number with at most one of K, M, G and T".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number".to_owned())?;
    match number.checked_mul(1 << shift) {
        Some(size @ 1..) => Ok(size),
        Some(0) => Err("must not be zero".to_owned()),
        None => Err("too large".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("7"), Ok(7));
        for wrong in ["", "K", "0", "1KK", "-1", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_of_sync_and_verify_are_passed_on_as_they_are() {
        let arguments = |words: &[&str]| match parse_words(words.iter().map(OsString::from).collect()) {
            Ok(Options {
                command: Command::Sync(Sync { arguments, .. }) | Command::Verify(Verify { arguments, .. }),
            }) => arguments,
            other => panic!("{other:?}"),
        };
        for task in ["sync", "verify"] {
            for passed in
                [&["--", "-a", "b"][..], &["a", "--", "-b"], &["--delete", "--", "-a", "b"], &["-a", "b"]]
            {
                assert_eq!(
                    arguments(&[&["ferry-mpi", task, "--lease", "5"], passed].concat()),
                    passed,
                    "{task}"
                );
            }
        }
    }

    #[test]
    fn own_options_of_a_copy_stand_anywhere_and_the_others_are_passed_on() {
        let parse = |words: &[&str]| match parse_words(words.iter().map(OsString::from).collect()) {
            Ok(Options { command: Command::Cp(copy) }) => copy,
            other => panic!("{other:?}"),
        };
        let copy = parse(&["ferry-mpi", "cp", "-aT", "--lease", "5", "a", "--range=64K", "b", "--restart"]);
        assert_eq!(copy.arguments, ["-aT", "a", "b"]);
        assert_eq!((copy.division.lease, copy.division.range), (Some(5), Some(65_536)));
        assert!(copy.journaling.restart);
        assert_eq!(
            parse(&["ferry-mpi", "cp", "-a", "--", "--lease", "b"]).arguments,
            ["-a", "--", "--lease", "b"]
        );
        assert_eq!(parse(&["ferry-mpi", "cp", "--", "-a", "b"]).arguments, ["--", "-a", "b"]);
        assert_eq!(parse(&["ferry-mpi", "cp", "--help"]).arguments, ["--help"]);
    }
}
