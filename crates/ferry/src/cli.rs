//! Selects the command from the program's name and the first argument.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::arguments::Effect::Print;
use crate::arguments::{
    self, CommandError, Definition, Dialect, Manual, Parsed, Text, Usage, command, option,
};
use crate::{completions, cp, lab, names, pages, plan, sync, trace, tune, verify};

#[cfg(test)]
mod tests;

const MANUAL: Manual = Manual {
    name: "ferry",
    about: "Copy directory trees as fast as the kernel allows, and show why",
    usage: "ferry COMMAND [ARGUMENT]...",
    examples: &[
        ("ferry cp -a --progress photos backup", "Copy a directory with all attributes"),
        ("ferry sync photos backup", "Copy later what is new or has changed"),
        ("ferry verify photos backup", "Compare both directories"),
    ],
    usual: &[],
    after: "\
`ferry COMMAND -h` prints a short help, `ferry COMMAND --help` a complete one. When invoked as `cp`, ferry behaves as \
GNU cp.",
};

const OPTIONS: &[Definition<()>] = &[
    option("help", "Print this help", Print(Text::Help)),
    Definition { letters: "V", ..option("version", "Print the version", Print(Text::Version)) },
];

/// Names of the commands, in the order of the help.
const COMMANDS: [&str; 9] =
    ["cp", "sync", "verify", "plan", "lab", "trace", "tune", completions::NAME, pages::NAME];

pub(crate) enum Command {
    Copy {
        program: &'static str,
        request: Box<cp::Request>,
    },
    Sync(Box<sync::Request>),
    Verify(Box<verify::Request>),
    Plan(Box<plan::Request>),
    Lab(Box<lab::Lab>),
    Trace(Box<trace::Trace>),
    Tune(Box<tune::Request>),
    Completions(clap_complete::Shell),
    /// `ferry man`, with the directory for the pages.
    Pages(PathBuf),
    Print(Text, Box<clap::Command>),
}

/// Exit code for a wrong command line; cp's is 1, as in GNU cp.
pub(crate) const WRONG_USE: u8 = 2;

/// Parses the arguments, starting with the program's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Command, CommandError> {
    let name = arguments.first().map_or(OsStr::new("ferry"), |path| last_component(path));
    let rest = arguments.get(1..).unwrap_or_default();
    if name == "cp" {
        return copy("cp", Dialect::Gnu, rest);
    }
    let Some((command, rest)) = rest.split_first() else {
        return Ok(Command::Print(Text::Missing, Box::new(overview())));
    };
    match command.to_str() {
        Some("cp") => copy("ferry cp", Dialect::Ferry, rest),
        Some("sync") => understood(sync::MANUAL.name, sync::parse(rest), Command::Sync),
        Some("verify") => understood("ferry verify", verify::parse(rest), Command::Verify),
        Some("plan") => understood(plan::MANUAL.name, plan::parse(rest), Command::Plan),
        Some("lab") => understood(lab::options::program(rest), lab::options::parse(rest), Command::Lab),
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
        Some("help") => topic(Text::Help, rest),
        Some(_) | None => match arguments::leading(OPTIONS, command) {
            Ok(Some(Text::Version)) => Ok(Command::Print(Text::Version, Box::new(overview()))),
            Ok(Some(text)) => topic(text, rest),
            Ok(None) => Err(misuse(MANUAL.name, arguments::unknown(command, "a command", &COMMANDS))),
            Err(usage) => Err(misuse(MANUAL.name, usage)),
        },
    }
}

fn copy(program: &'static str, dialect: Dialect, rest: &[OsString]) -> Result<Command, CommandError> {
    match cp::parse(dialect, rest) {
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

/// Prints the help of the command that `ferry help COMMAND...` names.
fn topic(text: Text, names: &[OsString]) -> Result<Command, CommandError> {
    let mut found = overview();
    for name in names {
        let inner = found.find_subcommand(name).cloned();
        found = inner.ok_or_else(|| {
            let known: Vec<&str> = found.get_subcommands().map(clap::Command::get_name).collect();
            misuse(MANUAL.name, arguments::unknown(name, "a command", &known))
        })?;
    }
    Ok(Command::Print(text, Box::new(found)))
}

/// Returns the command that these arguments name, unless they have further words.
pub(crate) fn without_arguments(arguments: &[OsString]) -> Option<clap::Command> {
    let names = arguments.get(1..).filter(|names| !names.is_empty())?;
    names.iter().try_fold(overview(), |above, name| above.find_subcommand(name).cloned())
}

pub(crate) fn overview() -> clap::Command {
    arguments::overview(&MANUAL, OPTIONS)
        .subcommand(command(&cp::MANUAL, cp::OPTIONS))
        .subcommand(command(&sync::MANUAL, sync::OPTIONS))
        .subcommand(command(&verify::MANUAL, verify::OPTIONS))
        .subcommand(command(&plan::MANUAL, plan::OPTIONS))
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
