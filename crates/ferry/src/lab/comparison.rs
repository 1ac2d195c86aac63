//! `ferry lab run`: the two commands behind `--`, and the common options that it lacks.

use std::ffi::{OsStr, OsString};

use ferry_lab::command::line;
use ferry_lab::conduct::Request;
use ferry_lab::experiment::Experiment;

use crate::arguments::Usage;
use crate::quote::quote;

/// Name of the experiment.
pub(super) const NAME: &str = "run";

pub(super) const USAGE: &str = "ferry lab run [OPTION]... -- COMMAND -- COMMAND";

/// Common options without meaning here: no figures are published, and the commands choose their files themselves.
const LACKS: [&str; 2] = ["as-published", "work-dir"];

/// Returns true for the experiment that compares two commands.
pub(super) fn is_it(experiment: &dyn Experiment) -> bool {
    experiment.spec().name == NAME
}

/// Returns true if an experiment has this common option.
pub(super) fn has(experiment: &dyn Experiment, option: &str) -> bool {
    !(is_it(experiment) && LACKS.contains(&option))
}

/// Splits the arguments at the first `--`, which is left out.
pub(super) fn split(arguments: &[OsString]) -> (&[OsString], &[OsString]) {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let (options, commands) = arguments.split_at(end);
    (options, commands.get(1..).unwrap_or_default())
}

/// Adds the two commands to the parameters of a request. The first `--` within `commands` ends the first one.
pub(super) fn add(
    request: &mut Request,
    names: &[&str],
    operands: &[OsString],
    commands: &[OsString],
) -> Result<(), Usage> {
    if let Some(word) = operands.first() {
        return Err(Usage::with_hint(format!("unexpected operand {} before '--'", quote(word))));
    }
    if request.resume.is_some() {
        let why = "the commands can't be changed when a record is resumed";
        return if commands.is_empty() { Ok(()) } else { Err(Usage::plain(why)) };
    }
    let both: Vec<&[OsString]> = commands.splitn(2, |word| word == "--").collect();
    if both.len() != names.len() || both.iter().any(|words| words.is_empty()) {
        return Err(Usage::with_hint("two commands are needed: '-- COMMAND -- COMMAND'"));
    }
    let has_shell = request.parameters.iter().any(|(name, _)| name == "shell");
    for (name, words) in names.iter().zip(both) {
        let words = words.iter().map(|word| text(word)).collect::<Result<Vec<String>, Usage>>()?;
        // A shell splits the line itself.
        let line = if has_shell { words.join(" ") } else { line(&words) };
        request.parameters.push(((*name).to_owned(), line));
    }
    Ok(())
}

/// Records are text, so commands must be UTF-8.
fn text(word: &OsStr) -> Result<String, Usage> {
    let known = word.to_str().map(str::to_owned);
    known.ok_or_else(|| Usage::plain(format!("{} in a command is not UTF-8", quote(word))))
}
