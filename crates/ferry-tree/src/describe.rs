//! What a described tree is: a literal value that a test can write down, make on disk and compare with.
//!
//! Tests, the random generator and anything else that wants a particular tree build a [`Tree`];
//! [`crate::make::make`] puts it on disk and [`Tree::expected`] says what a capture of it should hold.
//!
//! A tree is flat: a sorted map from path to node. A nested one reads no better in a literal, and its
//! destructor would recurse once a level (5,000 levels are within what is tested).
//! Invariant: every path's parents are in the map and are directories; guard: `Tree::with` panics otherwise.

use crate::acl::Acl;
use crate::attributes::{EntryKind, Time};
use crate::fill;
use crate::quote::Quoted;
use std::collections::BTreeMap;

/// A run of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Where it starts, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub size: u64,
}

impl Extent {
    /// The first byte after it.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// A described file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Bytes made from a seed (see [`fill::fill`]) in the extents; what is between them is a hole.
    Seeded {
        /// The file's size, at least the end of the last extent.
        size: u64,
        /// What the bytes are made from.
        seed: u64,
        /// Where there are bytes, ascending and apart. Holes are certain only where they cover whole blocks.
        extents: Vec<Extent>,
    },
}

impl Content {
    /// The file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::Seeded { size, .. } => *size,
        }
    }

    /// Where there are bytes.
    #[must_use]
    pub fn extents(&self) -> Vec<Extent> {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => Vec::new(),
            Self::Bytes(_) => vec![Extent { offset: 0, size: self.size() }],
            Self::Seeded { extents, .. } => extents.clone(),
        }
    }

    /// Copies what the file holds from `offset` on, which must lie in an extent, as must the end.
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

/// What a described entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory; what it holds are the tree's paths beneath its own.
    Directory,
    /// A regular file.
    File(Content),
    /// A symbolic link to these bytes.
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A socket that nobody listens on.
    Socket,
    /// A character device, by major and minor number. Making it needs root.
    CharacterDevice(u32, u32),
    /// A block device, by major and minor number. Making it needs root.
    BlockDevice(u32, u32),
    /// Another name for the entry at this path of the tree, which must not be a directory or itself such a name.
    HardLink(Vec<u8>),
}

/// Metadata of a described entry. What is `None` is left as the kernel makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Permissions, setuid, setgid and sticky bits. Symbolic links have none of their own.
    pub mode: u32,
    /// Owning user; setting it needs root.
    pub uid: Option<u32>,
    /// Owning group; setting it needs root, or to be a member.
    pub gid: Option<u32>,
    /// Time of the last change of content.
    pub mtime: Option<Time>,
    /// Time of the last access; set, but never compared (see [`crate::compare`]).
    pub atime: Option<Time>,
    /// Extended attributes by their full name (`user.a`), ACLs aside.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The access ACL. Its owner, mask and other permissions are always those of `mode`.
    pub access_acl: Option<Acl>,
    /// A directory's default ACL.
    pub default_acl: Option<Acl>,
}

/// One described entry: what it is and its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Its metadata; a hard link's is that of the entry it names.
    pub meta: Meta,
}

/// Builds nodes: `Node::file("text").mode(0o4755).xattr("user.a", "1")`.
impl Node {
    fn new(kind: Kind, mode: u32) -> Self {
        Self { kind, meta: Meta { mode, ..Meta::default() } }
    }

    /// A directory, of mode 0755 until said otherwise.
    #[must_use]
    pub fn directory() -> Self {
        Self::new(Kind::Directory, 0o755)
    }

    /// A file of these bytes, of mode 0644 until said otherwise.
    #[must_use]
    pub fn file(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(Kind::File(Content::Bytes(bytes.as_ref().to_vec())), 0o644)
    }

    /// A file of `size` bytes made from `seed`.
    #[must_use]
    pub fn seeded(size: u64, seed: u64) -> Self {
        let extents = if size == 0 { Vec::new() } else { vec![Extent { offset: 0, size }] };
        Self::new(Kind::File(Content::Seeded { size, seed, extents }), 0o644)
    }

    /// A file of `size` bytes with bytes made from `seed` at each (offset, size), and holes between them.
    #[must_use]
    pub fn sparse(size: u64, seed: u64, data: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let extents = data.into_iter().map(|(offset, size)| Extent { offset, size }).collect();
        Self::new(Kind::File(Content::Seeded { size, seed, extents }), 0o644)
    }

    /// A symbolic link to `target`.
    #[must_use]
    pub fn symlink(target: impl AsRef<[u8]>) -> Self {
        Self::new(Kind::Symlink(target.as_ref().to_vec()), 0o777)
    }

    /// A named pipe.
    #[must_use]
    pub fn fifo() -> Self {
        Self::new(Kind::Fifo, 0o644)
    }

    /// A socket.
    #[must_use]
    pub fn socket() -> Self {
        Self::new(Kind::Socket, 0o644)
    }

    /// A character device.
    #[must_use]
    pub fn character_device(major: u32, minor: u32) -> Self {
        Self::new(Kind::CharacterDevice(major, minor), 0o600)
    }

    /// A block device.
    #[must_use]
    pub fn block_device(major: u32, minor: u32) -> Self {
        Self::new(Kind::BlockDevice(major, minor), 0o600)
    }

    /// Another name for the entry at `path`, counted from the tree's root.
    #[must_use]
    pub fn hard_link(path: impl AsRef<[u8]>) -> Self {
        Self::new(Kind::HardLink(path.as_ref().to_vec()), 0)
    }

    /// Sets the mode, as chmod(2) would: an access ACL's mask follows it.
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

    /// Sets the access ACL, and with it the permission bits of the mode.
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

    /// The type that it has on disk; a hard link's is that of what it names, and unknown here.
    pub(crate) fn entry_kind(&self) -> EntryKind {
        match &self.kind {
            Kind::Directory => EntryKind::Directory,
            Kind::File(_) => EntryKind::File,
            Kind::Symlink(_) => EntryKind::Symlink,
            Kind::Fifo => EntryKind::Fifo,
            Kind::Socket => EntryKind::Socket,
            Kind::CharacterDevice(..) => EntryKind::CharacterDevice,
            Kind::BlockDevice(..) => EntryKind::BlockDevice,
            Kind::HardLink(_) => EntryKind::Unknown,
        }
    }
}

/// A described tree: a root, which is a directory, and what is beneath it.
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
    /// A tree that is one empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self { nodes: BTreeMap::from([(Vec::new(), Node::directory())]) }
    }

    /// The same tree with another root directory.
    ///
    /// # Panics
    /// If `node` is not a directory.
    #[must_use]
    pub fn root(mut self, node: Node) -> Self {
        assert!(node.kind == Kind::Directory, "a tree's root is a directory");
        self.nodes.insert(Vec::new(), node);
        self
    }

    /// Adds (or replaces) the entry at `path`: names separated by `/`, none of them empty, `.` or `..`.
    /// Parents that are not there yet become plain directories.
    ///
    /// # Panics
    /// If the path or a name in it is not possible, or a parent is not a directory.
    #[must_use]
    pub fn with(mut self, path: impl AsRef<[u8]>, node: Node) -> Self {
        self.insert(path.as_ref(), node);
        self
    }

    /// As [`Tree::with`], in place.
    ///
    /// # Panics
    /// As [`Tree::with`].
    pub fn insert(&mut self, path: &[u8], node: Node) {
        for name in path.split(|byte| *byte == b'/') {
            let possible = !matches!(name, b"" | b"." | b"..") && name.len() <= 255 && !name.contains(&0);
            assert!(possible, "{} has an impossible name in it", Quoted(path));
        }
        let mut child = path;
        while let Some(slash) = child.iter().rposition(|byte| *byte == b'/') {
            child = &child[..slash];
            match self.nodes.get(child) {
                Some(parent) if parent.kind == Kind::Directory => break,
                Some(_) => panic!("{} is not a directory", Quoted(child)),
                None => drop(self.nodes.insert(child.to_vec(), Node::directory())),
            }
        }
        self.nodes.insert(path.to_vec(), node);
    }

    /// All entries with their paths, the root (whose path is empty) first and parents before what they hold.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (&[u8], &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_slice(), node))
    }

    /// The entry at `path`.
    #[must_use]
    pub fn get(&self, path: &[u8]) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// How many entries there are, the root among them.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// Splits a path into its parent and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// A name beneath a path.
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
