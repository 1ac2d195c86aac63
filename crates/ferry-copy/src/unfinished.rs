//! Targets that could not be completed: a new one is removed, an existing one is marked and reported.
//!
//! An existing target has lost its old content once it was emptied. With a fresh modification time it would look like a
//! complete copy, and a later `cp -u` would skip it. So it gets the oldest times.
//!
//! Guards: `unfinished::an_unfinished_target_is_named_and_copied_again_by_update`,
//! `foreign::a_copy_that_fails_leaves_a_file_that_took_its_targets_name`.

use ferry_io::{
    Cause, Errno, Error, File, OpenHow, Operation, Result as IoResult, Stat, Time, Times, protect,
};

use crate::place::Entry;
use crate::report::{FailureKind, Unfinished, Verb};
use crate::run::Run;
use crate::staging;
use crate::through;

/// Oldest time that ext4 and XFS can store: 1901-12-13. A filesystem whose times begin later stores its own oldest.
const OLDEST: Time = Time { seconds: i32::MIN as i64, nanoseconds: 0 };

/// Returns true for the time of a target that is marked, on filesystems that can store it.
pub(crate) fn is_oldest(modified: Time) -> bool {
    modified == OLDEST
}

/// Gives up a target that is open. `existing` is the file that it overwrites.
pub(crate) async fn give_up(
    run: &Run,
    entry: Entry<'_>,
    file: &File,
    existing: Option<&Stat>,
    why: &FailureKind,
) {
    let left = protect(async {
        if existing.is_some() {
            return mark(file).await.map(|()| true);
        }
        match remove_open(run, entry, file).await {
            Ok(()) => Ok(false),
            Err(error) => mark(file).await.and(Err(error)),
        }
    });
    report(run, entry, left.await, why);
}

/// Removes a new target that is open and empty, because it will be made in another way.
///
/// # Errors
/// If that fails. The target is marked and reported.
pub(crate) async fn take_back(run: &Run, entry: Entry<'_>, file: &File) -> Result<(), FailureKind> {
    let Err(error) = protect(remove_open(run, entry, file)).await else { return Ok(()) };
    let kind = Verb::CreateFile.failed(error);
    let left = protect(mark(file)).await.and(Err(error));
    report(run, entry, left, &kind);
    Err(kind)
}

/// Gives up a target whose closing failed. `made` is the closed file, where it is known.
pub(crate) async fn give_up_closed(
    run: &Run,
    entry: Entry<'_>,
    made: Option<&Stat>,
    is_new: bool,
    why: &FailureKind,
) {
    let left = protect(async {
        // A closed file whose identity is unknown is left alone.
        let Some(made) = made else { return Err(stale()) };
        if is_new {
            return remove(run, entry, made).await.map(|()| false);
        }
        let dir = run.dirs(entry.folder).await?.target;
        let (file, found) = through::open(run, &dir, entry.target, OpenHow::write()).await?;
        // Another program has replaced it: nothing of this copy is left.
        if found.is_same_file(made) { mark(&file).await.map(|()| true) } else { Ok(false) }
    });
    report(run, entry, left.await, why);
}

/// Removes an open new file. Returns an error if it still has a name, by another program's rename or link.
async fn remove_open(run: &Run, entry: Entry<'_>, file: &File) -> IoResult<()> {
    remove(run, entry, &file.stat().await?).await?;
    if entry.folder.abilities().is_some_and(|abilities| abilities.hides_removed()) {
        return Ok(());
    }
    let left = file.stat().await?.links;
    let gone = Error { operation: Operation::Unlink, cause: Cause::Errno(Errno::NOENT) };
    if left == 0 { Ok(()) } else { Err(gone) }
}

async fn remove(run: &Run, entry: Entry<'_>, made: &Stat) -> IoResult<()> {
    let dir = run.dirs(entry.folder).await?.target;
    staging::remove_made(&dir, entry.target, made).await
}

async fn mark(file: &File) -> IoResult<()> {
    file.set_times(Times { accessed: OLDEST, modified: OLDEST }).await
}

/// Reports a target that is left unfinished, marked or not.
fn report(run: &Run, entry: Entry<'_>, left: IoResult<bool>, why: &FailureKind) {
    let error = match left {
        Ok(false) => return,
        Ok(true) => None,
        Err(error) => Some(error),
    };
    run.tally.unfinished.add(1);
    // The report that the device fails says enough.
    if error.is_some_and(|error| run.devices.explains(&error)) {
        return;
    }
    run.observer.unfinished(&Unfinished {
        source: entry.source_path(),
        target: entry.target_path(),
        is_interrupted: why.is_cancelled(),
        error,
    });
}

fn stale() -> Error {
    Error { operation: Operation::Close, cause: Cause::Errno(Errno::STALE) }
}
