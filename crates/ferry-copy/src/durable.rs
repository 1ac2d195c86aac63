//! `--fsync`: the filesystems that are synced as a whole at the end of a run.
//!
//! A few operands that are files in existing folders are synced one by one (`file.rs`). Everything else waits for the
//! end of the run, which syncs each filesystem that was written to (syncfs(2)): by then the device has most of the
//! data. One descriptor per filesystem is kept open for it. It is opened before anything is written, because the kernel
//! reports to a descriptor only the failures after its opening.
//!
//! Elsewhere each file and folder is synced once it is complete (fsync(2), `sync.rs`): on filesystems whose syncfs(2)
//! does not reach their server ([`UNREACHED`]), beyond the first [`MOST`] filesystems, where no descriptor can be
//! opened, and before Linux 5.8, whose syncfs(2) reports no errors. None of these filesystems is noted here.
//!
//! Limits: symbolic links and special files have no fsync(2), and syncing their folder makes their names durable. A
//! folder that may be searched but not read can't be synced by itself, which is reported.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_io::{Dir, File};

use crate::mutex::lock;

/// Most filesystems that are synced as a whole.
const MOST: usize = 8;

/// Filesystems whose syncfs(2) writes pages back without making them durable, by magic number (statfs(2)): FUSE, 9p,
/// three for SMB, ecryptfs and overlayfs. The last two leave their pages and errors to another filesystem.
const UNREACHED: [u64; 7] = [0x6573_5546, 0x0102_1997, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0xf15f, 0x794c_7630];

/// Filesystems written to by a run.
#[derive(Default)]
pub(crate) struct Durable {
    filesystems: Mutex<Vec<Filesystem>>,
    /// Set once something was made that has not been synced by itself.
    awaits: AtomicBool,
}

#[derive(Clone)]
pub(crate) struct Filesystem {
    pub(crate) device: u64,
    /// A file or folder open on it.
    pub(crate) file: File,
    /// Path at which it was met, for messages.
    pub(crate) path: PathBuf,
}

impl Durable {
    /// Notes a change that only the end of the run makes durable.
    pub(crate) fn await_end(&self) {
        self.awaits.store(true, Ordering::Relaxed);
    }

    pub(crate) fn awaits_end(&self) -> bool {
        self.awaits.load(Ordering::Relaxed)
    }

    /// Returns true if this filesystem is synced as a whole at the end.
    pub(crate) fn has_met(&self, device: u64) -> bool {
        lock(&self.filesystems).iter().any(|filesystem| filesystem.device == device)
    }

    /// Notes the filesystem of a folder, on which something may be made.
    pub(crate) async fn meet(&self, device: u64, folder: &Dir, path: impl FnOnce() -> PathBuf) {
        if self.has_met(device) || lock(&self.filesystems).len() >= MOST {
            return;
        }
        let Some(file) = descriptor(folder).await else { return };
        let mut met = lock(&self.filesystems);
        // Another worker may have met it meanwhile.
        if met.len() < MOST && met.iter().all(|filesystem| filesystem.device != device) {
            met.push(Filesystem { device, file, path: path() });
        }
    }

    pub(crate) fn list(&self) -> Vec<Filesystem> {
        lock(&self.filesystems).clone()
    }

    /// Forgets a filesystem whose failure was reported.
    pub(crate) fn forget(&self, device: u64) {
        lock(&self.filesystems).retain(|filesystem| filesystem.device != device);
    }
}

/// Returns a descriptor for syncing the filesystem of a folder; `None` if it can't be synced as a whole.
async fn descriptor(folder: &Dir) -> Option<File> {
    let is_unreached = folder.filesystem_magic().is_some_and(|magic| UNREACHED.contains(&magic));
    if is_unreached || !ferry_io::does_syncfs_report() {
        return None;
    }
    if !folder.is_only_reached() {
        return Some(folder.as_file());
    }
    // Any open file there serves, and this one leaves nothing behind.
    folder.open_unnamed(0o600).await.ok()
}
