//! Making a workload on disk with several threads.

use super::shape::Workload;
use crate::describe::{Content, Extent};
use crate::error::{Context, Error, Operation};
use crate::fill::{SplitMix64, derive};
use crate::make::{create, write_content};
use crate::node::Node;
use crate::{open, pool};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, linkat, mkdirat, symlinkat};
use rustix::io::Errno;
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Files of a folder in one job.
const SLICE_FILES: u64 = 512;
/// Bytes made and written at a time.
const BLOCK_BYTES: usize = 1 << 18;
/// Minimum size of a file with a hole.
const SPARSE_BYTES: u64 = 64 << 10;

/// Totals of the entries made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Folders, including the root.
    pub folders: u64,
    /// Regular files.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Second names of files.
    pub hard_links: u64,
    /// Sum of file sizes, including holes.
    pub bytes: u64,
}

/// Makes a tree at `path`, which must not exist, on up to `threads` threads.
///
/// # Errors
/// One of the failed calls; the rest of the tree is not made.
pub fn make(workload: &Workload, path: &Path, threads: usize) -> Result<Made, Error> {
    make_while(workload, path, threads, &|| true)
}

/// Makes a tree while `go_on` returns true, which is asked before each entry.
///
/// # Errors
/// Like [`make`]; EINTR if `go_on` returned false.
pub fn make_while(
    workload: &Workload,
    path: &Path,
    threads: usize,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Made, Error> {
    let bytes = path.as_os_str().as_bytes();
    let (parent, name) = open::parent(bytes).context(Operation::Open, bytes)?;
    let generator = Generator {
        workload,
        go_on,
        made: Counters::default(),
        failure: Mutex::new(None),
        failed: AtomicBool::new(false),
    };
    let root = generator.folder(&parent, name, Node::root(), 0, 0, derive(workload.seed, 0));
    let root = root.map_err(|error| Error { path: bytes.to_vec(), ..error })?;
    let first = Job::Fill(root);
    pool::run(threads, first, || vec![0; BLOCK_BYTES], |buffer, job, jobs| generator.job(job, buffer, jobs));
    let failure = generator.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(generator.made.read()), Err)
}

#[derive(Default)]
struct Counters {
    folders: AtomicU64,
    files: AtomicU64,
    symlinks: AtomicU64,
    hard_links: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    fn read(&self) -> Made {
        Made {
            folders: self.folders.load(Relaxed),
            files: self.files.load(Relaxed),
            symlinks: self.symlinks.load(Relaxed),
            hard_links: self.hard_links.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}

struct Folder {
    node: Arc<Node>,
    directory: OwnedFd,
    level: u64,
    /// Index among the folders of its level.
    index: u64,
    seed: u64,
}

enum Job {
    /// Adds the jobs for a folder's contents.
    Fill(Folder),
    /// Makes subfolder `index`.
    Subfolder { parent: Arc<Folder>, index: u64 },
    /// Makes the files from `start` to `end`.
    Files { folder: Arc<Folder>, start: u64, end: u64 },
}

struct Generator<'a> {
    workload: &'a Workload,
    go_on: &'a (dyn Fn() -> bool + Sync),
    made: Counters,
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
}

impl Generator<'_> {
    fn job(&self, job: Job, buffer: &mut [u8], jobs: &mut Vec<Job>) {
        if self.failed.load(Relaxed) {
            return;
        }
        let outcome = match job {
            Job::Fill(folder) => {
                self.plan(&Arc::new(folder), jobs);
                Ok(())
            }
            Job::Subfolder { parent, index } => self.subfolder(&parent, index, jobs),
            Job::Files { folder, start, end } => {
                (start..end).try_for_each(|index| self.file(&folder, index, buffer))
            }
        };
        if let Err(error) = outcome {
            self.failed.store(true, Relaxed);
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn plan(&self, folder: &Arc<Folder>, jobs: &mut Vec<Job>) {
        let workload = self.workload;
        let is_leaf = folder.level == workload.depth;
        let extra = u64::from(is_leaf && folder.index < workload.extra_files);
        let files = if is_leaf || !workload.leaves_only { workload.files + extra } else { 0 };
        let mut start = 0;
        while start < files {
            let end = files.min(start + SLICE_FILES);
            jobs.push(Job::Files { folder: Arc::clone(folder), start, end });
            start = end;
        }
        if !is_leaf && workload.fanout > 0 {
            jobs.push(Job::Subfolder { parent: Arc::clone(folder), index: 0 });
        }
    }

    /// Makes one subfolder and adds a job for the next one, so that a million subfolders are not a million pending
    /// jobs.
    fn subfolder(&self, parent: &Arc<Folder>, index: u64, jobs: &mut Vec<Job>) -> Result<(), Error> {
        let name = format!("d{index}").into_bytes();
        let node = Node::child(&parent.node, &name);
        let place = parent.index.wrapping_mul(self.workload.fanout).wrapping_add(index);
        let seed = derive(parent.seed, index);
        let folder = self.folder(&parent.directory, &name, node, parent.level + 1, place, seed)?;
        jobs.push(Job::Fill(folder));
        if index + 1 < self.workload.fanout {
            jobs.push(Job::Subfolder { parent: Arc::clone(parent), index: index + 1 });
        }
        Ok(())
    }

    fn folder(
        &self,
        parent: &OwnedFd,
        name: &[u8],
        node: Arc<Node>,
        level: u64,
        index: u64,
        seed: u64,
    ) -> Result<Folder, Error> {
        let path = node.path();
        let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
        mkdirat(parent, name, mode).context(Operation::Create, &path)?;
        let directory = open::directory(parent, name).context(Operation::Open, &path)?;
        self.made.folders.fetch_add(1, Relaxed);
        Ok(Folder { node, directory, level, index, seed })
    }

    fn file(&self, folder: &Folder, index: u64, buffer: &mut [u8]) -> Result<(), Error> {
        // Inverted, so that seeds of files differ from those of subfolders.
        let seed = derive(!folder.seed, index);
        let mut numbers = SplitMix64::new(seed);
        let name = format!("f{index}").into_bytes();
        if !(self.go_on)() {
            return Err(Error::new(Operation::Create, &folder.node.entry(&name), Errno::INTR));
        }
        let failed = |operation, errno| Error::new(operation, &folder.node.entry(&name), errno);
        // The file before a slice may not exist yet.
        let before = (!index.is_multiple_of(SLICE_FILES)).then(|| format!("f{}", index - 1).into_bytes());
        let choice = numbers.below(100);
        let workload = self.workload;
        match before {
            Some(before) if choice < workload.symlink_percent => {
                symlinkat(before.as_slice(), &folder.directory, name.as_slice())
                    .map_err(|errno| failed(Operation::Create, errno))?;
                self.made.symlinks.fetch_add(1, Relaxed);
            }
            Some(before) if choice < workload.symlink_percent + workload.hard_link_percent => {
                let directory = &folder.directory;
                linkat(directory, before.as_slice(), directory, name.as_slice(), AtFlags::empty())
                    .map_err(|errno| failed(Operation::Link, errno))?;
                self.made.hard_links.fetch_add(1, Relaxed);
            }
            _ => {
                let content = self.content(&mut numbers, seed);
                let file =
                    create(&folder.directory, &name).map_err(|errno| failed(Operation::Create, errno))?;
                write_content(&file, &content, buffer).map_err(|errno| failed(Operation::Write, errno))?;
                self.made.files.fetch_add(1, Relaxed);
                self.made.bytes.fetch_add(content.size(), Relaxed);
            }
        }
        Ok(())
    }

    fn content(&self, numbers: &mut SplitMix64, seed: u64) -> Content {
        let size = self.workload.sizes.draw(numbers);
        let sparse = size >= SPARSE_BYTES && numbers.percent(self.workload.sparse_percent);
        let extents = if sparse {
            let third = size / 3;
            let (first, last) = (third - third % 4096, (2 * third).next_multiple_of(4096));
            vec![Extent { offset: 0, size: first }, Extent { offset: last, size: size - last }]
        } else if size > 0 {
            vec![Extent { offset: 0, size }]
        } else {
            Vec::new()
        };
        Content::Seeded { size, seed, extents }
    }
}
