//! Layout of the help: examples before the options, and a short form with one line for each option.
//!
//! clap's long form is not used: it puts an empty line after each option. Both forms are clap's short one, and differ in
//! the options that are hidden, in the length of their texts and in the text after them.

use clap::{Arg, Command};

#[cfg(test)]
mod tests;

/// A command line that works, and its purpose.
pub(crate) type Example = (&'static str, &'static str);

/// Number of examples in the help. The manual page has all.
const SHOWN: usize = 3;

/// Columns of the help on a wider terminal, and in a pipe: longer lines are hard to read.
const COLUMNS: usize = 80;

/// Columns before and behind the names of an option.
const GAPS: usize = 4;

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}";

/// Adds examples, and the layout that shows them.
pub(crate) fn with_examples(command: Command, examples: &[Example]) -> Command {
    let shown = list(&command, examples.get(..SHOWN).unwrap_or(examples));
    let all = list(&command, examples);
    // Nothing else uses the text of clap's long form: it keeps the examples for the manual page.
    command.help_template(TEMPLATE).max_term_width(COLUMNS).before_help(shown).before_long_help(all)
}

/// Formats the heading, and two lines for each example.
fn list(command: &Command, examples: &[Example]) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = format!("{header}Examples:{header:#}");
    for (line, purpose) in examples {
        text += &format!("\n  {literal}{line}{literal:#}\n      {purpose}");
    }
    text
}

/// Returns all examples of a command: lines and purposes.
pub(crate) fn examples(command: &Command) -> Vec<(String, String)> {
    let text = command.get_before_long_help().map(ToString::to_string).unwrap_or_default();
    let mut lines = text.lines().skip(1).map(|line| line.trim().to_owned());
    std::iter::from_fn(|| lines.next().zip(lines.next())).collect()
}

/// Prepares the short help: the usual options, one line each.
pub(crate) fn short(mut command: Command) -> Command {
    // Only a built option knows its value.
    command.build();
    let shown = command.get_arguments().filter(|option| !option.is_hide_short_help_set());
    let longest = shown.map(names_width).max().unwrap_or_default();
    let room = COLUMNS.saturating_sub(longest + GAPS);
    command.mut_args(|option| {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        option.help(brief(&help, room))
    })
}

/// Prepares the long help: all options, and the whole text.
pub(crate) fn long(command: Command) -> Command {
    let text = command.get_after_long_help().cloned().unwrap_or_default();
    command.mut_args(|option| option.hide_short_help(false)).after_help(text)
}

/// Columns of an option's names and value, such as `-o, --output <FILE>`.
fn names_width(option: &Arg) -> usize {
    let letter = if option.get_long().is_some() { "-o, ".len() } else { 0 };
    letter + option.to_string().chars().count()
}

/// Returns a help that fits `room` columns: the whole one, or up to a sign after which details follow.
fn brief(help: &str, room: usize) -> String {
    let fits = |text: &str| text.chars().count() <= room;
    if fits(help) {
        return help.to_owned();
    }
    let details = [": ", "; ", ". ", " (", " ["].iter().filter_map(|sign| help.find(*sign)).min();
    if let Some(begin) = details.and_then(|end| help.get(..end)).filter(|begin| fits(begin)) {
        return begin.to_owned();
    }
    let before = |sign: &'static str| help.match_indices(sign).filter_map(move |(end, _)| help.get(..end));
    if let Some(begin) = before(", ").filter(|begin| fits(begin)).last() {
        return begin.to_owned();
    }
    let words = before(" ").map(|begin| format!("{begin} ...")).filter(|begin| fits(begin)).last();
    words.unwrap_or_else(|| help.to_owned())
}
