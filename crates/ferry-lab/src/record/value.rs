//! Values of parameters.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A parameter's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A count or a size in bytes.
    Number(u64),
    /// A word.
    Text(String),
    /// Several numbers.
    Numbers(Vec<u64>),
    /// Several words.
    Texts(Vec<String>),
}

impl Value {
    /// Returns the number, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Text(_) | Self::Numbers(_) | Self::Texts(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => out.write_str(if *flag { "yes" } else { "no" }),
            Self::Number(number) => number.fmt(out),
            Self::Text(text) => out.write_str(text),
            Self::Numbers(numbers) => {
                out.write_str(&numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Texts(texts) => out.write_str(&texts.join(",")),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
