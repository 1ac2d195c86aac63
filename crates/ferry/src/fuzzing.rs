//! What fuzz targets reach: command lines, read and not run.

use std::ffi::OsString;

use crate::cli::{Command, Misuse, parse};

/// What a command line comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Copy these operands, so.
    Copy {
        /// As given.
        operands: Vec<OsString>,
        /// Everything else that was asked for.
        options: String,
    },
    /// Help or the version.
    Text,
    /// Another command.
    Other,
    /// It is refused.
    Misuse {
        /// What is told, without the program's name.
        message: String,
        /// The exit code.
        code: u8,
    },
}

/// Reads a command line, the program's own name first.
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
        Err(Misuse { usage, code, .. }) => Outcome::Misuse { message: usage.message, code },
    }
}
