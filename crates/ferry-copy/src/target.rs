//! What is at the target already, and what is to become of it: cp's rules for existing files.

use ferry_io::{Dir, Errno, File, FileKind, Name, OpenHow, Stat};

use crate::copier::{Copier, Place, add};
use crate::entry::names;
use crate::options::{Existing, Make};
use crate::report::{FailureKind, Verb};

/// What stands where the copy goes.
pub(crate) enum Prepared {
    /// Nothing, or nothing any more.
    Free,
    /// A file to be overwritten in place.
    Overwrite(Stat),
    /// Something that is to stay.
    Skip,
}

/// An open target.
pub(crate) struct Target {
    pub(crate) file: File,
    /// Whether this run made it: then it is removed if it can't be completed.
    pub(crate) is_new: bool,
    /// What it was before, if it was there.
    pub(crate) kind: FileKind,
}

/// Looks at what is there and clears the way. Where this run made the folder, nothing can be.
pub(crate) async fn prepare(
    copier: &Copier,
    place: Place<'_>,
    source: &Stat,
) -> Result<Prepared, FailureKind> {
    if place.folder.facts().is_some_and(|facts| facts.is_new) {
        return Ok(Prepared::Free);
    }
    let options = &copier.options;
    let io = |verb| move |error| FailureKind::Io { verb, error };
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::Stat))?;
    let name = names(&place).1;
    // Links as links, unless bytes are to go through them.
    let through = writes_through(copier, source);
    let existing = match dir.stat_entry(name, through).await {
        Ok(existing) => existing,
        Err(error) if error.is(Errno::NOENT) && through => {
            return match dir.stat_entry(name, false).await {
                Ok(_) if options.force => remove(copier, place).await.map(|()| Prepared::Free),
                Ok(_) => Err(FailureKind::DanglingTarget),
                Err(error) if error.is(Errno::NOENT) => Ok(Prepared::Free),
                Err(error) => Err(io(Verb::Stat)(error)),
            };
        }
        Err(error) if error.is(Errno::NOENT) => return Ok(Prepared::Free),
        Err(error) if error.is(Errno::LOOP) && options.force => {
            return remove(copier, place).await.map(|()| Prepared::Free);
        }
        Err(error) => return Err(io(Verb::Stat)(error)),
    };
    if existing.is_same_file(source) && options.make == Make::Copy && !(is_link(&dir, name).await && !through)
    {
        return Err(FailureKind::SameFile);
    }
    if existing.kind == FileKind::Directory {
        return Err(FailureKind::FileOverDirectory);
    }
    let stays = match options.existing {
        Existing::Keep => true,
        Existing::Update => existing.times.modified >= source.times.modified,
        Existing::Replace => false,
    };
    if stays {
        add(&copier.tally.skipped, 1);
        return Ok(Prepared::Skip);
    }
    if copier.was_made(&existing) {
        return Err(FailureKind::JustCreated);
    }
    let parts = options.preserve.links && existing.links > 1;
    if !through || options.remove_destination || parts {
        remove(copier, place).await?;
        return Ok(Prepared::Free);
    }
    Ok(Prepared::Overwrite(existing))
}

/// Whether the source's bytes go into what the target's name leads to.
fn writes_through(copier: &Copier, source: &Stat) -> bool {
    let has_bytes = source.kind == FileKind::Regular || copier.options.copy_contents;
    has_bytes && copier.options.make == Make::Copy && !copier.options.remove_destination
}

async fn is_link(dir: &Dir, name: &Name) -> bool {
    dir.stat_entry(name, false).await.is_ok_and(|stat| stat.kind == FileKind::Symlink)
}

/// Removes what is in the way.
pub(crate) async fn remove(copier: &Copier, place: Place<'_>) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Remove, error };
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    match dir.unlink(names(&place).1).await {
        Err(error) if error.is(Errno::NOENT) => Ok(()),
        answer => answer.map_err(io),
    }
}

/// Whether two names are one file.
pub(crate) async fn is_same(a_dir: &Dir, a: &Name, b_dir: &Dir, b: &Name) -> bool {
    match (a_dir.stat_entry(a, false).await, b_dir.stat_entry(b, false).await) {
        (Ok(a), Ok(b)) => a.is_same_file(&b),
        _ => false,
    }
}

/// Opens the target of a regular file's copy; `None` if what is there stays.
pub(crate) async fn open(
    copier: &Copier,
    place: Place<'_>,
    source: &Stat,
) -> Result<Option<Target>, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::CreateFile, error };
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let name = names(&place).1;
    match prepare(copier, place, source).await? {
        Prepared::Skip => Ok(None),
        Prepared::Overwrite(existing) => {
            let how = match existing.kind {
                FileKind::Regular => OpenHow::write().truncated().following(),
                _ => OpenHow::write().waiting().following(),
            };
            match dir.open(name, how).await {
                Ok(file) => Ok(Some(Target { file, is_new: false, kind: existing.kind })),
                Err(error) if copier.options.force && !error.is_cancelled() => {
                    remove(copier, place).await?;
                    create(copier, &dir, name, source).await.map_err(io).map(Some)
                }
                Err(error) => Err(io(error)),
            }
        }
        Prepared::Free => create(copier, &dir, name, source).await.map_err(io).map(Some),
    }
}

/// A new file: for its owner alone if its own mode is set at the end, else with the source's mode and the umask.
async fn create(copier: &Copier, dir: &Dir, name: &Name, source: &Stat) -> ferry_io::Result<Target> {
    let preserve = copier.options.preserve;
    let mode = match (preserve.mode, preserve.refuse_mode) {
        (true, _) => 0o600,
        (false, true) => 0o666,
        (false, false) => source.mode & 0o777,
    };
    let file = dir.open(name, OpenHow::create(mode)).await?;
    Ok(Target { file, is_new: true, kind: FileKind::Regular })
}
