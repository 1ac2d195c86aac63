//! Reading arguments as getopt_long(3) does, from a table that holds each option's names, help and effect.
//!
//! Options may be abbreviated, clustered, and mixed with operands; `--` ends them, and so does the first operand
//! where `POSIXLY_CORRECT` is set; each takes effect in the order
//! given, so that later ones override earlier ones. [`command`] makes clap's command of the same table, for help
//! and for what else clap makes (completions, manual pages).
//!
//! Why clap does not do the reading: its first parse cost 250 to 330 µs of a start of about 1,000 (its code and its
//! 40 allocated options are paged in), this one 10; and GNU's rules are all about order, which clap hides.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::quote::quote;

#[cfg(test)]
mod tests;

/// One option of a command that is drafted in a `D`.
pub(crate) struct Definition<D> {
    /// Its letters; `rR` if it has two.
    pub(crate) letters: &'static str,
    /// Its long name; empty if it has none.
    pub(crate) long: &'static str,
    /// What it does, in a line.
    pub(crate) help: &'static str,
    /// What it does.
    pub(crate) effect: Effect<D>,
    /// Whether it is ferry's own: then it gives way where an abbreviation may mean another.
    pub(crate) own: bool,
}

/// What an option does to the draft.
pub(crate) enum Effect<D> {
    /// It has no value.
    Switch(fn(&mut D)),
    /// It has a value of this name.
    Value(&'static str, fn(&mut D, &OsStr) -> Result<(), Usage>),
    /// It has a value of this name after `=`, or else this one.
    Optional(&'static str, &'static str, fn(&mut D, &OsStr) -> Result<(), Usage>),
    /// The same as a switch, for one effect that is told which option it is for.
    KeyedSwitch(fn(&mut D, &'static str)),
    /// The same as a value, for one effect that is told which option it is for.
    Keyed(&'static str, fn(&mut D, &'static str, &OsStr) -> Result<(), Usage>),
    /// It ends the reading.
    Print(Text),
}

impl<D> Effect<D> {
    /// Takes the value of an option that has one.
    fn take(&self, draft: &mut D, name: &'static str, value: &OsStr) -> Result<(), Usage> {
        match self {
            Self::Value(_, apply) | Self::Optional(_, _, apply) => apply(draft, value),
            Self::Keyed(_, apply) => apply(draft, name, value),
            Self::Switch(_) | Self::KeyedSwitch(_) | Self::Print(_) => Ok(()),
        }
    }
}

impl<D: Default> Definition<D> {
    /// The words that its value may be, if only some may: it is given none of them, and says.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        let refused = self.effect.take(&mut D::default(), self.long, OsStr::new("?"));
        refused.err().map(|usage| usage.words).unwrap_or_default()
    }
}

/// What is printed instead of doing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// The options and exit codes.
    Help,
    /// The version.
    Version,
}

/// What is wrong with a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    /// One line, without the program's name.
    pub(crate) message: String,
    /// Whether the help would help.
    pub(crate) hint: bool,
    /// The words that would have been right, where only some are.
    pub(crate) words: Vec<&'static str>,
}

impl Usage {
    /// A command line that can't be understood.
    pub(crate) fn with_hint(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: true, words: Vec::new() }
    }

    /// A command line that asks for what can't be.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: false, words: Vec::new() }
    }
}

/// What the arguments come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read {
    /// What is not an option, in order.
    Operands(Vec<OsString>),
    /// Something is to be printed.
    Print(Text),
}

/// Reads `arguments` into `draft`, up to the first one that is wrong or prints something.
pub(crate) fn read<D>(table: &[Definition<D>], arguments: &[OsString], draft: &mut D) -> Result<Read, Usage> {
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    let ends_at_operand = std::env::var_os("POSIXLY_CORRECT").is_some();
    while let Some(argument) = rest.next() {
        let printed = match argument.as_bytes() {
            b"--" => {
                operands.extend(rest.cloned());
                break;
            }
            [b'-', b'-', long @ ..] => read_long(table, long, &mut rest, draft)?,
            [b'-', letters @ ..] if !letters.is_empty() => read_letters(table, letters, &mut rest, draft)?,
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

/// `name`, `name=value`, or the beginning of a name.
fn read_long<D>(
    table: &[Definition<D>],
    argument: &[u8],
    rest: &mut Rest,
    draft: &mut D,
) -> Result<Option<Text>, Usage> {
    let mut parts = argument.splitn(2, |byte| *byte == b'=');
    let definition = find(table, parts.next().unwrap_or_default(), argument)?;
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

/// The option of that name, or the only one that begins so.
fn find<'a, D>(table: &'a [Definition<D>], name: &[u8], argument: &[u8]) -> Result<&'a Definition<D>, Usage> {
    if let Some(definition) = table.iter().find(|definition| definition.long.as_bytes() == name) {
        return Ok(definition);
    }
    let begins = |definition: &&Definition<D>| definition.long.as_bytes().starts_with(name);
    let candidates: Vec<_> = table.iter().filter(begins).collect();
    let mut foreign = candidates.iter().filter(|definition| !definition.own);
    match (&candidates[..], foreign.next(), foreign.next()) {
        ([], ..) => {
            let argument = quote(OsStr::from_bytes(&[b"--", argument].concat()));
            Err(Usage::with_hint(format!("unrecognized option {argument}")))
        }
        ([only], ..) | (_, Some(only), None) => Ok(only),
        (several, ..) => {
            // Ferry's own give way.
            let has_foreign = several.iter().any(|definition| !definition.own);
            let named = several.iter().filter(|definition| !(has_foreign && definition.own));
            let names: Vec<_> = named.map(|definition| format!("'--{}'", definition.long)).collect();
            let (name, names) = (String::from_utf8_lossy(name), names.join(" "));
            Err(Usage::with_hint(format!("option '--{name}' is ambiguous; possibilities: {names}")))
        }
    }
}

/// `rv`, `tDIRECTORY`, or the last letter's value in the next argument.
fn read_letters<D>(
    table: &[Definition<D>],
    letters: &[u8],
    rest: &mut Rest,
    draft: &mut D,
) -> Result<Option<Text>, Usage> {
    for (index, letter) in letters.iter().enumerate() {
        let known = table.iter().find(|definition| definition.letters.as_bytes().contains(letter));
        let shown = char::from(*letter);
        let Some(definition) = known else {
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

/// A command's names and texts, around its table.
pub(crate) struct Manual {
    /// The name messages begin with: `ferry cp`.
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) about: &'static str,
    /// Its operands, a line a form.
    pub(crate) usage: &'static str,
    /// What stands after the options.
    pub(crate) after: &'static str,
}

/// The same options as clap has them.
pub(crate) fn command<D>(manual: &Manual, table: &[Definition<D>]) -> clap::Command {
    const OWN: &str = "Ferry's own options";
    let name = manual.name.rsplit(' ').next().unwrap_or(manual.name);
    let mut command = clap::Command::new(name)
        .display_name(manual.name)
        .bin_name(manual.name)
        .version(env!("CARGO_PKG_VERSION"))
        .about(manual.about)
        .override_usage(manual.usage)
        .after_help(manual.after)
        .disable_help_flag(true)
        .disable_version_flag(true);
    for definition in table {
        let (id, long) = if definition.long.is_empty() {
            (definition.letters, None)
        } else {
            (definition.long, Some(definition.long))
        };
        let mut letters = definition.letters.chars();
        let mut arg = clap::Arg::new(id).help(definition.help).long(long).short(letters.next());
        arg = letters.fold(arg, clap::Arg::visible_short_alias);
        arg = match definition.effect {
            Effect::Switch(_) | Effect::KeyedSwitch(_) | Effect::Print(_) => {
                arg.action(clap::ArgAction::SetTrue)
            }
            Effect::Value(name, _) | Effect::Keyed(name, _) => arg.value_name(name).value_hint(hint(name)),
            Effect::Optional(name, ..) => arg.value_name(name).num_args(0..=1).require_equals(true),
        };
        command = command.arg(if definition.own { arg.help_heading(OWN) } else { arg });
    }
    command
}

/// What a shell completes where a value of this name is wanted.
fn hint(value: &str) -> clap::ValueHint {
    match value {
        "FILE" => clap::ValueHint::FilePath,
        "DIRECTORY" | "DIR" => clap::ValueHint::DirPath,
        _ => clap::ValueHint::Other,
    }
}
