//! Options that choose which entries take part.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ferry_io::Time;
use ferry_sync::{Rule, Selection};

use crate::arguments::Usage;
use crate::output::describe;
use crate::quote::quote;
use crate::values::file_size;

/// A selection in the making.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// The first option that chooses entries.
    pub(super) first: Option<&'static str>,
    pub(super) selection: Selection,
}

impl Choice {
    /// Notes an option that chooses entries.
    pub(super) fn by(&mut self, option: &'static str) -> &mut Selection {
        self.first.get_or_insert(option);
        &mut self.selection
    }
}

pub(super) fn exclude(choice: &mut Choice, text: &OsStr) -> Result<(), Usage> {
    let pattern = pattern("--exclude", text)?;
    choice.by("--exclude").rules.push(Rule { pattern, origin: "--exclude".into() });
    Ok(())
}

pub(super) fn include(choice: &mut Choice, text: &OsStr) -> Result<(), Usage> {
    let pattern = pattern("--include", text)?;
    if pattern.starts_with('!') {
        return Err(Usage::with_hint(format!("--include {}: use --exclude without the '!'", quote(text))));
    }
    choice.by("--include").rules.push(Rule { pattern: format!("!{pattern}"), origin: "--include".into() });
    Ok(())
}

pub(super) fn exclude_from(choice: &mut Choice, text: &OsStr) -> Result<(), Usage> {
    let bytes = std::fs::read(text)
        .map_err(|error| Usage::plain(format!("cannot read {}: {}", quote(text), describe(&error))))?;
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let origin = format!("{}:{number}", Path::new(text).display());
        let line = std::str::from_utf8(line).map_err(|_| Usage::plain(format!("{origin}: not UTF-8")))?;
        if !line.trim_end().is_empty() && !line.starts_with('#') {
            choice.by("--exclude-from").rules.push(Rule { pattern: line.to_owned(), origin });
        }
    }
    choice.by("--exclude-from");
    Ok(())
}

/// Returns a pattern that is not empty. One that begins with `#` would be a comment.
fn pattern(option: &str, text: &OsStr) -> Result<String, Usage> {
    match text.to_str() {
        Some(word) if word.starts_with('#') => Ok(format!("\\{word}")),
        Some(word) if !word.trim_end().is_empty() => Ok(word.to_owned()),
        Some(_) => Err(Usage::with_hint(format!("the pattern of {option} is empty"))),
        None => Err(Usage::with_hint(format!("{option} {}: a pattern is UTF-8", quote(text)))),
    }
}

pub(super) fn min_size(choice: &mut Choice, text: &OsStr) -> Result<(), Usage> {
    choice.by("--min-size").min_size = Some(file_size("--min-size", text)?);
    Ok(())
}

pub(super) fn max_size(choice: &mut Choice, text: &OsStr) -> Result<(), Usage> {
    choice.by("--max-size").max_size = Some(file_size("--max-size", text)?);
    Ok(())
}

pub(super) fn newer_than(choice: &mut Choice, text: &OsStr) -> Result<(), Usage> {
    let time = text.to_str().and_then(|word| point_in_time(word, SystemTime::now()));
    let time = time.ok_or_else(|| {
        let text = quote(text);
        Usage::with_hint(format!(
            "invalid time {text} for --newer-than: 2026-01-31, 2026-01-31T18:00:00Z or 36h"
        ))
    })?;
    choice.by("--newer-than").newer_than = Some(time);
    Ok(())
}

/// Parses a day, a time (both UTC), or how long ago it was.
fn point_in_time(word: &str, now: SystemTime) -> Option<Time> {
    let is_day = word.len() == "2026-01-31".len() && word.as_bytes().get(4) == Some(&b'-');
    let date = if is_day { format!("{word}T00:00:00Z") } else { word.to_owned() };
    let point = match humantime::parse_rfc3339_weak(&date) {
        Ok(time) => time,
        Err(_) => now.checked_sub(humantime::parse_duration(word).ok()?)?,
    };
    let since = point.duration_since(UNIX_EPOCH).ok()?;
    Some(Time { seconds: i64::try_from(since.as_secs()).ok()?, nanoseconds: since.subsec_nanos() })
}

/// Returns the selection, unless its parts contradict one another.
pub(super) fn finish(choice: &Choice) -> Result<Selection, Usage> {
    let selection = &choice.selection;
    if let (Some(least), Some(most)) = (selection.min_size, selection.max_size)
        && least > most
    {
        return Err(Usage::with_hint("--min-size is larger than --max-size"));
    }
    selection.check().map_err(|bad| Usage::plain(bad.to_string()))?;
    Ok(selection.clone())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_days_or_times_or_durations() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (word, expected) in [
            ("1970-01-02", Some(86_400)),
            ("1970-01-02T01:00:00Z", Some(90_000)),
            ("1970-01-02 01:00:00", Some(90_000)),
            ("1h", Some(996_400)),
            ("1day 1s", Some(913_599)),
            ("100years", None),
            ("yesterday", None),
            ("", None),
        ] {
            let found = point_in_time(word, now).map(|time| time.seconds);
            assert_eq!(found, expected, "{word}");
        }
    }
}
