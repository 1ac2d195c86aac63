//! Making hard links: to the copy of a file's first name, or with `-l` to the source itself.
//!
//! The copy is opened and compared before it is linked, because its name may hold another file by then. An existing
//! file keeps the link's name until the link is made.

use std::sync::Arc;

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, Operation, Stat, protect};

use crate::backup;
use crate::digest::{Algorithm, CopyHash, Digest};
use crate::folder::Dirs;
use crate::links::{First, NameLook};
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::{Details, Run};
use crate::staging;
use crate::target::{self, Ahead, Seen};
use crate::trail::{self, AtLink};

/// Links a name to the copy of an earlier one. Returns false if that copy is gone or has as many names as it may.
pub(crate) async fn link_to(
    run: &Arc<Run>,
    entry: Entry<'_>,
    first: &First,
    look: NameLook,
) -> Result<bool, FailureKind> {
    let first_path = || first.folder.target_path().join(first.target.as_os_str());
    let failed = |error| FailureKind::LinkToCopy { first: first_path(), error };
    let first_dir = run.dirs(&first.folder).await.map_err(failed)?.target;
    let dir = run.dirs(entry.folder).await.map_err(failed)?.target;
    let Some(copy) = OpenCopy::of(&first_dir, first).await.map_err(failed)? else { return Ok(false) };
    let link = async |name: &Name| copy.link(&dir, name).await;
    let mut backup = None;
    let linked = match link(entry.target).await {
        Err(error) if error.is(Errno::EXIST) => match dir.stat_entry(entry.target, false).await {
            Ok(found) if found.is_same_file(&copy.stat) => {
                // If this run has left the copy alone, it leaves this name alone, too.
                if first.hash.as_ref().is_some_and(|hash| hash.is_listed) {
                    note_hashed(run, entry, first, &copy.stat).await;
                }
                return Ok(true);
            }
            // With `-u` the target's kind has not been judged.
            Ok(found) if found.kind == FileKind::Directory => Err(refused(Errno::ISDIR)),
            // In a folder that this run has made, it is another of its copies.
            _ if look.found_free && entry.is_in_new_folder() => Err(error),
            _ if look.found_free && !gives_way(run, entry, look).await? => return Ok(true),
            Ok(_) | Err(_) => {
                put_in_place(run, entry, &dir, &copy.stat, link).await?.map(|kept| backup = kept)
            }
        },
        linked => linked,
    };
    match linked {
        Ok(()) => {}
        Err(error) if error.is(Errno::MLINK) || error.is(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    run.tally.hard_links.add(1);
    note_hashed(run, entry, first, &copy.stat).await;
    let details = Details { backup: backup.as_ref(), means: None };
    run.note_made(entry.into(), copy.stat.kind, &details);
    Ok(true)
}

/// Notes the hash of a copy for another of its names.
async fn note_hashed(run: &Run, entry: Entry<'_>, first: &First, copy: &Stat) {
    let Some(algorithm) = run.options.digest.filter(|_| copy.kind == FileKind::Regular) else { return };
    let Some(hash) = &first.hash else { return };
    let digest = match hash.of(copy) {
        Some(digest) => Ok(digest),
        // Boxed: its state would be part of every link's.
        None => Box::pin(hash_copy(run, entry, hash, copy, algorithm)).await,
    };
    match digest {
        Ok(digest) => run.note_hashed(entry, digest, copy),
        Err(kind) => trail::fail(run, entry, kind),
    }
}

/// Hashes a copy that this run has left alone (`-u`), or that another program has written to. One name reads it, and the
/// others wait for the result.
async fn hash_copy(
    run: &Run,
    entry: Entry<'_>,
    hash: &CopyHash,
    copy: &Stat,
    algorithm: Algorithm,
) -> Result<Digest, FailureKind> {
    let _turn = hash.turn.acquire().await.during(Verb::Hash)?;
    if let Some(digest) = hash.of(copy) {
        return Ok(digest);
    }
    let digest = trail::of_target(run, entry, copy, algorithm, AtLink::Refuse).await?;
    hash.set(digest, copy);
    Ok(digest)
}

/// Decides about a file that has taken a name since it was found free. Returns false if the file stays.
async fn gives_way(run: &Run, entry: Entry<'_>, look: NameLook) -> Result<bool, FailureKind> {
    let source = run.stat(entry, look.follow).await?;
    match target::look_again(run, entry, &source, run.asks()).await? {
        Ahead::Stays => {
            run.note_skipped(entry);
            Ok(false)
        }
        Ahead::Made => Ok(false),
        Ahead::Free
        | Ahead::Overwrite(_)
        | Ahead::Replace(_)
        | Ahead::BackUp
        | Ahead::Occupied
        | Ahead::IsNewer => Ok(true),
    }
}

/// Copy of a file's first name, open to be linked.
struct OpenCopy<'a> {
    dir: &'a Dir,
    name: &'a Name,
    file: File,
    stat: Stat,
}

impl<'a> OpenCopy<'a> {
    /// Opens the copy; `None` if another file has its name.
    async fn of(dir: &'a Dir, first: &'a First) -> ferry_io::Result<Option<Self>> {
        let Some(copy) = &first.copy else { return Ok(None) };
        let file = match dir.reach(&first.target).await {
            Err(error) if error.is(Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        let stat = file.identify().await?;
        let is_copy = copy.is_of(&stat);
        Ok(is_copy.then_some(Self { dir, name: &first.target, file, stat }))
    }

    /// Gives the copy another name. Where the kernel links no descriptors, its first name is linked, and the result is
    /// compared.
    async fn link(&self, dir: &Dir, name: &Name) -> ferry_io::Result<()> {
        match dir.link_open(&self.file, name).await {
            Err(error) if error.is(Errno::NOENT) => {}
            linked => return linked,
        }
        let copy = self.file.stat().await?;
        if copy.links == 0 {
            return Err(refused(Errno::NOENT));
        }
        self.dir.link(self.name, dir, name, false).await?;
        let made = dir.stat_entry(name, false).await?;
        // A foreign file stays: it is not provably this run's.
        if made.is_same_file(&copy) { Ok(()) } else { Err(refused(Errno::STALE)) }
    }
}

fn refused(errno: Errno) -> Error {
    Error { operation: Operation::Link, cause: Cause::Errno(errno) }
}

/// Links a file under a hidden name and renames it over the existing target, which is backed up first if requested.
/// Nothing is lost if a step fails. Returns the backup's name.
async fn put_in_place(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    file: &Stat,
    link: impl AsyncFn(&Name) -> ferry_io::Result<()>,
) -> Result<ferry_io::Result<Option<Name>>, FailureKind> {
    let hidden = match staging::under_hidden_name(run, entry, dir, link).await {
        Ok((hidden, ())) => hidden,
        Err(error) => return Ok(Err(error)),
    };
    protect(async {
        let kept = backup::make(run, entry).await;
        let replaces = run.options.backup.is_none();
        let renamed = match &kept {
            Ok(_) => staging::rename(dir, &hidden, entry.target, replaces).await,
            Err(_) => Ok(()),
        };
        // The hidden name is left after an error, and by rename(2) where both names are one file.
        staging::remove_own_hidden(dir, &hidden, file).await;
        let backup = kept?;
        if renamed.is_err() {
            backup::take_back(run, entry, backup.as_ref()).await;
        } else if replaces && run.options.verbose && !run.options.atomic {
            run.observer.removed(&entry.target_path());
        }
        Ok(renamed.map(|()| backup))
    })
    .await
}

/// `-l`: makes a hard link to the source itself.
pub(crate) async fn link_to_source(run: &Arc<Run>, entry: Entry<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let Dirs { source, target } = run.dirs(entry.folder).await.during(Verb::CreateLink)?;
    let link = async |name: &Name| source.link(entry.source, &target, name, seen.follow).await;
    let gives_way = matches!(seen.ahead, Ahead::Replace(_) | Ahead::BackUp) && !run.options.attributes_only;
    let linked = match &seen.stat {
        Some(stat) if gives_way => put_in_place(run, entry, &target, stat, link).await?,
        Some(_) | None => {
            let backup = target::clear(run, entry, seen.ahead).await?;
            let put = target::put(run, entry, seen.ahead, &target, link).await;
            if put.is_err() {
                backup::take_back(run, entry, backup.as_ref()).await;
            }
            put.map(|()| backup)
        }
    };
    let backup = match linked {
        Ok(backup) => backup,
        Err(error) => {
            // A source that can't be looked at is reported as such.
            run.stat(entry, seen.follow).await?;
            return Err(Verb::CreateLink.failed(error));
        }
    };
    run.tally.hard_links.add(1);
    let kind = seen.stat.map_or(FileKind::Regular, |stat| stat.kind);
    run.note_made(entry.into(), kind, &Details { backup: backup.as_ref(), means: None });
    Ok(())
}
