//! One pass of the count through all trees.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use ferry_io::Time;
use ferry_sync::preview::{Listed, Patterns, Preview, Version};
use rustix::io::Errno;

use super::plan::{Plan, Root, Stays};
use crate::progress::All;

/// Of the files after the first, one in so many is examined.
const EVERY: u64 = 16;
/// Largest `.gitignore` file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

pub(super) struct Counter<'a> {
    plan: &'a Plan,
    /// Files of the target that were made later are the run's.
    since: SystemTime,
    stops: &'a AtomicBool,
    /// Maximum number of folders that wait, and of files that are remembered.
    most: usize,
    /// Number of files that are all examined; of later ones, one in [`EVERY`].
    first: u64,
    /// Files with several names.
    seen: HashSet<(u64, u64)>,
    entries: u64,
    files: u64,
    /// Bytes of the first files.
    bytes: u64,
    /// Number of later files that were examined, and their bytes.
    sampled: (u64, u64),
}

/// A folder to be listed.
struct Folder {
    /// Path below the root.
    below: PathBuf,
    /// Its place in the target, if that may have files that stay.
    target: Option<PathBuf>,
    patterns: Option<Patterns>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        since: SystemTime,
        stops: &'a AtomicBool,
        (most, first): (usize, u64),
    ) -> Self {
        let (seen, sampled) = (HashSet::new(), (0, 0));
        Self { plan, since, stops, most, first, seen, entries: 0, files: 0, bytes: 0, sampled }
    }

    /// Counts everything; `None` if it is stopped or given up.
    pub(super) fn count(mut self) -> Option<All> {
        let plan = self.plan;
        for root in &plan.roots {
            if let Some(preview) = plan.preview.as_ref().filter(|preview| preview.is_listed()) {
                self.count_listed(root, preview)?;
                continue;
            }
            let source = &root.source;
            let found = if plan.follows { fs::metadata(source) } else { fs::symlink_metadata(source) };
            let Ok(found) = found else { continue };
            self.entries += u64::from(plan.preview.is_none());
            if found.is_dir() {
                self.count_tree(root, found.dev(), PathBuf::new())?;
            } else {
                let bytes = self.bytes_of(&found, Some(&root.target));
                self.bytes += bytes;
            }
        }
        let later = self.files.saturating_sub(self.first);
        let is_estimate = self.sampled.0 < later;
        let (sampled, bytes) = self.sampled;
        let later = (u128::from(bytes) * u128::from(later)).checked_div(u128::from(sampled)).unwrap_or(0);
        let bytes = self.bytes.saturating_add(u64::try_from(later).unwrap_or(u64::MAX));
        Some(All { entries: self.entries, bytes: plan.sizes.then_some(bytes), is_estimate })
    }

    /// Counts the names of a list, and what is in the folders that take part as a whole.
    fn count_listed(&mut self, root: &Root, preview: &Preview) -> Option<()> {
        let device = fs::metadata(&root.source).ok()?.dev();
        let mut goes_on = true;
        let each = |Listed { path, is_whole }| {
            let source = root.source.join(&path);
            goes_on = match fs::symlink_metadata(&source) {
                Ok(found) if is_whole && found.is_dir() => self.count_tree(root, device, path).is_some(),
                Ok(found) if !is_whole => {
                    self.entries += 1;
                    if found.is_file() && preview.takes(&path, false, None) {
                        self.bytes += self.bytes_of(&found, Some(&root.target.join(&path)));
                    }
                    !self.stops.load(Ordering::Relaxed)
                }
                Ok(_) | Err(_) => true,
            };
            goes_on
        };
        preview.each_listed(each).ok()?;
        goes_on.then_some(())
    }

    /// Counts what is in a folder; `None` if it is stopped or given up.
    fn count_tree(&mut self, root: &Root, device: u64, below: PathBuf) -> Option<()> {
        let target = (self.plan.stays != Stays::None).then(|| root.target.join(&below));
        let mut folders = vec![Folder { below, target, patterns: None }];
        while let Some(mut folder) = folders.pop() {
            let source = root.source.join(&folder.below);
            // In a folder that the target lacked, no file stays.
            folder.target = folder.target.filter(|target| {
                let was_made = |found: &Metadata| found.created().is_ok_and(|at| at >= self.since);
                fs::metadata(target).is_ok_and(|found| found.is_dir() && !was_made(&found))
            });
            if let Some(preview) = self.plan.preview.as_ref().filter(|preview| preview.reads_patterns()) {
                folder.patterns = patterns_of(preview, &source, &folder);
            }
            let entries = match fs::read_dir(&source) {
                Ok(entries) => entries,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG) => return None,
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                if self.stops.load(Ordering::Relaxed) {
                    return None;
                }
                self.entries += 1;
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    if folders.len() == self.most {
                        return None;
                    }
                    folders.extend(self.enters(&folder, &entry, device));
                } else if kind.is_file() && self.plan.sizes {
                    self.count_file(&folder, &entry);
                }
            }
        }
        Some(())
    }

    /// Returns the folder of an entry, if it takes part.
    fn enters(&self, above: &Folder, entry: &fs::DirEntry, device: u64) -> Option<Folder> {
        let plan = self.plan;
        let below = above.below.join(entry.file_name());
        let is_taken = |preview: &Preview| preview.takes(&below, true, above.patterns.as_ref());
        if !plan.preview.as_ref().is_none_or(is_taken) {
            return None;
        }
        if plan.one_filesystem && entry.metadata().is_ok_and(|found| found.dev() != device) {
            return None;
        }
        let target = above.target.as_ref().map(|target| target.join(entry.file_name()));
        Some(Folder { below, target, patterns: above.patterns.clone() })
    }

    fn count_file(&mut self, folder: &Folder, entry: &fs::DirEntry) {
        self.files += 1;
        let is_first = self.files <= self.first;
        // Fibonacci hashing: evenly spread, and with no period that a tree could have, too.
        let is_sampled = self.files.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / EVERY;
        if !is_first && !is_sampled {
            return;
        }
        let is_taken = self.plan.preview.as_ref().is_none_or(|preview| {
            preview.takes(&folder.below.join(entry.file_name()), false, folder.patterns.as_ref())
        });
        let bytes = match entry.metadata() {
            Ok(found) if is_taken => {
                let target = folder.target.as_ref().map(|target| target.join(entry.file_name()));
                self.bytes_of(&found, target.as_deref())
            }
            Ok(_) | Err(_) => 0,
        };
        if is_first {
            self.bytes += bytes;
        } else {
            self.sampled = (self.sampled.0 + 1, self.sampled.1 + bytes);
        }
    }

    /// Returns the number of bytes that are to be moved for a file.
    fn bytes_of(&mut self, found: &Metadata, target: Option<&Path>) -> u64 {
        let is_again = self.plan.links
            && found.nlink() > 1
            && (self.seen.contains(&(found.dev(), found.ino()))
                || self.seen.len() < self.most && !self.seen.insert((found.dev(), found.ino())));
        let is_left_out =
            || self.plan.preview.as_ref().is_some_and(|preview| !preview.takes_file(version(found)));
        if !found.is_file() || is_again || is_left_out() || target.is_some_and(|it| self.stays(found, it)) {
            return 0;
        }
        found.len()
    }

    /// Returns true if a file of the target stays as it is. One that this run has made was moved.
    fn stays(&self, source: &Metadata, target: &Path) -> bool {
        let Ok(found) = fs::symlink_metadata(target) else { return false };
        let changed = Duration::new(found.ctime().try_into().unwrap_or(0), nanoseconds(found.ctime_nsec()));
        let changed = SystemTime::UNIX_EPOCH + changed;
        // A file that stays is not changed by `cp -u`; one that this run has overwritten is.
        let is_overwritten = self.plan.stays == Stays::NotOlder && changed >= self.since;
        if is_overwritten || found.created().unwrap_or(changed) >= self.since {
            return false;
        }
        match self.plan.stays {
            Stays::None => false,
            Stays::Existing => true,
            Stays::NotOlder => version(&found).modified >= version(source).modified,
            Stays::Equal => {
                let stays = |preview: &Preview| preview.stays(version(source), version(&found));
                found.is_file() && self.plan.preview.as_ref().is_some_and(stays)
            }
        }
    }
}

fn version(found: &Metadata) -> Version {
    let modified = Time { seconds: found.mtime(), nanoseconds: nanoseconds(found.mtime_nsec()) };
    Version { size: found.len(), modified }
}

fn nanoseconds(found: i64) -> u32 {
    u32::try_from(found).unwrap_or(0)
}

/// Returns the patterns for what is in a folder.
fn patterns_of(preview: &Preview, source: &Path, folder: &Folder) -> Option<Patterns> {
    let path = source.join(std::ffi::OsStr::from_bytes(Preview::PATTERNS));
    let is_read = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
    match is_read.then(|| fs::read(path)) {
        Some(Ok(bytes)) => preview.patterns(&folder.below, &bytes, folder.patterns.clone()),
        Some(Err(_)) | None => folder.patterns.clone(),
    }
}
