//! Differences in attributes and extended attributes.

use super::difference::Mismatch;
use super::options::Options;
use crate::acl::{ACCESS_XATTR, DEFAULT_XATTR};
use crate::attributes::{Attributes, EntryKind};
use crate::xattr::{Xattrs, is_label};
use std::collections::BTreeSet;

pub(super) fn attributes(
    source: &Attributes,
    target: &Attributes,
    options: &Options,
    report: &mut dyn FnMut(Mismatch),
) {
    if options.mode && source.kind != EntryKind::Symlink && source.mode != target.mode {
        report(Mismatch::Mode { source: source.mode, target: target.mode });
    }
    let owner = |side: &Attributes| (side.uid, side.gid);
    if options.owner && owner(source) != owner(target) {
        report(Mismatch::Owner { source: owner(source), target: owner(target) });
    }
    if options.mtime && source.mtime != target.mtime {
        report(Mismatch::Mtime { source: source.mtime, target: target.mtime });
    }
    if source.device != target.device {
        report(Mismatch::Device { source: source.device, target: target.device });
    }
    let sized = source.kind == EntryKind::File && (options.size || options.content);
    if sized && source.size != target.size {
        report(Mismatch::Size { source: source.size, target: target.size });
    }
}

/// Compares extended attributes and ACLs as far as the options ask for it.
pub(super) fn xattrs(source: &Xattrs, target: &Xattrs, options: &Options, report: &mut dyn FnMut(Mismatch)) {
    let names: BTreeSet<&Vec<u8>> = source.keys().chain(target.keys()).collect();
    for name in names {
        let (source, target) = (source.get(name), target.get(name));
        if source == target {
            continue;
        }
        let is_acl = matches!(name.as_slice(), ACCESS_XATTR | DEFAULT_XATTR);
        let (source, target) = (source.cloned(), target.cloned());
        if is_acl && options.acls {
            report(Mismatch::Acl { default: name == DEFAULT_XATTR, source, target });
        } else if !is_acl && options.xattrs && (options.labels || !is_label(name)) {
            report(Mismatch::Xattr { name: name.clone(), source, target });
        }
    }
}
