//! One entry: what it is decides who copies it.

use std::ffi::CString;
use std::sync::Arc;

use ferry_io::{Cause, Dir, Errno, Error, FileKind, Name, Operation, Stat, protect};

use crate::backup;
use crate::copier::{Copier, Identity, Place, identity};
use crate::file;
use crate::folder::Role;
use crate::how::How;
use crate::links::{Claim, Spot};
use crate::meta;
use crate::mode::New;
use crate::options::{Dereference, Make};
use crate::report::{Copied, FailureKind, Verb};
use crate::staging;
use crate::target::{self, Ahead};
use crate::walk;

/// What became of an entry.
pub(crate) enum Found {
    /// It was copied, left alone, or reported.
    Done,
    /// It is a folder, to be entered; through a link if so said.
    Folder { follow: bool },
}

/// Copies an entry of whatever kind. An operand is followed with `-H` too.
pub(crate) async fn copy(
    copier: &Arc<Copier>,
    place: Place<'_>,
    kind: Option<FileKind>,
    is_operand: bool,
) -> Found {
    match try_copy(copier, place, kind, is_operand).await {
        Ok(found) => found,
        Err(kind) => {
            copier.fail(&place, kind);
            Found::Done
        }
    }
}

async fn try_copy(
    copier: &Arc<Copier>,
    place: Place<'_>,
    kind: Option<FileKind>,
    is_operand: bool,
) -> Result<Found, FailureKind> {
    let follows = match copier.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => is_operand,
        Dereference::Never => false,
    };
    let through_link = follows && matches!(kind, None | Some(FileKind::Symlink));
    let mut known = None;
    let kind = match kind {
        Some(kind) if !through_link => kind,
        Some(_) | None => known.insert(stat(copier, place, through_link).await?).kind,
    };
    if kind == FileKind::Directory {
        return if copier.options.recursive {
            Ok(Found::Folder { follow: through_link })
        } else {
            Err(FailureKind::OmittingDirectory)
        };
    }
    if is_operand {
        copier.walk_shrinks();
    }
    let seen = see(copier, place, through_link, known).await?;
    match seen.ahead {
        Ahead::Made => return Ok(Found::Done),
        Ahead::Stays | Ahead::IsNewer => {
            return Box::pin(leave(copier, place, &seen)).await.map(|()| Found::Done);
        }
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Replace(_) | Ahead::BackUp | Ahead::Occupied => {}
    }
    match copier.options.make {
        Make::HardLink => Box::pin(hard_link(copier, place, &seen)).await?,
        Make::SymbolicLink => Box::pin(symbolic_link_to(copier, place, &seen)).await?,
        Make::Copy => match kind {
            FileKind::Symlink => Box::pin(other(copier, place, &seen)).await?,
            FileKind::Regular => file::copy(copier, place, &seen).await?,
            _ if copier.options.copy_contents => file::copy(copier, place, &seen).await?,
            FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => {
                Box::pin(other(copier, place, &seen)).await?;
            }
            FileKind::Directory => {}
        },
    }
    Ok(Found::Done)
}

/// What was seen of an entry before it is opened.
pub(crate) struct Seen {
    /// Whether its name is a link that is followed.
    pub(crate) follow: bool,
    /// What it is; not asked where nothing can be at the target.
    pub(crate) stat: Option<Stat>,
    /// What is at the target.
    pub(crate) ahead: Ahead,
}

async fn see(
    copier: &Copier,
    place: Place<'_>,
    follow: bool,
    known: Option<Stat>,
) -> Result<Seen, FailureKind> {
    if place.folder.facts().is_some_and(|facts| facts.is_new) {
        return Ok(Seen { follow, stat: known, ahead: Ahead::Free });
    }
    let source = match known {
        Some(stat) => stat,
        None => stat(copier, place, follow).await?,
    };
    let ahead = Box::pin(target::look(copier, place, &source)).await?;
    Ok(Seen { follow, stat: Some(source), ahead })
}

/// Leaves the target as it is. One that is newer (`-u`) counts as its source's copy: other names become links to it,
/// or it becomes one to theirs.
async fn leave(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    note_skipped(copier, &place);
    let Some(stat) = seen.stat.filter(|_| matches!(seen.ahead, Ahead::IsNewer)) else {
        return Ok(());
    };
    if copier.options.make != Make::Copy {
        return Ok(());
    }
    match claim(copier, place, &stat, seen.follow) {
        Claim::Alone | Claim::Left => {}
        Claim::First => end_claim(copier, place, &stat, true).await,
        Claim::Linked(first) => link_to_copy(copier, place, &first, (stat.kind, seen.follow)).await?,
    }
    Ok(())
}

/// Counts an entry whose target stays, and tells of it if anyone wants to know.
pub(crate) fn note_skipped(copier: &Copier, place: &Place<'_>) {
    copier.tally.skipped.add(1);
    if copier.options.debug {
        copier.observer.skipped(&place.target_path());
    }
}

/// Notes a copied entry, which the end of the run makes durable.
pub(crate) fn note_made(
    copier: &Copier,
    place: &Place<'_>,
    kind: FileKind,
    (backup, how): (Option<&Name>, Option<How>),
) {
    if copier.options.fsync {
        copier.durable.await_end();
    }
    note_copied(copier, place, kind, (backup, how));
}

/// Notes a copied entry that is durable if it must be, and tells of it if anyone wants to know.
pub(crate) fn note_copied(
    copier: &Copier,
    place: &Place<'_>,
    kind: FileKind,
    (backup, how): (Option<&Name>, Option<How>),
) {
    copier.remember_made(place, kind);
    if copier.options.verbose {
        let target = place.target_path();
        let backup = backup.map(|name| backup::path(place, name));
        let (source, backup) = (place.source_path(), backup.as_deref());
        let is_way = place.target.is_none() && place.folder.role == Role::Way;
        copier.observer.copied(&Copied { source: &source, target: &target, backup, how, is_way });
    }
}

/// The two names of a place that is not a folder itself.
pub(crate) fn names<'a>(place: &Place<'a>) -> (&'a Name, &'a Name) {
    match (place.source, place.target) {
        (Some(source), Some(target)) => (source, target),
        _ => unreachable!("only folders are copied without a name"),
    }
}

pub(crate) async fn stat(copier: &Copier, place: Place<'_>, follow: bool) -> Result<Stat, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Stat, error };
    let (source, _) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    source.stat_entry(names(&place).0, follow).await.map_err(io)
}

/// Claims a file that may be met again by another name: by a hard link, or by a link that is followed.
pub(crate) fn claim(copier: &Copier, place: Place<'_>, stat: &Stat, follow: bool) -> Claim {
    let is_met_by_links = match copier.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => matches!(place.folder.role, Role::Root | Role::Way),
        Dereference::Never => false,
    };
    if !copier.options.preserve.links || stat.links < 2 && !is_met_by_links {
        return Claim::Alone;
    }
    copier.links.claim(identity(stat), || spot(&place, follow))
}

fn spot(place: &Place<'_>, follow: bool) -> Spot {
    let (source, target) = names(place);
    Spot { folder: Arc::clone(place.folder), source: source.detached(), target: target.detached(), follow }
}

/// Ends the claim of a file's first name: those who were left with it are linked, or one of them takes its place.
pub(crate) async fn end_claim(copier: &Arc<Copier>, place: Place<'_>, stat: &Stat, copied: bool) {
    if copied {
        link_others(copier, place, stat).await;
    } else {
        Box::pin(take_over(copier, identity(stat))).await;
    }
}

/// Links those who were left with a name that is copied now.
async fn link_others(copier: &Arc<Copier>, place: Place<'_>, stat: &Stat) {
    let first = spot(&place, false);
    for later in copier.links.copied(identity(stat), first.clone()) {
        let place = place_of(&later);
        if let Err(kind) = link_to_copy(copier, place, &first, (stat.kind, later.follow)).await {
            copier.fail(&place, kind);
        }
        walk::finish(copier, Arc::clone(&later.folder)).await;
    }
}

/// Has those who were left with a name that failed take its place, one after another until one is copied; then the
/// others are linked to it.
async fn take_over(copier: &Arc<Copier>, file: Identity) {
    while let Some(next) = copier.links.failed(file) {
        let place = place_of(&next);
        let copied = take(copier, place, file, next.follow).await;
        let is_over = copied.is_ok();
        match copied {
            Ok(stat) => link_others(copier, place, &stat).await,
            Err(kind) => copier.fail(&place, kind),
        }
        walk::finish(copier, Arc::clone(&next.folder)).await;
        if is_over {
            return;
        }
    }
}

/// Copies a name as the first of its file; what it is.
async fn take(
    copier: &Arc<Copier>,
    place: Place<'_>,
    file: Identity,
    follow: bool,
) -> Result<Stat, FailureKind> {
    let stat = stat(copier, place, follow).await?;
    if identity(&stat) != file {
        return Err(FailureKind::Replaced);
    }
    let by_content = copier.options.copy_contents && stat.kind != FileKind::Symlink;
    if stat.kind == FileKind::Regular || by_content {
        file::copy_claimed(copier, place, file, follow).await?;
    } else {
        make_other(copier, place, &stat, None).await?;
    }
    Ok(stat)
}

fn place_of(spot: &Spot) -> Place<'_> {
    Place { folder: &spot.folder, source: Some(&spot.source), target: Some(&spot.target) }
}

/// Makes a name a hard link to the copy of an earlier one.
pub(crate) async fn link_to_copy(
    copier: &Arc<Copier>,
    place: Place<'_>,
    first: &Spot,
    (kind, follow): (FileKind, bool),
) -> Result<(), FailureKind> {
    let io = |error| FailureKind::LinkToCopy { first: place_of(first).target_path(), error };
    let (_, first_dir) = first.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let (_, target_dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let target = names(&place).1;
    let mut backup = None;
    let linked = first_dir.link(&first.target, &target_dir, target, false).await;
    match linked {
        Err(error) if error.is(Errno::EXIST) => {
            if target::is_same(&first_dir, &first.target, &target_dir, target).await {
                return Ok(());
            }
            // With `-u` nobody has looked at what is there.
            if is_folder(&target_dir, target).await {
                let error = Error { operation: Operation::Link, cause: Cause::Errno(Errno::ISDIR) };
                return Err(io(error));
            }
            let link = async |name: &Name| first_dir.link(&first.target, &target_dir, name, false).await;
            if copier.options.backup.is_some() {
                backup = backup::make(copier, place).await?;
            } else if !copier.options.atomic {
                target::remove_first(copier, place).await?;
            }
            let linked = match link(target).await {
                Err(error) if copier.options.atomic && error.is(Errno::EXIST) => {
                    staging::replace(copier, place, &target_dir, link).await
                }
                linked => linked,
            };
            if let Err(error) = linked {
                backup::take_back(copier, place, backup.as_ref()).await;
                return Err(io(error));
            }
        }
        // The target's filesystem allows fewer names a file than the source's: a copy of its own.
        Err(error) if error.is(Errno::MLINK) => {
            let stat = stat(copier, place, follow).await?;
            return if stat.kind == FileKind::Regular {
                Box::pin(file::copy_alone(copier, place, follow)).await
            } else {
                make_other(copier, place, &stat, None).await
            };
        }
        answer => answer.map_err(io)?,
    }
    copier.tally.hard_links.add(1);
    note_made(copier, &place, kind, (backup.as_ref(), None));
    Ok(())
}

async fn is_folder(dir: &Dir, name: &Name) -> bool {
    dir.stat_entry(name, false).await.is_ok_and(|found| found.kind == FileKind::Directory)
}

/// Copies a link as a link, or makes a FIFO, socket or device like the source.
async fn other(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let stat = match seen.stat {
        Some(stat) => stat,
        None => stat(copier, place, seen.follow).await?,
    };
    let is_first = match claim(copier, place, &stat, seen.follow) {
        Claim::Alone => false,
        Claim::First => true,
        Claim::Left => return Ok(()),
        Claim::Linked(first) => {
            return link_to_copy(copier, place, &first, (stat.kind, seen.follow)).await;
        }
    };
    let made = make_other(copier, place, &stat, Some(seen.ahead)).await;
    if is_first {
        end_claim(copier, place, &stat, made.is_ok()).await;
    }
    made
}

/// Makes a link or special file, with what is kept of its attributes.
async fn make_other(
    copier: &Arc<Copier>,
    place: Place<'_>,
    stat: &Stat,
    ahead: Option<Ahead>,
) -> Result<(), FailureKind> {
    let io = |verb| move |error| FailureKind::Io { verb, error };
    let ahead = match ahead {
        Some(ahead) => ahead,
        None => target::look(copier, place, stat).await?,
    };
    match ahead {
        Ahead::Stays | Ahead::IsNewer | Ahead::Made => return Ok(()),
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Replace(_) | Ahead::BackUp | Ahead::Occupied => {}
    }
    let (source_dir, target_dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::Stat))?;
    let (source, target) = names(&place);
    let says = if stat.kind == FileKind::Symlink {
        let says = source_dir.read_link(source).await.map_err(io(Verb::ReadLink))?;
        Some(CString::new(says).unwrap_or_default())
    } else {
        None
    };
    let make = async |name: &Name| match &says {
        Some(says) => target_dir.symlink(name, says.clone()).await,
        None => {
            let mode = New::entry(&place, stat.kind, stat.mode).first_mode(copier.options.preserve);
            target_dir.make_node(name, stat.kind, mode, stat.special).await
        }
    };
    let failed = io(match stat.kind {
        FileKind::Symlink => Verb::CreateSymlink,
        FileKind::Fifo => Verb::CreateFifo,
        FileKind::Regular
        | FileKind::Directory
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice => Verb::CreateSpecial,
    });
    let mut backup = None;
    // Once begun, it is ended: it would stay as it is.
    let made = protect(async {
        if !copier.options.atomic {
            backup = target::clear(copier, place, ahead).await?;
            make(target).await.map_err(failed)?;
            return meta::keep_entry(copier, &place, target, stat).await;
        }
        let made = staging::under_hidden_name(copier, place, &target_dir, make).await;
        let (hidden, ()) = made.map_err(&failed)?;
        let renamed = async {
            meta::keep_entry(copier, &place, &hidden, stat).await?;
            backup = target::clear(copier, place, ahead).await?;
            let replaces = matches!(ahead, Ahead::Replace(_));
            staging::rename(&target_dir, &hidden, target, replaces).await.map_err(failed)
        };
        let renamed = renamed.await;
        if renamed.is_err() {
            target_dir.unlink(&hidden).await.ok();
        }
        renamed
    })
    .await;
    match made {
        Ok(()) => {
            let made = if says.is_some() { &copier.tally.symlinks } else { &copier.tally.specials };
            made.add(1);
            note_made(copier, &place, stat.kind, (backup.as_ref(), None));
        }
        Err(_) => backup::take_back(copier, place, backup.as_ref()).await,
    }
    made
}

/// `-l`: a hard link to the source itself.
async fn hard_link(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::CreateLink, error };
    let (source_dir, target_dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let source = names(&place).0;
    let backup = target::clear(copier, place, seen.ahead).await?;
    let link = async |name: &Name| source_dir.link(source, &target_dir, name, seen.follow).await;
    if let Err(error) = target::put(copier, place, seen.ahead, &target_dir, link).await {
        backup::take_back(copier, place, backup.as_ref()).await;
        // Perhaps it can't even be looked at.
        stat(copier, place, seen.follow).await?;
        return Err(io(error));
    }
    copier.tally.hard_links.add(1);
    let kind = seen.stat.map_or(FileKind::Regular, |stat| stat.kind);
    note_made(copier, &place, kind, (backup.as_ref(), None));
    Ok(())
}

/// `-s`: a symbolic link to the source, by the path that the user gave.
async fn symbolic_link_to(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::CreateSymlink, error };
    let (_, target_dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let source = match seen.stat {
        Some(source) => source,
        None => stat(copier, place, seen.follow).await?,
    };
    let path = place.source_path();
    if path.is_relative() && !is_working_folder(copier, &place, &target_dir).await.map_err(io)? {
        return Err(FailureKind::RelativeSymlink);
    }
    let backup = target::clear(copier, place, seen.ahead).await?;
    let says = CString::new(path.into_os_string().into_encoded_bytes()).unwrap_or_default();
    let link = async |name: &Name| target_dir.symlink(name, says.clone()).await;
    if let Err(error) = target::put(copier, place, seen.ahead, &target_dir, link).await {
        backup::take_back(copier, place, backup.as_ref()).await;
        return Err(io(error));
    }
    if copier.options.preserve.timestamps {
        // The only attribute that cp gives to such a link.
        let set = target_dir.set_entry_times(names(&place).1, source.times).await;
        meta::told(copier, &place, Verb::SetTimes, set)?;
    }
    copier.tally.symlinks.add(1);
    note_made(copier, &place, FileKind::Symlink, (backup.as_ref(), None));
    Ok(())
}

/// Whether a relative path means the same in the target's folder as to the user.
async fn is_working_folder(copier: &Copier, place: &Place<'_>, dir: &Dir) -> ferry_io::Result<bool> {
    if place.folder.facts().is_some_and(|facts| facts.is_new) {
        return Ok(false);
    }
    let working = copier.io.reach_dir(".".as_ref())?.stat().await?;
    Ok(dir.stat().await?.is_same_file(&working))
}
