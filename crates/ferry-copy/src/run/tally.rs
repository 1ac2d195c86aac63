//! Counters of the summary, added to by every worker.

use std::time::Duration;

use crate::counter::Counter;
use crate::report::{Method, Summary};

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) files: Counter,
    pub(crate) directories: Counter,
    pub(crate) symlinks: Counter,
    pub(crate) hard_links: Counter,
    pub(crate) specials: Counter,
    pub(crate) skipped: Counter,
    pub(crate) failed: Counter,
    /// Failures to read a target for its hash, which are among the failed ones.
    pub(crate) unhashed: Counter,
    pub(crate) unfinished: Counter,
    bytes_by_method: [Counter; Method::ALL.len()],
    files_by_method: [Counter; Method::ALL.len()],
}

impl Tally {
    /// Counts a file whose bytes were moved by a method.
    pub(crate) fn count_bytes(&self, method: Method, bytes: u64) {
        self.count_many(method, 1, bytes);
    }

    /// Counts files whose bytes were moved by one method.
    pub(crate) fn count_many(&self, method: Method, files: u64, bytes: u64) {
        if files > 0 {
            self.bytes_by_method[method as usize].add(bytes);
            self.files_by_method[method as usize].add(files);
        }
    }

    /// Counts bytes of a file that is counted when its last range is copied.
    pub(crate) fn count_part(&self, method: Method, bytes: u64) {
        self.bytes_by_method[method as usize].add(bytes);
    }

    pub(crate) fn bytes_by(&self, method: Method) -> u64 {
        self.bytes_by_method[method as usize].get()
    }

    /// Number of entries made, or merged into if they are folders.
    pub(crate) fn entries(&self) -> u64 {
        [&self.files, &self.directories, &self.symlinks, &self.hard_links, &self.specials]
            .iter()
            .map(|counter| counter.get())
            .sum()
    }

    /// Returns the counts; the caller adds the duration and the way the run ended.
    pub(super) fn summary(&self) -> Summary {
        Summary {
            files: self.files.get(),
            directories: self.directories.get(),
            symlinks: self.symlinks.get(),
            hard_links: self.hard_links.get(),
            specials: self.specials.get(),
            skipped: self.skipped.get(),
            bytes_by_method: std::array::from_fn(|i| self.bytes_by_method[i].get()),
            files_by_method: std::array::from_fn(|i| self.files_by_method[i].get()),
            failed: self.failed.get(),
            unfinished: self.unfinished.get(),
            interrupted: false,
            out_of_space: false,
            lost: None,
            ended_operands: 0,
            wall: Duration::ZERO,
            ways: Vec::new(),
            io: ferry_io::Stats::default(),
        }
    }
}
