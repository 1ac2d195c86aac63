//! Described trees: literal values that a test can write down, make on disk and compare with.
//!
//! [`crate::make::make`] puts a [`Tree`] on disk, and [`Tree::expected`] is the snapshot that a capture of it
//! should equal. A tree is a flat, sorted map from path to node. A nested one would read no better in a literal,
//! and its destructor would recurse once a level (tests go 5,000 levels deep). Invariant: every parent of a path is
//! in the map and is a directory. Guard: `Tree::with` panics otherwise.

use crate::acl::Acl;
use crate::attributes::{EntryKind, Time};
use crate::fill;
use crate::quote::Quoted;
use std::collections::BTreeMap;

/// A run of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
}

impl Extent {
    /// Offset of the first byte after the run.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// Content of a described file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Literal bytes.
    Bytes(Vec<u8>),
    /// Bytes made from a seed ([`fill::fill`]) in the extents, with holes between them.
    Seeded {
        /// Size of the file, at least the end of the last extent.
        size: u64,
        /// Seed of the bytes.
        seed: u64,
        /// Runs of data, ascending and disjoint. Only gaps of whole blocks are certain to become holes.
        extents: Vec<Extent>,
    },
}

impl Content {
    /// Size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::Seeded { size, .. } => *size,
        }
    }

    /// Runs of data.
    #[must_use]
    pub fn extents(&self) -> Vec<Extent> {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => Vec::new(),
            Self::Bytes(_) => vec![Extent { offset: 0, size: self.size() }],
            Self::Seeded { extents, .. } => extents.clone(),
        }
    }

    /// Copies content from `offset` on. The range must lie in an extent.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) {
        match self {
            Self::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
            }
            Self::Seeded { seed, .. } => fill::fill(*seed, offset, buffer),
        }
    }
}

/// Type of a described entry, with what belongs to the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A directory; the tree's paths beneath it are its entries.
    Directory,
    /// A regular file.
    File(Content),
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A socket without a listener.
    Socket,
    /// A character device with major and minor number. Making it requires root.
    CharacterDevice(u32, u32),
    /// A block device with major and minor number. Making it requires root.
    BlockDevice(u32, u32),
    /// Another name for the entry at this path of the tree, which must be neither a directory nor a hard link
    /// itself.
    HardLink(Vec<u8>),
}

/// Metadata of a described entry. `None` leaves the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Permissions, setuid, setgid and sticky bits. Symbolic links have none.
    pub mode: u32,
    /// Owning user; setting it requires root.
    pub uid: Option<u32>,
    /// Owning group; setting it requires root or membership.
    pub gid: Option<u32>,
    /// Time of the last change of content.
    pub mtime: Option<Time>,
    /// Time of the last access; set but never compared (see [`crate::compare`]).
    pub atime: Option<Time>,
    /// Extended attributes by full name (`user.a`), without ACLs.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Access ACL. Its permissions for owner, mask and others always equal those of `mode`.
    pub access_acl: Option<Acl>,
    /// Default ACL of a directory.
    pub default_acl: Option<Acl>,
}

/// A described entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Type of the entry.
    pub kind: NodeKind,
    /// Metadata of the entry; ignored for hard links.
    pub meta: Meta,
}

/// Builders of nodes: `Node::file("text").mode(0o4755).xattr("user.a", "1")`.
impl Node {
    fn new(kind: NodeKind, mode: u32) -> Self {
        Self { kind, meta: Meta { mode, ..Meta::default() } }
    }

    /// A directory of mode 0755.
    #[must_use]
    pub fn directory() -> Self {
        Self::new(NodeKind::Directory, 0o755)
    }

    /// A file with these bytes, of mode 0644.
    #[must_use]
    pub fn file(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(NodeKind::File(Content::Bytes(bytes.as_ref().to_vec())), 0o644)
    }

    /// A file with `size` bytes made from `seed`.
    #[must_use]
    pub fn seeded(size: u64, seed: u64) -> Self {
        let extents = if size == 0 { Vec::new() } else { vec![Extent { offset: 0, size }] };
        Self::new(NodeKind::File(Content::Seeded { size, seed, extents }), 0o644)
    }

    /// A file of `size` bytes with data made from `seed` at each (offset, size), and holes elsewhere.
    #[must_use]
    pub fn sparse(size: u64, seed: u64, data: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let extents = data.into_iter().map(|(offset, size)| Extent { offset, size }).collect();
        Self::new(NodeKind::File(Content::Seeded { size, seed, extents }), 0o644)
    }

    /// A symbolic link to `target`.
    #[must_use]
    pub fn symlink(target: impl AsRef<[u8]>) -> Self {
        Self::new(NodeKind::Symlink(target.as_ref().to_vec()), 0o777)
    }

    /// A named pipe.
    #[must_use]
    pub fn fifo() -> Self {
        Self::new(NodeKind::Fifo, 0o644)
    }

    /// A socket.
    #[must_use]
    pub fn socket() -> Self {
        Self::new(NodeKind::Socket, 0o644)
    }

    /// A character device.
    #[must_use]
    pub fn character_device(major: u32, minor: u32) -> Self {
        Self::new(NodeKind::CharacterDevice(major, minor), 0o600)
    }

    /// A block device.
    #[must_use]
    pub fn block_device(major: u32, minor: u32) -> Self {
        Self::new(NodeKind::BlockDevice(major, minor), 0o600)
    }

    /// Another name for the entry at `path`, relative to the tree's root.
    #[must_use]
    pub fn hard_link(path: impl AsRef<[u8]>) -> Self {
        Self::new(NodeKind::HardLink(path.as_ref().to_vec()), 0)
    }

    /// Sets the mode as chmod(2) does: the mask of an access ACL follows it.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.meta.mode = mode & 0o7777;
        if let Some(acl) = &mut self.meta.access_acl {
            acl.set_mode(mode);
        }
        self
    }

    /// Sets user and group.
    #[must_use]
    pub fn owner(mut self, uid: u32, gid: u32) -> Self {
        (self.meta.uid, self.meta.gid) = (Some(uid), Some(gid));
        self
    }

    /// Sets the time of the last change of content.
    #[must_use]
    pub fn mtime(mut self, seconds: i64, nanoseconds: u32) -> Self {
        self.meta.mtime = Some(Time::new(seconds, nanoseconds));
        self
    }

    /// Sets the time of the last access.
    #[must_use]
    pub fn atime(mut self, seconds: i64, nanoseconds: u32) -> Self {
        self.meta.atime = Some(Time::new(seconds, nanoseconds));
        self
    }

    /// Sets an extended attribute by its full name, such as `user.note`.
    #[must_use]
    pub fn xattr(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.meta.xattrs.insert(name.as_ref().to_vec(), value.as_ref().to_vec());
        self
    }

    /// Sets the access ACL and, with it, the permission bits of the mode.
    #[must_use]
    pub fn acl(mut self, acl: Acl) -> Self {
        self.meta.mode = self.meta.mode & 0o7000 | acl.mode();
        self.meta.access_acl = Some(acl);
        self
    }

    /// Sets a directory's default ACL.
    #[must_use]
    pub fn default_acl(mut self, acl: Acl) -> Self {
        self.meta.default_acl = Some(acl);
        self
    }

    /// Returns the type on disk; unknown for a hard link.
    pub(crate) fn entry_kind(&self) -> EntryKind {
        match &self.kind {
            NodeKind::Directory => EntryKind::Directory,
            NodeKind::File(_) => EntryKind::File,
            NodeKind::Symlink(_) => EntryKind::Symlink,
            NodeKind::Fifo => EntryKind::Fifo,
            NodeKind::Socket => EntryKind::Socket,
            NodeKind::CharacterDevice(..) => EntryKind::CharacterDevice,
            NodeKind::BlockDevice(..) => EntryKind::BlockDevice,
            NodeKind::HardLink(_) => EntryKind::Unknown,
        }
    }
}

/// A described tree: a root directory and everything beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A tree of one empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self { nodes: BTreeMap::from([(Vec::new(), Node::directory())]) }
    }

    /// Replaces the root directory.
    ///
    /// # Panics
    /// If `node` is not a directory.
    #[must_use]
    pub fn root(mut self, node: Node) -> Self {
        assert!(node.kind == NodeKind::Directory, "a tree's root is a directory");
        self.nodes.insert(Vec::new(), node);
        self
    }

    /// Adds or replaces the entry at `path`, whose components are separated by `/`. Missing parents become plain
    /// directories.
    ///
    /// # Panics
    /// If a component is empty, `.`, `..` or too long, or if a parent is not a directory.
    #[must_use]
    pub fn with(mut self, path: impl AsRef<[u8]>, node: Node) -> Self {
        self.insert(path.as_ref(), node);
        self
    }

    /// Like [`Tree::with`], in place.
    ///
    /// # Panics
    /// Like [`Tree::with`].
    pub fn insert(&mut self, path: &[u8], node: Node) {
        for name in path.split(|byte| *byte == b'/') {
            let possible = !matches!(name, b"" | b"." | b"..") && name.len() <= 255 && !name.contains(&0);
            assert!(possible, "{} has an impossible name in it", Quoted(path));
        }
        let mut child = path;
        while let Some(slash) = child.iter().rposition(|byte| *byte == b'/') {
            child = &child[..slash];
            match self.nodes.get(child) {
                Some(parent) if parent.kind == NodeKind::Directory => break,
                Some(_) => panic!("{} is not a directory", Quoted(child)),
                None => drop(self.nodes.insert(child.to_vec(), Node::directory())),
            }
        }
        self.nodes.insert(path.to_vec(), node);
    }

    /// All entries with their paths, parents before their contents. The root's path is empty.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (&[u8], &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_slice(), node))
    }

    /// The entry at `path`.
    #[must_use]
    pub fn get(&self, path: &[u8]) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// Number of entries, including the root.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// Splits a path into its parent and its last component.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Appends a name to a path.
pub(crate) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.len());
    path.extend_from_slice(parent);
    if !parent.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests;
