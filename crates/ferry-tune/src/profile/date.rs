//! Dates of profiles, and their age.

use std::time::{SystemTime, UNIX_EPOCH};

use super::figures::About;
use super::identity::kernel;

impl About {
    /// This program, this kernel, now.
    #[must_use]
    pub fn here(quick: bool) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            tool: format!("ferry {}", env!("CARGO_PKG_VERSION")),
            kernel: kernel(),
            date: ferry_lab::clock::text(
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis()),
            ),
            quick,
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
        }
    }
}

/// Returns the age of a date in seconds, 0 for the future; `None` if it is not a date in UTC
/// (`2026-08-01T12:34:56.789Z`).
#[must_use]
pub fn age_seconds(date: &str) -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Some(now.saturating_sub(since_1970(date)?))
}

/// Seconds from 1970 to the date.
pub(super) fn since_1970(date: &str) -> Option<u64> {
    let (day, time) = date.strip_suffix('Z')?.split_once('T')?;
    let time = time.split_once('.').map_or(time, |(whole, _)| whole);
    let [year, month, day] = numbers(day, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second)
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split(separator).map(number).collect();
    numbers?.try_into().ok()
}

/// Parses digits only: `parse` alone would accept a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Days since 1970 (Howard Hinnant's `days_from_civil`).
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}
