//! A few files that stand for a tree when its cache is looked at.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use ferry_io::probe;
use ferry_tree::fill::SplitMix64;

use super::proof::Proof;
use crate::error::Failure;

/// Number of files in the sample.
const FILES: usize = 16;
/// Folders further down have paths that no call takes.
const DEEPEST: usize = 400;
/// Upper bound of names walked: enough for a fair sample of 100,000 files.
const LONGEST_WALK: usize = 200_000;

/// A sample of the regular files of one or several trees.
#[derive(Debug)]
pub struct Sample {
    roots: Vec<PathBuf>,
    files: Vec<PathBuf>,
    new: Cell<bool>,
}

/// Cached names of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    by: String,
    asked: u64,
    in_memory: u64,
}

impl Sample {
    /// Chooses files of the tree (or the file) at `root`.
    ///
    /// # Errors
    /// If it can't be listed.
    pub fn of(root: &Path, seed: u64) -> Result<Self, Failure> {
        Self::of_all(&[root.to_owned()], seed)
    }

    /// Chooses files of these trees (or files).
    ///
    /// # Errors
    /// If one can't be listed.
    pub fn of_all(roots: &[PathBuf], seed: u64) -> Result<Self, Failure> {
        let mut numbers = SplitMix64::new(seed);
        let mut files = Vec::new();
        let mut seen = 0;
        let mut folders = Vec::new();
        for root in roots {
            let kind =
                std::fs::symlink_metadata(root).map_err(|error| Failure::file("stat", root, &error))?;
            if kind.is_file() {
                choose(&mut files, root.clone(), seen, &mut numbers);
                seen += 1;
            } else {
                folders.push((root.clone(), 0));
            }
        }
        while let Some((folder, depth)) = folders.pop() {
            let failed = |error| Failure::file("list", &folder, &error);
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                if kind.is_dir() && depth < DEEPEST {
                    folders.push((entry.path(), depth + 1));
                } else if kind.is_file() {
                    choose(&mut files, entry.path(), seen, &mut numbers);
                    seen += 1;
                }
            }
            if seen > LONGEST_WALK {
                break;
            }
        }
        Ok(Self { roots: roots.to_vec(), files, new: Cell::new(!roots.is_empty()) })
    }

    /// No files: for experiments that leave the caches as they are.
    #[must_use]
    pub fn none() -> Self {
        Self { roots: Vec::new(), files: Vec::new(), new: Cell::new(false) }
    }

    /// Returns true if no tree was named.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.roots.is_empty()
    }

    /// Roots of the sampled trees.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Returns true before the first check: then the sample may be cached while the rest is not.
    pub(super) fn is_new(&self) -> bool {
        self.new.replace(false)
    }

    /// Counts the cached names. Does not change the cache.
    pub(super) fn ask_for_names(&self) -> Names {
        let mut names = Names { by: "openat2(RESOLVE_CACHED)".to_owned(), asked: 0, in_memory: 0 };
        for file in &self.files {
            match probe::is_name_in_memory(file) {
                Ok(answer) => {
                    names.asked += 1;
                    names.in_memory += u64::from(answer);
                }
                Err(errno) => {
                    names.by = format!("openat2(RESOLVE_CACHED): {}", ferry_io::Cause::Errno(errno))
                }
            }
        }
        names
    }

    /// Counts the cached data. Brings names and inodes of the sample into memory.
    pub(super) fn ask_for_data(&self) -> Data {
        let mut data = Data { by: "cachestat(2)".to_owned(), files: 0, bytes: 0, in_memory_bytes: 0 };
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        for path in &self.files {
            let file = match std::fs::File::open(path) {
                Ok(file) => file,
                Err(error) => {
                    data.by = format!("cachestat(2): {}", Failure::file("open", path, &error));
                    continue;
                }
            };
            let size = file.metadata().map_or(0, |found| found.len());
            match probe::data(&file, 0, 0) {
                Ok(found) => {
                    data.files += 1;
                    data.bytes += size.next_multiple_of(page);
                    data.in_memory_bytes += found.bytes;
                }
                Err(errno) => data.by = format!("cachestat(2): {}", ferry_io::Cause::Errno(errno)),
            }
        }
        data
    }
}

/// Cached data of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Data {
    by: String,
    files: u64,
    bytes: u64,
    in_memory_bytes: u64,
}

impl Data {
    /// Both answers together, not judged yet.
    pub(super) fn with_names(self, names: &Names) -> Proof {
        Proof {
            holds: false,
            names_by: names.by.clone(),
            names: names.asked,
            names_in_memory: names.in_memory,
            data_by: self.by,
            data_files: self.files,
            data_bytes: self.bytes,
            data_in_memory_bytes: self.in_memory_bytes,
        }
    }
}

/// Reservoir sampling: every file seen so far is equally likely to be among the chosen ones.
fn choose(files: &mut Vec<PathBuf>, path: PathBuf, seen: usize, numbers: &mut SplitMix64) {
    if files.len() < FILES {
        files.push(path);
        return;
    }
    let index = numbers.index(seen + 1);
    if let Some(chosen) = files.get_mut(index) {
        *chosen = path;
    }
}
