//! Names of backups, by GNU cp's rules.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

#[cfg(test)]
mod tests;

/// Longest name; longer ones are cut, as by cp. One less than NAME_MAX of limits.h.
const LONGEST: usize = 254;

/// Backups of replaced targets (`--backup`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Kind of the backups' names.
    pub control: Control,
    /// End of simple names; not empty, without a slash.
    pub suffix: OsString,
}

/// Kinds of backup names (`VERSION_CONTROL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The suffix; an existing file of that name is replaced.
    Simple,
    /// Numbered where there is a numbered one already, else simple.
    Existing,
    /// `.~1~` and so on, one more than the highest there.
    Numbered,
}

/// A backup's name being chosen from the names beside the original.
pub struct Naming<'a> {
    backup: &'a Backup,
    original: &'a [u8],
    /// Highest number so far, as digits without leading zeros.
    highest: Vec<u8>,
}

impl Backup {
    /// Begins to choose a name.
    #[must_use]
    pub fn of<'a>(&'a self, original: &'a OsStr) -> Naming<'a> {
        Naming { backup: self, original: original.as_bytes(), highest: Vec::new() }
    }

    pub(crate) fn simple(&self, original: &[u8]) -> Vec<u8> {
        let name = [original, self.suffix.as_bytes()].concat();
        if name.len() <= LONGEST {
            return name;
        }
        cut(original)
    }
}

/// Returns the name of a backup whose own would be too long.
pub(crate) fn cut(original: &[u8]) -> Vec<u8> {
    [&original[..original.len().min(LONGEST - 1)], b"~"].concat()
}

impl Naming<'_> {
    /// Takes a name of the same folder into account.
    pub fn see(&mut self, name: &OsStr) {
        let number = name.as_bytes().strip_prefix(self.original).and_then(|rest| rest.strip_prefix(b".~"));
        let Some(digits) = number.and_then(|rest| rest.strip_suffix(b"~")) else { return };
        let is_number = digits.first().is_some_and(|first| *first != b'0')
            && digits.iter().all(u8::is_ascii_digit)
            && digits.len() < LONGEST;
        let highest = &self.highest;
        if is_number && (digits.len(), digits) > (highest.len(), highest.as_slice()) {
            self.highest = digits.to_vec();
        }
    }

    /// Returns true if the name depends on the folder's other names.
    #[must_use]
    pub fn looks_around(&self) -> bool {
        self.backup.control != Control::Simple
    }

    /// Returns true if the name is that of no earlier backup.
    pub(crate) fn is_numbered(&self) -> bool {
        match self.backup.control {
            Control::Simple => false,
            Control::Existing => !self.highest.is_empty(),
            Control::Numbered => true,
        }
    }

    /// Returns the chosen name.
    #[must_use]
    pub fn name(&self) -> OsString {
        if !self.is_numbered() {
            return OsString::from_vec(self.backup.simple(self.original));
        }
        let name = [self.original, b".~", &next(&self.highest), b"~"].concat();
        OsString::from_vec(if name.len() <= LONGEST { name } else { cut(self.original) })
    }
}

/// Returns a decimal number plus one.
fn next(digits: &[u8]) -> Vec<u8> {
    let mut digits = digits.to_vec();
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return digits;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    digits
}
