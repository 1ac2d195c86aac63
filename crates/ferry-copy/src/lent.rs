//! Write permission for a folder that its owner may not write to: it is lent until the folder is finished.
//!
//! Root can change any folder. Other users can change the mode of their own folders, so they can change the entries, too;
//! rsync does the same. A killed run leaves the permission, and the next run takes it away.

use std::sync::Arc;

use ferry_io::{Dir, protect};

use crate::folder::{Dirs, Folder, Lent};
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
    let Ok(Dirs { source, target }) = run.dirs(folder).await else { return };
    let of_source = if and_source { add(run, &source).await } else { None };
    let of_target = add(run, &target).await;
    let mut lent = lock(&folder.lent);
    // The modes of the first call are the folders' own.
    lent.source = lent.source.or(of_source);
    lent.target = lent.target.or(of_target);
}

/// Returns the mode that a folder had, if a permission was added.
async fn add(run: &Run, dir: &Dir) -> Option<u32> {
    let found = dir.stat().await.ok()?;
    let mode = found.mode & 0o7777;
    if found.uid != run.user.id || mode & CHANGE == CHANGE {
        return None;
    }
    // Not cancellable: the mode has to be known to be given back.
    protect(dir.as_file().set_mode(mode | CHANGE)).await.ok().map(|()| mode)
}

/// Gives both sides of a folder their own modes back.
///
/// # Errors
/// Those of opening the folder again and of fchmod(2).
pub(crate) async fn take_back(run: &Run, folder: &Arc<Folder>) -> Result<(), FailureKind> {
    let Lent { source: of_source, target: of_target } = std::mem::take(&mut *lock(&folder.lent));
    if of_source.is_none() && of_target.is_none() {
        return Ok(());
    }
    let Dirs { source, target } = run.dirs(folder).await.during(Verb::SetMode)?;
    for (dir, mode) in [(source, of_source), (target, of_target)] {
        if let Some(mode) = mode {
            dir.as_file().set_mode(mode).await.during(Verb::SetMode)?;
        }
    }
    Ok(())
}
