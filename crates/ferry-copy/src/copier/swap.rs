//! Replacing and taking away an entry that the caller saw, and no other.
//!
//! The kernel renames and removes names, not files. So the entry first leaves its name: by an exchange with its
//! successor, or to the trash, or aside. There nothing else reaches it, and it is compared. A foreign entry gets its name
//! back, and so does one that was written to since the caller looked. If its name is taken by then, it stays where it
//! is, and the failure names that place.
//!
//! Limits: where names can't be exchanged (NFS, many filesystems in user space), the target is compared before it is
//! replaced. A file that takes its name between the two calls is lost. A run that is killed between the two calls that
//! exchange and compare leaves an entry aside, which may be foreign: the next run compares it (`recover.rs`).

use std::sync::Arc;

use ferry_io::{Dir, Errno, Error, FileKind, Name, OpenHow, Result as IoResult, Stat, protect};

use super::own::OwnTimes;
use crate::claim::Ended;
use crate::entry::settle::settle;
use crate::file;
use crate::lent;
use crate::other;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::staging;
use crate::target::{Ahead, Seen};

/// Errors of filesystems that can't exchange names.
const NO_EXCHANGE: [Errno; 3] = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];

/// A folder of the target, what the run knows of its files, and where entries go that lose their names.
pub(super) struct Folder<'a> {
    pub(super) run: &'a Run,
    /// Inode number of the folder.
    pub(super) inode: u64,
    pub(super) dir: &'a Dir,
    pub(super) own: &'a OwnTimes,
    pub(super) trash: Option<&'a Dir>,
}

/// An entry that has left its name.
pub(super) struct Lifted {
    place: Dir,
    name: Name,
    is_in_trash: bool,
    kind: FileKind,
}

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
    folder: &Folder<'_>,
) -> Result<(), FailureKind> {
    let dir = folder.dir;
    let hidden = staging::reserve(run, entry, dir).await.during(Verb::CreateFile)?;
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
        let placed = async {
            secure(run, dir, &hidden, &made).await.during(Verb::Sync)?;
            let aside = folder.set_aside(&hidden, (Some(&made), Some(target)), entry.target).await;
            aside.during(Verb::CreateFile)
        };
        match placed.await {
            Ok(aside) => {
                let swapped = folder.swap(&aside, entry.target, target, &made).await;
                if swapped.is_err() {
                    staging::remove_own_hidden(dir, &aside, &made).await;
                }
                swapped
            }
            Err(kind) => {
                staging::remove_own_hidden(dir, &hidden, &made).await;
                Err(kind)
            }
        }
    });
    let swapped = swapped.await;
    staging::forget_journal(run, entry, dir, source).await;
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

/// Begins to write a file back before it takes the place of another one; with `--fsync`, makes it durable.
///
/// A journal may hold the exchange before the bytes of the copy. After a power loss, the old file would be gone and the
/// new one empty. ext4 begins to write the bytes at a rename(2) over another file, but not at an exchange.
async fn secure(run: &Run, dir: &Dir, hidden: &Name, made: &Stat) -> IoResult<()> {
    if made.kind != FileKind::Regular || made.size == 0 {
        return Ok(());
    }
    let opened = dir.open(hidden, OpenHow::read()).await;
    if !run.options.fsync {
        // If that fails, the kernel writes them later.
        if let Ok(file) = opened {
            file.start_write_back(0, made.size).await.ok();
        }
        return Ok(());
    }
    match opened {
        Ok(file) => file.sync().await,
        // The mode of the copy keeps the user out.
        Err(error) if error.is(Errno::ACCESS) => dir.as_file().sync_filesystem().await,
        Err(error) => Err(error),
    }
}

impl Folder<'_> {
    /// Moves an entry to a hidden name that later runs do not clear away unseen, because the entry may turn out to be
    /// foreign. `made` is this run's file, `seen` the entry that is to lose its name.
    async fn set_aside(
        &self,
        from: &Name,
        (made, seen): (Option<&Stat>, Option<&Stat>),
        name: &Name,
    ) -> IoResult<Name> {
        // No other run sees to the entry before this run has ended.
        self.run.locks.share(self.dir).await?;
        let (mut tried, mut described) = (1, Some(name));
        loop {
            let aside = staging::next_aside(self.inode, (made, seen), described);
            match staging::rename(self.dir, from, &aside, false).await {
                Ok(()) => return Ok(aside),
                // A run with this process's number was killed.
                Err(error) if error.is(Errno::EXIST) && tried < staging::ATTEMPTS => tried += 1,
                // Names of this filesystem are shorter.
                Err(error) if error.is(Errno::NAMETOOLONG) && described.is_some() => described = None,
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the entry at `hidden`, which is `made`, the name of `expected`, which goes to the trash or is removed.
    async fn swap(
        &self,
        hidden: &Name,
        name: &Name,
        expected: &Stat,
        made: &Stat,
    ) -> Result<(), FailureKind> {
        match self.dir.exchange(hidden, self.dir, name).await {
            Ok(()) => {}
            Err(error) if error.is(Errno::NOENT) => return Err(FailureKind::Changed),
            Err(error) if NO_EXCHANGE.iter().any(|&errno| error.is(errno)) => {
                return self.swap_unexchanged(hidden, name, expected).await;
            }
            Err(error) => return Err(Verb::CreateFile.failed(error)),
        }
        let lifted =
            Lifted { place: self.dir.clone(), name: hidden.clone(), is_in_trash: false, kind: expected.kind };
        let disposed = match self.is_it(self.dir, hidden, expected).await {
            Ok(true) => self.dispose(&lifted, name).await.during(Verb::Remove),
            Ok(false) => Err(FailureKind::Changed),
            Err(error) => Err(Verb::StatTarget.failed(error)),
        };
        if disposed.is_err() {
            match self.dir.exchange(hidden, self.dir, name).await {
                Ok(()) => self.refuse_foreign(hidden, made).await?,
                // The copy was taken away meanwhile: the name is free.
                Err(error) if error.is(Errno::NOENT) => self.give_back(&lifted, name).await?,
                Err(error) => return Err(kept_aside(hidden, error)),
            }
        }
        disposed
    }

    /// Returns an error if what an exchange has brought to a hidden name is not this run's copy.
    async fn refuse_foreign(&self, hidden: &Name, made: &Stat) -> Result<(), FailureKind> {
        match self.dir.stat_entry(hidden, false).await {
            Ok(found) if found.is_same_file(made) => Ok(()),
            Ok(_) => Err(kept_aside(hidden, staging::taken())),
            Err(error) if error.is(Errno::NOENT) => Ok(()),
            Err(error) => Err(kept_aside(hidden, error)),
        }
    }

    /// Replaces an entry where names can't be exchanged.
    async fn swap_unexchanged(&self, hidden: &Name, name: &Name, expected: &Stat) -> Result<(), FailureKind> {
        if self.trash.is_some() || expected.kind == FileKind::Directory {
            let lifted = self.lift(name, expected).await?;
            if let Err(error) = staging::rename(self.dir, hidden, name, false).await {
                self.give_back(&lifted, name).await?;
                return Err(Verb::CreateFile.failed(error));
            }
            return self.put_away(&lifted, name).await;
        }
        if !self.is_it(self.dir, name, expected).await.during(Verb::StatTarget)? {
            return Err(FailureKind::Changed);
        }
        self.dir.rename(hidden, self.dir, name, true).await.during(Verb::CreateFile)
    }

    /// Takes an entry from its name: to the trash, or aside. Not cancellable.
    pub(super) async fn lift(&self, name: &Name, expected: &Stat) -> Result<Lifted, FailureKind> {
        protect(self.try_lift(name, expected)).await?.map_err(|error| Verb::Remove.failed(error))
    }

    /// As [`Self::lift`]; the inner error is that of the rename, after which the entry is where it was.
    async fn try_lift(&self, name: &Name, expected: &Stat) -> Result<IoResult<Lifted>, FailureKind> {
        // A cheap look first: an entry that has changed already is not moved at all.
        if !self.is_it(self.dir, name, expected).await.during(Verb::Remove)? {
            return Err(FailureKind::Changed);
        }
        let moved = match self.trash {
            Some(trash) => {
                let moved = move_into(self.run, (self.dir, name), (trash, name)).await;
                moved.map(|()| (trash.clone(), name.clone()))
            }
            None => {
                let aside = self.set_aside(name, (None, Some(expected)), name).await;
                aside.map(|aside| (self.dir.clone(), aside))
            }
        };
        let (place, at) = match moved {
            Ok(moved) => moved,
            Err(error) => return Ok(Err(error)),
        };
        let lifted = Lifted { place, name: at, is_in_trash: self.trash.is_some(), kind: expected.kind };
        let refused = match self.is_it(&lifted.place, &lifted.name, expected).await {
            Ok(true) => return Ok(Ok(lifted)),
            Ok(false) => FailureKind::Changed,
            Err(error) => Verb::Remove.failed(error),
        };
        self.give_back(&lifted, name).await?;
        Err(refused)
    }

    /// Gives an entry its name back. An empty folder that was made in its place gives way. Not cancellable.
    pub(super) async fn give_back(&self, lifted: &Lifted, name: &Name) -> Result<(), FailureKind> {
        let Lifted { place, name: at, is_in_trash, kind } = lifted;
        let back = || move_into(self.run, (place, at), (self.dir, name));
        let given = protect(async {
            match back().await {
                Err(error) if error.is(Errno::EXIST) && *kind != FileKind::Directory => {
                    self.dir.remove_dir(name).await.map_err(|_| error)?;
                    back().await
                }
                given => given,
            }
        });
        let aside = (!is_in_trash).then(|| at.clone());
        given.await.map_err(|error| FailureKind::KeptAside { aside, error })
    }

    /// Moves an entry that has left its name to the trash, or removes it. If that fails, it gets its name back, unless
    /// another entry has it. Not cancellable.
    pub(super) async fn put_away(&self, lifted: &Lifted, name: &Name) -> Result<(), FailureKind> {
        let Err(error) = protect(self.dispose(lifted, name)).await else { return Ok(()) };
        self.give_back(lifted, name).await?;
        Err(Verb::Remove.failed(error))
    }

    async fn dispose(&self, lifted: &Lifted, name: &Name) -> IoResult<()> {
        match self.trash {
            _ if lifted.is_in_trash => Ok(()),
            Some(trash) => move_into(self.run, (&lifted.place, &lifted.name), (trash, name)).await,
            None => remove(self.run, &lifted.place, &lifted.name, lifted.kind).await,
        }
    }

    /// Takes an entry away: to the trash, or for good. Not cancellable.
    pub(super) async fn take_away(&self, name: &Name, expected: &Stat) -> Result<(), FailureKind> {
        protect(async {
            match self.try_lift(name, expected).await? {
                Ok(lifted) => self.put_away(&lifted, name).await,
                // A full filesystem may have no room for another name. It was compared just before.
                Err(error) if self.trash.is_none() && staging::lacks_room(&error) => {
                    remove(self.run, self.dir, name, expected.kind).await.during(Verb::Remove)
                }
                Err(error) => Err(Verb::Remove.failed(error)),
            }
        })
        .await
    }

    /// Returns true if `name` is the entry that was seen, and nothing was written to it since.
    pub(super) async fn is_it(&self, dir: &Dir, name: &Name, seen: &Stat) -> IoResult<bool> {
        match dir.stat_entry(name, false).await {
            Ok(found) => Ok(self.own.is_version(&found, seen)),
            Err(error) if error.is(Errno::NOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Moves an entry to a name that is free. A folder that is moved to another one is written to: it has a new `..`.
pub(super) async fn move_into(
    run: &Run,
    (from, name): (&Dir, &Name),
    (to, new_name): (&Dir, &Name),
) -> IoResult<()> {
    let moves = || staging::rename_into(from, name, to, new_name);
    match moves().await {
        Err(refused) if refused.is(Errno::ACCESS) && !run.user.is_root => {
            let Ok(folder) = from.reach_dir(name, false).await else { return Err(refused) };
            lent::with_permission(run, &folder, moves).await
        }
        moved => moved,
    }
}

/// Removes an entry. A folder has to be empty, but for parts.
pub(super) async fn remove(run: &Run, dir: &Dir, name: &Name, kind: FileKind) -> IoResult<()> {
    if kind != FileKind::Directory {
        return dir.unlink(name).await;
    }
    match dir.remove_dir(name).await {
        Err(error) if error.is(Errno::NOTEMPTY) || error.is(Errno::EXIST) => {
            // Nothing goes on with parts in a folder that goes away.
            let folder = dir.open_dir(name).await?;
            lent::with_permission(run, &folder, || staging::clear_parts(&folder)).await?;
            dir.remove_dir(name).await
        }
        removed => removed,
    }
}

fn kept_aside(hidden: &Name, error: Error) -> FailureKind {
    FailureKind::KeptAside { aside: Some(hidden.clone()), error }
}
