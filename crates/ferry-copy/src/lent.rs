//! Write permission for a folder that its owner may not write to: it is lent until the folder is finished.
//!
//! Root can change any folder. Other users can change the mode of their own folders, so they can change the entries, too;
//! rsync does the same. A killed run leaves the permission. The next run gives a folder that the source has its mode.
//!
//! Limits: a folder of the trash that is made while its like is lent keeps the permission there. So does one that is being moved
//! when the run is killed.

use std::sync::Arc;

use ferry_io::{Dir, Result as IoResult, protect};

use crate::folder::{Dirs, Folder, Lent};
use crate::mode::SET_GROUP_ID;
use crate::mutex::lock;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Permissions of the owner to change the entries of a folder.
const CHANGE: u32 = 0o300;

/// Adds the permission to change the target of a folder, and with `and_source` also its source, if the user owns it. A
/// refusal shows when an entry is changed.
pub(crate) async fn lend(run: &Run, folder: &Arc<Folder>, and_source: bool) {
    if run.user.is_root {
        return;
    }
    let (asks_source, asks_target) = lock(&folder.lent).ask(and_source);
    if !asks_source && !asks_target {
        return;
    }
    let Ok(Dirs { source, target }) = run.dirs(folder).await else { return };
    if asks_source {
        let mode = add(run, &source).await;
        lock(&folder.lent).source = mode;
    }
    if asks_target {
        let mode = add(run, &target).await;
        lock(&folder.lent).target = mode;
    }
}

/// Returns the mode that a folder had, if a permission was added.
async fn add(run: &Run, dir: &Dir) -> Option<u32> {
    let found = dir.stat().await.ok()?;
    let mode = found.mode & 0o7777;
    // chmod(2) by a user outside the folder's group clears the set-group-ID bit.
    let loses_bit = mode & SET_GROUP_ID != 0 && !run.user.is_in(found.gid);
    if found.uid != run.user.id || mode & CHANGE == CHANGE || loses_bit {
        return None;
    }
    // Not cancellable: the mode has to be known to be given back.
    protect(dir.as_file().set_mode(mode | CHANGE)).await.ok().map(|()| mode)
}

/// Performs a change with the permission to change a folder, if the user owns it. The folder may be moved or removed.
pub(crate) async fn with_permission<T>(
    run: &Run,
    folder: &Dir,
    change: impl AsyncFnOnce() -> IoResult<T>,
) -> IoResult<T> {
    let mode = if run.user.is_root { None } else { add(run, folder).await };
    let outcome = change().await;
    // The mode could be changed just before; the outcome is that of the change.
    protect(give_back(folder, mode)).await.ok();
    outcome
}

/// Gives both sides of a folder their own modes back, unless they were changed meanwhile.
///
/// # Errors
/// Those of opening the folder again, of fstat(2), and of fchmod(2); the first one.
pub(crate) async fn take_back(run: &Run, folder: &Arc<Folder>) -> Result<(), FailureKind> {
    let Lent { source: of_source, target: of_target, .. } = std::mem::take(&mut *lock(&folder.lent));
    if of_source.is_none() && of_target.is_none() {
        return Ok(());
    }
    let Dirs { source, target } = run.dirs(folder).await.during(Verb::SetMode)?;
    let (of_target, of_source) = (give_back(&target, of_target).await, give_back(&source, of_source).await);
    of_target.and(of_source).during(Verb::SetMode)
}

async fn give_back(dir: &Dir, mode: Option<u32>) -> IoResult<()> {
    let Some(mode) = mode else { return Ok(()) };
    if dir.stat().await?.mode & 0o7777 == mode | CHANGE {
        dir.as_file().set_mode(mode).await?;
    }
    Ok(())
}
