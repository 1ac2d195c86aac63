//! Differences and the summary as JSON, one object per line.

use ferry_tree::compare::{Difference, Mismatch, Summary};
use serde::Serialize;

use crate::escape::json_name;

#[derive(Serialize)]
struct DifferenceReport<'a> {
    path: &'a str,
    kind: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct SummaryReport<S> {
    summary: S,
    same: bool,
}

#[derive(Serialize)]
struct OfManifest {
    #[serde(flatten)]
    summary: Summary,
    trashes: u64,
}

pub(crate) fn difference(difference: &Difference) -> String {
    line(&difference.path, kind(&difference.mismatch), &difference.mismatch.to_string())
}

/// Returns the line of a difference.
pub(super) fn line(path: &[u8], kind: &'static str, message: &str) -> String {
    to_line(&DifferenceReport { path: &json_name(path), kind, message })
}

pub(crate) fn summary(summary: &Summary) -> String {
    to_line(&SummaryReport { summary: *summary, same: is_same(summary) })
}

/// Returns the last line of a comparison with a manifest, with the number of trashes that were passed over.
pub(super) fn summary_of_manifest(summary: &Summary, trashes: u64) -> String {
    let same = is_same(summary);
    to_line(&SummaryReport { summary: OfManifest { summary: *summary, trashes }, same })
}

fn is_same(summary: &Summary) -> bool {
    summary.differences == 0 && !summary.stopped
}

fn to_line(report: &impl Serialize) -> String {
    // Serialization to a string cannot fail here.
    serde_json::to_string(report).unwrap_or_default()
}

fn kind(what: &Mismatch) -> &'static str {
    match what {
        Mismatch::MissingInTarget(_) => "missing",
        Mismatch::ExtraInTarget(_) => "extra",
        Mismatch::Kind { .. } => "type",
        Mismatch::Content { .. } => "content",
        Mismatch::Size { .. } => "size",
        Mismatch::Mode { .. } => "mode",
        Mismatch::Owner { .. } => "owner",
        Mismatch::Mtime { .. } => "times",
        Mismatch::Xattr { .. } => "xattr",
        Mismatch::Acl { .. } => "acl",
        Mismatch::SymlinkTarget { .. } => "link target",
        Mismatch::Device { .. } => "device",
        Mismatch::HardLink { .. } => "hard link",
        Mismatch::Holes { .. } => "holes",
        Mismatch::Unreadable { .. } => "unreadable",
    }
}
