//! Parses the values of options: words, numbers and sizes.

use std::ffi::OsStr;
use std::num::{NonZeroU8, NonZeroU64};
use std::path::Path;
use std::time::Duration;

use crate::arguments::Usage;
use crate::quote::{quote, speech};

/// Finds the choice that `text` names or abbreviates.
///
/// Synonyms must be adjacent in `choices`, because the error lists them together.
pub(crate) fn choice<T: Copy + PartialEq>(
    option: &str,
    text: &OsStr,
    choices: &[(&'static str, T)],
) -> Result<T, Usage> {
    let word = text.to_str().unwrap_or("\u{fffd}");
    if let Some(&(_, value)) = choices.iter().find(|(name, _)| *name == word) {
        return Ok(value);
    }
    let mut begins = choices.iter().filter(|(name, _)| name.starts_with(word));
    let problem = match begins.next() {
        Some(&(_, value)) if begins.all(|(_, other)| *other == value) => return Ok(value),
        Some(_) => "ambiguous",
        None => "invalid",
    };
    let mut message =
        format!("{problem} argument {} for {}\nValid arguments are:", speech(text), speech(option));
    for same in choices.chunk_by(|(_, a), (_, b)| a == b) {
        let names: Vec<_> = same.iter().map(|(name, _)| speech(name)).collect();
        message += &format!("\n  - {}", names.join(", "));
    }
    let words = choices.iter().map(|(name, _)| *name).collect();
    Err(Usage { words, ..Usage::with_hint(message) })
}

/// Finds the choice whose name is the extension of `file`.
pub(crate) fn by_extension<T: Copy>(file: &Path, choices: &[(&'static str, T)]) -> Result<T, Usage> {
    let extension = file.extension().map(OsStr::to_ascii_lowercase);
    let found = choices.iter().find(|(name, _)| extension.as_deref() == Some(OsStr::new(name)));
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!(".{name}")).collect();
        Usage::with_hint(format!(
            "the extension of {} selects no format; choose one of {}",
            quote(file),
            names.join(", ")
        ))
    })
}

pub(crate) fn number<T: std::str::FromStr>(option: &str, text: &OsStr) -> Result<T, Usage> {
    let parsed = text.to_str().and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| Usage::with_hint(format!("invalid number {} for '{option}'", quote(text))))
}

/// Parses a number of bytes with an optional suffix `K`, `KiB`, `M` or `MiB` (powers of 1,024).
pub(crate) fn size(option: &str, text: &OsStr) -> Result<usize, Usage> {
    let parsed = bytes(text, &UNITS[..2]).and_then(|bytes| usize::try_from(bytes).ok());
    parsed.ok_or_else(|| {
        Usage::with_hint(format!(
            "invalid size {} for '{option}': a number of bytes, or one with K or M",
            quote(text)
        ))
    })
}

/// Parses the size of a file; `G` and `GiB` are accepted too.
pub(crate) fn file_size(option: &str, text: &OsStr) -> Result<u64, Usage> {
    bytes(text, &UNITS).ok_or_else(|| {
        Usage::with_hint(format!(
            "invalid size {} for '{option}': a number of bytes, or one with K, M or G",
            quote(text)
        ))
    })
}

/// Parses a positive number of bytes per second; `G` and `GiB` are accepted too.
pub(crate) fn rate(option: &str, text: &OsStr) -> Result<NonZeroU64, Usage> {
    bytes(text, &UNITS).and_then(NonZeroU64::new).ok_or_else(|| {
        Usage::with_hint(format!(
            "invalid rate {} for '{option}': at least one byte a second, as a number or one with K, M or G",
            quote(text)
        ))
    })
}

/// Parses a whole percentage from 1 to 100.
pub(crate) fn percentage(option: &str, text: &OsStr) -> Result<NonZeroU8, Usage> {
    let digits = text.to_str().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let found = digits.and_then(|digits| digits.parse::<NonZeroU8>().ok());
    found.filter(|found| found.get() <= 100).ok_or_else(|| {
        Usage::with_hint(format!(
            "invalid percentage {} for '{option}': a whole number from 1 to 100",
            quote(text)
        ))
    })
}

/// Parses a duration that is not zero.
pub(crate) fn duration(option: &str, text: &OsStr) -> Result<Duration, Usage> {
    let found = text.to_str().and_then(|word| humantime::parse_duration(word).ok());
    found.filter(|found| !found.is_zero()).ok_or_else(|| {
        Usage::with_hint(format!(
            "invalid duration {} for '{option}': 90s, 30m or 8h, for example",
            quote(text)
        ))
    })
}

/// Returns true if the extension of `--output` asks for JSON.
pub(crate) fn is_json(output: Option<&Path>) -> bool {
    output.and_then(Path::extension).is_some_and(|extension| extension == "json")
}

const UNITS: [([&str; 3], u64); 3] =
    [(["K", "k", "KiB"], 1 << 10), (["M", "m", "MiB"], 1 << 20), (["G", "g", "GiB"], 1 << 30)];

fn bytes(text: &OsStr, units: &[([&str; 3], u64)]) -> Option<u64> {
    let word = text.to_str()?;
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let suffix = &word[end..];
    let unit = match units.iter().find(|(suffixes, _)| suffixes.contains(&suffix)) {
        Some((_, unit)) => *unit,
        None if suffix.is_empty() => 1,
        None => return None,
    };
    word[..end].parse::<u64>().ok()?.checked_mul(unit)
}
