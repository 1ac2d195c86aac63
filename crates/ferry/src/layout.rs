//! Fits text into the columns and rows of a terminal.

use std::os::fd::AsFd;

#[cfg(test)]
mod tests;

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Screen {
    /// Size of what is no terminal, or of a terminal that reports none.
    pub(crate) const USUAL: Self = Self { columns: 80, rows: 24 };

    /// Returns the size of a terminal; `None` if the stream leads to something else.
    pub(crate) fn of(stream: impl AsFd) -> Option<Self> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        let or = |reported: u16, usual| if reported == 0 { usual } else { usize::from(reported) };
        Some(Self { columns: or(size.ws_col, Self::USUAL.columns), rows: or(size.ws_row, Self::USUAL.rows) })
    }

    /// Returns the number of rows that lines of text take.
    pub(crate) fn rows_of(self, text: &str) -> usize {
        let rows = |line: &str| line.chars().count().div_ceil(self.columns).max(1);
        text.split('\n').map(rows).sum()
    }
}

/// Puts `text` after `first`, and breaks it between words into lines of at most `columns`. Later lines begin with
/// `indent` spaces. `first` and single words are not broken: they may be longer.
pub(crate) fn wrapped(first: &str, text: &str, indent: usize, columns: usize) -> String {
    let mut out = first.to_owned();
    let mut used = first.chars().count();
    for word in text.split(' ') {
        let width = word.chars().count();
        if used > indent && used + 1 + width > columns {
            out += &format!("\n{:indent$}", "");
            used = indent;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += width;
    }
    out
}
