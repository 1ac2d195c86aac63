//! `--fsync`: making durable what was made, so that whatever could not be is reported.
//!
//! Operands that are files, directly in a folder that is there already, are synced one by one if they are few
//! (`file.rs`). Whatever else is made makes the run wait, at its end, for every filesystem that it has written to
//! (syncfs(2)): by then the device has most of it. One descriptor for each of them is kept open until then. It is
//! opened before anything is written, because the kernel reports to a descriptor only what failed after that.
//!
//! Elsewhere each file and each folder is synced by itself once it is whole (fsync(2)): on filesystems whose syncfs(2)
//! does not reach their server ([`UNREACHED`]), on those beyond the first [`MOST`], on one of which nothing can be opened
//! but by name, and before Linux 5.8, whose syncfs(2) reports nothing. So a filesystem that is not noted here is one
//! whose files are synced by themselves.
//!
//! Limits: symbolic links and special files have no fsync(2) of their own; that of their folder brings their names to
//! the device. A folder that may be searched but not read can't be synced by itself, which is reported.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_io::{Cause, Dir, Errno, Error, File, Operation, protect};

use crate::copier::{Copier, lock};
use crate::folder::{Folder, Role};
use crate::report::{FailureKind, Verb};

/// Filesystems that are synced as a whole.
const MOST: usize = 8;

/// Filesystems whose syncfs(2) writes pages back, but has no server make them durable, by their magic numbers (statfs(2)):
/// FUSE, 9p, the three of SMB; and ecryptfs and overlayfs, whose pages belong to another filesystem, which alone knows
/// what failed.
const UNREACHED: [u64; 7] = [0x6573_5546, 0x0102_1997, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0xf15f, 0x794c_7630];

/// What was written to.
#[derive(Default)]
pub(crate) struct Durable {
    filesystems: Mutex<Vec<Filesystem>>,
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

    /// Returns true if this filesystem is synced as a whole at the end.
    fn has_met(&self, device: u64) -> bool {
        lock(&self.filesystems).iter().any(|filesystem| filesystem.device == device)
    }

    /// Something may be made on the filesystem that holds a folder.
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

    fn take(&self) -> Vec<Filesystem> {
        std::mem::take(&mut lock(&self.filesystems))
    }
}

/// A descriptor with which the filesystem that holds a folder can be synced; `None` where it can't be.
async fn descriptor(folder: &Dir) -> Option<File> {
    let is_unreached = folder.filesystem_magic().is_some_and(|magic| UNREACHED.contains(&magic));
    if is_unreached || !ferry_io::does_syncfs_report() {
        return None;
    }
    if !folder.is_only_reached() {
        return Some(folder.as_file());
    }
    // Whatever is open there serves, and this leaves nothing behind. Whoever may make files in the folder may do that.
    folder.open_unnamed(0o600).await.ok()
}

/// Returns true if what is made on a filesystem must be synced by itself, rather than at the end.
pub(crate) fn is_synced_apart(copier: &Copier, device: Option<u64>) -> bool {
    copier.options.fsync && device.is_none_or(|device| !copier.durable.has_met(device))
}

/// Returns true if nothing is made durable any more, because the user has had enough. A full filesystem ends a run, too,
/// but nobody has asked for that: what was copied is there to stay.
fn is_interrupted(copier: &Copier) -> bool {
    copier.io.is_stopped() && !copier.out_of_space.load(Ordering::SeqCst)
}

/// Makes a filled folder durable, with the names in it, where its filesystem is not synced as a whole.
pub(crate) async fn end_folder(copier: &Copier, folder: &std::sync::Arc<Folder>) -> Result<(), FailureKind> {
    let device = folder.abilities().map(|abilities| abilities.pair.1);
    // One that was not entered has nothing in it.
    let is_entered = device.is_some() || folder.role == Role::Root;
    let is_changed = copier.durable.awaits.load(Ordering::Relaxed);
    if !is_entered || !is_changed || !is_synced_apart(copier, device) || is_interrupted(copier) {
        return Ok(());
    }
    // A full filesystem cancels everything else: what is there nevertheless is synced, or reported.
    let synced = protect(async {
        let (_, target) = folder.dirs(&copier.open_folders).await?;
        sync_folder(&target).await
    })
    .await;
    synced.map_err(|error| FailureKind::Io { verb: Verb::Sync, error })
}

/// Makes a folder durable (fsync(2)).
pub(crate) async fn sync_folder(target: &Dir) -> ferry_io::Result<()> {
    match protect(target.as_file().sync()).await {
        // It may be searched, but not read: then it can't be opened so that it could be synced.
        Err(error) if error.is(Errno::BADF) => {
            Err(Error { operation: Operation::Sync, cause: Cause::Errno(Errno::ACCESS) })
        }
        answer => answer,
    }
}

/// Makes durable what was made, if anything waits for it.
pub(crate) async fn end(copier: &Copier) {
    let durable = &copier.durable;
    let filesystems = durable.take();
    if !copier.options.fsync || is_interrupted(copier) || !durable.awaits.load(Ordering::Relaxed) {
        return;
    }
    for Filesystem { file, path, .. } in filesystems {
        if let Err(error) = protect(file.sync_filesystem()).await {
            let kind = FailureKind::Io { verb: Verb::Sync, error };
            copier.fail_at(path.clone(), path, kind);
        }
    }
}
