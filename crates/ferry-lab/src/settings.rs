//! Parameters of an experiment, with defaults for each scale, and their values.
//!
//! Each parameter is an option of the command line and a value in the record, so that a record can be resumed.

use crate::error::Failure;
use crate::message::quoted;
use crate::record::{Scale, Value, Values};

#[cfg(test)]
mod tests;

/// A parameter of an experiment.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Name of the option, and key in the record.
    pub name: &'static str,
    /// Placeholder of the value in the help: `BYTES,...`.
    pub value: &'static str,
    /// One line for the help.
    pub help: &'static str,
    /// Type and range of the value.
    pub kind: ParameterKind,
    /// Default value.
    pub default: &'static str,
    /// Default value with `--quick`.
    pub quick: &'static str,
    /// Default value with `--as-published`.
    pub published: &'static str,
}

/// Type and range of a value.
#[derive(Debug, Clone, Copy)]
pub enum ParameterKind {
    /// On or off; given without a value.
    Switch,
    /// A number within bounds.
    Number(u64, u64),
    /// An optional number within bounds.
    Maybe(u64, u64),
    /// Numbers within bounds, separated by commas.
    Numbers(u64, u64),
    /// Bytes within bounds: `4096`, `4K`, `1M`, `2G`.
    Size(u64, u64),
    /// Sizes within bounds, separated by commas.
    Sizes(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Several of these words, separated by commas.
    Words(&'static [&'static str]),
    /// Any words, separated by commas.
    Names,
    /// Any text; empty if not given.
    Text,
    /// Any texts; the option may be repeated.
    Texts,
}

impl Parameter {
    /// A parameter with one default for all scales.
    #[must_use]
    pub const fn new(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        kind: ParameterKind,
        default: &'static str,
    ) -> Self {
        Self { name, value, help, kind, default, quick: default, published: default }
    }

    /// Sets the default with `--quick`.
    #[must_use]
    pub const fn quick(self, quick: &'static str) -> Self {
        Self { quick, ..self }
    }

    /// Sets the default with `--as-published`.
    #[must_use]
    pub const fn published(self, published: &'static str) -> Self {
        Self { published, ..self }
    }

    /// Parses a value.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(&self, text: &str) -> Result<Value, Failure> {
        let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
        match self.kind {
            ParameterKind::Switch => Ok(Value::Flag(text == "yes")),
            ParameterKind::Number(least, most) => self.number(text, least, most, plain).map(Value::Number),
            ParameterKind::Maybe(..) if text.is_empty() => Ok(Value::Text(String::new())),
            ParameterKind::Maybe(least, most) => self.number(text, least, most, plain).map(Value::Number),
            ParameterKind::Size(least, most) => self.number(text, least, most, bytes).map(Value::Number),
            ParameterKind::Numbers(least, most) => self
                .several(words().map(|word| self.number(word, least, most, plain)), text)
                .map(Value::Numbers),
            ParameterKind::Sizes(least, most) => self
                .several(words().map(|word| self.number(word, least, most, bytes)), text)
                .map(Value::Numbers),
            ParameterKind::Word(allowed) => self.word(text, allowed).map(Value::Text),
            ParameterKind::Words(allowed) => {
                self.several(words().map(|word| self.word(word, allowed)), text).map(Value::Texts)
            }
            ParameterKind::Names => {
                self.several(words().map(|word| Ok(word.to_owned())), text).map(Value::Texts)
            }
            ParameterKind::Text => Ok(Value::Text(text.to_owned())),
            ParameterKind::Texts if text.is_empty() => Ok(Value::Texts(Vec::new())),
            ParameterKind::Texts => Ok(Value::Texts(vec![text.to_owned()])),
        }
    }

    fn several<T>(
        &self,
        values: impl Iterator<Item = Result<T, Failure>>,
        text: &str,
    ) -> Result<Vec<T>, Failure> {
        let values: Vec<T> = values.collect::<Result<_, _>>()?;
        if values.is_empty() { Err(self.invalid(text, "at least one is needed")) } else { Ok(values) }
    }

    fn number(
        &self,
        text: &str,
        least: u64,
        most: u64,
        read: fn(&str) -> Option<u64>,
    ) -> Result<u64, Failure> {
        let number = read(text).filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.invalid(text, &format!("it must be from {least} to {most}")))
    }

    fn word(&self, text: &str, allowed: &[&str]) -> Result<String, Failure> {
        let found = allowed.iter().find(|word| **word == text);
        let all = || format!("valid are: {}", allowed.join(", "));
        found.map(|word| (*word).to_owned()).ok_or_else(|| self.invalid(text, &all()))
    }

    fn invalid(&self, text: &str, allowed: &str) -> Failure {
        Failure::Misuse(format!("invalid value {} for '--{}'; {allowed}", quoted(text.as_ref()), self.name))
    }

    fn default_of(&self, scale: Scale) -> &'static str {
        match scale {
            Scale::Default => self.default,
            Scale::Quick => self.quick,
            Scale::AsPublished => self.published,
        }
    }
}

/// Parses a whole number.
fn plain(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Parses bytes, with `K`, `M` or `G` for powers of 1,024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[end..] {
        "" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        "G" | "g" | "GiB" => 1 << 30,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(unit)
}

/// Values of all parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    values: Values,
}

impl Settings {
    /// Parses the given values, by name, and adds defaults for the others.
    ///
    /// # Errors
    /// If a value is wrong.
    pub fn new(parameters: &[Parameter], given: &[(String, String)], scale: Scale) -> Result<Self, Failure> {
        let mut values = Values::new();
        for parameter in parameters {
            let texts =
                given.iter().filter(|(name, _)| name == parameter.name).map(|(_, text)| text.as_str());
            let mut value = None;
            for text in texts {
                value = Some(joined(value, parameter.parse(text)?, parameter.kind));
            }
            let value = match value {
                Some(value) => value,
                None => parameter.parse(parameter.default_of(scale))?,
            };
            values.insert(parameter.name.to_owned(), value);
        }
        Ok(Self { values })
    }

    /// Takes the values from a record that is resumed.
    ///
    /// # Errors
    /// If the record lacks a value because another version of the program took it.
    pub fn of_record(parameters: &[Parameter], values: &Values) -> Result<Self, Failure> {
        for Parameter { name, .. } in parameters {
            if !values.contains_key(*name) {
                return Err(Failure::Misuse(format!(
                    "the record does not say '{name}': another version took it"
                )));
            }
        }
        Ok(Self { values: values.clone() })
    }

    /// Returns all values, for the record.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the value of a switch.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.values.get(name) == Some(&Value::Flag(true))
    }

    /// Returns a number or a size.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).as_number().unwrap_or_default()
    }

    /// Returns an optional number.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn maybe(&self, name: &str) -> Option<u64> {
        self.get(name).as_number()
    }

    /// Returns several numbers or sizes.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        match self.get(name) {
            Value::Numbers(numbers) => numbers.clone(),
            Value::Number(number) => vec![*number],
            Value::Flag(_) | Value::Text(_) | Value::Texts(_) => Vec::new(),
        }
    }

    /// Returns the text of any parameter.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.get(name).to_string()
    }

    /// Returns several words or texts.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Value::Texts(texts) => texts.clone(),
            Value::Text(text) => vec![text.clone()],
            Value::Flag(_) | Value::Number(_) | Value::Numbers(_) => Vec::new(),
        }
    }

    fn get(&self, name: &str) -> &Value {
        self.values.get(name).unwrap_or_else(|| panic!("the experiment has no parameter {name}"))
    }
}

/// Repeated texts accumulate; of other values the last one wins.
fn joined(before: Option<Value>, new: Value, kind: ParameterKind) -> Value {
    match (kind, before, new) {
        (ParameterKind::Texts, Some(Value::Texts(mut texts)), Value::Texts(more)) => {
            texts.extend(more);
            Value::Texts(texts)
        }
        (_, _, new) => new,
    }
}
