//! Which command is meant: by the name ferry was called by, or by its first argument.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::arguments::{Text, Usage, command};
use crate::quote::quote;
use crate::{completions, cp, lab, pages, trace, tune, verify};

/// One command line, understood.
pub(crate) enum Command {
    /// `ferry cp`, or `cp`.
    Copy {
        /// The name messages begin with.
        program: &'static str,
        /// What is to be copied, and how.
        request: Box<cp::Request>,
    },
    /// `ferry verify`.
    Verify(Box<verify::Request>),
    /// `ferry lab`.
    Lab(Box<lab::Lab>),
    /// `ferry trace`.
    Trace(Box<trace::Trace>),
    /// `ferry tune`.
    Tune(Box<tune::Request>),
    /// `ferry completions`.
    Completions(clap_complete::Shell),
    /// `ferry man`, into this folder.
    Pages(PathBuf),
    /// `--help` or `--version`, of that command.
    Print(Text, Box<clap::Command>),
}

/// What a command makes of its arguments.
pub(crate) enum Parsed<T> {
    /// Do this.
    Run(Box<T>),
    /// Print this.
    Print(Text, Box<clap::Command>),
}

/// A command line that is wrong, and how the process ends for it.
pub(crate) struct Misuse {
    /// The name messages begin with.
    pub(crate) program: &'static str,
    /// What is wrong.
    pub(crate) usage: Usage,
    /// The exit code.
    pub(crate) code: u8,
}

/// Exit code for a wrong command line, except for cp's, whose only failure is 1.
const WRONG_USE: u8 = 2;

/// Understands the arguments, the program's own name first.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Command, Misuse> {
    let name = arguments.first().map_or(OsStr::new("ferry"), |path| last_component(path));
    let rest = arguments.get(1..).unwrap_or_default();
    if name == "cp" {
        return copy("cp", rest);
    }
    let Some((command, rest)) = rest.split_first() else {
        return Err(misuse("ferry", Usage::with_hint("missing command")));
    };
    match command.to_str() {
        Some("cp") => copy("ferry cp", rest),
        Some("verify") => understood("ferry verify", verify::parse(rest), Command::Verify),
        Some("lab") => understood(lab::NAME, lab::parse(rest), Command::Lab),
        Some("trace") => understood(trace::program(rest), trace::parse(rest), Command::Trace),
        Some("tune") => understood(tune::NAME, tune::parse(rest), Command::Tune),
        Some(completions::NAME) => {
            let parsed = completions::parse(rest);
            understood(completions::MANUAL.name, parsed, |shell| Command::Completions(*shell))
        }
        Some(pages::NAME) => {
            understood(pages::MANUAL.name, pages::parse(rest), |folder| Command::Pages(*folder))
        }
        Some("-h" | "--help" | "help") => Ok(Command::Print(Text::Help, topic(rest))),
        Some("-V" | "--version") => Ok(Command::Print(Text::Version, Box::new(overview()))),
        Some(_) | None => {
            Err(misuse("ferry", Usage::with_hint(format!("{} is not a command", quote(command)))))
        }
    }
}

fn copy(program: &'static str, rest: &[OsString]) -> Result<Command, Misuse> {
    match cp::parse(rest) {
        Ok(Parsed::Run(request)) => Ok(Command::Copy { program, request }),
        Ok(Parsed::Print(text, command)) => Ok(Command::Print(text, command)),
        Err(usage) => Err(Misuse { program, usage, code: 1 }),
    }
}

/// What a command made of its arguments, as what is to be done.
fn understood<T>(
    program: &'static str,
    parsed: Result<Parsed<T>, Usage>,
    run: fn(Box<T>) -> Command,
) -> Result<Command, Misuse> {
    match parsed {
        Ok(Parsed::Run(request)) => Ok(run(request)),
        Ok(Parsed::Print(text, command)) => Ok(Command::Print(text, command)),
        Err(usage) => Err(misuse(program, usage)),
    }
}

/// `ferry help cp` is `ferry cp --help`, and so on within.
fn topic(rest: &[OsString]) -> Box<clap::Command> {
    let overview = overview();
    let find = |within: &clap::Command, name: &OsString| within.find_subcommand(name).cloned();
    let chosen = rest.iter().try_fold(overview.clone(), |within, name| find(&within, name));
    Box::new(chosen.unwrap_or(overview))
}

/// All commands, as clap has them.
pub(crate) fn overview() -> clap::Command {
    clap::Command::new("ferry")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Moves directory trees as fast as the kernel allows, and shows why")
        .override_usage("ferry COMMAND [ARGUMENT]...")
        .after_help("`ferry COMMAND --help` says more. Called as `cp`, ferry is cp.")
        .disable_help_subcommand(true)
        .subcommand(command(&cp::MANUAL, cp::OPTIONS))
        .subcommand(command(&verify::MANUAL, verify::OPTIONS))
        .subcommand(lab::overview())
        .subcommand(trace::overview())
        .subcommand(command(&tune::MANUAL, tune::OPTIONS))
        .subcommand(command(&completions::MANUAL, completions::OPTIONS))
        .subcommand(command(&pages::MANUAL, pages::OPTIONS))
}

fn misuse(program: &'static str, usage: Usage) -> Misuse {
    Misuse { program, usage, code: WRONG_USE }
}

fn last_component(path: &OsStr) -> &OsStr {
    Path::new(path).file_name().unwrap_or(path)
}
