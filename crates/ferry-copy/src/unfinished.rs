//! Targets that could not be completed: a new one is removed, an existing one is marked.
//!
//! An existing target has lost its old content once it was emptied. With a fresh modification time it would look like a
//! finished copy, and a later `cp -u` would skip it. So it gets the oldest times, and it is reported.
//!
//! Guards: `unfinished::an_unfinished_target_is_named_and_copied_again_by_update`,
//! `foreign::a_copy_that_fails_leaves_a_file_that_took_its_targets_name`.

use ferry_io::{Cause, Errno, Error, File, OpenHow, Operation, Result, Stat, Time, Times, protect};

use crate::copier::{Copier, Place};
use crate::entry::names;
use crate::report::{FailureKind, Unfinished};
use crate::staging;
use crate::through;

/// The oldest time that ext4 and XFS can store: 1901-12-13. A filesystem whose times begin later stores its own oldest.
const OLDEST: Time = Time { seconds: i32::MIN as i64, nanoseconds: 0 };

/// Gives up a target whose file is still open. `existing` is the file that was there.
pub(crate) async fn give_up(
    copier: &Copier,
    place: Place<'_>,
    file: &File,
    existing: Option<&Stat>,
    why: &FailureKind,
) {
    let left = protect(async {
        if existing.is_some() {
            return mark(file).await.map(|()| true);
        }
        match remove_open(copier, place, file).await {
            Ok(()) => Ok(false),
            Err(error) => mark(file).await.and(Err(error)),
        }
    });
    report(copier, place, left.await, why);
}

/// Gives up a target whose closing failed. `made` is the file that was closed, where it is known.
pub(crate) async fn give_up_closed(
    copier: &Copier,
    place: Place<'_>,
    made: Option<&Stat>,
    is_new: bool,
    why: &FailureKind,
) {
    let left = protect(async {
        // A closed file whose identity is unknown is left alone.
        let Some(made) = made else { return Err(stale()) };
        if is_new {
            return remove(copier, place, made).await.map(|()| false);
        }
        let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
        let (file, found) = through::open(copier, &dir, names(&place).1, OpenHow::write()).await?;
        // Another program has replaced it: nothing of this copy is left.
        if found.is_same_file(made) { mark(&file).await.map(|()| true) } else { Ok(false) }
    });
    report(copier, place, left.await, why);
}

/// Removes an open new file. One that still has a name then was renamed or linked by another program.
async fn remove_open(copier: &Copier, place: Place<'_>, file: &File) -> Result<()> {
    remove(copier, place, &file.stat().await?).await?;
    if place.folder.abilities().is_some_and(|abilities| abilities.hides_removed()) {
        return Ok(());
    }
    let left = file.stat().await?.links;
    let gone = Error { operation: Operation::Unlink, cause: Cause::Errno(Errno::NOENT) };
    if left == 0 { Ok(()) } else { Err(gone) }
}

async fn remove(copier: &Copier, place: Place<'_>, made: &Stat) -> Result<()> {
    let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
    staging::remove_made(&dir, names(&place).1, made).await
}

async fn mark(file: &File) -> Result<()> {
    file.set_times(Times { accessed: OLDEST, modified: OLDEST }).await
}

/// Reports a target that is left unfinished, whether it could be marked or not.
fn report(copier: &Copier, place: Place<'_>, left: Result<bool>, why: &FailureKind) {
    let error = match left {
        Ok(false) => return,
        Ok(true) => None,
        Err(error) => Some(error),
    };
    copier.tally.unfinished.add(1);
    copier.observer.unfinished(&Unfinished {
        source: place.source_path(),
        target: place.target_path(),
        is_interrupted: why.is_cancelled(),
        error,
    });
}

fn stale() -> Error {
    Error { operation: Operation::Close, cause: Cause::Errno(Errno::STALE) }
}
