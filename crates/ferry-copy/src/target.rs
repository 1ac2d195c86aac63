//! What is at the target already, and what is to become of it: cp's rules for existing files.
//!
//! [`look`] decides before anything of the source is opened and changes nothing; [`open`] and the makers of links clear
//! the way only when the source is at hand. So whatever can't be read never costs the target that it had. Where
//! this run has made the folder nothing can be there, and nothing is asked.

mod open;
mod same;

use ferry_io::{Dir, Errno, FileKind, Name, Stat};

use crate::backup::{self, Control};
use crate::copier::{Copier, Place};
use crate::entry::names;
use crate::folder::Role;
use crate::options::{Dereference, Existing, Make, Options};
use crate::question;
use crate::report::{FailureKind, Verb};
use crate::staging;

pub(crate) use open::{Filling, Target, open};
use same::{Sameness, sameness};

/// What stands where the copy goes, and what is to become of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ahead {
    /// Nothing is there.
    Free,
    /// A file to be overwritten in place.
    Overwrite(Stat),
    /// Something to be removed first; its attributes where a file is to take its place.
    Replace(Option<Stat>),
    /// Something to be kept by another name.
    BackUp,
    /// Something that a link may take the place of only with `-f`.
    Occupied,
    /// Something that is to stay.
    Stays,
    /// Something that is not older than the source, and stays as its copy.
    IsNewer,
    /// What is to be made is there already.
    Made,
}

fn io(verb: Verb) -> impl Fn(ferry_io::Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// Looks at what is there; refuses what must not be overwritten.
pub(crate) async fn look(copier: &Copier, place: Place<'_>, source: &Stat) -> Result<Ahead, FailureKind> {
    look_as(copier, place, source, copier.asks()).await
}

/// Looks again at a target that has changed since; asks only if nothing was there to be asked about. The source's name is
/// looked at again, too: another program may have given it, and the target, to one file.
pub(crate) async fn look_again(
    copier: &Copier,
    place: Place<'_>,
    source: &Stat,
    asks: bool,
) -> Result<Ahead, FailureKind> {
    let ahead = look_as(copier, place, source, asks).await?;
    let Ahead::Overwrite(existing) = ahead else { return Ok(ahead) };
    let (dir, _) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::Stat))?;
    let now = dir.stat_entry(names(&place).0, true).await;
    if now.is_ok_and(|now| now.is_same_file(&existing)) { Err(FailureKind::SameFile) } else { Ok(ahead) }
}

async fn look_as(copier: &Copier, place: Place<'_>, source: &Stat, asks: bool) -> Result<Ahead, FailureKind> {
    if place.folder.facts().is_some_and(|facts| facts.is_new) {
        return Ok(Ahead::Free);
    }
    let options = &copier.options;
    // Links as links, unless bytes are to go through them.
    let through = writes_through(copier, source) || leads_to_stream(copier, place, source).await?;
    let Some(existing) = find(copier, place, through).await? else { return Ok(Ahead::Free) };
    match options.existing {
        Existing::Keep => return Ok(Ahead::Stays),
        Existing::Refuse => return Err(FailureKind::NotReplaced),
        Existing::Replace | Existing::Ask => {}
    }
    match sameness(copier, place, source, &existing, through).await? {
        Sameness::Other => {}
        Sameness::Wanted => {
            // As cp, which asks before it finds that a file is to be linked to itself.
            if options.make == Make::HardLink && asks && !options.update {
                question::agrees(copier, place, &existing).await?;
            }
            return Ok(Ahead::Made);
        }
        Sameness::Refused => return Err(FailureKind::SameFile),
    }
    if options.update && !is_older(copier, place, &existing, source).await? {
        return Ok(Ahead::IsNewer);
    }
    if asks && !question::agrees(copier, place, &existing).await? {
        return Ok(Ahead::Stays);
    }
    if existing.kind == FileKind::Directory {
        return Err(FailureKind::FileOverDirectory);
    }
    // Numbered backups keep this run's own, too.
    let keeps_all = options.backup.as_ref().is_some_and(|backup| backup.control == Control::Numbered);
    if let Some(made) = copier.was_made(&place).filter(|_| !keeps_all) {
        return Err(if made == FileKind::Symlink && through {
            FailureKind::ThroughJustCreated
        } else {
            FailureKind::JustCreated
        });
    }
    if let Some(backup) = &options.backup {
        return match Box::pin(backup::destroys_source(copier, place, backup)).await? {
            true => Err(FailureKind::BackupDestroysSource),
            false => Ok(Ahead::BackUp),
        };
    }
    if options.make != Make::Copy && may_take_place(copier) {
        return Ok(Ahead::Occupied);
    }
    // Without bytes to copy, what is there keeps its own; with -f a link replaces it all the same, as with cp.
    let keeps = options.attributes_only;
    let parts = !keeps && options.preserve.links && existing.links > 1;
    let may_give_way = !keeps || options.force && source.kind == FileKind::Symlink;
    let is_operand = matches!(place.folder.role, Role::Root | Role::Way);
    let keeps_links = match options.dereference {
        Dereference::Never => true,
        // Within what is named on the command line they are not followed.
        Dereference::CommandLine => !is_operand,
        Dereference::Always => false,
    };
    let gives_way = keeps_links && may_give_way && source.kind != FileKind::Regular;
    Ok(match existing {
        // A stream.
        existing if through && options.atomic => Ahead::Overwrite(existing),
        existing if is_replaced_whole(copier) => Ahead::Replace(Some(existing)),
        _ if replaces(copier) || parts || gives_way => Ahead::Replace(None),
        existing if through => Ahead::Overwrite(existing),
        _ => Ahead::Occupied,
    })
}

/// Whether the target is older than its source (`-u`). Where a filesystem keeps whole seconds only, a copy that keeps
/// times has its source's without the fraction, and is not older.
async fn is_older(
    copier: &Copier,
    place: Place<'_>,
    existing: &Stat,
    source: &Stat,
) -> Result<bool, FailureKind> {
    let (was, is) = (existing.times.modified, source.times.modified);
    if was >= is {
        return Ok(false);
    }
    let is_cut_off = was.seconds == is.seconds && has_whole_seconds(existing);
    if !is_cut_off || !copier.options.preserve.timestamps {
        return Ok(true);
    }
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    // One file may have whole seconds by chance, or because it was given them.
    let folder = dir.stat().await.map_err(io(Verb::StatTarget))?;
    Ok(!has_whole_seconds(&folder))
}

fn has_whole_seconds(stat: &Stat) -> bool {
    stat.times.modified.nanoseconds == 0 && stat.times.accessed.nanoseconds == 0
}

/// What has the target's name, or what its link leads to if bytes go through it.
async fn find(copier: &Copier, place: Place<'_>, through: bool) -> Result<Option<Stat>, FailureKind> {
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    let name = names(&place).1;
    let is_free = |error: &ferry_io::Error| error.is(Errno::NOENT);
    let lost = match dir.stat_entry(name, through).await {
        Ok(found) => return Ok(Some(found)),
        Err(error) if through && (is_free(&error) || error.is(Errno::LOOP)) => error,
        Err(error) if is_free(&error) => return Ok(None),
        Err(error) => return Err(io(Verb::StatTarget)(error)),
    };
    match dir.stat_entry(name, false).await {
        Err(error) if is_free(&error) => Ok(None),
        Err(error) => Err(io(Verb::StatTarget)(error)),
        // Another program has just made it.
        Ok(found) if found.kind != FileKind::Symlink => Ok(Some(found)),
        // A link into a circle may be replaced; one to nothing would be a file made in an unexpected place.
        Ok(link) if lost.is(Errno::LOOP) && copier.options.force => Ok(Some(link)),
        Ok(_) if lost.is(Errno::LOOP) => Err(io(Verb::StatTarget)(lost)),
        Ok(_) if copier.was_made(&place).is_some() => Err(FailureKind::JustCreated),
        // What is made there is made by following it.
        Ok(_) if copier.options.through_dangling => Ok(None),
        Ok(_) => Err(FailureKind::DanglingTarget),
    }
}

/// Whether the source's bytes go into what the target's name leads to.
fn writes_through(copier: &Copier, source: &Stat) -> bool {
    moves_bytes(copier, source) && !replaces(copier)
}

/// Whether a file's bytes are copied.
fn moves_bytes(copier: &Copier, source: &Stat) -> bool {
    let has_bytes =
        source.kind == FileKind::Regular || copier.options.copy_contents && source.kind != FileKind::Symlink;
    has_bytes && copier.options.make == Make::Copy
}

/// Whether what is there gives way to the copy rather than being overwritten.
fn replaces(copier: &Copier) -> bool {
    let options = &copier.options;
    options.remove_destination || options.backup.is_some() || is_replaced_whole(copier)
}

/// Returns true if only `--atomic` has what is there replaced: the copy then keeps the attributes that overwriting it
/// would keep.
fn is_replaced_whole(copier: &Copier) -> bool {
    let Options { atomic, make, attributes_only, remove_destination, .. } = copier.options;
    let by_copy = atomic && make == Make::Copy && !attributes_only;
    by_copy && !remove_destination && copier.options.backup.is_none()
}

/// Whether bytes that would replace a file go into something that is none, and is never whole: a pipe or a device.
async fn leads_to_stream(copier: &Copier, place: Place<'_>, source: &Stat) -> Result<bool, FailureKind> {
    let options = &copier.options;
    let is_removed = options.remove_destination || options.backup.is_some();
    if !options.atomic || is_removed || !moves_bytes(copier, source) {
        return Ok(false);
    }
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    let led = dir.stat_entry(names(&place).1, true).await;
    Ok(led.is_ok_and(|led| !matches!(led.kind, FileKind::Regular | FileKind::Directory)))
}

/// Clears the way for a link or special file; the backup's name, if there is one.
pub(crate) async fn clear(
    copier: &Copier,
    place: Place<'_>,
    ahead: Ahead,
) -> Result<Option<Name>, FailureKind> {
    match ahead {
        // The new one takes its place in one step.
        Ahead::Replace(_) if copier.options.atomic => Ok(None),
        // As cp, by which `-f` then replaces a link without a word.
        Ahead::Replace(_) if copier.options.attributes_only && !replaces(copier) => {
            remove(copier, place).await.map(|()| None)
        }
        Ahead::Replace(_) => remove_first(copier, place).await.map(|()| None),
        Ahead::BackUp => backup::make(copier, place).await,
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Occupied | Ahead::Stays | Ahead::IsNewer | Ahead::Made => {
            Ok(None)
        }
    }
}

/// Removes what is to be replaced, and tells of it.
pub(crate) async fn remove_first(copier: &Copier, place: Place<'_>) -> Result<(), FailureKind> {
    remove(copier, place).await?;
    if copier.options.verbose {
        copier.observer.removed(&place.target_path());
    }
    Ok(())
}

/// Makes a link. With `-f`, with `--atomic`, or if the user agreed, it takes the place of what is there in one step, by
/// way of a hidden name: the target is never missing, and what is there may be the very link that leads to the source.
pub(crate) async fn put(
    copier: &Copier,
    place: Place<'_>,
    ahead: Ahead,
    dir: &Dir,
    link: impl AsyncFn(&Name) -> ferry_io::Result<()>,
) -> ferry_io::Result<()> {
    let in_one_step = copier.options.atomic && matches!(ahead, Ahead::Replace(_));
    let may_replace = may_take_place(copier) || in_one_step;
    match link(names(&place).1).await {
        Err(error) if may_replace && error.is(Errno::EXIST) => {
            staging::replace(copier, place, dir, link).await
        }
        linked => linked,
    }
}

/// Whether a link may take the place of what is there: a hard link also where the user has agreed.
fn may_take_place(copier: &Copier) -> bool {
    copier.options.force || copier.options.make == Make::HardLink && copier.asks()
}

/// Removes what is in the way.
pub(crate) async fn remove(copier: &Copier, place: Place<'_>) -> Result<(), FailureKind> {
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::Remove))?;
    match dir.unlink(names(&place).1).await {
        Err(error) if error.is(Errno::NOENT) => Ok(()),
        answer => answer.map_err(io(Verb::Remove)),
    }
}
