//! Replacing and taking away an entry that the caller saw, and no other.
//!
//! The kernel renames and removes names, not files. So the entry first leaves its name: by an exchange with its
//! successor, or to the trash, or aside. There nothing else reaches it, and it is compared. A foreign entry gets its name
//! back, and so does one that was written to since the caller looked. Files with several names are compared by identity
//! alone, because the run changes them by their other names.
//!
//! Limits: where names can't be exchanged (NFS, many filesystems in user space), the target is compared before it is
//! replaced. A file that takes its name between the two calls is lost. A run that is killed between the two calls that
//! exchange and compare leaves an entry aside (`.ferry-aside-1f40-0`), which may be foreign: no run clears it away, but
//! it is an entry like others of the target for the next one.

use std::sync::Arc;

use ferry_io::{Dir, Errno, Error, FileKind, Name, Result as IoResult, Stat, protect};

use crate::claim::Ended;
use crate::entry::settle::settle;
use crate::file;
use crate::other;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::staging;
use crate::target::{Ahead, Seen};

/// Errors of filesystems that can't exchange names.
const NO_EXCHANGE: [Errno; 3] = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];

/// Copies an entry that is no folder.
pub(super) async fn make(run: &Arc<Run>, entry: Entry<'_>, seen: &Seen) -> Result<Ended, FailureKind> {
    match seen.stat.map(|stat| stat.kind) {
        Some(FileKind::Regular) => file::copy(run, entry, seen).await,
        Some(_) | None => other::copy(run, entry, seen).await,
    }
}

/// Copies an entry under a hidden name, and gives it the name of the `target` that the caller saw.
pub(super) async fn replace(
    run: &Arc<Run>,
    entry: Entry<'_>,
    source: &Stat,
    target: &Stat,
    trash: Option<Dir>,
) -> Result<(), FailureKind> {
    let dir = run.dirs(entry.folder).await.during(Verb::StatTarget)?.target;
    let hidden = staging::reserve(run, entry, &dir).await.during(Verb::CreateFile)?;
    let aside = Entry { target: &hidden, ..entry };
    let seen = Seen { follow: false, stat: Some(*source), ahead: Ahead::Free };
    let ended = match make(run, aside, &seen).await? {
        // The link is made under the hidden name, too.
        later @ Ended::Later(..) => {
            settle(run, aside, seen.look(), later).await?;
            Ended::Settled
        }
        failed @ Ended::First(_, Err(_)) => return settle(run, aside, seen.look(), failed).await,
        made @ (Ended::Settled | Ended::First(_, Ok(_))) => made,
    };
    // Not cancellable: the hidden name would stay.
    let swapped = protect(async {
        let made = dir.stat_entry(&hidden, false).await.during(Verb::StatTarget)?;
        let aside = set_aside(&dir, &hidden).await.during(Verb::CreateFile);
        let swapped = match &aside {
            Ok(aside) => swap(&dir, aside, entry.target, target, trash.as_ref()).await,
            Err(kind) => Err(kind.clone()),
        };
        if swapped.is_err() {
            staging::remove_own_hidden(&dir, aside.as_ref().unwrap_or(&hidden), &made).await;
        }
        swapped
    });
    let swapped = swapped.await;
    match ended {
        Ended::First(file, Ok(_)) if swapped.is_err() => {
            // Another name of the source is copied in its place.
            let kind = FailureKind::Changed;
            settle(run, entry, seen.look(), Ended::First(file, Err(kind))).await.ok();
            swapped
        }
        ended @ (Ended::Settled | Ended::First(..) | Ended::Later(..)) => {
            swapped?;
            settle(run, entry, seen.look(), ended).await
        }
    }
}

/// Moves an entry to a hidden name that no run clears away, because the entry may turn out to be foreign.
async fn set_aside(dir: &Dir, name: &Name) -> IoResult<Name> {
    let mut tried = 1;
    loop {
        let aside = staging::next_aside();
        match staging::rename(dir, name, &aside, false).await {
            Ok(()) => return Ok(aside),
            // A run with this process's number was killed.
            Err(error) if error.is(Errno::EXIST) && tried < staging::ATTEMPTS => tried += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Gives the entry at `hidden` the name of `expected`, which goes to the trash or is removed.
async fn swap(
    dir: &Dir,
    hidden: &Name,
    name: &Name,
    expected: &Stat,
    trash: Option<&Dir>,
) -> Result<(), FailureKind> {
    match dir.exchange(hidden, dir, name).await {
        Ok(()) => {}
        Err(error) if error.is(Errno::NOENT) => return Err(FailureKind::Changed),
        Err(error) if NO_EXCHANGE.iter().any(|&errno| error.is(errno)) => {
            return swap_unexchanged(dir, hidden, name, expected, trash).await;
        }
        Err(error) => return Err(Verb::CreateFile.failed(error)),
    }
    let disposed = match is_it(dir, hidden, expected).await {
        Ok(true) => dispose(dir, hidden, name, expected, trash).await.during(Verb::Remove),
        Ok(false) => Err(FailureKind::Changed),
        Err(error) => Err(Verb::StatTarget.failed(error)),
    };
    if disposed.is_err() {
        dir.exchange(hidden, dir, name).await.during(Verb::Restore)?;
    }
    disposed
}

/// Replaces an entry where names can't be exchanged.
async fn swap_unexchanged(
    dir: &Dir,
    hidden: &Name,
    name: &Name,
    expected: &Stat,
    trash: Option<&Dir>,
) -> Result<(), FailureKind> {
    if trash.is_some() || expected.kind == FileKind::Directory {
        take_away(dir, name, expected, trash).await?;
        let renamed = staging::rename(dir, hidden, name, false).await.during(Verb::CreateFile);
        if let (Err(_), Some(trash)) = (&renamed, trash) {
            trash.rename(name, dir, name, false).await.during(Verb::Restore)?;
        }
        return renamed;
    }
    if !is_it(dir, name, expected).await.during(Verb::StatTarget)? {
        return Err(FailureKind::Changed);
    }
    dir.rename(hidden, dir, name, true).await.during(Verb::CreateFile)
}

/// Moves an entry from a hidden name to the trash, or removes it.
async fn dispose(dir: &Dir, hidden: &Name, name: &Name, found: &Stat, trash: Option<&Dir>) -> IoResult<()> {
    match trash {
        Some(trash) => dir.rename(hidden, trash, name, false).await,
        None if found.kind == FileKind::Directory => dir.remove_dir(hidden).await,
        None => dir.unlink(hidden).await,
    }
}

/// Takes an entry away: to the trash, or for good. Not cancellable.
pub(super) async fn take_away(
    dir: &Dir,
    name: &Name,
    expected: &Stat,
    trash: Option<&Dir>,
) -> Result<(), FailureKind> {
    protect(async {
        // A cheap look first: an entry that has changed already is not moved at all.
        if !is_it(dir, name, expected).await.during(Verb::Remove)? {
            return Err(FailureKind::Changed);
        }
        let (place, at) = match trash {
            Some(trash) => {
                dir.rename(name, trash, name, false).await.during(Verb::Remove)?;
                (trash, name.clone())
            }
            None => (dir, set_aside(dir, name).await.during(Verb::Remove)?),
        };
        let taken = match is_it(place, &at, expected).await {
            Ok(true) if trash.is_some() => Ok(()),
            Ok(true) => dispose(dir, &at, name, expected, None).await.during(Verb::Remove),
            Ok(false) => Err(FailureKind::Changed),
            Err(error) => Err(Verb::Remove.failed(error)),
        };
        if taken.is_err() {
            place.rename(&at, dir, name, false).await.during(Verb::Restore)?;
        }
        taken
    })
    .await
}

/// Returns true if `name` is the entry that was seen, and nothing was written to it since.
async fn is_it(dir: &Dir, name: &Name, seen: &Stat) -> Result<bool, Error> {
    match dir.stat_entry(name, false).await {
        Ok(found) => {
            // Renaming changes neither; emptying a folder, and other actions on names of one file, do.
            let is_unchanged = (found.size, found.times.modified) == (seen.size, seen.times.modified);
            let may_change = seen.kind == FileKind::Directory || seen.links > 1;
            Ok(found.is_same_file(seen) && found.kind == seen.kind && (is_unchanged || may_change))
        }
        Err(error) if error.is(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}
