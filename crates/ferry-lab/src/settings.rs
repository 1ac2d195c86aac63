//! What an experiment can be told, and what it was told: parameters with defaults for each scale.
//!
//! Each parameter is an option of the command line and a value in the record, so a record can be resumed.

use crate::error::{Failure, quoted};
use crate::record::{Scale, Value, Values};

#[cfg(test)]
mod tests;

/// One thing that an experiment can be told.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The option's name, and the key in the record.
    pub name: &'static str,
    /// What stands for the value in the help: `BYTES,...`.
    pub value: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Its value if it is not given.
    pub default: &'static str,
    /// The same with `--quick`.
    pub quick: &'static str,
    /// The same with `--as-published`.
    pub published: &'static str,
}

/// What a parameter's value may be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// On or off; given without a value.
    Switch,
    /// A number from one to another.
    Number(u64, u64),
    /// The same, or nothing.
    Maybe(u64, u64),
    /// Several of them, separated by commas.
    Numbers(u64, u64),
    /// Bytes from one number to another: `4096`, `4K`, `1M`, `2G`.
    Size(u64, u64),
    /// Several of them, separated by commas.
    Sizes(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Several of these words, separated by commas.
    Words(&'static [&'static str]),
    /// Several words of any kind, separated by commas.
    Names,
    /// Any text; empty means: not given.
    Text,
    /// Any texts, given one after another.
    Texts,
}

impl Parameter {
    /// The same default in every scale.
    #[must_use]
    pub const fn new(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        kind: Kind,
        default: &'static str,
    ) -> Self {
        Self { name, value, help, kind, default, quick: default, published: default }
    }

    /// Another default with `--quick`.
    #[must_use]
    pub const fn quick(self, quick: &'static str) -> Self {
        Self { quick, ..self }
    }

    /// Another default with `--as-published`.
    #[must_use]
    pub const fn published(self, published: &'static str) -> Self {
        Self { published, ..self }
    }

    /// Understands a value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(&self, text: &str) -> Result<Value, Failure> {
        let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
        match self.kind {
            Kind::Switch => Ok(Value::Flag(text == "yes")),
            Kind::Number(least, most) => self.number(text, least, most, plain).map(Value::Number),
            Kind::Maybe(..) if text.is_empty() => Ok(Value::Text(String::new())),
            Kind::Maybe(least, most) => self.number(text, least, most, plain).map(Value::Number),
            Kind::Size(least, most) => self.number(text, least, most, bytes).map(Value::Number),
            Kind::Numbers(least, most) => self
                .several(words().map(|word| self.number(word, least, most, plain)), text)
                .map(Value::Numbers),
            Kind::Sizes(least, most) => self
                .several(words().map(|word| self.number(word, least, most, bytes)), text)
                .map(Value::Numbers),
            Kind::Word(allowed) => self.word(text, allowed).map(Value::Text),
            Kind::Words(allowed) => {
                self.several(words().map(|word| self.word(word, allowed)), text).map(Value::Texts)
            }
            Kind::Names => self.several(words().map(|word| Ok(word.to_owned())), text).map(Value::Texts),
            Kind::Text => Ok(Value::Text(text.to_owned())),
            Kind::Texts if text.is_empty() => Ok(Value::Texts(Vec::new())),
            Kind::Texts => Ok(Value::Texts(vec![text.to_owned()])),
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

/// A whole number.
fn plain(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Bytes, with `K`, `M` or `G` for powers of 1,024.
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

/// What an experiment was told, with defaults for the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    values: Values,
}

impl Settings {
    /// Understands what was given, name and text, and fills in the rest.
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

    /// Those of a record that is to be resumed.
    ///
    /// # Errors
    /// If the record lacks one: another version of the program took it.
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

    /// All of them, for the record.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The value of a switch.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.values.get(name) == Some(&Value::Flag(true))
    }

    /// The value of a number or a size.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).as_number().unwrap_or_default()
    }

    /// The value of a number that need not be given.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn maybe(&self, name: &str) -> Option<u64> {
        self.get(name).as_number()
    }

    /// The values of several numbers or sizes.
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

    /// The text of any parameter.
    ///
    /// # Panics
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.get(name).to_string()
    }

    /// The values of several words or texts.
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

/// Texts add up; of everything else the last one counts.
fn joined(before: Option<Value>, new: Value, kind: Kind) -> Value {
    match (kind, before, new) {
        (Kind::Texts, Some(Value::Texts(mut texts)), Value::Texts(more)) => {
            texts.extend(more);
            Value::Texts(texts)
        }
        (_, _, new) => new,
    }
}
