//! Selects the command of `ferry trace`.

use std::ffi::OsString;

use super::{Trace, export, record, show};
use crate::arguments::{Parsed, Text, Usage};
use crate::names::TRACE as NAME;
use crate::quote::quote;

pub(crate) fn parse(rest: &[OsString]) -> Result<Parsed<Trace>, Usage> {
    let Some((name, rest)) = rest.split_first() else {
        return Err(Usage::with_hint(format!("missing command; choose one of {}", names())));
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
            Err(Usage::with_hint(format!("{} is not a command; choose one of {}", quote(name), names())))
        }
    }
}

/// Name that prefixes messages about these arguments.
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

pub(crate) fn overview() -> clap::Command {
    clap::Command::new("trace")
        .display_name(NAME)
        .bin_name(NAME)
        .about("Record and show what a program, its rings and the kernel did")
        .override_usage("ferry trace COMMAND [ARGUMENT]...")
        .after_help("Run `ferry trace COMMAND --help` for more. `ferry cp --trace FILE` records a copy.")
        .disable_help_subcommand(true)
        .subcommand(record::command())
        .subcommand(show::command())
        .subcommand(export::command())
}
