//! Hard links: names of one file become names of one copy.
//!
//! Every name of such a file claims it (`links.rs`). The first is copied, the others are linked to its copy, which is
//! opened and compared before: its name may hold something else by then. Where nothing can be linked to it, because it
//! is gone or has as many names as its filesystem allows, the next name is copied and later ones are linked to that.
//! What has a link's name already is not removed before the link is made.

use std::sync::Arc;

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, Operation, Stat, protect};

use crate::backup;
use crate::copier::{Copier, Place, join};
use crate::entry::{self, Seen, names};
use crate::file;
use crate::folder::Role;
use crate::links::{Claim, Copy, First, Look, Source, Spot};
use crate::options::Dereference;
use crate::report::{FailureKind, Verb};
use crate::staging;
use crate::target::{self, Ahead};
use crate::walk;

/// Whether a file may be met again by a link that is followed, whatever number of names it has.
pub(crate) fn is_met_by_links(copier: &Copier, place: &Place<'_>) -> bool {
    let follows = match copier.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => matches!(place.folder.role, Role::Root | Role::Way),
        Dereference::Never => false,
    };
    copier.options.preserve.links && follows
}

/// Whether a file may be met again by another name, and so is claimed.
pub(crate) fn is_claimed(copier: &Copier, place: &Place<'_>, stat: &Stat) -> bool {
    copier.options.preserve.links && stat.links > 1 || is_met_by_links(copier, place)
}

/// Claims a file by attributes that hold its birth time.
pub(crate) fn claim(copier: &Copier, place: Place<'_>, stat: &Stat, look: Look) -> Claim {
    copier.links.claim(Source::of(stat), || spot(&place, look))
}

/// Claims what is not opened, if it may be met again; it must still be what was seen.
pub(crate) async fn claim_entry(
    copier: &Copier,
    place: Place<'_>,
    seen: &Stat,
    look: Look,
) -> Result<Claim, FailureKind> {
    if !is_claimed(copier, &place, seen) {
        return Ok(Claim::Alone);
    }
    let stat = identify(copier, place, look.follow).await?;
    if stat.is_same_file(seen) { Ok(claim(copier, place, &stat, look)) } else { Err(FailureKind::Replaced) }
}

/// A source's attributes with its birth time.
pub(crate) async fn identify(copier: &Copier, place: Place<'_>, follow: bool) -> Result<Stat, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Stat, error };
    let (source, _) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    source.identify_entry(names(&place).0, follow).await.map_err(io)
}

/// What has the target's name, as the copy that other names are linked to; `None` if it can't be looked at.
pub(crate) async fn copy_there(copier: &Copier, place: Place<'_>) -> Option<Copy> {
    let (_, target) = place.folder.dirs(&copier.open_folders).await.ok()?;
    target.identify_entry(names(&place).1, false).await.ok().map(|found| Copy::of(&found))
}

fn spot(place: &Place<'_>, look: Look) -> Spot {
    let (source, target) = names(place);
    Spot { folder: Arc::clone(place.folder), source: source.detached(), target: target.detached(), look }
}

fn place_of(spot: &Spot) -> Place<'_> {
    Place { folder: &spot.folder, source: Some(&spot.source), target: Some(&spot.target) }
}

/// Ends the claim of a file's first name, whose copy is given, or has failed: the names that were left with it are
/// linked, or one of them takes its place.
pub(crate) async fn end_claim(
    copier: &Arc<Copier>,
    place: Place<'_>,
    file: Source,
    copied: Option<Option<Copy>>,
) {
    match copied {
        Some(copy) => link_others(copier, place, file, copy).await,
        None => Box::pin(take_over(copier, file)).await,
    }
}

/// Links the names that were left with one that is copied now.
async fn link_others(copier: &Arc<Copier>, place: Place<'_>, file: Source, copy: Option<Copy>) {
    let first = First { folder: Arc::clone(place.folder), target: names(&place).1.detached(), copy };
    for later in copier.links.copied(file, first.clone()) {
        let place = place_of(&later);
        let linked = Box::pin(link_to_copy(copier, place, file, first.clone(), later.look)).await;
        if let Err(kind) = linked {
            copier.fail(&place, kind);
        }
        walk::finish(copier, Arc::clone(&later.folder)).await;
    }
}

/// Has the names that were left with one that failed take its place, one after another until one is copied; then the
/// others are linked to it.
async fn take_over(copier: &Arc<Copier>, file: Source) {
    while let Some(next) = copier.links.failed(file) {
        let place = place_of(&next);
        let taken = take(copier, place, file, next.look).await;
        let is_over = matches!(taken, Ok(Some(_)));
        match taken {
            Ok(Some(copy)) => link_others(copier, place, file, copy).await,
            Ok(None) => {}
            Err(kind) => copier.fail(&place, kind),
        }
        walk::finish(copier, Arc::clone(&next.folder)).await;
        if is_over {
            return;
        }
    }
}

/// Copies a name as the first of its file, and gives the copy; `None` if the name is another file's by now, which is
/// copied by itself.
async fn take(
    copier: &Arc<Copier>,
    place: Place<'_>,
    file: Source,
    look: Look,
) -> Result<Option<Option<Copy>>, FailureKind> {
    let stat = identify(copier, place, look.follow).await?;
    let is_it = Source::of(&stat) == file;
    let by_content = copier.options.copy_contents && stat.kind != FileKind::Symlink;
    let copy = if stat.kind == FileKind::Regular || by_content {
        file::copy_again(copier, place, is_it.then_some(file), look).await?
    } else {
        let ahead = target::look_again(copier, place, &stat, copier.asks() && look.found_free).await?;
        entry::make_other(copier, place, &stat, ahead).await?
    };
    let copy = match copy {
        Some(copy) => Some(copy),
        // What is there stays, and counts as the copy.
        None if is_it => copy_there(copier, place).await,
        None => None,
    };
    Ok(is_it.then_some(copy))
}

/// Makes a name a hard link to the copy of an earlier one, or the file's new first name if that can't be linked to.
///
/// Each round another name has become the file's first since the last, so there are no more rounds than names.
pub(crate) async fn link_to_copy(
    copier: &Arc<Copier>,
    place: Place<'_>,
    file: Source,
    mut first: First,
    look: Look,
) -> Result<(), FailureKind> {
    loop {
        if try_link(copier, place, &first, look).await? {
            return Ok(());
        }
        match copier.links.renew(file, &first, || spot(&place, look)) {
            Claim::Linked(_, other) => first = other,
            Claim::First(_) | Claim::Alone => break,
            Claim::Left => return Ok(()),
        }
    }
    match Box::pin(take(copier, place, file, look)).await {
        Ok(Some(copy)) => {
            Box::pin(link_others(copier, place, file, copy)).await;
            Ok(())
        }
        Ok(None) => {
            Box::pin(take_over(copier, file)).await;
            Ok(())
        }
        Err(kind) => {
            Box::pin(take_over(copier, file)).await;
            Err(kind)
        }
    }
}

/// Links a name to the copy of an earlier one; false if that is gone or has as many names as it may.
async fn try_link(
    copier: &Arc<Copier>,
    place: Place<'_>,
    first: &First,
    look: Look,
) -> Result<bool, FailureKind> {
    let first_path = || join(first.folder.target_path(), Some(&first.target));
    let io = |error| FailureKind::LinkToCopy { first: first_path(), error };
    let (_, first_dir) = first.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let Some((copy, stat)) = reach(&first_dir, first).await.map_err(io)? else { return Ok(false) };
    let target = names(&place).1;
    let link = async |name: &Name| link_reached((&first_dir, &first.target), &copy, &dir, name).await;
    let mut backup = None;
    let linked = match link(target).await {
        Err(error) if error.is(Errno::EXIST) => match dir.stat_entry(target, false).await {
            Ok(found) if found.is_same_file(&stat) => return Ok(true),
            // With `-u` nobody has looked at what is there.
            Ok(found) if found.kind == FileKind::Directory => Err(failed(Errno::ISDIR)),
            // In a folder that this run has made, it is another of its copies.
            _ if look.found_free && is_new(&place) => Err(error),
            _ if look.found_free && !gives_way(copier, place, look).await? => return Ok(true),
            Ok(_) | Err(_) => put_in_place(copier, place, &dir, &stat, link).await?.map(|kept| backup = kept),
        },
        linked => linked,
    };
    match linked {
        Ok(()) => {}
        Err(error) if error.is(Errno::MLINK) || error.is(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(io(error)),
    }
    copier.tally.hard_links.add(1);
    entry::note_made(copier, &place, stat.kind, (backup.as_ref(), None));
    Ok(true)
}

fn is_new(place: &Place<'_>) -> bool {
    place.folder.facts().is_some_and(|facts| facts.is_new)
}

/// Decides about a file that has taken a name since it was found free; false if the file stays.
async fn gives_way(copier: &Copier, place: Place<'_>, look: Look) -> Result<bool, FailureKind> {
    let source = entry::stat(copier, place, look.follow).await?;
    match target::look_again(copier, place, &source, copier.asks()).await? {
        Ahead::Stays => {
            entry::note_skipped(copier, &place);
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

/// Opens the copy of a file's first name, only to be linked; `None` if something else has that name.
async fn reach(dir: &Dir, first: &First) -> ferry_io::Result<Option<(File, Stat)>> {
    let Some(copy) = first.copy else { return Ok(None) };
    let file = match dir.reach(&first.target).await {
        Err(error) if error.is(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let stat = file.identify().await?;
    Ok((Copy::of(&stat) == copy).then_some((file, stat)))
}

/// Gives a file that was reached another name. Where the kernel links no descriptors, it is linked by the name that it
/// had, and compared.
async fn link_reached(
    (first_dir, first): (&Dir, &Name),
    file: &File,
    dir: &Dir,
    name: &Name,
) -> ferry_io::Result<()> {
    match dir.link_open(file, name).await {
        Err(error) if error.is(Errno::NOENT) => {}
        linked => return linked,
    }
    let copy = file.stat().await?;
    if copy.links == 0 {
        return Err(failed(Errno::NOENT));
    }
    first_dir.link(first, dir, name, false).await?;
    let made = dir.stat_entry(name, false).await?;
    // Whose it is can't be proved, so that it stays.
    if made.is_same_file(&copy) { Ok(()) } else { Err(failed(Errno::STALE)) }
}

fn failed(errno: Errno) -> Error {
    Error { operation: Operation::Link, cause: Cause::Errno(errno) }
}

/// Makes a link to a file under a hidden name and has it take the place of what is there, which gets a backup's name if
/// one is wanted: whatever fails, nothing is lost. Gives that backup.
async fn put_in_place(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    file: &Stat,
    link: impl AsyncFn(&Name) -> ferry_io::Result<()>,
) -> Result<ferry_io::Result<Option<Name>>, FailureKind> {
    let hidden = match staging::under_hidden_name(copier, place, dir, link).await {
        Ok((hidden, ())) => hidden,
        Err(error) => return Ok(Err(error)),
    };
    protect(async {
        let kept = backup::make(copier, place).await;
        let replaces = copier.options.backup.is_none();
        let renamed = match &kept {
            Ok(_) => staging::rename(dir, &hidden, names(&place).1, replaces).await,
            Err(_) => Ok(()),
        };
        // It is left where something failed, or where rename(2) found both names to be one file.
        staging::remove_own_hidden(dir, &hidden, file).await;
        let backup = kept?;
        if renamed.is_err() {
            backup::take_back(copier, place, backup.as_ref()).await;
        } else if replaces && copier.options.verbose && !copier.options.atomic {
            copier.observer.removed(&place.target_path());
        }
        Ok(renamed.map(|()| backup))
    })
    .await
}

/// `-l`: a hard link to the source itself.
pub(crate) async fn hard_link(
    copier: &Arc<Copier>,
    place: Place<'_>,
    seen: &Seen,
) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::CreateLink, error };
    let (source_dir, target_dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let source = names(&place).0;
    let link = async |name: &Name| source_dir.link(source, &target_dir, name, seen.follow).await;
    let gives_way =
        matches!(seen.ahead, Ahead::Replace(_) | Ahead::BackUp) && !copier.options.attributes_only;
    let linked = match &seen.stat {
        Some(stat) if gives_way => put_in_place(copier, place, &target_dir, stat, link).await?,
        Some(_) | None => {
            let backup = target::clear(copier, place, seen.ahead).await?;
            let put = target::put(copier, place, seen.ahead, &target_dir, link).await;
            if put.is_err() {
                backup::take_back(copier, place, backup.as_ref()).await;
            }
            put.map(|()| backup)
        }
    };
    let backup = match linked {
        Ok(backup) => backup,
        Err(error) => {
            // Perhaps it can't even be looked at.
            entry::stat(copier, place, seen.follow).await?;
            return Err(io(error));
        }
    };
    copier.tally.hard_links.add(1);
    let kind = seen.stat.map_or(FileKind::Regular, |stat| stat.kind);
    entry::note_made(copier, &place, kind, (backup.as_ref(), None));
    Ok(())
}
