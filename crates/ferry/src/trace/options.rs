//! Selects the command of `ferry trace`.

use std::ffi::OsString;

use super::{Trace, diff, export, record, show};
use crate::arguments::Effect::Print;
use crate::arguments::{self, Definition, Manual, Parsed, Text, Usage, option};
use crate::names::TRACE as NAME;

const MANUAL: Manual = Manual {
    name: NAME,
    about: "Record and show what a program, its rings and the kernel did",
    usage: "ferry trace COMMAND [ARGUMENT]...",
    examples: &[
        ("ferry cp -r --trace copy.trace photos backup", "Record a copy"),
        ("ferry trace show copy.trace", "Show where its time went"),
        ("ferry trace export -o copy.html copy.trace", "Make a page for a browser"),
    ],
    usual: &[],
    after: "`ferry trace COMMAND -h` prints a short help, `ferry trace COMMAND --help` a complete one.",
};

const OPTIONS: &[Definition<()>] = &[option("help", "Print this help", Print(Text::Help))];

pub(crate) fn parse(rest: &[OsString]) -> Result<Parsed<Trace>, Usage> {
    let Some((name, rest)) = rest.split_first() else {
        return Ok(Parsed::Print(Text::Missing, Box::new(overview())));
    };
    match name.to_str() {
        Some("help") => Ok(Parsed::Print(Text::Help, Box::new(overview()))),
        Some(record::NAME) => Ok(match record::parse(rest)? {
            Parsed::Run(record) => Parsed::Run(Box::new(Trace::Record(*record))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(show::NAME) => Ok(match show::parse(rest)? {
            Parsed::Run(show) => Parsed::Run(Box::new(Trace::Show(*show))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(diff::NAME) => Ok(match diff::parse(rest)? {
            Parsed::Run(comparison) => Parsed::Run(Box::new(Trace::Diff(*comparison))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(export::NAME) => Ok(match export::parse(rest)? {
            Parsed::Run(export) => Parsed::Run(Box::new(Trace::Export(*export))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        Some(_) | None => match arguments::leading(OPTIONS, name)? {
            Some(text) => Ok(Parsed::Print(text, Box::new(overview()))),
            None => {
                let overview = overview();
                let names: Vec<&str> = overview.get_subcommands().map(clap::Command::get_name).collect();
                Err(arguments::unknown(name, "a command", &names))
            }
        },
    }
}

/// Name that prefixes messages about these arguments.
pub(crate) fn program(rest: &[OsString]) -> &'static str {
    match rest.first().and_then(|name| name.to_str()) {
        Some(record::NAME) => record::MANUAL.name,
        Some(show::NAME) => show::MANUAL.name,
        Some(diff::NAME) => diff::MANUAL.name,
        Some(export::NAME) => export::MANUAL.name,
        Some(_) | None => NAME,
    }
}

pub(crate) fn overview() -> clap::Command {
    arguments::overview(&MANUAL, OPTIONS)
        .subcommand(record::command())
        .subcommand(show::command())
        .subcommand(diff::command())
        .subcommand(export::command())
}
