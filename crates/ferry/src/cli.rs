//! Selects the command from the program's name and the first argument.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::arguments::{CommandError, Parsed, Text, Usage, command};
use crate::quote::quote;
use crate::{completions, cp, lab, names, pages, sync, trace, tune, verify};

pub(crate) enum Command {
    Copy {
        program: &'static str,
        request: Box<cp::Request>,
    },
    Sync(Box<sync::Request>),
    Verify(Box<verify::Request>),
    Lab(Box<lab::Lab>),
    Trace(Box<trace::Trace>),
    Tune(Box<tune::Request>),
    Completions(clap_complete::Shell),
    /// `ferry man`, with the directory for the pages.
    Pages(PathBuf),
    Print(Text, Box<clap::Command>),
}

/// Exit code for a wrong command line; cp's is 1, as in GNU cp.
const WRONG_USE: u8 = 2;

/// Parses the arguments, starting with the program's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Command, CommandError> {
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
        Some("sync") => understood(sync::MANUAL.name, sync::parse(rest), Command::Sync),
        Some("verify") => understood("ferry verify", verify::parse(rest), Command::Verify),
        Some("lab") => understood(names::LAB, lab::options::parse(rest), Command::Lab),
        Some("trace") => {
            understood(trace::options::program(rest), trace::options::parse(rest), Command::Trace)
        }
        Some("tune") => understood(names::TUNE, tune::parse(rest), Command::Tune),
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

fn copy(program: &'static str, rest: &[OsString]) -> Result<Command, CommandError> {
    match cp::parse(rest) {
        Ok(Parsed::Run(request)) => Ok(Command::Copy { program, request }),
        Ok(Parsed::Print(text, command)) => Ok(Command::Print(text, command)),
        Err(usage) => Err(CommandError { program, usage, code: 1 }),
    }
}

fn understood<T>(
    program: &'static str,
    parsed: Result<Parsed<T>, Usage>,
    run: fn(Box<T>) -> Command,
) -> Result<Command, CommandError> {
    match parsed {
        Ok(Parsed::Run(request)) => Ok(run(request)),
        Ok(Parsed::Print(text, command)) => Ok(Command::Print(text, command)),
        Err(usage) => Err(misuse(program, usage)),
    }
}

/// Finds the command that `ferry help COMMAND...` names.
fn topic(rest: &[OsString]) -> Box<clap::Command> {
    let overview = overview();
    let find = |within: &clap::Command, name: &OsString| within.find_subcommand(name).cloned();
    let chosen = rest.iter().try_fold(overview.clone(), |within, name| find(&within, name));
    Box::new(chosen.unwrap_or(overview))
}

pub(crate) fn overview() -> clap::Command {
    clap::Command::new("ferry")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Copy directory trees as fast as the kernel allows, and show why")
        .override_usage("ferry COMMAND [ARGUMENT]...")
        .after_help("Run `ferry COMMAND --help` for more. When invoked as `cp`, ferry behaves as GNU cp.")
        .disable_help_subcommand(true)
        .subcommand(command(&cp::MANUAL, cp::OPTIONS))
        .subcommand(command(&sync::MANUAL, sync::OPTIONS))
        .subcommand(command(&verify::MANUAL, verify::OPTIONS))
        .subcommand(lab::options::overview())
        .subcommand(trace::options::overview())
        .subcommand(command(&tune::MANUAL, tune::OPTIONS))
        .subcommand(command(&completions::MANUAL, completions::OPTIONS))
        .subcommand(command(&pages::MANUAL, pages::OPTIONS))
}

fn misuse(program: &'static str, usage: Usage) -> CommandError {
    CommandError { program, usage, code: WRONG_USE }
}

fn last_component(path: &OsStr) -> &OsStr {
    Path::new(path).file_name().unwrap_or(path)
}
