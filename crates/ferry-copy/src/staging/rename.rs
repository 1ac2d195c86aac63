//! Renaming within a folder of the target.

use ferry_io::{Cause, Dir, Errno, Error, Name, Operation, Result, Stat};

use crate::place::Entry;

/// Returns the inode number of a folder of the target.
pub(super) async fn folder_number(entry: Entry<'_>, dir: &Dir) -> Result<u64> {
    match entry.folder.facts() {
        Some(facts) => Ok(facts.target.1),
        None => Ok(dir.stat().await?.inode),
    }
}

/// Renames an entry from its hidden name to its own.
pub(crate) async fn rename(dir: &Dir, hidden: &Name, name: &Name, replaces: bool) -> Result<()> {
    if replaces {
        dir.rename(hidden, dir, name, true).await
    } else {
        rename_into(dir, hidden, dir, name).await
    }
}

/// Moves an entry to a name that is free.
pub(crate) async fn rename_into(dir: &Dir, name: &Name, to: &Dir, new_name: &Name) -> Result<()> {
    match dir.rename(name, to, new_name, false).await {
        Err(error) if error.is(Errno::INVAL) || error.is(Errno::NOSYS) => {
            match to.stat_entry(new_name, false).await {
                Ok(_) => Err(Error { operation: Operation::Rename, cause: Cause::Errno(Errno::EXIST) }),
                Err(free) if free.is(Errno::NOENT) => dir.rename(name, to, new_name, true).await,
                Err(error) => Err(error),
            }
        }
        answer => answer,
    }
}

/// Gives an entry its name, if its hidden name is still `made`.
pub(super) async fn rename_made(
    dir: &Dir,
    (hidden, made): (&Name, &Stat),
    name: &Name,
    replaces: bool,
) -> Result<()> {
    if dir.stat_entry(hidden, false).await?.is_same_file(made) {
        rename(dir, hidden, name, replaces).await
    } else {
        // Another program has taken the hidden name.
        Err(Error { operation: Operation::Rename, cause: Cause::Errno(Errno::STALE) })
    }
}

/// The error of a name that another program has taken.
pub(crate) fn taken() -> Error {
    Error { operation: Operation::Rename, cause: Cause::Errno(Errno::EXIST) }
}
