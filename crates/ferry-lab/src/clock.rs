//! Timestamps in records: RFC 3339, UTC.

use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(test)]
mod tests;

/// Returns the current time: `2026-08-01T12:34:56.789Z`.
#[must_use]
pub fn now() -> String {
    text(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis()))
}

/// Formats milliseconds since 1970 as date and time.
#[must_use]
pub fn text(milliseconds: u128) -> String {
    let seconds = u64::try_from(milliseconds / 1000).unwrap_or(u64::MAX);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds % 86_400 / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", milliseconds % 1000)
}

/// Year, month and day of a day since 1970 (Howard Hinnant's civil_from_days).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
