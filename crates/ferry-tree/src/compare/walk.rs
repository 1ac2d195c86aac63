//! A parallel walk of two trees with bounded memory and descriptors.
//!
//! A job is a pair of directories: it opens and lists both, merges the sorted names, compares the common ones, and
//! adds a job for each pair of subdirectories. The names of a large directory are cut into slices, which are jobs
//! too. A pending job may keep its parents open, which saves resolving their path again, within a budget of
//! descriptors. Beyond the budget, a job opens its directories from the roots, with hundreds of components a call.
//! So a tree 5,000 levels deep takes few descriptors, and nothing recurses. Guard: `deep_trees_…` in tests/it.

use super::content::Buffers;
use super::difference::Side;
use super::entry::{Checks, NameIn, PathPair, Rest};
use super::links::Links;
use super::merged::Merged;
use super::merged::Next::{InBoth, InOne};
use super::options::Options;
use super::progress::{Observer, Progress, Summary};
use crate::error::{Context, Error, Operation};
use crate::node::Node;
use crate::{attributes::Attributes, open, pool};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

const SLICE_NAMES: usize = 1024;
/// Descriptors of a thread: two directories, two files, and two more while opening.
const THREAD_DESCRIPTORS: usize = 8;
/// Maximum number of directory pairs that pending jobs keep open.
const MAX_PAIRS: usize = 512;

/// Compares the trees (or single entries) at `source` and `target` on disk. A symbolic link as last component is
/// compared as a link, unless a slash follows it.
///
/// The order of differences is arbitrary, but every run finds the same ones. An unreadable entry is a difference
/// too. Memory holds the names of one directory a thread, pending subdirectories, and names of hard-linked files
/// with further names to come.
///
/// # Errors
/// Source or target does not exist or cannot be examined.
pub fn trees(
    source: &Path,
    target: &Path,
    options: &Options,
    progress: &Progress,
    observer: &Observer<'_>,
) -> Result<Summary, Error> {
    let (source, target) = (source.as_os_str().as_bytes(), target.as_os_str().as_bytes());
    let (source_parent, source_name) = open::parent(source).context(Operation::Open, source)?;
    let (target_parent, target_name) = open::parent(target).context(Operation::Open, target)?;
    Attributes::read(&source_parent, source_name).context(Operation::Stat, source)?;
    Attributes::read(&target_parent, target_name).context(Operation::Stat, target)?;
    let checks = Checks { options, progress, observer, links: Mutex::new(Links::default()), large: u64::MAX };
    let spot = PathPair {
        source: NameIn { directory: source_parent.as_fd(), name: source_name },
        target: NameIn { directory: target_parent.as_fd(), name: target_name },
        place: None,
    };
    if matches!(checks.entry(&spot, &mut Buffers::default()), Rest::Entries) {
        directories(&spot, &checks);
    }
    let links = checks.links.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A stopped walk has not seen all names of a file, so it cannot judge them.
    let differences = if progress.is_stopped() { Vec::new() } else { links.finish() };
    for difference in differences {
        progress.differences.fetch_add(1, Relaxed);
        observer(difference);
    }
    Ok(progress.so_far())
}

fn directories(spot: &PathPair<'_>, checks: &Checks<'_>) {
    let root = Node::root();
    let open_pairs = AtomicUsize::new(0);
    let opened = open_pair(&root, checks, &open_pairs, |side| {
        let at = if side == Side::Source { spot.source } else { spot.target };
        open::directory(at.directory, at.name)
    });
    let Some(roots) = opened else { return };
    let (threads, most_pairs) = budget(checks.options.threads);
    let walk = Walk { checks, roots: &roots, open_pairs: &open_pairs, most_pairs };
    let first = Job::Folder { node: root, parent: None };
    pool::run(threads, first, Buffers::default, |buffers, job, jobs| walk.job(job, buffers, jobs));
}

/// Returns the number of threads, and of directory pairs kept open, that RLIMIT_NOFILE allows.
pub(super) fn budget(threads: usize) -> (usize, usize) {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let in_use = open::directory(CWD, b"/proc/self/fd").and_then(open::Names::list);
    let free = limit.saturating_sub(in_use.map_or(64, |names| names.count()));
    let threads = threads.clamp(1, (free / 2 / THREAD_DESCRIPTORS).max(1));
    let pairs = free.saturating_sub(threads * THREAD_DESCRIPTORS) / 4;
    (threads, pairs.min(MAX_PAIRS))
}

/// Two open directories of the same path, counted while they are open.
struct Pair<'a> {
    source: OwnedFd,
    target: OwnedFd,
    open_pairs: &'a AtomicUsize,
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        self.open_pairs.fetch_sub(1, Relaxed);
    }
}

impl Pair<'_> {
    fn side(&self, side: Side) -> BorrowedFd<'_> {
        match side {
            Side::Source => self.source.as_fd(),
            Side::Target => self.target.as_fd(),
        }
    }
}

fn open_pair<'a>(
    node: &Node,
    checks: &Checks<'_>,
    open_pairs: &'a AtomicUsize,
    open: impl Fn(Side) -> rustix::io::Result<OwnedFd>,
) -> Option<Pair<'a>> {
    let one = |side| {
        let failed = |errno| checks.unreadable(node.path(), side, Operation::Open, errno);
        open(side).map_err(failed).ok()
    };
    let (source, target) = (one(Side::Source), one(Side::Target));
    let (source, target) = (source?, target?);
    open_pairs.fetch_add(1, Relaxed);
    Some(Pair { source, target, open_pairs })
}

enum Job<'a> {
    /// Lists a pair of directories and compares their entries.
    Folder { node: Arc<Node>, parent: Option<Arc<Pair<'a>>> },
    /// Compares one slice of a large pair of directories.
    Slice { folder: Arc<Folder<'a>>, index: usize },
}

/// A pair of directories, and the names that both have.
struct Folder<'a> {
    node: Arc<Node>,
    pair: Arc<Pair<'a>>,
    names: open::Names,
    /// Indices into `names`.
    common: Vec<usize>,
}

struct Walk<'a> {
    checks: &'a Checks<'a>,
    roots: &'a Pair<'a>,
    open_pairs: &'a AtomicUsize,
    most_pairs: usize,
}

impl<'a> Walk<'a> {
    fn job(&self, job: Job<'a>, buffers: &mut Buffers, jobs: &mut Vec<Job<'a>>) {
        match job {
            _ if self.checks.progress.is_stopped() => {}
            Job::Folder { node, parent } => self.folder(node, parent, buffers, jobs),
            Job::Slice { folder, index } => self.slice(&folder, index, buffers, jobs),
        }
    }

    fn folder(
        &self,
        node: Arc<Node>,
        parent: Option<Arc<Pair<'a>>>,
        buffers: &mut Buffers,
        jobs: &mut Vec<Job<'a>>,
    ) {
        let opened = open_pair(&node, self.checks, self.open_pairs, |side| match &parent {
            Some(parent) => open::directory(parent.side(side), node.name()),
            None => open::beneath(self.roots.side(side), &node.path()),
        });
        drop(parent);
        let Some(pair) = opened else { return };
        let (source, target) = (self.list(&node, &pair, Side::Source), self.list(&node, &pair, Side::Target));
        let (Some(names), Some(target)) = (source, target) else { return };
        let common = self.merge(&node, &pair, &names, &target);
        drop(target);
        let slices = common.len().div_ceil(SLICE_NAMES);
        let folder = Arc::new(Folder { node, pair: Arc::new(pair), names, common });
        if slices > 1 && self.may_keep_open() {
            jobs.extend((0..slices).map(|index| Job::Slice { folder: Arc::clone(&folder), index }));
        } else {
            (0..slices).for_each(|index| self.slice(&folder, index, buffers, jobs));
        }
    }

    fn may_keep_open(&self) -> bool {
        self.open_pairs.load(Relaxed) < self.most_pairs
    }

    fn list(&self, node: &Node, pair: &Pair<'_>, side: Side) -> Option<open::Names> {
        let failed = |errno: Errno| self.checks.unreadable(node.path(), side, Operation::List, errno);
        open::Names::list(pair.side(side)).map_err(failed).ok()
    }

    /// Merges two sorted lists: reports names that only one has, and returns the indices of common names.
    fn merge(&self, node: &Node, pair: &Pair<'_>, source: &open::Names, target: &open::Names) -> Vec<usize> {
        let mut common = Vec::with_capacity(source.count().min(target.count()));
        let only = |side, name| self.checks.only(side, NameIn { directory: pair.side(side), name }, node);
        let mut merged = Merged::default();
        while let Some(name) = merged.next(source, target) {
            match name {
                InBoth(index) => common.push(index),
                InOne(side, name) => only(side, name),
            }
        }
        common
    }

    /// Compares the entries of one slice, and adds jobs for directories.
    fn slice(&self, folder: &Folder<'a>, index: usize, buffers: &mut Buffers, jobs: &mut Vec<Job<'a>>) {
        let slice = folder.common.chunks(SLICE_NAMES).nth(index).unwrap_or_default();
        let names = slice.iter().filter_map(|index| folder.names.get(*index));
        for name in names.take_while(|_| !self.checks.progress.is_stopped()) {
            let at = |side| NameIn { directory: folder.pair.side(side), name };
            let place = Some((&*folder.node, name));
            let spot = PathPair { source: at(Side::Source), target: at(Side::Target), place };
            if matches!(self.checks.entry(&spot, buffers), Rest::Entries) {
                let parent = self.may_keep_open().then(|| Arc::clone(&folder.pair));
                jobs.push(Job::Folder { node: Node::child(&folder.node, name), parent });
            }
        }
    }
}
