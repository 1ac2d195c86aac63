//! Formats counts, bytes, times and rates for people.

use std::time::Duration;

#[cfg(test)]
mod tests;

const BYTE_UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const NANOSECONDS: u128 = 1_000_000_000;

pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Formats as `12 B`, `8.5 MB` or `851 MB`, in powers of 1,000.
pub(crate) fn bytes(n: u64) -> String {
    let mut unit = 0;
    let mut size: u64 = 1;
    // From 999.5 of a unit on, use the next one.
    while unit + 1 < BYTE_UNITS.len() && n / size >= 1000 || unit > 0 && rounded(n, size) >= 1000 {
        unit += 1;
        size *= 1000;
    }
    let name = BYTE_UNITS[unit];
    let tenths = rounded(n, (size / 10).max(1));
    if unit == 0 || tenths >= 100 {
        format!("{} {name}", rounded(n, size))
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

fn rounded(n: u64, unit: u64) -> u64 {
    n / unit + u64::from(n % unit >= unit.div_ceil(2).max(1))
}

/// Formats as `850 µs`, `320 ms`, `1.2 s`, `2 min 5 s` or `1 h 2 min`.
pub(crate) fn time(time: Duration) -> String {
    let tenths = (time.as_millis() + 50) / 100;
    if time < Duration::from_millis(1) {
        format!("{} µs", time.as_micros())
    } else if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else if tenths < 600 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else {
        let seconds = time.as_secs();
        if seconds < 3600 {
            format!("{} min {} s", seconds / 60, seconds % 60)
        } else {
            format!("{} h {} min", seconds / 3600, seconds % 3600 / 60)
        }
    }
}

/// Formats as `0:07`, `12:34` or `1:02:03`, with a stable width.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else {
        format!("{minutes}:{:02}", seconds % 60)
    }
}

/// Number per second, or `None` if no time passed.
pub(crate) fn per_second(n: u64, time: Duration) -> Option<u64> {
    let scaled = u128::from(n) * NANOSECONDS;
    scaled.checked_div(time.as_nanos()).map(|rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

pub(crate) fn rate(n: u64, time: Duration) -> String {
    per_second(n, time).map_or_else(|| "rate unknown".to_owned(), |rate| format!("{}/s", bytes(rate)))
}

/// Formats the quotient with one decimal; `None` for a divisor of zero.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<String> {
    let tenths = (u128::from(part) * 10 + u128::from(whole) / 2).checked_div(u128::from(whole))?;
    Some(format!("{}.{}", tenths / 10, tenths % 10))
}

pub(crate) fn real(n: u64) -> f64 {
    let half = |bits: u64| f64::from(u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX));
    half(n >> 32) * 4_294_967_296.0 + half(n)
}
