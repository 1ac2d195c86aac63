//! Snapshot that a capture of a described tree should equal.

use crate::acl;
use crate::attributes::{Attributes, EntryKind, Inode, Time};
use crate::capture::{Facts, Snapshot};
use crate::compare::{self, Difference, Options};
use crate::describe::{Content, Meta, Node, NodeKind, Tree};
use crate::hash::{ContentHash, Hasher, PIECE_BYTES};
use crate::xattr::{self, Xattrs};
use std::collections::HashMap;

impl Tree {
    /// Returns the snapshot that this description promises. Properties left open (an owner, a time) are taken from
    /// `found`.
    #[must_use]
    pub fn expected(&self, found: &Snapshot) -> Snapshot {
        let mut names: HashMap<&[u8], (u64, u64)> = HashMap::new();
        for (path, node) in self.nodes() {
            names.entry(first_name(path, node)).or_default().0 += 1;
        }
        for (number, (_, inode)) in (1..).zip(names.values_mut()) {
            *inode = number;
        }
        let mut snapshot = Snapshot::default();
        for (path, node) in self.nodes() {
            let first = first_name(path, node);
            let Some(described) = self.get(first) else { continue };
            let actual = found.entries.get(path);
            let mut facts = facts(described, actual.map(|facts| &facts.attributes));
            let (link_count, number) = names.get(first).copied().unwrap_or_default();
            facts.attributes.link_count = link_count;
            facts.attributes.inode.number = number;
            // Labels that the system gives to every file are not part of a description.
            let labels = actual.into_iter().flat_map(|facts| &facts.xattrs);
            let labels = labels.filter(|(key, _)| xattr::is_label(key));
            facts.xattrs.extend(labels.map(|(key, value)| (key.clone(), value.clone())));
            snapshot.entries.insert(path.to_vec(), facts);
        }
        snapshot
    }

    /// Returns the differences of the captured tree from this description, which counts as the source.
    #[must_use]
    pub fn differences(&self, found: &Snapshot) -> Vec<Difference> {
        compare::snapshots(&self.expected(found), found, &Options::all())
    }
}

/// Returns the path that describes the entry; for a hard link, the path of its target.
fn first_name<'a>(path: &'a [u8], node: &'a Node) -> &'a [u8] {
    match &node.kind {
        NodeKind::HardLink(first) => first,
        NodeKind::Directory
        | NodeKind::File(_)
        | NodeKind::Symlink(_)
        | NodeKind::Fifo
        | NodeKind::Socket
        | NodeKind::CharacterDevice(..)
        | NodeKind::BlockDevice(..) => path,
    }
}

fn facts(node: &Node, found: Option<&Attributes>) -> Facts {
    let Meta { mode, uid, gid, atime, mtime, xattrs, .. } = &node.meta;
    let kind = node.entry_kind();
    let mut facts = Facts {
        attributes: Attributes {
            kind,
            mode: if kind == EntryKind::Symlink { 0o777 } else { *mode },
            uid: uid.or(found.map(|found| found.uid)).unwrap_or_default(),
            gid: gid.or(found.map(|found| found.gid)).unwrap_or_default(),
            atime: atime.or(found.map(|found| found.atime)).unwrap_or(Time::default()),
            mtime: mtime.or(found.map(|found| found.mtime)).unwrap_or(Time::default()),
            size: 0,
            inode: Inode::default(),
            link_count: 1,
            device: (0, 0),
            allocated: 0,
            block_bytes: PIECE_BYTES,
        },
        target: None,
        xattrs: described_xattrs(xattrs, &node.meta),
        hash: None,
        extents: Vec::new(),
    };
    match &node.kind {
        NodeKind::File(content) => {
            facts.attributes.size = content.size();
            facts.extents = content.extents();
            facts.attributes.allocated = facts.extents.iter().map(|extent| extent.size).sum();
            facts.hash = Some(hash(content));
        }
        NodeKind::Symlink(target) => {
            facts.attributes.size = u64::try_from(target.len()).unwrap_or(u64::MAX);
            facts.target = Some(target.clone());
        }
        NodeKind::CharacterDevice(major, minor) | NodeKind::BlockDevice(major, minor) => {
            facts.attributes.device = (*major, *minor);
        }
        NodeKind::Directory | NodeKind::Fifo | NodeKind::Socket | NodeKind::HardLink(_) => {}
    }
    facts
}

/// Attributes and ACLs as the kernel lists them. It does not store an access ACL that is equivalent to the mode.
fn described_xattrs(xattrs: &Xattrs, meta: &Meta) -> Xattrs {
    let mut all = xattrs.clone();
    if let Some(acl) = meta.access_acl.as_ref().filter(|acl| !acl.is_minimal()) {
        all.insert(acl::ACCESS_XATTR.to_vec(), acl.encode());
    }
    if let Some(acl) = &meta.default_acl {
        all.insert(acl::DEFAULT_XATTR.to_vec(), acl.encode());
    }
    all
}

fn hash(content: &Content) -> ContentHash {
    let mut hasher = Hasher::default();
    let mut next = 0;
    let extents = content.extents();
    for (index, extent) in extents.iter().enumerate() {
        next = next.max(extent.offset - extent.offset % PIECE_BYTES);
        while next < extent.end() {
            let size = (content.size() - next).min(PIECE_BYTES);
            let mut piece = vec![0; usize::try_from(size).unwrap_or(0)];
            for part in extents[index..].iter().take_while(|part| part.offset < next + size) {
                let (start, end) = (part.offset.max(next), part.end().min(next + size));
                let range =
                    usize::try_from(start - next).unwrap_or(0)..usize::try_from(end - next).unwrap_or(0);
                content.read(start, &mut piece[range]);
            }
            hasher.add(next, &piece);
            next += PIECE_BYTES;
        }
    }
    hasher.finish(content.size())
}
