//! Formats figures with units, and converts integers to floating point.

#[cfg(test)]
mod tests;

/// Returns the nearest floating-point number.
#[must_use]
pub fn real(n: u64) -> f64 {
    let half = |bits: u64| f64::from(u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX));
    half(n >> 32) * 4_294_967_296.0 + half(n)
}

/// Returns the nearest floating-point number.
#[must_use]
pub fn real_count(n: usize) -> f64 {
    real(u64::try_from(n).unwrap_or(u64::MAX))
}

/// Formats a figure with three digits and its unit: `70.1 ms`, `480 MB/s`, `12,345`. For the units see
/// [`crate::record::Measure::unit`].
#[must_use]
pub fn figure(value: f64, unit: &str) -> String {
    match unit {
        "s" => seconds(value),
        "ns" => seconds(value / 1e9),
        "B" => scaled(value, &["B", "kB", "MB", "GB", "TB"]),
        "B/s" => scaled(value, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
        "1/s" => format!("{} /s", plain(value)),
        "x" => format!("{value:.2}"),
        "" => plain(value),
        unit => format!("{} {unit}", plain(value)),
    }
}

fn seconds(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0 s".to_owned()
    } else if size < 1e-6 {
        format!("{} ns", digits(value * 1e9))
    } else if size < 1e-3 {
        format!("{} µs", digits(value * 1e6))
    } else if size < 1.0 {
        format!("{} ms", digits(value * 1e3))
    } else {
        format!("{} s", digits(value))
    }
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut rest = units;
    while let [_, larger @ ..] = rest
        && value.abs() >= 999.5
        && !larger.is_empty()
    {
        value /= 1000.0;
        rest = larger;
    }
    format!("{} {}", digits(value), rest.first().unwrap_or(&""))
}

/// Three significant digits, or all digits before the point.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Formats a number: `12,345`, `12.3`, `0.0123`.
#[must_use]
pub fn plain(value: f64) -> String {
    let size = value.abs();
    if size >= 999.5 || value.fract() == 0.0 {
        return grouped(&format!("{value:.0}"));
    }
    if size >= 0.1 { digits(value) } else { format!("{value:.4}") }
}

/// Inserts commas between groups of three digits.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut out = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a size as the command line accepts it: `4K`, `1M`, `100`.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}
