//! Differences between two snapshots, in the same terms as those between two trees on disk.

use super::difference::{Difference, Mismatch, Side, alone};
use super::facts;
use super::holes::{self, Layout};
use super::links::{Linked, Links};
use super::options::Options;
use crate::attributes::EntryKind;
use crate::capture::{Facts, Snapshot};
use crate::describe::split;
use crate::error::Operation;
use std::collections::BTreeSet;

/// Returns all differences between the snapshots in the order of paths, those of hard links last.
#[must_use]
pub fn snapshots(source: &Snapshot, target: &Snapshot, options: &Options) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut links = Links::default();
    let sides = [source, target];
    let known = |side: &Snapshot| {
        let paths = side.entries.keys().chain(side.unreadable.keys());
        paths.cloned().collect::<Vec<_>>()
    };
    let paths: BTreeSet<Vec<u8>> = sides.into_iter().flat_map(known).collect();
    for path in paths {
        let compared = path.is_empty() || sides.iter().all(|side| is_listed(side, split(&path).0));
        if !compared {
            continue;
        }
        let report = &mut |mismatch| differences.push(Difference { path: path.clone(), mismatch });
        unreadable(source, target, &path, options, report);
        match (source.entries.get(&path), target.entries.get(&path)) {
            (Some(source), Some(target)) => {
                let known = sides.iter().all(|side| !failed(side, &path, Operation::ReadXattrs));
                entry(source, target, known, options, report);
                let same = source.attributes.kind == target.attributes.kind;
                let named = same && source.attributes.kind != EntryKind::Directory;
                if options.links && named {
                    let name = Linked::new(path, &source.attributes, &target.attributes);
                    name.into_iter().for_each(|name| links.add(name));
                }
            }
            (Some(entry), None) if !target.unreadable.contains_key(&path) => {
                report(alone(Side::Source, entry.attributes.kind));
            }
            (None, Some(entry)) if !source.unreadable.contains_key(&path) => {
                report(alone(Side::Target, entry.attributes.kind));
            }
            (Some(_) | None, _) => {}
        }
    }
    differences.extend(links.finish());
    differences
}

fn is_listed(side: &Snapshot, path: &[u8]) -> bool {
    let is_directory =
        side.entries.get(path).is_some_and(|facts| facts.attributes.kind == EntryKind::Directory);
    is_directory && !failed(side, path, Operation::Open) && !failed(side, path, Operation::List)
}

/// Returns true if this operation failed on this path while the snapshot was taken.
fn failed(side: &Snapshot, path: &[u8], operation: Operation) -> bool {
    let failures = side.unreadable.get(path).into_iter().flatten();
    failures.into_iter().any(|(failed, _)| *failed == operation)
}

/// Reports the failures on a path that affect the comparison.
fn unreadable(
    source: &Snapshot,
    target: &Snapshot,
    path: &[u8],
    options: &Options,
    report: &mut dyn FnMut(Mismatch),
) {
    let (ours, theirs) = (source.entries.get(path), target.entries.get(path));
    let kind = |facts: Option<&Facts>| facts.map(|facts| facts.attributes.kind);
    let size = |facts: Option<&Facts>| facts.map(|facts| facts.attributes.size);
    let is_file = kind(ours) == Some(EntryKind::File);
    let has_content = size(ours) == size(theirs);
    for (side, snapshot) in [(Side::Source, source), (Side::Target, target)] {
        for (operation, errno) in snapshot.unreadable.get(path).into_iter().flatten() {
            let of_xattrs = *operation == Operation::ReadXattrs;
            let of_content = is_file && matches!(operation, Operation::Open | Operation::Read);
            let wanted = (options.content && has_content || !of_content)
                && (options.xattrs || options.acls || !of_xattrs);
            let compared = *operation == Operation::Stat || kind(ours) == kind(theirs);
            if wanted && compared {
                report(Mismatch::Unreadable { side, operation: *operation, errno: *errno });
            }
        }
    }
}

/// Compares two entries of the same path; extended attributes only if they are known on both sides.
fn entry(
    source: &Facts,
    target: &Facts,
    xattrs_known: bool,
    options: &Options,
    report: &mut dyn FnMut(Mismatch),
) {
    let (kind, target_kind) = (source.attributes.kind, target.attributes.kind);
    if kind != target_kind {
        report(Mismatch::Kind { source: kind, target: target_kind });
        return;
    }
    facts::attributes(&source.attributes, &target.attributes, options, report);
    if xattrs_known {
        facts::xattrs(&source.xattrs, &target.xattrs, options, report);
    }
    if let (Some(source), Some(target)) = (&source.target, &target.target)
        && source != target
    {
        report(Mismatch::SymlinkTarget { source: source.clone(), target: target.clone() });
    }
    let (Some(source_hash), Some(target_hash)) = (source.hash, target.hash) else { return };
    if source.attributes.size != target.attributes.size {
        return;
    }
    if options.content && source_hash != target_hash {
        report(Mismatch::Content { offset: None });
    }
    let source = Layout { attributes: &source.attributes, extents: &source.extents };
    let target = Layout { attributes: &target.attributes, extents: &target.extents };
    if holes::possible(source.attributes, target.attributes, options)
        && let Some(mismatch) = holes::compare(&source, &target, options)
    {
        report(mismatch);
    }
}
