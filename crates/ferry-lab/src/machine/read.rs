//! First lines of the kernel's files.

use std::path::Path;

/// A file's first line, or nothing.
pub(super) fn line(path: impl AsRef<Path>) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
