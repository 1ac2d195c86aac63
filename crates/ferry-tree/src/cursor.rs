//! Position of one thread in a tree of any depth, with few open descriptors.
//!
//! Making, capturing and removing a tree move a cursor from path to path. Only the deepest [`KEPT`] directories
//! stay open. Going up beyond them opens `..` and checks that it is the directory that was left. So neither
//! `PATH_MAX` nor `RLIMIT_NOFILE` limits the depth, and nothing recurses.

use crate::attributes::{Attributes, Inode};
use crate::open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

/// Number of directories kept open.
const KEPT: usize = 16;

#[derive(Debug)]
pub(crate) struct Cursor {
    root: OwnedFd,
    levels: Vec<Level>,
    path: Vec<u8>,
}

/// A directory between the root and the current directory.
#[derive(Debug)]
struct Level {
    /// Length of the parent's path.
    parent_bytes: usize,
    inode: Inode,
    directory: Option<OwnedFd>,
}

impl Cursor {
    /// Starts at the open directory `root`.
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root, levels: Vec::new(), path: Vec::new() }
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        let deepest = self.levels.last().and_then(|level| level.directory.as_ref());
        deepest.map_or(self.root.as_fd(), AsFd::as_fd)
    }

    /// Moves to the directory at `path`. After an error the cursor is at some directory on the way.
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

    /// Returns true if the current directory is `path` or one of its ancestors.
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
