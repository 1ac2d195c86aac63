//! `--fsync`: which filesystems hold what was made, and making that durable.
//!
//! Operands that are files, directly in a folder that is there already, are synced one by one if they are few
//! (`file.rs`). Whatever else is made makes the run wait, at its end, for every filesystem that it has written to
//! (syncfs(2)): by then the device has most of it. One descriptor for each of them is kept open until then; beyond
//! [`MOST`] of them all filesystems there are are synced instead.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_io::{Errno, File};

use crate::copier::{Copier, lock};
use crate::report::{FailureKind, Verb};

/// Filesystems that are synced by name.
const MOST: usize = 8;

/// What was written to.
#[derive(Default)]
pub(crate) struct Durable {
    filesystems: Mutex<Vec<Filesystem>>,
    has_more: AtomicBool,
    /// Whether something was made that has not been synced by itself.
    awaits: AtomicBool,
}

struct Filesystem {
    device: u64,
    /// Something open on it.
    file: File,
    /// Where it was met, for messages.
    path: PathBuf,
}

impl Durable {
    /// Something was made that only the end of the run makes durable.
    pub(crate) fn await_end(&self) {
        self.awaits.store(true, Ordering::Relaxed);
    }

    /// Whether this filesystem will be synced already.
    pub(crate) fn has_met(&self, device: u64) -> bool {
        lock(&self.filesystems).iter().any(|filesystem| filesystem.device == device)
    }

    /// Something may be made on the filesystem that holds an open file or folder.
    pub(crate) fn meet(&self, device: u64, file: impl FnOnce() -> File, path: impl FnOnce() -> PathBuf) {
        let mut met = lock(&self.filesystems);
        if met.iter().any(|filesystem| filesystem.device == device) {
            return;
        }
        if met.len() < MOST {
            met.push(Filesystem { device, file: file(), path: path() });
        } else {
            self.meet_unknown();
        }
    }

    /// Something may be made on a filesystem that can't be told.
    pub(crate) fn meet_unknown(&self) {
        self.has_more.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> Vec<Filesystem> {
        std::mem::take(&mut lock(&self.filesystems))
    }
}

/// Makes durable what was made, if anything waits for it.
pub(crate) async fn end(copier: &Copier) {
    let durable = &copier.durable;
    let filesystems = durable.take();
    // A full filesystem ends the run, too, but nobody has asked to have done with it: what was copied is there to stay.
    let is_interrupted = copier.io.is_stopped() && !copier.out_of_space.load(Ordering::SeqCst);
    if !copier.options.fsync || is_interrupted || !durable.awaits.load(Ordering::Relaxed) {
        return;
    }
    let mut all = durable.has_more.load(Ordering::Relaxed);
    for Filesystem { file, path, .. } in filesystems {
        match ferry_io::protect(file.sync_filesystem()).await {
            Ok(()) => {}
            // A folder that may be searched, but not opened.
            Err(error) if error.is(Errno::BADF) => all = true,
            Err(error) => {
                let kind = FailureKind::Io { verb: Verb::Sync, error };
                copier.fail_at(path.clone(), path, kind);
            }
        }
    }
    if all {
        ferry_io::sync_everything();
    }
}
