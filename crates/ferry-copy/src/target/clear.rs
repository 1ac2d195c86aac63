//! Clearing the way for a new target.

use ferry_io::{Dir, Errno, Name};

use super::look::Ahead;
use crate::backup;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::staging;

/// Clears the way for a link or special file. Returns the backup's name, if there is one.
pub(crate) async fn clear(run: &Run, entry: Entry<'_>, ahead: Ahead) -> Result<Option<Name>, FailureKind> {
    match ahead {
        // The new entry takes its place in one step.
        Ahead::Replace(_) if run.options.atomic => Ok(None),
        // As with cp, `-f` then replaces a link without a message.
        Ahead::Replace(_) if run.options.attributes_only && !run.options.replaces_targets() => {
            remove(run, entry).await.map(|()| None)
        }
        Ahead::Replace(_) => remove_first(run, entry).await.map(|()| None),
        Ahead::BackUp => backup::make(run, entry).await,
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Occupied | Ahead::Stays | Ahead::IsNewer | Ahead::Made => {
            Ok(None)
        }
    }
}

/// Removes a target that is to be replaced, and reports it.
pub(crate) async fn remove_first(run: &Run, entry: Entry<'_>) -> Result<(), FailureKind> {
    remove(run, entry).await?;
    if run.options.verbose {
        run.observer.removed(&entry.target_path());
    }
    Ok(())
}

/// Makes a link. With `-f`, with `--atomic`, or if the user agreed, it replaces an existing target in one step, by way
/// of a hidden name: the target is never missing, and it may be the very link that leads to the source.
pub(crate) async fn put(
    run: &Run,
    entry: Entry<'_>,
    ahead: Ahead,
    dir: &Dir,
    link: impl AsyncFn(&Name) -> ferry_io::Result<()>,
) -> ferry_io::Result<()> {
    let in_one_step = run.options.atomic && matches!(ahead, Ahead::Replace(_));
    let may_replace = run.options.links_may_replace() || in_one_step;
    match link(entry.target).await {
        Err(error) if may_replace && error.is(Errno::EXIST) => staging::replace(run, entry, dir, link).await,
        linked => linked,
    }
}

pub(crate) async fn remove(run: &Run, entry: Entry<'_>) -> Result<(), FailureKind> {
    let dir = run.dirs(entry.folder).await.during(Verb::Remove)?.target;
    match dir.unlink(entry.target).await {
        Err(error) if error.is(Errno::NOENT) => Ok(()),
        answer => answer.during(Verb::Remove),
    }
}
