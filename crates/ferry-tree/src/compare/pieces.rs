//! A comparison in pieces, for a caller that divides the work among processes.
//!
//! The caller performs each piece once: [`Pieces::roots`]; the names of each folder that a piece has found ([`Pieces::list`],
//! [`Pieces::pass`], [`Pieces::compare`]); and the content of each large file in ranges that cover it ([`Pieces::range`]).
//! Pieces may be performed by any thread of any process. [`Joined`] makes of what they find what [`super::trees`] finds: of
//! the differences of a large file's ranges it keeps the first one, and it compares the names of linked files that all
//! processes have found. Guard: `both_ways_agree` in tests/it.

use super::content::Buffers;
use super::difference::{Difference, Mismatch, Side};
use super::entry::{Checks, NameIn, PathPair, Rest, Sides};
use super::links::{Linked, Links};
use super::merged::Merged;
use super::merged::Next::{InBoth, InOne};
use super::options::Options;
use super::progress::{Observer, Progress};
use super::walk::budget;
use crate::attributes::Attributes;
use crate::error::{Context, Error, Operation};
use crate::node::Node;
use crate::open::{self, Names};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A comparison in pieces.
pub struct Pieces<'a> {
    checks: Checks<'a>,
    source: Root<'a>,
    target: Root<'a>,
}

/// The top of a tree.
struct Root<'a> {
    parent: OwnedFd,
    name: &'a [u8],
    attributes: Attributes,
    /// The directory, or why it can't be opened.
    folder: rustix::io::Result<OwnedFd>,
}

impl<'a> Root<'a> {
    fn open(path: &'a Path) -> Result<Self, Error> {
        let path = path.as_os_str().as_bytes();
        let (parent, name) = open::parent(path).context(Operation::Open, path)?;
        let attributes = Attributes::read(&parent, name).context(Operation::Stat, path)?;
        let folder = open::directory(&parent, name);
        Ok(Self { parent, name, attributes, folder })
    }

    fn at(&self) -> NameIn<'_> {
        NameIn { directory: self.parent.as_fd(), name: self.name }
    }
}

/// Names that a piece has found and not compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Names of directories that both sides have.
    pub folders: Vec<Vec<u8>>,
    /// Names of large files of equal size, and their attributes in the source.
    pub large: Vec<(Vec<u8>, Attributes)>,
}

/// The listings of a folder on both sides, and how far they were passed.
pub struct Listed {
    node: Arc<Node>,
    folders: Sides<OwnedFd>,
    names: Sides<Names>,
    merged: Merged,
}

impl Listed {
    /// Returns the number of names that are left, on the side with more.
    #[must_use]
    pub fn left(&self) -> usize {
        self.merged.left(&self.names.source, &self.names.target)
    }
}

/// Outcome of [`Pieces::list`].
pub enum Listing {
    /// The names of both sides.
    Listed(Listed),
    /// One side has more names than were asked for.
    TooLong,
    /// One side can't be listed, which was reported.
    Unreadable,
}

/// Names that both sides have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Those that are no directories, as the source's listing says.
    pub leaves: Vec<Vec<u8>>,
    /// All others.
    pub others: Vec<Vec<u8>>,
}

impl<'a> Pieces<'a> {
    /// Opens both trees. The content of files of at least `large` bytes is left to [`Self::range`].
    ///
    /// # Errors
    /// Source or target does not exist or cannot be examined.
    pub fn open(
        (source, target): (&'a Path, &'a Path),
        large: u64,
        options: &'a Options,
        progress: &'a Progress,
        observer: &'a Observer<'a>,
    ) -> Result<Self, Error> {
        let checks = Checks { options, progress, observer, links: Mutex::default(), large };
        Ok(Self { checks, source: Root::open(source)?, target: Root::open(target)? })
    }

    /// Returns the reason why there are no pieces: a tree that is no directory or can't be opened. [`super::trees`] compares
    /// such trees.
    ///
    /// # Errors
    /// That reason.
    pub fn check(&self) -> Result<(), Error> {
        for root in [&self.source, &self.target] {
            root.folder.as_ref().map_err(|errno| *errno).context(Operation::Open, root.name)?;
        }
        Ok(())
    }

    /// Returns the number of threads that the options ask for and the limit of open files allows.
    #[must_use]
    pub fn threads(&self) -> usize {
        budget(self.checks.options.threads).0
    }

    /// Compares the attributes of both top folders.
    pub fn roots(&self) {
        let spot = PathPair { source: self.source.at(), target: self.target.at(), place: None };
        self.checks.entry(&spot, &mut Buffers::default());
    }

    /// Lists the folder of a path, unless it has more than `most` names on a side.
    #[must_use]
    pub fn list(&self, path: &[u8], most: usize) -> Listing {
        let Some(folders) = self.folders(&self.checks, path) else { return Listing::Unreadable };
        let list = |side| Names::list_some(folders.of(side), most);
        let Some(names) = sides(&self.checks, path, Operation::List, list) else {
            return Listing::Unreadable;
        };
        if names.source.count().max(names.target.count()) > most {
            return Listing::TooLong;
        }
        Listing::Listed(Listed { node: node(path), folders, names, merged: Merged::default() })
    }

    /// Passes the next names of a folder, at most `most` of them: reports those of one side, and returns the others.
    pub fn pass(&self, listed: &mut Listed, most: usize) -> Passed {
        let (mut passed, Listed { node, folders, names, merged }) = (Passed::default(), listed);
        for _ in 0..most {
            if self.checks.progress.is_stopped() {
                break;
            }
            match merged.next(&names.source, &names.target) {
                None => break,
                Some(InOne(side, name)) => self.checks.only(side, at(folders, side, name), node),
                Some(InBoth(index)) => {
                    let name = names.source.get(index).unwrap_or_default().to_vec();
                    match names.source.is_leaf(index) {
                        true => passed.leaves.push(name),
                        false => passed.others.push(name),
                    }
                }
            }
        }
        passed
    }

    /// Compares some names of the folder of a path. Stops early when this time has passed: returns the number of names that
    /// were compared, at least one, and what was found among them.
    pub fn compare(
        &self,
        path: &[u8],
        names: &[Vec<u8>],
        time: Duration,
        buffers: &mut Buffers,
    ) -> (usize, Found) {
        let Some(folders) = self.folders(&self.checks, path) else { return (names.len(), Found::default()) };
        self.compare_in((&node(path), &folders), names, time, buffers)
    }

    /// Compares some names of a listed folder, as [`Self::compare`] does.
    pub fn compare_listed(
        &self,
        listed: &Listed,
        names: &[Vec<u8>],
        time: Duration,
        buffers: &mut Buffers,
    ) -> (usize, Found) {
        self.compare_in((&listed.node, &listed.folders), names, time, buffers)
    }

    fn compare_in(
        &self,
        (node, folders): (&Node, &Sides<OwnedFd>),
        names: &[Vec<u8>],
        time: Duration,
        buffers: &mut Buffers,
    ) -> (usize, Found) {
        let (begun, mut found) = (Instant::now(), Found::default());
        for (index, name) in names.iter().enumerate() {
            if self.checks.progress.is_stopped() || index > 0 && begun.elapsed() > time {
                return (index, found);
            }
            let (source, target) = (at(folders, Side::Source, name), at(folders, Side::Target, name));
            let spot = PathPair { source, target, place: Some((node, name)) };
            match self.checks.entry(&spot, buffers) {
                Rest::Nothing => {}
                Rest::Entries => found.folders.push(name.clone()),
                Rest::Content(attributes) => found.large.push((name.clone(), attributes)),
            }
        }
        (names.len(), found)
    }

    /// Reports an entry in the folder of a path that was exchanged by another program, and is not compared.
    pub fn exchanged(&self, path: &[u8], name: &[u8]) {
        let path = node(path).entry(name);
        self.checks.unreadable(path, Side::Source, Operation::Open, Errno::STALE);
    }

    /// Compares a range of a large file in the folder of a path, and returns the differences for [`Joined::range`]. `found` is
    /// the inode number and the size with which the source was found: another file is not compared.
    pub fn range(
        &self,
        (path, name): (&[u8], &[u8]),
        found: (u64, u64),
        range: Range<u64>,
        buffers: &mut Buffers,
    ) -> Vec<Difference> {
        let differences = Mutex::new(Vec::new());
        let note = |difference| differences.lock().unwrap_or_else(PoisonError::into_inner).push(difference);
        let Checks { options, progress, large, .. } = self.checks;
        let checks = Checks { options, progress, observer: &note, links: Mutex::default(), large };
        self.range_to(&checks, (path, name), (found, range), buffers);
        differences.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `None` if the files can't be opened and examined, which is reported.
    fn range_to(
        &self,
        checks: &Checks<'_>,
        (path, name): (&[u8], &[u8]),
        (found, range): ((u64, u64), Range<u64>),
        buffers: &mut Buffers,
    ) -> Option<()> {
        let folders = self.folders(checks, path)?;
        let node = node(path);
        let file = node.entry(name);
        let files = sides(checks, &file, Operation::Open, |side| open::file(folders.of(side), name))?;
        let both = sides(checks, &file, Operation::Stat, |side| Attributes::of(files.of(side)))?;
        if (both.source.inode.number, both.source.size) != found {
            checks.unreadable(file, Side::Source, Operation::Read, Errno::STALE);
        } else if both.source.size == both.target.size {
            let (source, target) = (at(&folders, Side::Source, name), at(&folders, Side::Target, name));
            let spot = PathPair { source, target, place: Some((&node, name)) };
            checks.content(&spot, range, (&both, &files), buffers);
        } else {
            let (source, target) = (both.source.size, both.target.size);
            checks.report(file, Mismatch::Size { source, target });
        }
        Some(())
    }

    /// Returns the names of files with several that were found since the last call, for [`Joined::linked`].
    pub fn linked(&self) -> Vec<Linked> {
        let names = self.checks.links.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (source, target) = (self.source.attributes.inode.device, self.target.attributes.inode.device);
        names.into_iter().map(|name| name.without_devices(source, target)).collect()
    }

    fn folders(&self, checks: &Checks<'_>, path: &[u8]) -> Option<Sides<OwnedFd>> {
        sides(checks, path, Operation::Open, |side| {
            let root = if side == Side::Source { &self.source } else { &self.target };
            if path.is_empty() {
                // Not a duplicate, which would go on with the listing of another piece.
                return open::directory(&root.parent, root.name);
            }
            root.folder.as_ref().map_err(|errno| *errno).and_then(|root| open::beneath(root.as_fd(), path))
        })
    }
}

/// Makes a call for both sides, and reports each failure.
fn sides<T>(
    checks: &Checks<'_>,
    path: &[u8],
    operation: Operation,
    call: impl Fn(Side) -> rustix::io::Result<T>,
) -> Option<Sides<T>> {
    let one = |side| {
        let failed = |errno| checks.unreadable(path.to_vec(), side, operation, errno);
        call(side).map_err(failed).ok()
    };
    let (source, target) = (one(Side::Source), one(Side::Target));
    Some(Sides { source: source?, target: target? })
}

fn at<'a>(folders: &'a Sides<OwnedFd>, side: Side, name: &'a [u8]) -> NameIn<'a> {
    NameIn { directory: folders.of(side).as_fd(), name }
}

fn node(path: &[u8]) -> Arc<Node> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    names.fold(Node::root(), |node, name| Node::child(&node, name))
}

/// Findings that only all pieces together make a difference of.
///
/// Bound: a difference of each kind for each large file that differs, and names of files of which some were not found.
#[derive(Debug, Default)]
pub struct Joined {
    links: Links,
    ranges: BTreeMap<(Vec<u8>, Cause), Difference>,
}

/// Differences of ranges are one difference if they have the same cause.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Content,
    Size,
    Unreadable(Side, Operation),
}

impl Joined {
    /// Adds a name of a file with several.
    pub fn linked(&mut self, name: Linked) {
        self.links.add(name);
    }

    /// Adds a difference of a range.
    pub fn range(&mut self, difference: Difference) {
        let offset = |difference: &Difference| {
            if let Mismatch::Content { offset } = difference.mismatch { offset } else { None }
        };
        let cause = if let Mismatch::Unreadable { side, operation, .. } = difference.mismatch {
            Cause::Unreadable(side, operation)
        } else if offset(&difference).is_some() {
            Cause::Content
        } else {
            Cause::Size
        };
        let known = self.ranges.entry((difference.path.clone(), cause)).or_insert_with(|| difference.clone());
        if offset(&difference) < offset(known) {
            *known = difference;
        }
    }

    /// Takes the differences of large files out.
    pub fn take_ranges(&mut self) -> Vec<Difference> {
        std::mem::take(&mut self.ranges).into_values().collect()
    }

    /// Returns the differences of linked files. All names have to have been added.
    #[must_use]
    pub fn finish_links(self) -> Vec<Difference> {
        self.links.finish()
    }
}
