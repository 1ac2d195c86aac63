//! Names as one quoted, reversible line.

use std::fmt::{self, Write};

/// Displays bytes in single quotes on one line: `'a\nb\xFF'`. Quotes, backslashes, control and invisible characters
/// are escaped. Bytes that are not UTF-8 become `\xNN`. So a name cannot forge output.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_char('\'')?;
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                match letter {
                    '"' => out.write_char('"')?,
                    _ => write!(out, "{}", letter.escape_debug())?,
                }
            }
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02X}")?;
            }
        }
        out.write_char('\'')
    }
}

#[cfg(test)]
mod tests;
