//! A tree as data: tests build it in a world, read it back and compare it.

use std::collections::BTreeMap;
use std::ffi::CString;

use rustix::io::Errno;

use super::content::Sparse;
use super::disk::{Body, Disk};
use crate::entry::{FileKind, Time, Times};

/// A tree: nodes by path. Paths are relative to the top, which has the empty path.
pub type Model = BTreeMap<Vec<u8>, Node>;

/// One file of a [`Model`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Kind of the file.
    pub kind: FileKind,
    /// Permission bits: 0 to 0o7777.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Access and modification time.
    pub times: Times,
    /// Extended attributes.
    pub xattrs: BTreeMap<CString, Vec<u8>>,
    /// Number of hard links, in the tree and elsewhere.
    pub links: u64,
    /// First path of the tree that is the same file, if it is another one.
    pub same_as: Option<Vec<u8>>,
    /// Number of the device, if the file is one.
    pub device: u64,
    /// Bytes of a regular file.
    pub content: Sparse,
    /// Target of a symbolic link.
    pub target: Vec<u8>,
}

impl Node {
    /// Creates an empty node of a kind and mode, owned by root and dated 1970.
    #[must_use]
    pub fn new(kind: FileKind, mode: u32) -> Self {
        let epoch = Time { seconds: 0, nanoseconds: 0 };
        Self {
            kind,
            mode,
            uid: 0,
            gid: 0,
            times: Times { accessed: epoch, modified: epoch },
            xattrs: BTreeMap::new(),
            links: if kind == FileKind::Directory { 2 } else { 1 },
            same_as: None,
            device: 0,
            content: Sparse::default(),
            target: Vec::new(),
        }
    }
}

/// Returns the differences between two trees, one a line.
#[must_use]
pub fn differences(source: &Model, target: &Model) -> Vec<String> {
    let mut found = Vec::new();
    for (path, node) in source {
        let shown = path.escape_ascii();
        match target.get(path) {
            None => found.push(format!("{shown}: missing")),
            Some(other) => {
                found.extend(node.differences(other).iter().map(|what| format!("{shown}: {what}")));
            }
        }
    }
    let extra = target.keys().filter(|path| !source.contains_key(*path));
    found.extend(extra.map(|path| format!("{}: extra", path.escape_ascii())));
    found
}

impl Node {
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, one: &dyn std::fmt::Debug, two: &dyn std::fmt::Debug, same: bool| {
            if !same {
                found.push(format!("{what} {one:?}, not {two:?}"));
            }
        };
        compare("kind", &other.kind, &self.kind, other.kind == self.kind);
        let (one, two) = (format!("{:o}", other.mode), format!("{:o}", self.mode));
        compare("mode", &one, &two, one == two);
        let (one, two) = ((other.uid, other.gid), (self.uid, self.gid));
        compare("owner", &one, &two, one == two);
        compare("times", &other.times, &self.times, other.times == self.times);
        compare("xattrs", &other.xattrs, &self.xattrs, other.xattrs == self.xattrs);
        compare("links", &other.links, &self.links, other.links == self.links);
        compare("same file as", &other.same_as, &self.same_as, other.same_as == self.same_as);
        compare("device", &other.device, &self.device, other.device == self.device);
        compare("target", &other.target, &self.target, other.target == self.target);
        let (one, two) = (other.content.size(), self.content.size());
        compare("size", &one, &two, one == two);
        if one == two && other.content != self.content {
            found.push("content differs".to_owned());
        }
        found
    }
}

pub(super) fn node(disk: &Disk, number: u64) -> Result<Node, Errno> {
    let inode = disk.inode(number)?;
    let (content, target) = match &inode.body {
        Body::Regular(content) => (content.clone(), Vec::new()),
        Body::Symlink(target) => (Sparse::default(), target.clone()),
        Body::Folder(_) | Body::Special(_) => (Sparse::default(), Vec::new()),
    };
    Ok(Node {
        kind: inode.kind(),
        mode: inode.mode,
        uid: inode.uid,
        gid: inode.gid,
        times: inode.times,
        xattrs: inode.xattrs.clone(),
        links: inode.links,
        same_as: None,
        device: inode.special,
        content,
        target,
    })
}

/// Returns the tree beneath a folder.
pub(super) fn capture(disk: &Disk, top: u64) -> Result<Model, Errno> {
    let mut numbers = BTreeMap::from([(Vec::new(), top)]);
    let mut left = vec![(Vec::new(), top)];
    while let Some((path, number)) = left.pop() {
        for (_, entry) in disk.inode(number)?.folder()?.after(0) {
            let path = join(&path, &entry.name);
            numbers.insert(path.clone(), entry.inode);
            if disk.inode(entry.inode)?.kind() == FileKind::Directory {
                left.push((path, entry.inode));
            }
        }
    }
    let mut first_path = BTreeMap::new();
    let mut tree = Model::new();
    for (path, number) in numbers {
        let first = first_path.entry(number).or_insert_with(|| path.clone());
        let same_as = (*first != path).then(|| first.clone());
        tree.insert(path, Node { same_as, ..node(disk, number)? });
    }
    Ok(tree)
}

/// Makes a tree beneath a folder. The numbers of links follow from the names made.
pub(super) fn build(disk: &mut Disk, top: u64, tree: &Model) -> Result<(), Errno> {
    let mut numbers: BTreeMap<&[u8], u64> = BTreeMap::from([(&[][..], top)]);
    for (path, node) in tree.iter().filter(|(path, _)| !path.is_empty()) {
        let (above, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path.as_slice()),
        };
        let dir = *numbers.get(above).ok_or(Errno::NOENT)?;
        let number = match &node.same_as {
            Some(first) => {
                let number = *numbers.get(first.as_slice()).ok_or(Errno::NOENT)?;
                disk.inode_mut(number)?.links += 1;
                disk.add_entry(dir, name, number)?;
                number
            }
            None => disk.make(dir, name, body(disk, dir, node), node.mode)?,
        };
        numbers.insert(path, number);
    }
    // Children first: changing them also changes the times of their folders.
    for (path, node) in tree.iter().rev() {
        let Some(&number) = numbers.get(path.as_slice()) else { continue };
        if node.kind == FileKind::Regular {
            disk.change(number, |content| *content = node.content.clone())?;
        }
        let inode = disk.inode_mut(number)?;
        (inode.mode, inode.uid, inode.gid) = (node.mode, node.uid, node.gid);
        inode.xattrs.clone_from(&node.xattrs);
        (inode.special, inode.times) = (node.device, node.times);
    }
    Ok(())
}

fn body(disk: &Disk, dir: u64, node: &Node) -> Body {
    match node.kind {
        FileKind::Directory => disk.empty_folder(dir),
        FileKind::Regular => Body::Regular(Sparse::default()),
        FileKind::Symlink => Body::Symlink(node.target.clone()),
        FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => {
            Body::Special(node.kind)
        }
    }
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}
