//! Changes of the target that the run itself has made, to tell them from those of other programs.

use std::collections::HashMap;
use std::sync::Mutex;

use ferry_io::{FileKind, Stat, Time};

use crate::identity::identity;
use crate::mutex::lock;

/// Modification times that the run has given to files with several names. The caller may have seen such a file before,
/// under another name.
///
/// Bound: one entry for each file of the target that has several names and gets new attributes.
#[derive(Default)]
pub(super) struct OwnTimes(Mutex<HashMap<(u64, u64), Time>>);

impl OwnTimes {
    /// Notes the time that a file has got. One that differs from `wanted` by more than a filesystem rounds is another
    /// program's.
    pub(super) fn note(&self, found: &Stat, wanted: Time) {
        /// FAT rounds to two seconds; no filesystem rounds more.
        const ROUNDED: i64 = 2;
        let past = wanted.seconds - found.times.modified.seconds;
        if found.links > 1 && (0..=ROUNDED).contains(&past) {
            lock(&self.0).insert(identity(found), found.times.modified);
        }
    }

    /// Returns true if the run has given a file the time that it has.
    pub(super) fn is_own_time(&self, found: &Stat) -> bool {
        lock(&self.0).get(&identity(found)) == Some(&found.times.modified)
    }

    /// Returns true if `found` is the entry that was `seen`, and no other program has written to it since.
    pub(super) fn is_version(&self, found: &Stat, seen: &Stat) -> bool {
        if !found.is_same_file(seen) || found.kind != seen.kind {
            return false;
        }
        let has_time =
            || found.times.modified == seen.times.modified || seen.links > 1 && self.is_own_time(found);
        // Emptying a folder changes both.
        seen.kind == FileKind::Directory || found.size == seen.size && has_time()
    }
}
