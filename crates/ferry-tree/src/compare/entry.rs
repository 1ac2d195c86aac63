//! Comparison of two entries of the same path, once their directories are open.

use super::content::{Buffers, Files};
use super::difference::{Difference, Mismatch, Side, alone};
use super::facts;
use super::holes::{self, Layout};
use super::links::{Linked, Links};
use super::options::Options;
use super::progress::{Observer, Progress};
use crate::attributes::{Attributes, EntryKind};
use crate::error::Operation;
use crate::node::Node;
use crate::{extents, open, xattr};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::readlinkat;
use rustix::io::{Errno, Result as CallResult};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// A name in an open directory.
#[derive(Clone, Copy)]
pub(super) struct NameIn<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a [u8],
}

#[derive(Clone, Copy)]
pub(super) struct PathPair<'a> {
    pub(super) source: NameIn<'a>,
    pub(super) target: NameIn<'a>,
    /// Its directory and its name there; `None` for the roots.
    pub(super) place: Option<(&'a Node, &'a [u8])>,
}

impl PathPair<'_> {
    fn path(&self) -> Vec<u8> {
        self.place.map(|(node, name)| node.entry(name)).unwrap_or_default()
    }
}

pub(super) struct Sides<T> {
    pub(super) source: T,
    pub(super) target: T,
}

impl<T> Sides<T> {
    pub(super) fn of(&self, side: Side) -> &T {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }
}

/// Options and results shared by all threads of a comparison.
pub(super) struct Checks<'a> {
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) observer: &'a Observer<'a>,
    pub(super) links: Mutex<Links>,
    /// The content of files from this size on is left to the caller.
    pub(super) large: u64,
}

/// Rest of an entry that was compared.
pub(super) enum Rest {
    Nothing,
    /// The entries of both directories.
    Entries,
    /// The content of a large file, which has these attributes in the source.
    Content(Attributes),
}

impl Checks<'_> {
    pub(super) fn report(&self, path: Vec<u8>, mismatch: Mismatch) {
        self.progress.differences.fetch_add(1, Relaxed);
        (self.observer)(Difference { path, mismatch });
    }

    pub(super) fn unreadable(&self, path: Vec<u8>, side: Side, operation: Operation, errno: Errno) {
        self.report(path, Mismatch::Unreadable { side, operation, errno });
    }

    /// Reports an entry that only one side has, unless it has vanished meanwhile.
    pub(super) fn only(&self, side: Side, at: NameIn<'_>, node: &Node) {
        match Attributes::read(at.directory, at.name) {
            Ok(attributes) => self.report(node.entry(at.name), alone(side, attributes.kind)),
            Err(Errno::NOENT) => {}
            Err(errno) => self.unreadable(node.entry(at.name), side, Operation::Stat, errno),
        }
    }

    /// Compares one entry, and returns what remains of it.
    pub(super) fn entry(&self, spot: &PathPair<'_>, buffers: &mut Buffers) -> Rest {
        let Some(sides) = self.attributes(spot) else { return Rest::Nothing };
        let (source, target) = (&sides.source, &sides.target);
        self.progress.entries.fetch_add(1, Relaxed);
        if source.inode == target.inode {
            self.progress.shared.fetch_add(1, Relaxed);
        }
        if source.kind != target.kind {
            self.report(spot.path(), Mismatch::Kind { source: source.kind, target: target.kind });
            return Rest::Nothing;
        }
        let mut report = |mismatch| self.report(spot.path(), mismatch);
        facts::attributes(source, target, self.options, &mut report);
        if self.options.xattrs || self.options.acls {
            let read = |_, at: NameIn<'_>| xattr::read(at.directory, at.name);
            if let Some(both) = self.both(spot, Operation::ReadXattrs, read) {
                facts::xattrs(&both.source, &both.target, self.options, &mut report);
            }
        }
        let mut rest = Rest::Nothing;
        match source.kind {
            EntryKind::Directory => {
                self.progress.directories.fetch_add(1, Relaxed);
                return Rest::Entries;
            }
            EntryKind::Symlink => self.link_target(spot),
            EntryKind::File if source.size == target.size => {
                let is_large = self.options.content && source.size >= self.large;
                if self.file(spot, &sides, buffers).is_some() && is_large {
                    rest = Rest::Content(source.clone());
                }
            }
            EntryKind::File
            | EntryKind::Fifo
            | EntryKind::Socket
            | EntryKind::CharacterDevice
            | EntryKind::BlockDevice
            | EntryKind::Unknown => {}
        }
        if self.options.links
            && let Some(name) = Linked::new(spot.path(), source, target)
        {
            self.links.lock().unwrap_or_else(PoisonError::into_inner).add(name);
        }
        rest
    }

    /// Reads the attributes of both sides. Reports an entry that is missing on one side, and returns `None`.
    fn attributes(&self, spot: &PathPair<'_>) -> Option<Sides<Attributes>> {
        let read = |side, at: NameIn<'_>| match Attributes::read(at.directory, at.name) {
            Ok(attributes) => Some(Some(attributes)),
            Err(Errno::NOENT) => Some(None),
            Err(errno) => {
                self.unreadable(spot.path(), side, Operation::Stat, errno);
                None
            }
        };
        let (source, target) = (read(Side::Source, spot.source), read(Side::Target, spot.target));
        match (source?, target?) {
            (Some(source), Some(target)) => return Some(Sides { source, target }),
            (Some(source), None) => self.report(spot.path(), alone(Side::Source, source.kind)),
            (None, Some(target)) => self.report(spot.path(), alone(Side::Target, target.kind)),
            (None, None) => {}
        }
        None
    }

    /// Makes a call on both sides, and reports each failure.
    fn both<T>(
        &self,
        spot: &PathPair<'_>,
        operation: Operation,
        call: impl Fn(Side, NameIn<'_>) -> CallResult<T>,
    ) -> Option<Sides<T>> {
        let one = |side, at| {
            call(side, at).map_err(|errno| self.unreadable(spot.path(), side, operation, errno)).ok()
        };
        let (source, target) = (one(Side::Source, spot.source), one(Side::Target, spot.target));
        Some(Sides { source: source?, target: target? })
    }

    fn link_target(&self, spot: &PathPair<'_>) {
        let read = |_, at: NameIn<'_>| readlinkat(at.directory, at.name, Vec::new());
        let Some(links) = self.both(spot, Operation::ReadLink, read) else { return };
        let (source, target) = (links.source.into_bytes(), links.target.into_bytes());
        if source != target {
            self.report(spot.path(), Mismatch::SymlinkTarget { source, target });
        }
    }

    /// Compares two files, but for the content of large ones. Returns `None` if one can't be opened, which is reported.
    fn file(&self, spot: &PathPair<'_>, sides: &Sides<Attributes>, buffers: &mut Buffers) -> Option<()> {
        let holes = holes::possible(&sides.source, &sides.target, self.options);
        if !self.options.content && !holes {
            return Some(());
        }
        if self.options.content {
            self.progress.files.fetch_add(1, Relaxed);
        }
        let open = |side, at: NameIn<'_>| {
            let file = open::file(at.directory, at.name)?;
            let known = if side == Side::Source { &sides.source } else { &sides.target };
            // Replaced since its attributes were read: the new file may be of any type.
            if Attributes::of(&file)?.inode == known.inode { Ok(file) } else { Err(Errno::STALE) }
        };
        let files = self.both(spot, Operation::Open, open)?;
        if self.options.content && sides.source.size < self.large {
            self.content(spot, 0..u64::MAX, (sides, &files), buffers);
        }
        if holes {
            self.holes(spot, sides, &files);
        }
        Some(())
    }

    pub(super) fn content(
        &self,
        spot: &PathPair<'_>,
        range: Range<u64>,
        (sides, files): (&Sides<Attributes>, &Sides<OwnedFd>),
        buffers: &mut Buffers,
    ) {
        let files = Files {
            source: files.source.as_fd(),
            target: files.target.as_fd(),
            source_attributes: &sides.source,
            target_attributes: &sides.target,
        };
        match files.first_difference(range, buffers, self.progress) {
            Ok(None) => {}
            Ok(offset) => self.report(spot.path(), Mismatch::Content { offset }),
            Err((side, errno)) => self.unreadable(spot.path(), side, Operation::Read, errno),
        }
    }

    /// Compares holes, and repeats the comparison on settled files before it reports one: see [`super::holes`].
    fn holes(&self, spot: &PathPair<'_>, sides: &Sides<Attributes>, files: &Sides<OwnedFd>) {
        if self.lost_holes(sides, files).is_none() {
            return;
        }
        extents::settle(&files.source);
        extents::settle(&files.target);
        let (source, target) = (Attributes::of(&files.source), Attributes::of(&files.target));
        let (Ok(source), Ok(target)) = (source, target) else { return };
        if let Some(mismatch) = self.lost_holes(&Sides { source, target }, files) {
            self.report(spot.path(), mismatch);
        }
    }

    fn lost_holes(&self, sides: &Sides<Attributes>, files: &Sides<OwnedFd>) -> Option<Mismatch> {
        // Without a report of its data, a file cannot be judged.
        let source_extents = extents::list(&files.source, sides.source.size).ok()?;
        let target_extents = extents::list(&files.target, sides.target.size).ok()?;
        let source = Layout { attributes: &sides.source, extents: &source_extents };
        let target = Layout { attributes: &sides.target, extents: &target_extents };
        holes::compare(&source, &target, self.options)
    }
}
