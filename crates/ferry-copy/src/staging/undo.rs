//! Removal of what this run made, and of nothing else.
//!
//! The kernel removes names, not files: between a look at a name and its removal another program may rename a complete
//! file into its place. So the name is first moved aside, to a name that is used for nothing else
//! (`.ferry-aside-2a-1f40-0-9c1d-0-film`), and compared there: this run's file is removed, any other gets its name back.
//! The name describes both, so that a later run of `ferry sync` can do the same after a kill (`recover.rs`).
//!
//! Limits: on a filesystem that is full or can't rename without replacing, comparison and removal are two calls by
//! name. If a third file takes the name while a foreign one is aside, the foreign one keeps the hidden name, and the
//! failure is reported.

use std::sync::atomic::{AtomicU64, Ordering};

use ferry_io::{Cause, Dir, Errno, Error, Name, Operation, Result, Stat, protect};

use super::names::{Aside, aside_name, made_key, seen_key};

/// Hidden names tried before giving up.
pub(crate) const ATTEMPTS: u32 = 100;
/// Errors of a filesystem that can't rename without replacing.
const NO_RENAME: [Errno; 2] = [Errno::INVAL, Errno::NOSYS];

/// Removes `name` from `dir` if it is `made`; anything else keeps its name. Not cancellable.
pub(crate) async fn remove_made(dir: &Dir, name: &Name, made: &Stat) -> Result<()> {
    protect(async {
        if !is_made(dir, name, made).await? {
            return Ok(());
        }
        let folder = dir.stat().await?.inode;
        let mut described = Some(name);
        for _ in 0..ATTEMPTS {
            let hidden = next_aside(folder, (Some(made), None), described);
            match dir.rename(name, dir, &hidden, false).await {
                Ok(()) => return remove_hidden(dir, name, &hidden, made).await,
                Err(error) if error.is(Errno::NOENT) => return Ok(()),
                Err(error) if error.is(Errno::EXIST) => {}
                Err(error) if error.is(Errno::NAMETOOLONG) && described.is_some() => described = None,
                Err(error) if lacks_room(&error) || NO_RENAME.iter().any(|&errno| error.is(errno)) => {
                    return dir.unlink(name).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error { operation: Operation::Rename, cause: Cause::Errno(Errno::EXIST) })
    })
    .await
}

/// Returns true for the errors of a filesystem that has no room left for another name.
pub(crate) fn lacks_room(error: &Error) -> bool {
    error.is(Errno::NOSPC) || error.is(Errno::DQUOT)
}

/// Returns a name for an entry that is moved aside in this folder: a file that this run has `made`, or one that it was
/// `seen` to take away from this name. Without the name, it describes nothing.
pub(crate) fn next_aside(
    folder: u64,
    (made, seen): (Option<&Stat>, Option<&Stat>),
    name: Option<&Name>,
) -> Name {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (made, seen) = (made.map_or(0, made_key), seen.map_or(0, seen_key));
    let aside = name.map(|name| Aside { made, seen, name: name.detached() });
    aside_name(folder, std::process::id(), number, aside.as_ref())
}

/// Removes a hidden name of this run if it is still `made`. No other program uses such names, so one look before is
/// enough. A name that can't be removed is cleared away by the next run that uses hidden names.
pub(crate) async fn remove_own_hidden(dir: &Dir, hidden: &Name, made: &Stat) {
    let removed = protect(async {
        match is_made(dir, hidden, made).await? {
            true => dir.unlink(hidden).await,
            false => Ok(()),
        }
    });
    removed.await.ok();
}

/// Removes a file that was moved aside, or gives it its name back.
async fn remove_hidden(dir: &Dir, name: &Name, hidden: &Name, made: &Stat) -> Result<()> {
    let removed = match is_made(dir, hidden, made).await {
        Ok(true) => dir.unlink(hidden).await,
        Ok(false) => return dir.rename(hidden, dir, name, false).await,
        Err(error) => Err(error),
    };
    if removed.is_err() {
        // The first failure is the one that is reported.
        dir.rename(hidden, dir, name, false).await.ok();
    }
    removed
}

/// Returns true if `name` is there and is the file `made`.
async fn is_made(dir: &Dir, name: &Name, made: &Stat) -> Result<bool> {
    match dir.stat_entry(name, false).await {
        Ok(found) => Ok(found.is_same_file(made)),
        Err(error) if error.is(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}
