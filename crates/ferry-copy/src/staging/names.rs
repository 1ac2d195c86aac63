//! Hidden names: those of unfinished files, of parts and of their journals.

use std::sync::atomic::{AtomicU64, Ordering};

use ferry_io::Name;

/// Start of a hidden name.
const PREFIX: &str = ".ferry-";
/// Ends of the names of parts and of their journals.
const PART: &str = ".part";
const JOURNAL: &str = ".journal";
/// Hexadecimal digits of the hash of a name.
const DIGITS: usize = 32;

/// Counter in the next hidden name, shared by all runs of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns a hidden name for this folder that this process has not used before.
pub(super) fn next_hidden_name(folder: u64) -> Name {
    hidden_name(folder, std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn hidden_name(folder: u64, process: u32, number: u64) -> Name {
    let name = format!("{PREFIX}{folder:x}-{process:x}-{number:x}");
    Name::new(name.as_bytes()).unwrap_or_else(|| unreachable!("hexadecimal digits are a name"))
}

/// Returns true if [`hidden_name`] gives this name in this folder.
pub(super) fn is_hidden_name(name: &Name, folder: u64) -> bool {
    let number = |part: &str| {
        let is_plain = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let value = u64::from_str_radix(part, 16).ok().filter(|_| is_plain)?;
        // In its shortest form only.
        (format!("{value:x}") == part).then_some(value)
    };
    let text = std::str::from_utf8(name.as_bytes()).ok();
    let Some(rest) = text.and_then(|text| text.strip_prefix(PREFIX)) else { return false };
    let parts: Vec<_> = rest.split('-').map(number).collect();
    matches!(parts[..], [Some(inode), Some(_), Some(_)] if inode == folder)
}

/// Returns the names of a file's part and of its journal in this folder.
pub(super) fn part_names(folder: u64, name: &Name) -> (Name, Name) {
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let of = |end| {
        let text = format!("{PREFIX}{folder:x}-{}{end}", &hash[..DIGITS]);
        Name::new(text.as_bytes()).unwrap_or_else(|| unreachable!("digits and letters are a name"))
    };
    (of(PART), of(JOURNAL))
}

/// Returns true if [`part_names`] can give this name in this folder.
pub(super) fn is_part_name(name: &Name, folder: u64) -> bool {
    let Ok(text) = std::str::from_utf8(name.as_bytes()) else { return false };
    let start = format!("{PREFIX}{folder:x}-");
    let hash = text.strip_prefix(&start);
    let hash = hash.and_then(|rest| rest.strip_suffix(PART).or_else(|| rest.strip_suffix(JOURNAL)));
    hash.is_some_and(|hash| {
        hash.len() == DIGITS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests;
