//! Parses arguments as getopt_long(3) does, from a table of options with their help and effect.
//!
//! Options may be abbreviated, clustered and mixed with operands. They apply in the order given, so later
//! ones override earlier ones. `--` ends the options; with `POSIXLY_CORRECT` set, the first operand does too.
//! [`command`] builds a clap command from the same table for help, completions and manual pages.
//!
//! clap does not parse, because its first parse takes 250 to 330 µs of a start of about 1,000 µs; this parser
//! takes 10. It would also hide the order of options, on which GNU's rules depend.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::help;
pub(crate) use crate::help::Example;
use crate::nearest::nearest;
use crate::quote::quote;

#[cfg(test)]
mod tests;

/// One option; its effect changes a draft `D`.
pub(crate) struct Definition<D> {
    /// Short names, one letter each.
    pub(crate) letters: &'static str,
    pub(crate) long: &'static str,
    pub(crate) help: &'static str,
    pub(crate) effect: Effect<D>,
    /// True for options that GNU cp lacks. An abbreviation that fits both means GNU's option.
    pub(crate) own: bool,
}

/// An option without short names.
pub(crate) const fn option<D>(long: &'static str, help: &'static str, effect: Effect<D>) -> Definition<D> {
    Definition { letters: "", long, help, effect, own: false }
}

pub(crate) enum Effect<D> {
    Switch(fn(&mut D)),
    /// Takes a value; the first field is its name in the help.
    Value(&'static str, fn(&mut D, &OsStr) -> Result<(), Usage>),
    /// Takes a value only after `=`. Fields: name of the value, default, effect.
    Optional(&'static str, &'static str, fn(&mut D, &OsStr) -> Result<(), Usage>),
    /// Like `Switch`; the effect also gets the option's long name.
    KeyedSwitch(fn(&mut D, &'static str)),
    /// Like `Value`; the effect also gets the option's long name.
    Keyed(&'static str, fn(&mut D, &'static str, &OsStr) -> Result<(), Usage>),
    Print(Text),
}

impl<D> Effect<D> {
    /// Applies an option that takes a value.
    fn take(&self, draft: &mut D, name: &'static str, value: &OsStr) -> Result<(), Usage> {
        match self {
            Self::Value(_, apply) | Self::Optional(_, _, apply) => apply(draft, value),
            Self::Keyed(_, apply) => apply(draft, name, value),
            Self::Switch(_) | Self::KeyedSwitch(_) | Self::Print(_) => Ok(()),
        }
    }
}

impl<D> Definition<D> {
    /// Returns true for the option that prints the help. Its letter is `h`, except in [`Dialect::Gnu`].
    fn prints_help(&self) -> bool {
        matches!(self.effect, Effect::Print(Text::Help))
    }
}

impl<D: Default> Definition<D> {
    /// Lists the words that the option accepts, or nothing if it accepts any value.
    ///
    /// They are read from the error for a value that no option accepts.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        let refused = self.effect.take(&mut D::default(), self.long, OsStr::new("?"));
        refused.err().map(|usage| usage.words).unwrap_or_default()
    }
}

/// Text printed in place of running the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    Help,
    /// The help of `-h`.
    ShortHelp,
    /// The short help as an error: on standard error, with exit code 2. No command was named.
    Missing,
    Version,
}

/// Rules for what getopt_long(3) leaves to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `-h` prints the short help, and an error names the option that was probably meant.
    Ferry,
    /// No additions to GNU cp.
    Gnu,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) message: String,
    /// True if the message should refer to `--help`.
    pub(crate) hint: bool,
    /// Accepted words, if only some are.
    pub(crate) words: Vec<&'static str>,
}

impl Usage {
    /// Error of syntax; the message refers to `--help`.
    pub(crate) fn with_hint(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: true, words: Vec::new() }
    }

    /// Error that the help would not resolve.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: false, words: Vec::new() }
    }
}

/// Error for a word that is none of the `known` ones; `kind` is what it should be, with its article.
pub(crate) fn unknown(word: &OsStr, kind: &str, known: &[&str]) -> Usage {
    let advice = match nearest(word, known) {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("choose one of {}", known.join(", ")),
    };
    Usage::with_hint(format!("{} is not {kind}; {advice}", quote(word)))
}

/// A parsed command line.
pub(crate) enum Parsed<T> {
    Run(Box<T>),
    Print(Text, Box<clap::Command>),
}

/// Error that ends a command before it prints a result.
pub(crate) struct CommandError {
    /// Name that prefixes the message.
    pub(crate) program: &'static str,
    pub(crate) usage: Usage,
    pub(crate) code: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read {
    Operands(Vec<OsString>),
    Print(Text),
}

/// Applies `arguments` to `draft`; stops at the first error or option that prints.
pub(crate) fn read<D>(table: &[Definition<D>], arguments: &[OsString], draft: &mut D) -> Result<Read, Usage> {
    read_in(Dialect::Ferry, table, arguments, draft)
}

/// Returns the text that the first argument of a command with subcommands asks for, if it is an option.
pub(crate) fn leading(table: &[Definition<()>], argument: &OsString) -> Result<Option<Text>, Usage> {
    match read(table, std::slice::from_ref(argument), &mut ())? {
        Read::Print(text) => Ok(Some(text)),
        Read::Operands(_) => Ok(None),
    }
}

/// Like [`read`], in the given dialect.
pub(crate) fn read_in<D>(
    dialect: Dialect,
    table: &[Definition<D>],
    arguments: &[OsString],
    draft: &mut D,
) -> Result<Read, Usage> {
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    let ends_at_operand = std::env::var_os("POSIXLY_CORRECT").is_some();
    while let Some(argument) = rest.next() {
        let printed = match argument.as_bytes() {
            b"--" => {
                operands.extend(rest.cloned());
                break;
            }
            [b'-', b'-', long @ ..] => read_long(dialect, table, long, &mut rest, draft)?,
            [b'-', letters @ ..] if !letters.is_empty() => {
                read_letters(dialect, table, letters, &mut rest, draft)?
            }
            _ if ends_at_operand => {
                operands.push(argument.clone());
                operands.extend(rest.cloned());
                break;
            }
            _ => {
                operands.push(argument.clone());
                None
            }
        };
        if let Some(text) = printed {
            return Ok(Read::Print(text));
        }
    }
    Ok(Read::Operands(operands))
}

type Rest<'a> = std::slice::Iter<'a, OsString>;

/// Parses `name`, `name=value` or an abbreviation of `name`.
fn read_long<D>(
    dialect: Dialect,
    table: &[Definition<D>],
    argument: &[u8],
    rest: &mut Rest,
    draft: &mut D,
) -> Result<Option<Text>, Usage> {
    let mut parts = argument.splitn(2, |byte| *byte == b'=');
    let definition = find(dialect, table, parts.next().unwrap_or_default(), argument)?;
    let value = parts.next().map(OsStr::from_bytes);
    let name = definition.long;
    match (&definition.effect, value) {
        (Effect::Switch(apply), None) => apply(draft),
        (Effect::KeyedSwitch(apply), None) => apply(draft, name),
        (Effect::Print(text), None) => return Ok(Some(*text)),
        (Effect::Switch(_) | Effect::KeyedSwitch(_) | Effect::Print(_), Some(_)) => {
            return Err(Usage::with_hint(format!("option '--{name}' doesn't allow an argument")));
        }
        (Effect::Optional(_, default, apply), value) => apply(draft, value.unwrap_or(OsStr::new(default)))?,
        (Effect::Value(..) | Effect::Keyed(..), value) => {
            let value = value.or_else(|| rest.next().map(OsString::as_os_str));
            let missing = || Usage::with_hint(format!("option '--{name}' requires an argument"));
            definition.effect.take(draft, name, value.ok_or_else(missing)?)?;
        }
    }
    Ok(None)
}

fn find<'a, D>(
    dialect: Dialect,
    table: &'a [Definition<D>],
    name: &[u8],
    argument: &[u8],
) -> Result<&'a Definition<D>, Usage> {
    if let Some(definition) = table.iter().find(|definition| definition.long.as_bytes() == name) {
        return Ok(definition);
    }
    let begins = |definition: &&Definition<D>| definition.long.as_bytes().starts_with(name);
    let candidates: Vec<_> = table.iter().filter(begins).collect();
    let mut foreign = candidates.iter().filter(|definition| !definition.own);
    match (&candidates[..], foreign.next(), foreign.next()) {
        ([], ..) => {
            let argument = quote(OsStr::from_bytes(&[b"--", argument].concat()));
            let known: Vec<&str> = table.iter().map(|definition| definition.long).collect();
            let meant = match dialect {
                Dialect::Ferry => nearest(OsStr::from_bytes(name), &known),
                Dialect::Gnu => None,
            };
            let advice = meant.map(|name| format!("; did you mean '--{name}'?")).unwrap_or_default();
            Err(Usage::with_hint(format!("unrecognized option {argument}{advice}")))
        }
        ([only], ..) | (_, Some(only), None) => Ok(only),
        (several, ..) => {
            // GNU's options take precedence.
            let has_foreign = several.iter().any(|definition| !definition.own);
            let named = several.iter().filter(|definition| !(has_foreign && definition.own));
            let names: Vec<_> = named.map(|definition| format!("'--{}'", definition.long)).collect();
            let (name, names) = (String::from_utf8_lossy(name), names.join(" "));
            Err(Usage::with_hint(format!("option '--{name}' is ambiguous; possibilities: {names}")))
        }
    }
}

/// Parses a cluster such as `rv` or `tDIRECTORY`.
fn read_letters<D>(
    dialect: Dialect,
    table: &[Definition<D>],
    letters: &[u8],
    rest: &mut Rest,
    draft: &mut D,
) -> Result<Option<Text>, Usage> {
    for (index, letter) in letters.iter().enumerate() {
        let known = table.iter().find(|definition| definition.letters.as_bytes().contains(letter));
        let shown = char::from(*letter);
        let Some(definition) = known else {
            if *letter == b'h' && dialect == Dialect::Ferry && table.iter().any(Definition::prints_help) {
                return Ok(Some(Text::ShortHelp));
            }
            return Err(Usage::with_hint(format!("invalid option -- '{}'", shown.escape_default())));
        };
        match &definition.effect {
            Effect::Switch(apply) => apply(draft),
            Effect::KeyedSwitch(apply) => apply(draft, definition.long),
            Effect::Print(text) => return Ok(Some(*text)),
            Effect::Optional(_, default, apply) => apply(draft, OsStr::new(default))?,
            Effect::Value(..) | Effect::Keyed(..) => {
                let attached = OsStr::from_bytes(&letters[index + 1..]);
                let value =
                    if attached.is_empty() { rest.next().map(OsString::as_os_str) } else { Some(attached) };
                let missing = || Usage::with_hint(format!("option requires an argument -- '{shown}'"));
                definition.effect.take(draft, definition.long, value.ok_or_else(missing)?)?;
                break;
            }
        }
    }
    Ok(None)
}

pub(crate) struct Manual {
    /// Full name, such as `ferry cp`; prefixes messages.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// One line for each form of the command.
    pub(crate) usage: &'static str,
    /// At least three; the most useful ones first.
    pub(crate) examples: &'static [Example],
    /// Long names of the options in the short help; empty: all options.
    pub(crate) usual: &'static [&'static str],
    pub(crate) after: &'static str,
}

/// Builds the clap command for a table of options.
pub(crate) fn command<D>(manual: &Manual, table: &[Definition<D>]) -> clap::Command {
    let name = manual.name.rsplit(' ').next().unwrap_or(manual.name);
    let command = clap::Command::new(name)
        .display_name(manual.name)
        .bin_name(manual.name)
        .version(env!("CARGO_PKG_VERSION"))
        .about(manual.about)
        .override_usage(manual.usage)
        .after_help(format!("Run `{} --help` for all options and details.", manual.name))
        .after_long_help(manual.after)
        .disable_help_flag(true)
        .disable_version_flag(true);
    let options = table.iter().map(|definition| {
        let is_usual = manual.usual.is_empty() || manual.usual.contains(&definition.long);
        argument(manual, definition).hide_short_help(!is_usual)
    });
    help::with_examples(options.fold(command, clap::Command::arg), manual.examples)
}

/// Builds the clap command of a command that has only subcommands and prints texts.
pub(crate) fn overview(manual: &Manual, table: &[Definition<()>]) -> clap::Command {
    command(manual, table).after_help(manual.after).disable_help_subcommand(true)
}

/// Builds clap's argument for an option.
fn argument<D>(manual: &Manual, definition: &Definition<D>) -> clap::Arg {
    let (id, long) = if definition.long.is_empty() {
        (definition.letters, None)
    } else {
        (definition.long, Some(definition.long))
    };
    let letters = if definition.prints_help() { "h" } else { definition.letters };
    let mut letters = letters.chars();
    let mut arg = clap::Arg::new(id).help(definition.help).long(long).short(letters.next());
    arg = letters.fold(arg, clap::Arg::visible_short_alias);
    arg = match definition.effect {
        Effect::Switch(_) | Effect::KeyedSwitch(_) | Effect::Print(_) => arg.action(clap::ArgAction::SetTrue),
        Effect::Value(name, _) | Effect::Keyed(name, _) => arg.value_name(name).value_hint(hint(name)),
        Effect::Optional(name, ..) => arg.value_name(name).num_args(0..=1).require_equals(true),
    };
    if definition.own { arg.help_heading(own_heading(manual)) } else { arg }
}

/// Heading of the options that the table marks as the command's own.
fn own_heading(manual: &Manual) -> &'static str {
    if manual.name == "ferry cp" { "Ferry's own options" } else { "The experiment's own options" }
}

/// Selects the completion for a value by its name.
fn hint(value: &str) -> clap::ValueHint {
    match value {
        "FILE" => clap::ValueHint::FilePath,
        "DIRECTORY" | "DIR" => clap::ValueHint::DirPath,
        _ => clap::ValueHint::Other,
    }
}
