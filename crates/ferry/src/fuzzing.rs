//! Entry points for fuzz targets: parse command lines without running them.

use std::ffi::OsString;

use crate::arguments::CommandError;
use crate::cli::{Command, parse};

/// Result of parsing a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A copy.
    Copy {
        /// Operands as given.
        operands: Vec<OsString>,
        /// The other settings, in debug format.
        options: String,
    },
    /// Help or the version.
    Text,
    /// Another command.
    Other,
    /// An error.
    Misuse {
        /// Message without the program's name.
        message: String,
        /// The exit code.
        code: u8,
    },
}

/// Parses a command line, starting with the program's name.
#[must_use]
pub fn understand(arguments: &[OsString]) -> Outcome {
    match parse(arguments) {
        Ok(Command::Copy { mut request, .. }) => {
            let operands = std::mem::take(&mut request.operands.paths);
            let operands = operands.into_iter().map(OsString::from).collect();
            Outcome::Copy { operands, options: format!("{request:?}") }
        }
        Ok(Command::Print(..)) => Outcome::Text,
        Ok(_) => Outcome::Other,
        Err(CommandError { usage, code, .. }) => Outcome::Misuse { message: usage.message, code },
    }
}
