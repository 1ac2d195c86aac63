//! One entry: its kind decides how it is copied.

use std::ffi::CString;
use std::sync::Arc;

use ferry_io::{Dir, Error, File, FileKind, Name, Stat, protect};

use crate::backup;
use crate::copier::{Copier, Place};
use crate::file;
use crate::folder::Role;
use crate::how::How;
use crate::linking;
use crate::links::{Claim, Copy, Look};
use crate::meta;
use crate::mode::New;
use crate::options::{Dereference, Make};
use crate::report::{Copied, FailureKind, Verb};
use crate::staging;
use crate::target::{self, Ahead};

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
        Make::HardLink => Box::pin(linking::hard_link(copier, place, &seen)).await?,
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

impl Seen {
    pub(crate) fn look(&self) -> Look {
        Look { follow: self.follow, found_free: matches!(self.ahead, Ahead::Free) }
    }
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
    match linking::claim_entry(copier, place, &stat, seen.look()).await {
        // Its target stays, whatever has its name by now.
        Err(FailureKind::Replaced) | Ok(Claim::Alone | Claim::Left) => {}
        Ok(Claim::First(file)) => {
            let copy = linking::copy_there(copier, place).await;
            linking::end_claim(copier, place, file, Some(copy)).await;
        }
        Ok(Claim::Linked(file, first)) => {
            linking::link_to_copy(copier, place, file, first, seen.look()).await?;
        }
        Err(kind) => return Err(kind),
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

/// Copies a link as a link, or makes a FIFO, socket or device like the source.
async fn other(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let stat = match seen.stat {
        Some(stat) => stat,
        None => stat(copier, place, seen.follow).await?,
    };
    let claimed = match linking::claim_entry(copier, place, &stat, seen.look()).await? {
        Claim::Alone => None,
        Claim::First(file) => Some(file),
        Claim::Left => return Ok(()),
        Claim::Linked(file, first) => {
            return linking::link_to_copy(copier, place, file, first, seen.look()).await;
        }
    };
    let made = make_other(copier, place, &stat, seen.ahead).await;
    if let Some(file) = claimed {
        linking::end_claim(copier, place, file, made.as_ref().ok().copied()).await;
    }
    made.map(drop)
}

/// Makes a link or special file, with what is kept of its attributes. Gives what it has made, if its other names may be
/// linked to that.
pub(crate) async fn make_other(
    copier: &Arc<Copier>,
    place: Place<'_>,
    stat: &Stat,
    ahead: Ahead,
) -> Result<Option<Copy>, FailureKind> {
    let io = |verb| move |error| FailureKind::Io { verb, error };
    if matches!(stat.kind, FileKind::Regular | FileKind::Directory) {
        // It was listed as another kind: mknod(2) would make an empty file of it.
        return Err(FailureKind::Replaced);
    }
    match ahead {
        Ahead::Stays | Ahead::IsNewer | Ahead::Made => return Ok(None),
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
        Some(says) => {
            copier.makes_symlink().await?;
            target_dir.symlink(name, says.clone()).await
        }
        None => {
            let mode = New::entry(&place, stat.kind, stat.mode).first_mode(copier.options.preserve);
            target_dir.make_node(name, stat.kind, mode, stat.special).await
        }
    };
    let failed = io(verb_of(stat.kind));
    let mut backup = None;
    // Once begun, it is ended: it would stay as it is.
    let made = protect(async {
        if !copier.options.atomic {
            backup = target::clear(copier, place, ahead).await?;
            make(target).await.map_err(&failed)?;
            return finish_other(copier, &place, &target_dir, stat, &failed).await;
        }
        let made = staging::under_hidden_name(copier, place, &target_dir, make).await;
        let (hidden, ()) = made.map_err(&failed)?;
        let (file, made) = reach_hidden(copier, &target_dir, &hidden, stat).await.map_err(&failed)?;
        let renamed = async {
            meta::keep_entry(copier, &place, &file, stat).await?;
            backup = target::clear(copier, place, ahead).await?;
            let replaces = matches!(ahead, Ahead::Replace(_));
            staging::rename(&target_dir, &hidden, target, replaces).await.map_err(&failed)
        };
        let renamed = renamed.await;
        if renamed.is_err() {
            staging::remove_own_hidden(&target_dir, &hidden, &made).await;
        }
        renamed.map(|()| Some(Copy::of(&made)))
    })
    .await;
    match made {
        Ok(_) => {
            let made = if says.is_some() { &copier.tally.symlinks } else { &copier.tally.specials };
            made.add(1);
            note_made(copier, &place, stat.kind, (backup.as_ref(), None));
        }
        Err(_) => backup::take_back(copier, place, backup.as_ref()).await,
    }
    made
}

/// The verb of making a link or special file.
fn verb_of(kind: FileKind) -> Verb {
    match kind {
        FileKind::Symlink => Verb::CreateSymlink,
        FileKind::Fifo => Verb::CreateFifo,
        FileKind::Regular
        | FileKind::Directory
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice => Verb::CreateSpecial,
    }
}

/// Opens what was just made under a hidden name; what can't be opened is removed.
async fn reach_hidden(
    copier: &Copier,
    dir: &Dir,
    hidden: &Name,
    source: &Stat,
) -> ferry_io::Result<(File, Stat)> {
    let reached = meta::reach_made(copier, dir, hidden, source).await;
    if reached.is_err()
        && let Ok(found) = dir.stat_entry(hidden, false).await
        && found.kind == source.kind
        && found.links <= 1
    {
        staging::remove_own_hidden(dir, hidden, &found).await;
    }
    reached
}

/// Sets what is kept on a link or special file that was just made; what it is, if its other names may be linked to it.
async fn finish_other(
    copier: &Copier,
    place: &Place<'_>,
    dir: &Dir,
    source: &Stat,
    failed: impl Fn(Error) -> FailureKind,
) -> Result<Option<Copy>, FailureKind> {
    let is_claimed = linking::is_claimed(copier, place, source);
    if !is_claimed && !meta::changes_entry(copier, place, source) {
        return Ok(None);
    }
    let made = meta::reach_made(copier, dir, names(place).1, source).await;
    let (file, made) = made.map_err(failed)?;
    meta::keep_entry(copier, place, &file, source).await?;
    Ok(is_claimed.then(|| Copy::of(&made)))
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
    copier.makes_symlink().await.map_err(io)?;
    let link = async |name: &Name| target_dir.symlink(name, says.clone()).await;
    if let Err(error) = target::put(copier, place, seen.ahead, &target_dir, link).await {
        backup::take_back(copier, place, backup.as_ref()).await;
        return Err(io(error));
    }
    if copier.options.preserve.timestamps {
        // The only attribute that cp gives to such a link.
        let link = Stat { kind: FileKind::Symlink, ..source };
        let made = meta::reach_made(copier, &target_dir, names(&place).1, &link).await;
        let set = match made {
            Ok((file, _)) => file.set_times(source.times).await,
            Err(error) => Err(error),
        };
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
