//! Random described trees from a seed, with everything that a filesystem allows.
//!
//! A seed and its knobs yield the same tree on every machine, so that a failing seed can be replayed. A knob
//! enables each feature that some filesystems or users lack; [`Knobs::possible_in`] probes for them.

mod names;
mod probe;

use crate::acl::Acl;
use crate::describe::{Meta, Node, NodeKind, Tree, join};
use crate::fill::{SplitMix64, fill};

/// Features and sizes of random trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Number of entries, without the root.
    pub entries: usize,
    /// Levels of directories. A component may take 255 bytes, and `PATH_MAX` is 4,096.
    pub depth: usize,
    /// Size in bytes of the largest file without holes.
    pub max_file_bytes: u64,
    /// Names with control characters, invalid UTF-8, leading dashes, or 255 bytes.
    pub odd_names: bool,
    /// Files with holes.
    pub holes: bool,
    /// Hard links to files, symbolic links and special files.
    pub hard_links: bool,
    /// Named pipes and sockets.
    pub special: bool,
    /// Character and block devices; requires root.
    pub devices: bool,
    /// Other owners; requires root.
    pub owners: bool,
    /// Modes that deny the owner access, so that only root can read the entry.
    pub unreadable: bool,
    /// Attributes `user.*` of files and directories.
    pub user_xattrs: bool,
    /// Attributes `trusted.*` of all entries, and capabilities of files; requires root.
    pub trusted_xattrs: bool,
    /// Access and default ACLs.
    pub acls: bool,
    /// Times before 1970 and after 2038, which some filesystems cannot store.
    pub far_times: bool,
}

impl Knobs {
    /// Everything, in 60 entries on 5 levels.
    #[must_use]
    pub fn all() -> Self {
        Self {
            entries: 60,
            depth: 5,
            max_file_bytes: 300_000,
            odd_names: true,
            holes: true,
            hard_links: true,
            special: true,
            devices: true,
            owners: true,
            unreadable: true,
            user_xattrs: true,
            trusted_xattrs: true,
            acls: true,
            far_times: true,
        }
    }

    /// Features available to any user on any filesystem: directories, files, symbolic links.
    #[must_use]
    pub fn plain() -> Self {
        let links = Self { holes: false, hard_links: false, special: false, ..Self::all() };
        let names = Self { odd_names: false, devices: false, owners: false, unreadable: false, ..links };
        Self { user_xattrs: false, trusted_xattrs: false, acls: false, far_times: false, ..names }
    }
}

/// Returns the random tree of this seed.
#[must_use]
pub fn tree(seed: u64, knobs: &Knobs) -> Tree {
    let mut maker = Maker { numbers: SplitMix64::new(seed), knobs };
    let mut tree = Tree::new().root(maker.with_metadata(Node::directory()));
    let mut directories = vec![(Vec::new(), 0)];
    let mut linkable = Vec::new();
    while tree.count() <= knobs.entries {
        let (parent, level) = &directories[maker.numbers.index(directories.len())];
        let (parent, level) = (parent.clone(), level + 1);
        let name = names::name(&mut maker.numbers, knobs.odd_names);
        let path = join(&parent, &name);
        if tree.get(&path).is_some() {
            continue;
        }
        let node = maker.node(level < knobs.depth, &linkable);
        match &node.kind {
            NodeKind::Directory => directories.push((path.clone(), level)),
            NodeKind::HardLink(_) => {}
            NodeKind::File(_)
            | NodeKind::Symlink(_)
            | NodeKind::Fifo
            | NodeKind::Socket
            | NodeKind::CharacterDevice(..)
            | NodeKind::BlockDevice(..) => linkable.push(path.clone()),
        }
        tree.insert(&path, node);
    }
    tree
}

struct Maker<'a> {
    numbers: SplitMix64,
    knobs: &'a Knobs,
}

impl Maker<'_> {
    fn node(&mut self, may_be_directory: bool, linkable: &[Vec<u8>]) -> Node {
        let knobs = self.knobs;
        let node = match self.numbers.below(20) {
            0..4 if may_be_directory => Node::directory(),
            4..7 => self.symlink(linkable),
            7 | 8 if knobs.hard_links && !linkable.is_empty() => {
                return Node::hard_link(&linkable[self.numbers.index(linkable.len())]);
            }
            9 if knobs.special => Node::fifo(),
            10 if knobs.special => Node::socket(),
            11 if knobs.devices => {
                let (major, minor) = self.device();
                Node::character_device(major, minor)
            }
            12 if knobs.devices => {
                let (major, minor) = self.device();
                Node::block_device(major, minor)
            }
            13 | 14 if knobs.holes => self.sparse(),
            _ => self.file(),
        };
        self.with_metadata(node)
    }

    /// Numbers within XFS's 9 and 18 bits; other filesystems have 12 and 20.
    fn device(&mut self) -> (u32, u32) {
        let mut below = |limit| u32::try_from(self.numbers.below(limit)).unwrap_or(0);
        (below(1 << 9), below(1 << 18))
    }

    fn symlink(&mut self, linkable: &[Vec<u8>]) -> Node {
        let target = match self.numbers.below(6) {
            0 => b"..".to_vec(),
            1 => b"/dev/null".to_vec(),
            2 => {
                // Longer targets fail with ENAMETOOLONG; the limit of XFS is 1,023.
                let size = 1 + self.numbers.index(1023);
                b"long/".iter().copied().cycle().take(size).collect()
            }
            3 if !linkable.is_empty() => linkable[self.numbers.index(linkable.len())].clone(),
            _ => names::name(&mut self.numbers, self.knobs.odd_names),
        };
        Node::symlink(target)
    }

    fn file(&mut self) -> Node {
        let most = self.knobs.max_file_bytes;
        let size = match self.numbers.below(8) {
            0 => 0,
            1 => 1,
            2 => 4095 + self.numbers.below(3),
            3 => self.numbers.below(most + 1),
            _ => self.numbers.below(3000),
        };
        let (size, seed) = (size.min(most), self.numbers.next_u64());
        if size >= ZEROS_FROM && seed.is_multiple_of(2) {
            with_zeros(size, seed)
        } else {
            Node::seeded(size, seed)
        }
    }

    /// Runs of data in multiples of 64 KiB, which every filesystem keeps apart; the file may end anywhere.
    fn sparse(&mut self) -> Node {
        const UNIT: u64 = 64 << 10;
        let mut data = Vec::new();
        let mut offset = self.numbers.below(4) * UNIT;
        for _ in 0..self.numbers.below(5) {
            let size = (1 + self.numbers.below(3)) * UNIT;
            data.push((offset, size));
            offset += size + (1 + self.numbers.below(8)) * UNIT;
        }
        let tail = if self.numbers.percent(50) { self.numbers.below(20 * UNIT) } else { 0 };
        let written = data.last().map_or(0, |(offset, size)| offset + size);
        Node::sparse(written + tail, self.numbers.next_u64(), data)
    }

    /// Gives an entry random metadata that its type supports.
    fn with_metadata(&mut self, node: Node) -> Node {
        let knobs = self.knobs;
        let is_link = matches!(node.kind, NodeKind::Symlink(_));
        let is_directory = node.kind == NodeKind::Directory;
        let holds_user_xattrs = is_directory || matches!(node.kind, NodeKind::File(_));
        let mut node = if is_link { node } else { self.with_mode(node, is_directory) };
        let time = self.time();
        node = node.mtime(time.0, time.1);
        let time = self.time();
        node = node.atime(time.0, time.1);
        if knobs.owners && self.numbers.percent(70) {
            let (uid, gid) = (self.id(), self.id());
            node = node.owner(uid, gid);
        }
        if knobs.user_xattrs && holds_user_xattrs && self.numbers.percent(40) {
            node = self.with_xattrs(node, b"user.");
        }
        if knobs.trusted_xattrs && self.numbers.percent(20) {
            node = self.with_xattrs(node, b"trusted.");
        }
        if knobs.trusted_xattrs && matches!(node.kind, NodeKind::File(_)) && self.numbers.percent(10) {
            node = node.xattr("security.capability", CAPABILITY);
        }
        if knobs.acls && holds_user_xattrs && self.numbers.percent(25) {
            let acl = self.acl(&node.meta);
            node = node.acl(acl);
        }
        if knobs.acls && is_directory && self.numbers.percent(25) {
            let acl = self.acl(&Meta { mode: 0o750, ..Meta::default() });
            node = node.default_acl(acl);
        }
        node
    }

    fn with_mode(&mut self, node: Node, is_directory: bool) -> Node {
        let mode = match self.numbers.below(4) {
            0 => 0o644,
            1 => 0o755,
            _ => u32::try_from(self.numbers.below(0o10000)).unwrap_or(0),
        };
        let owner = if is_directory { 0o700 } else { 0o600 };
        node.mode(if self.knobs.unreadable { mode } else { mode | owner })
    }

    fn time(&mut self) -> (i64, u32) {
        let second = i64::try_from(self.numbers.below(1 << 31)).unwrap_or(0);
        let far = self.knobs.far_times && self.numbers.percent(30);
        let nanosecond = u32::try_from(self.numbers.below(1_000_000_000)).unwrap_or(0);
        // 1934 to 2070: within the range of ext4, XFS with bigtime, btrfs and tmpfs.
        (if far { second * 2 - (1 << 30) } else { second }, nanosecond)
    }

    fn id(&mut self) -> u32 {
        let ids = [0, 1, 1000, 65_533, 100_000, 4_000_000_000];
        ids[self.numbers.index(ids.len())]
    }

    /// Adds up to three attributes. All attributes of an entry fit in a block of 4 KiB.
    fn with_xattrs(&mut self, node: Node, namespace: &[u8]) -> Node {
        let mut node = node;
        for _ in 0..=self.numbers.below(3) {
            let tail = names::name(&mut self.numbers, self.knobs.odd_names);
            let name = [namespace, &tail[..tail.len().min(40)]].concat();
            let mut value = vec![0; self.numbers.index(200)];
            fill(self.numbers.next_u64(), 0, &mut value);
            node = node.xattr(name, value);
        }
        node
    }

    /// An ACL with named entries that extends the mode.
    fn acl(&mut self, meta: &Meta) -> Acl {
        let mut acl = Acl::from_mode(meta.mode);
        for _ in 0..=self.numbers.below(2) {
            let (id, permissions) = (self.id(), u16::try_from(self.numbers.below(8)).unwrap_or(0));
            acl = if self.numbers.percent(50) {
                acl.user(id, permissions)
            } else {
                acl.named_group(id, permissions)
            };
        }
        acl
    }
}

/// Minimum size of files of which every other one contains zeros.
const ZEROS_FROM: u64 = 64 << 10;

/// A file whose middle half is written zeros, of which a copy must not make holes unasked.
fn with_zeros(size: u64, seed: u64) -> Node {
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    fill(seed, 0, &mut bytes);
    let quarter = bytes.len() / 4;
    bytes[quarter..3 * quarter].fill(0);
    Node::file(bytes)
}

/// `cap_net_raw=ep` (`struct vfs_cap_data`, revision 2, effective).
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[cfg(test)]
mod tests;
