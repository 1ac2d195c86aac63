//! `ferry`: moves directory trees on Linux as fast as the kernel allows, and shows why.
//!
//! The command line is understood in `cli`; each command is the module of its name; exit codes are those of
//! its help. Called by the name `cp`, ferry is cp.

mod arguments;
mod cli;
mod completions;
mod cp;
mod escape;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lab;
mod output;
mod pages;
mod progress;
mod quote;
mod trace;
mod tune;
mod units;
mod values;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Does what the arguments say, the program's own name first.
#[must_use]
pub fn run(arguments: &[OsString]) -> ExitCode {
    dispatch(arguments).unwrap_or_else(|misuse| complain(&misuse))
}

fn dispatch(arguments: &[OsString]) -> Result<ExitCode, cli::Misuse> {
    match cli::parse(arguments)? {
        cli::Command::Copy { program, request } => cp::run(program, *request),
        cli::Command::Verify(request) => Ok(verify::run(*request)),
        cli::Command::Lab(lab) => lab::run(*lab),
        cli::Command::Trace(trace) => Ok(trace::run(&trace)),
        cli::Command::Tune(request) => Ok(tune::run(&request)),
        cli::Command::Completions(shell) => completions::run(shell),
        cli::Command::Pages(folder) => pages::run(&folder),
        cli::Command::Print(text, command) => Ok(print(text, *command)),
    }
}

/// Help or the version, on standard output.
fn print(text: arguments::Text, mut command: clap::Command) -> ExitCode {
    let printed = match text {
        arguments::Text::Help => command.print_help(),
        arguments::Text::Version => std::io::stdout().write_all(command.render_version().as_bytes()),
    };
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn complain(misuse: &cli::Misuse) -> ExitCode {
    let (program, usage) = (misuse.program, &misuse.usage);
    let mut text = format!("{program}: {}\n", usage.message);
    if usage.hint {
        text += &format!("Try '{program} --help' for more information.\n");
    }
    // If standard error is closed, the exit code has to do.
    std::io::stderr().write_all(text.as_bytes()).ok();
    ExitCode::from(misuse.code)
}
