//! Where one thread is in a tree of any depth, with few descriptors open.
//!
//! Making, capturing and removing move a cursor from path to path. Only the deepest [`KEPT`] directories
//! stay open; going up further opens `..` and checks that it is the directory that was left.
//! So `PATH_MAX` and `RLIMIT_NOFILE` bound nothing, and there is no recursion.

use crate::attributes::{Attributes, Inode};
use crate::open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

/// How many directories stay open.
const KEPT: usize = 16;

/// A position in a tree.
#[derive(Debug)]
pub(crate) struct Cursor {
    root: OwnedFd,
    levels: Vec<Level>,
    path: Vec<u8>,
}

/// One directory on the way to the current one.
#[derive(Debug)]
struct Level {
    /// How long the path to its parent is.
    parent_bytes: usize,
    inode: Inode,
    directory: Option<OwnedFd>,
}

impl Cursor {
    /// At the root, which is open already.
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root, levels: Vec::new(), path: Vec::new() }
    }

    /// The current directory.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        let deepest = self.levels.last().and_then(|level| level.directory.as_ref());
        deepest.map_or(self.root.as_fd(), AsFd::as_fd)
    }

    /// Moves to the directory at `path`. After an error it is at some directory on the way.
    pub(crate) fn go(&mut self, path: &[u8]) -> Result<()> {
        while !self.is_above(path) {
            self.up()?;
        }
        let done = self.path.len();
        let rest = path.get(done..).unwrap_or_default();
        for name in rest.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            self.down(name)?;
        }
        Ok(())
    }

    /// Whether the current directory is `path` or on the way to it.
    fn is_above(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.path.as_slice());
        rest.is_some_and(|rest| self.path.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
    }

    fn down(&mut self, name: &[u8]) -> Result<()> {
        let directory = open::directory(self.directory(), name)?;
        let inode = Attributes::of(&directory)?.inode;
        let parent_bytes = self.path.len();
        if parent_bytes > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        self.levels.push(Level { parent_bytes, inode, directory: Some(directory) });
        if let Some(distant) = self.levels.len().checked_sub(KEPT + 1) {
            self.levels[distant].directory = None;
        }
        Ok(())
    }

    fn up(&mut self) -> Result<()> {
        let Some((current, above)) = self.levels.split_last_mut() else { return Err(Errno::NOENT) };
        if let (Some(parent), Some(directory)) = (above.last_mut(), &current.directory)
            && parent.directory.is_none()
        {
            let opened = open::directory(directory, b"..")?;
            if Attributes::of(&opened)?.inode != parent.inode {
                return Err(Errno::STALE);
            }
            parent.directory = Some(opened);
        }
        self.path.truncate(current.parent_bytes);
        self.levels.pop();
        Ok(())
    }
}
