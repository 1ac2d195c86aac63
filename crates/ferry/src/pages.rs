//! `ferry man`: writes a manual page (man-pages(7)) for each command from the tables of its help.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, Command};
use roff::{Inline, Roff, bold, italic, roman};

use crate::arguments::Effect::Print;
use crate::arguments::{self, CommandError, Definition, Manual, Parsed, Read, Text, Usage, command, option};
use crate::help;
use crate::quote::quote;

pub(crate) const NAME: &str = "man";

pub(crate) const MANUAL: Manual = Manual {
    name: "ferry man",
    about: "Write the manual pages into DIRECTORY",
    usage: "ferry man DIRECTORY",
    examples: &[
        ("ferry man /usr/local/share/man/man1", "Install the pages for all users"),
        ("ferry man .", "Write the pages into the current directory"),
        ("man ./ferry-cp.1", "Read a page that is not installed"),
    ],
    usual: &[],
    after: "\
Writes one page for each command: ferry.1, ferry-cp.1, ferry-lab-tree.1 and so on. Existing pages are \
replaced. man(1) searches share/man/man1 beside each directory `bin` on PATH.

Exit status:
  0  all pages were written
  1  a page could not be written
  2  the command line is wrong",
};

/// Paragraphs after the options that become sections, with their titles.
const ENDS: [(&str, &str); 2] = [("Exit status:", "EXIT STATUS"), ("Environment:", "ENVIRONMENT")];

pub(crate) const OPTIONS: &[Definition<()>] = &[option("help", "Print this help", Print(Text::Help))];

pub(crate) fn parse(rest: &[OsString]) -> Result<Parsed<PathBuf>, Usage> {
    match arguments::read(OPTIONS, rest, &mut ())? {
        Read::Print(text) => Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => match operands.as_slice() {
            [folder] => Ok(Parsed::Run(Box::new(folder.into()))),
            [] => Err(Usage::with_hint("missing directory")),
            [_, more, ..] => Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
        },
    }
}

/// Writes the pages of `overview` and its subcommands into `folder`.
///
/// # Errors
/// A page can't be written.
pub(crate) fn run(folder: &Path, mut overview: Command) -> Result<ExitCode, CommandError> {
    let mut pages = Vec::new();
    overview.build();
    collect("ferry", &overview, None, &mut pages);
    for (name, page) in pages {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page).map_err(|error| CommandError {
            program: MANUAL.name,
            usage: Usage::plain(format!("cannot write {}: {error}", quote(&path))),
            code: 1,
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Collects the pages of a command and of its subcommands.
fn collect(name: &str, command: &Command, above: Option<&str>, pages: &mut Vec<(String, String)>) {
    pages.push((name.to_owned(), page(name, command, above)));
    for inner in command.get_subcommands() {
        collect(&format!("{name}-{}", inner.get_name()), inner, Some(name), pages);
    }
}

fn page(name: &str, command: &Command, above: Option<&str>) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let source = concat!("ferry ", env!("CARGO_PKG_VERSION"));
    let mut roff = Roff::new();
    // The page has no date, so that builds are reproducible. roff drops empty arguments, hence the space.
    roff.control("TH", [name.to_uppercase().as_str(), "1", " ", source, "User Commands"]);
    // Lists of words are long, so align left instead of justifying.
    roff.control("ad", ["l"]);
    roff.control("SH", ["NAME"]).text([roman(format!("{name} - {about}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    synopsis(&mut roff, command);
    roff.control("SH", ["DESCRIPTION"]).text([roman(format!("{about}."))]);
    let section = |text: &str| ENDS.iter().find(|(head, _)| text.starts_with(head)).map(|(_, title)| *title);
    let (ends, description): (Vec<_>, Vec<_>) = after.split("\n\n").partition(|text| section(text).is_some());
    description.iter().for_each(|text| paragraph(&mut roff, text));
    options(&mut roff, command);
    commands(&mut roff, name, command);
    for text in ends {
        roff.control("SH", section(text));
        items(&mut roff, text.lines().skip(1));
    }
    examples(&mut roff, command);
    see_also(&mut roff, command, above);
    roff.render()
}

/// Writes one line for each form of the usage.
fn synopsis(roff: &mut Roff, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    for (index, form) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if index > 0 {
            roff.control("br", []);
        }
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        roff.text([bold(name), roman(form.strip_prefix(name).unwrap_or(form))]);
    }
}

/// Writes a paragraph of the text after the options: prose, then indented items.
fn paragraph(roff: &mut Roff, text: &str) {
    let prose: Vec<&str> = text.lines().take_while(|line| !line.starts_with("  ")).collect();
    if !prose.is_empty() {
        roff.control("PP", []).text([roman(prose.join(" "))]);
    }
    items(roff, text.lines().skip(prose.len()));
}

/// Writes items of the form `  word  meaning`.
fn items<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        let (word, meaning) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
        roff.control("TP", []).text([bold(word)]).text([roman(meaning.trim_start())]);
    }
}

/// Writes a section for each heading of the help.
fn options(roff: &mut Roff, command: &Command) {
    let mut heading = None;
    let (own, usual): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().partition(|option| option.get_help_heading().is_some());
    for option in usual.into_iter().chain(own) {
        let section = option.get_help_heading().unwrap_or("Options").to_uppercase();
        if heading.as_ref() != Some(&section) {
            roff.control("SH", [section.as_str()]);
            heading = Some(section);
        }
        let mut help = option.get_help().map(ToString::to_string).unwrap_or_default();
        if !help.ends_with([']', '.']) {
            help.push('.');
        }
        roff.control("TP", []).text(header(option)).text([roman(help)]);
    }
}

/// Builds `-r, -R, --recursive` and the name of the value.
fn header(option: &Arg) -> Vec<Inline> {
    let letters = option.get_short_and_visible_aliases().unwrap_or_default();
    let names = letters.into_iter().map(|letter| format!("-{letter}"));
    let names: Vec<String> = names.chain(option.get_long().map(|long| format!("--{long}"))).collect();
    let mut inlines = Vec::new();
    for name in names {
        if !inlines.is_empty() {
            inlines.push(roman(", "));
        }
        inlines.push(bold(name));
    }
    for value in option.get_value_names().into_iter().flatten() {
        let (before, after) = match (option.is_require_equals_set(), option.get_long()) {
            (true, _) => ("[=", "]"),
            (false, Some(_)) => ("=", ""),
            (false, None) => (" ", ""),
        };
        inlines.extend([roman(before), italic(value.as_str()), roman(after)]);
    }
    inlines
}

fn commands(roff: &mut Roff, name: &str, command: &Command) {
    if command.has_subcommands() {
        roff.control("SH", ["COMMANDS"]);
    }
    for inner in command.get_subcommands() {
        let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
        let page = format!("{name}-{}", inner.get_name());
        roff.control("TP", []).text([bold(page), roman("(1)")]).text([roman(format!("{about}."))]);
    }
}

fn examples(roff: &mut Roff, command: &Command) {
    roff.control("SH", ["EXAMPLES"]);
    for (line, purpose) in help::examples(command) {
        roff.control("TP", []).text([bold(line)]).text([roman(format!("{purpose}."))]);
    }
}

/// Refers to the enclosing command, and to cp(1).
fn see_also(roff: &mut Roff, command: &Command, above: Option<&str>) {
    let cp = (command.get_name() == "cp").then_some("cp");
    let pages: Vec<&str> = above.into_iter().chain(cp).collect();
    if !pages.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
    }
    let inlines = pages.iter().enumerate().flat_map(|(index, page)| {
        let comma = if index + 1 < pages.len() { "(1), " } else { "(1)" };
        [bold(*page), roman(comma)]
    });
    roff.text(inlines.collect::<Vec<_>>());
}
