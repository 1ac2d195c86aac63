//! `--fsync`: syncing files, folders and whole filesystems (`durable.rs` has the rules).

use std::sync::Arc;

use ferry_io::{Cause, Dir, Errno, Error, File, Operation, protect};

use crate::folder::{Folder, Role};
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Side, Verb};
use crate::run::Run;

/// Syncs a file and its name: fsync(2) of the file does not bring its entry to the disk.
pub(crate) async fn file(
    run: &Run,
    entry: Entry<'_>,
    file: &File,
    device: Option<u64>,
) -> ferry_io::Result<()> {
    file.sync().await?;
    let dir = run.dirs(entry.folder).await?.target;
    if dir.is_only_reached() && !run.is_synced_apart(device) {
        return file.sync_filesystem().await;
    }
    folder(&dir).await
}

/// Syncs a file's name. The end of the run does that where the folder may be searched, but not opened.
pub(crate) async fn name(run: &Run, entry: Entry<'_>) -> ferry_io::Result<()> {
    let dir = run.dirs(entry.folder).await?.target;
    let device = entry.folder.abilities().map(|abilities| abilities.devices.target);
    if dir.is_only_reached() && !run.is_synced_apart(device) {
        run.durable.await_end();
        return Ok(());
    }
    folder(&dir).await
}

/// Syncs a filled folder with the names in it, unless its filesystem is synced as a whole.
pub(crate) async fn filled_folder(run: &Run, filled: &Arc<Folder>) -> Result<(), FailureKind> {
    let device = filled.abilities().map(|abilities| abilities.devices.target);
    // A folder that was not entered has nothing in it.
    let is_entered = device.is_some() || filled.role == Role::Root;
    let is_changed = run.durable.awaits_end();
    if !is_entered || !is_changed || !run.is_synced_apart(device) || run.is_interrupted() {
        return Ok(());
    }
    // A full filesystem has cancelled the run, but the copies made so far are synced, or their failure is reported.
    let synced = protect(async { folder(&run.dirs(filled).await?.target).await });
    synced.await.during(Verb::Sync)
}

pub(crate) async fn folder(target: &Dir) -> ferry_io::Result<()> {
    match protect(target.as_file().sync()).await {
        // It may be searched, but not read: it could not be opened for syncing.
        Err(error) if error.is(Errno::BADF) => {
            Err(Error { operation: Operation::Sync, cause: Cause::Errno(Errno::ACCESS) })
        }
        answer => answer,
    }
}

/// Syncs the filesystems that the run has written to. Returns false if any of them may not be durable; a failure is reported once.
/// Unless this `is_end`, the reason may be a device that fails, and calls that follow would fail, too.
pub(crate) async fn filesystems(run: &Run, is_end: bool) -> bool {
    if !run.options.fsync || !run.durable.awaits_end() {
        return true;
    }
    // Each would fail on a device that is lost.
    if run.is_interrupted() || run.devices.lost() == Some(Side::Target) {
        return false;
    }
    let mut are_durable = true;
    for filesystem in run.durable.list() {
        if let Err(error) = protect(filesystem.file.sync_filesystem()).await {
            are_durable = false;
            run.durable.forget(filesystem.device);
            let (path, kind) = (filesystem.path, Verb::Sync.failed(error));
            match is_end {
                true => run.report(path.clone(), path, kind),
                false => run.fail_at(path.clone(), path, kind),
            }
        }
    }
    are_durable
}
