//! The part of a document that is written.

const BEGIN: &str = "<!-- Speeds: `cargo xtask bench` replaces this part. -->";
const END: &str = "<!-- End of the speeds. -->";

/// Returns the document with `speeds` between its markers, or `None` unless it has each marker once, in this order.
pub(super) fn with_speeds(document: &str, speeds: &str) -> Option<String> {
    let marker = |marker: &str| {
        let line = format!("\n{marker}\n");
        let mut found = document.match_indices(&line).map(|(at, _)| at + 1);
        found.next().filter(|_| found.next().is_none())
    };
    let (begin, end) = (marker(BEGIN)?, marker(END)?);
    let before = document.get(..begin)?;
    let after = document.get(end..).filter(|_| begin < end)?;
    Some(format!("{before}{BEGIN}\n{}\n{after}", speeds.trim()))
}
