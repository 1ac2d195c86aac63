//! The commands within `ferry trace`.

use std::ffi::OsString;

use super::{NAME, Trace, export, record, show};
use crate::arguments::{Text, Usage};
use crate::cli::Parsed;
use crate::quote::quote;

/// Reads the arguments after `trace`.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn parse(rest: &[OsString]) -> Result<Parsed<Trace>, Usage> {
    let Some((name, rest)) = rest.split_first() else {
        return Err(Usage::with_hint(format!("missing command; there are: {}", names())));
    };
    match name.to_str() {
        Some("-h" | "--help" | "help") => Ok(Parsed::Print(Text::Help, Box::new(overview()))),
        Some(record::NAME) => Ok(match record::parse(rest)? {
            Parsed::Run(record) => Parsed::Run(Box::new(Trace::Record(*record))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(show::NAME) => Ok(match show::parse(rest)? {
            Parsed::Run(show) => Parsed::Run(Box::new(Trace::Show(*show))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(export::NAME) => Ok(match export::parse(rest)? {
            Parsed::Run(export) => Parsed::Run(Box::new(Trace::Export(*export))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(_) | None => {
            Err(Usage::with_hint(format!("{} is not a command; there are: {}", quote(name), names())))
        }
    }
}

/// Whose messages those about these arguments are: the command's, if there is one.
pub(crate) fn program(rest: &[OsString]) -> &'static str {
    match rest.first().and_then(|name| name.to_str()) {
        Some(record::NAME) => record::MANUAL.name,
        Some(show::NAME) => show::MANUAL.name,
        Some(export::NAME) => export::MANUAL.name,
        Some(_) | None => NAME,
    }
}

fn names() -> String {
    let overview = overview();
    overview.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ")
}

/// All of them, for help.
pub(crate) fn overview() -> clap::Command {
    clap::Command::new("trace")
        .display_name(NAME)
        .bin_name(NAME)
        .about("Shows what a program, its rings and the kernel did, over time")
        .override_usage("ferry trace COMMAND [ARGUMENT]...")
        .after_help("`ferry trace COMMAND --help` says more. `ferry cp --trace FILE` records a copy.")
        .disable_help_subcommand(true)
        .subcommand(record::command())
        .subcommand(show::command())
        .subcommand(export::command())
}
