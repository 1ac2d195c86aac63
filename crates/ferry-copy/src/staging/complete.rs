//! Completing a part: it gets its file's name, and its journal is removed after that.
//!
//! A file that replaces another first gets a hidden name (`copier/swap.rs`). Its journal stays until it has replaced the
//! other file, so that the part of a killed run gets its name back (`clear.rs`).
//!
//! The part is locked until it has left its name, so that no run that has opened it can empty it. Over a network, where
//! closing may report that a file is incomplete and releases the lock, it leaves its name for a hidden one before it is
//! closed. A kill between the two renames costs the file there.

use ferry_io::{Dir, Errno, File, Name, Result, Stat};

use super::names::{next_hidden_name, part_names};
use super::part::{LARGE, Part};
use super::rename::{folder_number, rename_made};
use super::undo::{remove_made, remove_own_hidden};
use crate::place::Entry;
use crate::run::Run;

/// Gives a complete part its name, and closes it. A part that can't get its name is removed.
pub(super) async fn publish(
    entry: Entry<'_>,
    (dir, hidden): (&Dir, &Name),
    part: &Part,
    (file, replaces): (File, bool),
) -> Result<()> {
    let made = file.stat().await?;
    let may_fail = entry.folder.abilities().is_none_or(|known| known.close_may_fail());
    let named = if may_fail {
        leave_first(entry, (dir, hidden), &made, (file, replaces)).await
    } else {
        leave(entry, (dir, hidden), &made, (file, replaces)).await
    };
    if named.is_err() {
        remove_own_hidden(dir, hidden, &made).await;
    }
    let is_replacement = entry.source != entry.target;
    if named.is_err() || !is_replacement {
        part.remove_journal(dir).await;
    }
    named
}

/// Renames a part, then closes it.
async fn leave(
    entry: Entry<'_>,
    (dir, hidden): (&Dir, &Name),
    made: &Stat,
    (file, replaces): (File, bool),
) -> Result<()> {
    rename_made(dir, (hidden, made), entry.target, replaces).await?;
    let closed = file.close_in(dir).await;
    if closed.is_err() {
        remove_made(dir, entry.target, made).await.ok();
    }
    closed
}

/// Renames a part to another hidden name, closes it, and renames it again.
async fn leave_first(
    entry: Entry<'_>,
    (dir, hidden): (&Dir, &Name),
    made: &Stat,
    (file, replaces): (File, bool),
) -> Result<()> {
    let other = next_hidden_name(folder_number(entry, dir).await?);
    rename_made(dir, (hidden, made), &other, false).await?;
    let named = match file.close_in(dir).await {
        Ok(()) => rename_made(dir, (&other, made), entry.target, replaces).await,
        Err(error) => Err(error),
    };
    if named.is_err() {
        remove_own_hidden(dir, &other, made).await;
    }
    named
}

/// Removes the journal of a file that has replaced another, or can't.
pub(crate) async fn forget_journal(run: &Run, entry: Entry<'_>, dir: &Dir, source: &Stat) {
    if run.options.resume.is_none() || source.size < LARGE {
        return;
    }
    if let Ok(folder) = folder_number(entry, dir).await {
        let (part, journal) = part_names(folder, entry.source);
        // A part that is there is another run's, and so is its journal.
        if dir.stat_entry(&part, false).await.is_err_and(|error| error.is(Errno::NOENT)) {
            dir.unlink(&journal).await.ok();
        }
    }
}
