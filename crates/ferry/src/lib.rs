//! `ferry`: moves directory trees on Linux as fast as the kernel allows, and shows why.
//!
//! `cli` reads the command line. Each command is the module of its name, and its help lists its exit codes.
//! When invoked as `cp`, ferry behaves as GNU cp.

mod arguments;
mod cli;
mod complete_file;
mod completions;
mod cp;
mod errno;
mod escape;
mod events;
#[cfg(fuzzing)]
pub mod fuzzing;
mod help;
pub mod job;
mod lab;
mod layout;
mod manifest;
mod names;
mod nearest;
mod output;
mod pages;
mod plan;
mod program;
mod progress;
mod quote;
mod signals;
mod sync;
mod trace;
mod tune;
mod units;
mod values;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use self::arguments::{CommandError, Text};

/// Runs the command that `arguments` (starting with the program's name) ask for.
#[must_use]
pub fn run(arguments: &[OsString]) -> ExitCode {
    dispatch(arguments).unwrap_or_else(|error| complain(&error, arguments))
}

/// Runs a command within another program. `program` is the path that starts this command anew, with the arguments after
/// the first: `ferry lab` and `ferry tune --check` do.
#[must_use]
pub fn run_as(program: PathBuf, arguments: &[OsString]) -> ExitCode {
    program::set(program, arguments);
    run(arguments)
}

fn dispatch(arguments: &[OsString]) -> Result<ExitCode, CommandError> {
    match cli::parse(arguments)? {
        cli::Command::Copy { program, request } => cp::run(program, *request),
        cli::Command::Verify(request) => Ok(verify::run(*request)),
        cli::Command::Sync(request) => sync::run(&request),
        cli::Command::Plan(request) => plan::run(&request),
        cli::Command::Lab(lab) => lab::run(*lab),
        cli::Command::Trace(trace) => Ok(trace::run(&trace)),
        cli::Command::Tune(request) => Ok(tune::run(&request)),
        cli::Command::Completions(shell) => completions::run(shell, cli::overview()),
        cli::Command::Pages(folder) => pages::run(&folder, cli::overview()),
        cli::Command::Print(text, command) => Ok(print(text, *command)),
    }
}

fn print(text: Text, command: clap::Command) -> ExitCode {
    let printed = match text {
        Text::Help => help::long(command).print_help(),
        Text::ShortHelp => help::short(command).print_help(),
        Text::Missing => {
            let help = help::short(command).render_help().to_string();
            // If standard error is closed, only the exit code is left.
            std::io::stderr().write_all(help.as_bytes()).ok();
            return ExitCode::from(cli::WRONG_USE);
        }
        Text::Version => std::io::stdout().write_all(command.render_version().as_bytes()),
    };
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reports the error. A command without any arguments also shows its short help.
fn complain(error: &CommandError, arguments: &[OsString]) -> ExitCode {
    let (program, usage) = (error.program, &error.usage);
    let mut text = format!("{program}: {}\n", usage.message);
    if usage.hint {
        let bare = if error.code == cli::WRONG_USE { cli::without_arguments(arguments) } else { None };
        text += &match bare {
            Some(command) => format!("\n{}", help::short(command).render_help()),
            None => format!("Try '{program} --help' for more information.\n"),
        };
    }
    // If standard error is closed, only the exit code is left.
    std::io::stderr().write_all(text.as_bytes()).ok();
    ExitCode::from(error.code)
}
