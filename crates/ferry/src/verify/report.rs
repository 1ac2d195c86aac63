//! Differences and the summary as JSON objects, one a line.

use ferry_tree::compare::{Difference, Summary, What};
use serde::Serialize;

use crate::escape::escaped;

#[derive(Serialize)]
struct DifferenceReport<'a> {
    path: &'a str,
    kind: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct SummaryReport {
    summary: Summary,
    same: bool,
}

/// One difference.
pub(crate) fn difference(difference: &Difference) -> String {
    let (path, message) = (escaped(&difference.path), difference.what.to_string());
    to_line(&DifferenceReport { path: &path, kind: kind(&difference.what), message: &message })
}

/// The last line.
pub(crate) fn summary(summary: &Summary) -> String {
    to_line(&SummaryReport { summary: *summary, same: summary.differences == 0 && !summary.stopped })
}

fn to_line(report: &impl Serialize) -> String {
    // Nothing in the reports can fail to be written to a string.
    serde_json::to_string(report).unwrap_or_default()
}

fn kind(what: &What) -> &'static str {
    match what {
        What::MissingInTarget(_) => "missing",
        What::ExtraInTarget(_) => "extra",
        What::Kind { .. } => "type",
        What::Content { .. } => "content",
        What::Size { .. } => "size",
        What::Mode { .. } => "mode",
        What::Owner { .. } => "owner",
        What::Mtime { .. } => "times",
        What::Xattr { .. } => "xattr",
        What::Acl { .. } => "acl",
        What::SymlinkTarget { .. } => "link target",
        What::Device { .. } => "device",
        What::HardLink { .. } => "hard link",
        What::Holes { .. } => "holes",
        What::Unreadable { .. } => "unreadable",
    }
}
