//! Entering a folder: its source is opened, its copy is made or found, and what is kept of it in the end is noted.

use std::sync::Arc;

use ferry_io::{Cause, Dir, Entries, Errno, Error, FileKind, Name, Stat, Xattr};

use super::{Chunk, itself};
use crate::backup::{self, Control};
use crate::copier::{Copier, Place, identity};
use crate::durable;
use crate::entry;
use crate::folder::{Facts, Folder, Role, open_target};
use crate::meta;
use crate::mode::New;
use crate::options::{Dereference, Existing, Make};
use crate::report::{FailureKind, Verb};
use crate::staging;
use crate::through;

/// Opens a folder's source, makes its target, and gives its first entries; `None` if it can't or need not be entered.
pub(super) async fn enter(copier: &Copier, folder: &Arc<Folder>) -> Option<Chunk> {
    match try_enter(copier, folder).await {
        Ok(chunk) => chunk,
        Err(kind) => {
            copier.forget_folder(folder);
            copier.fail(&itself(folder), kind);
            None
        }
    }
}

/// Whether a folder would be entered if it were named by a link: then it may be copied more than once.
fn is_followed(copier: &Copier, folder: &Folder) -> bool {
    match copier.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => folder.role == Role::Operand,
        Dereference::Never => false,
    }
}

/// Why a folder is not copied, unless what is at its target forbids that anyway.
async fn refused(folder: &Folder, target_parent: &Dir, why: FailureKind) -> FailureKind {
    let Some(name) = folder.target_name() else { return why };
    match target_parent.stat_entry(name, false).await {
        Ok(existing) if existing.kind != FileKind::Directory => FailureKind::DirectoryOverFile,
        Err(error) if !error.is(Errno::NOENT) => FailureKind::Io { verb: Verb::StatTarget, error },
        Ok(_) | Err(_) => why,
    }
}

/// The operand that a folder is beneath, or is itself.
fn operand_of(folder: &Arc<Folder>) -> &Arc<Folder> {
    let mut at = folder;
    while let Some(parent) = at.parent().filter(|_| at.role != Role::Operand) {
        at = parent;
    }
    at
}

/// Whether an earlier operand has copied this folder to the same place, which is told; elsewhere it may be only where links
/// are followed.
async fn is_repeated(
    copier: &Copier,
    folder: &Arc<Folder>,
    source: &Stat,
    target_parent: &Dir,
) -> Result<bool, FailureKind> {
    let Some(first) = copier.copied_folder(folder, source) else { return Ok(false) };
    let target = folder.target_path();
    // `FOLDER/.` is no repeat of `FOLDER`, as by cp.
    if first == target && !target.as_os_str().as_encoded_bytes().ends_with(b"/.") {
        copier.observer.repeated(&operand_of(folder).source_path(), true);
        return Ok(true);
    }
    if is_followed(copier, folder) {
        Ok(false)
    } else {
        Err(refused(folder, target_parent, FailureKind::CopiedBefore { first }).await)
    }
}

async fn try_enter(copier: &Copier, folder: &Arc<Folder>) -> Result<Option<Chunk>, FailureKind> {
    let io = |verb| move |error| FailureKind::Io { verb, error };
    let Some(parent) = folder.parent() else { return Ok(None) };
    let (source_parent, target_parent) =
        parent.dirs(&copier.open_folders).await.map_err(io(Verb::OpenDirectory))?;
    let (source, stat, entries) = match open_source(folder, &source_parent).await {
        Ok(opened) => opened,
        Err(error) => {
            make_unreadable(copier, folder, &source_parent, &target_parent).await?;
            return Err(io(Verb::OpenDirectory)(error));
        }
    };
    if let Some(copied) = copied_into(folder, &stat) {
        copier.fail_at(copied.source_path(), copied.target_path(), FailureKind::IntoItself);
        return Ok(None);
    }
    if copier.options.dereference == Dereference::Always && is_its_own_ancestor(folder, &stat) {
        return Err(refused(folder, &target_parent, FailureKind::CyclicLink).await);
    }
    if is_repeated(copier, folder, &stat, &target_parent).await? {
        return Ok(None);
    }
    let keeps = copier.options.preserve;
    let xattrs = if keeps.mode || keeps.xattr {
        meta::found(copier, &itself(folder), source.as_file().xattrs().await)?
    } else {
        Vec::new()
    };
    let inherits_acl = meta::inherits_acl(folder, &target_parent).await;
    let (target, made) = make_target(copier, folder, &target_parent, &stat, inherits_acl).await?;
    let target_stat = target.stat().await.map_err(io(Verb::CreateDirectory))?;
    if !made.is_new {
        staging::clear_leftovers(copier, &target).await;
    }
    // With `-n` all of it stays as it is anyway, and what is only on the way always.
    let stays = copier.options.existing == Existing::Keep || folder.role == Role::Way;
    if !made.is_new && target_stat.is_same_file(&stat) && !stays {
        return Err(FailureKind::SameFile);
    }
    let entries = if folder.role == Role::Operand {
        copier.set_root_device(stat.device);
        // Listed before the target was made, a source that holds it would not show it.
        source.list(Some(0)).await.map_err(io(Verb::ReadDirectory))?
    } else {
        entries
    };
    let gives_acl = if made.is_new { inherits_acl } else { meta::has_default_acl(&target).await };
    copier.meet(folder, (stat.device, target_stat.device), &target);
    if copier.options.fsync {
        Box::pin(copier.durable.meet(target_stat.device, &target, || folder.target_path())).await;
    }
    let facts = facts(stat, &target_stat, xattrs, gives_acl, &made);
    let listed = source.clone();
    folder.open_with(facts, source, target);
    copier.open_folders.add(folder);
    copier.tally.directories.add(1);
    if made.is_new {
        entry::note_made(copier, &itself(folder), FileKind::Directory, (None, None));
    }
    let is_way = folder.role == Role::Way;
    let stays_out = copier.options.one_file_system && !is_way && stat.device != copier.root_device();
    if stays_out {
        return Ok(None);
    }
    Ok(Some(Chunk::first(&copier.open_listings, listed, entries).await))
}

/// Makes the copy of a folder that can't be opened: empty, with what is kept of its attributes.
async fn make_unreadable(
    copier: &Copier,
    folder: &Arc<Folder>,
    source_parent: &Dir,
    target_parent: &Dir,
) -> Result<(), FailureKind> {
    let given = folder.given_source().unwrap_or(source_parent);
    let stat = match folder.source_name() {
        Some(name) => source_parent.stat_entry(name, folder.follows()).await,
        None => given.stat().await,
    };
    let stat = stat.map_err(|error| FailureKind::Io { verb: Verb::Stat, error })?;
    if stat.kind != FileKind::Directory {
        return Ok(());
    }
    let xattrs = match folder.source_name() {
        Some(name) => source_parent.entry_xattrs(name).await,
        None => given.as_file().xattrs().await,
    };
    let xattrs = xattrs.unwrap_or_default();
    let inherits_acl = meta::inherits_acl(folder, target_parent).await;
    let (target, made) = make_target(copier, folder, target_parent, &stat, inherits_acl).await?;
    let target_stat =
        target.stat().await.map_err(|error| FailureKind::Io { verb: Verb::StatTarget, error })?;
    if made.is_new {
        entry::note_made(copier, &itself(folder), FileKind::Directory, (None, None));
    }
    let gives_acl = if made.is_new { inherits_acl } else { meta::has_default_acl(&target).await };
    let facts = facts(stat, &target_stat, xattrs, gives_acl, &made);
    meta::keep_folder(copier, &itself(folder), &facts, &target).await?;
    if durable::is_synced_apart(copier, Some(target_stat.device)) {
        let synced = durable::sync_folder(&target).await;
        synced.map_err(|error| FailureKind::Io { verb: Verb::Sync, error })?;
    }
    Ok(())
}

/// The folder above this one whose copy a source folder is: it would be copied into itself without end.
fn copied_into<'a>(folder: &'a Folder, source: &Stat) -> Option<&'a Folder> {
    let mut at = folder.parent();
    while let Some(above) = at {
        let is_copy = above.facts().is_some_and(|facts| facts.target == identity(source));
        if is_copy && above.role != Role::Way {
            return Some(above);
        }
        at = above.parent();
    }
    None
}

async fn open_source(folder: &Folder, parent: &Dir) -> ferry_io::Result<(Dir, Stat, Entries)> {
    let source = match (folder.given_source(), folder.source_name()) {
        (Some(given), _) => given.clone(),
        (None, Some(name)) if folder.follows() => parent.open_dir_following(name).await?,
        (None, Some(name)) => return parent.enter(name).await,
        (None, None) => parent.clone(),
    };
    let stat = source.stat().await?;
    if folder.role == Role::Way {
        // Only what is asked for is copied of it; it need not be readable.
        return Ok((source, stat, Entries::default()));
    }
    match source.list(None).await {
        // It was opened only to be reached.
        Err(error) if error.is(Errno::BADF) => Err(Error { cause: Cause::Errno(Errno::ACCESS), ..error }),
        entries => Ok((source, stat, entries?)),
    }
}

fn is_its_own_ancestor(folder: &Folder, stat: &Stat) -> bool {
    let mut at = folder.parent();
    while let Some(ancestor) = at {
        let is_it = ancestor.facts().is_some_and(|facts| facts.source.is_same_file(stat));
        // Of a folder on the way only what is asked for is copied.
        if is_it && ancestor.role != Role::Way {
            return true;
        }
        at = ancestor.parent();
    }
    false
}

/// How a folder of the target came to be there.
#[derive(Default)]
struct Made {
    /// Whether this run made it.
    is_new: bool,
    /// Whether a link led to it.
    follows: bool,
    /// What its owner may do with it only until it is filled.
    lent: u32,
}

fn facts(source: Stat, target: &Stat, xattrs: Vec<Xattr>, gives_acl: bool, made: &Made) -> Facts {
    Facts {
        source,
        target: identity(target),
        xattrs,
        is_new: made.is_new,
        gives_acl,
        follows: made.follows,
        lent: made.lent,
    }
}

/// Opens the target's folder, which is made if it is not there.
async fn make_target(
    copier: &Copier,
    folder: &Arc<Folder>,
    parent: &Dir,
    source: &Stat,
    inherits_acl: bool,
) -> Result<(Dir, Made), FailureKind> {
    let Some(name) = folder.target_name() else { return Ok((parent.clone(), Made::default())) };
    // The way may lead through a link, as the base may.
    let is_way = folder.role == Role::Way;
    let verb = if is_way { Verb::CreateWay } else { Verb::CreateDirectory };
    let io = |error| FailureKind::Io { verb, error };
    let mode = New::folder(folder, source.mode, inherits_acl).first_mode(copier.options.preserve);
    let mut follows = is_way;
    let is_new = match parent.make_dir(name, mode).await {
        Ok(()) => true,
        Err(error) if error.is(Errno::EXIST) => {
            let existing = match parent.stat_entry(name, is_way).await {
                // A link to nothing.
                Err(lost) if is_way && lost.is(Errno::NOENT) => return Err(io(error)),
                existing => existing.map_err(io)?,
            };
            if existing.kind != FileKind::Directory && is_way {
                return Err(FailureKind::WayIsFile);
            }
            // As with cp, what can be kept by another name is not followed.
            follows = is_way
                || copier.options.keep_directory_symlink
                    && copier.options.backup.is_none()
                    && is_link_to_folder(parent, name, &existing).await;
            if existing.kind != FileKind::Directory && !follows {
                let leads_back = existing.kind == FileKind::Symlink
                    && copier.options.make == Make::Copy
                    && copier.options.existing != Existing::Keep
                    && !copier.options.remove_destination
                    && parent.stat_entry(name, true).await.is_ok_and(|led| led.is_same_file(source));
                if leads_back {
                    return Err(FailureKind::SameFile);
                }
                Box::pin(displace(copier, folder, parent, name, mode)).await?;
            }
            existing.kind != FileKind::Directory && !follows
        }
        // Where even looking is not allowed, that is what is told.
        Err(error) if error.is(Errno::ACCESS) && !is_way => {
            return Err(match parent.stat_entry(name, false).await {
                Err(lost) if lost.is(Errno::ACCESS) => {
                    FailureKind::Io { verb: Verb::StatTarget, error: lost }
                }
                _ => io(error),
            });
        }
        Err(error) => return Err(io(error)),
    };
    let lent = if is_new && inherits_acl { lend(parent, name).await.map_err(io)? } else { 0 };
    let target = if follows {
        through::open_folder(copier, parent, name).await
    } else {
        open_target(parent, name, false).await
    };
    Ok((target.map_err(io)?, Made { is_new, follows, lent }))
}

/// Makes a folder where something else is, which is kept by another name (`--backup`).
async fn displace(
    copier: &Copier,
    folder: &Arc<Folder>,
    target_parent: &Dir,
    name: &Name,
    mode: u32,
) -> Result<(), FailureKind> {
    let (Some(backup), Some(above)) = (&copier.options.backup, folder.parent()) else {
        return Err(FailureKind::DirectoryOverFile);
    };
    let source = folder.source_name();
    let place = Place { folder: above, source: Some(source.unwrap_or(name)), target: Some(name) };
    // Numbered backups keep this run's own, too.
    if backup.control != Control::Numbered && copier.was_made(&place).is_some() {
        return Err(FailureKind::JustCreated);
    }
    if source.is_some() && backup::destroys_source(copier, place, backup).await? {
        return Err(FailureKind::BackupDestroysSource);
    }
    let kept = backup::make(copier, place).await?;
    match target_parent.make_dir(name, mode).await {
        Ok(()) => Ok(()),
        Err(error) => {
            backup::take_back(copier, place, kept.as_ref()).await;
            Err(FailureKind::Io { verb: Verb::CreateDirectory, error })
        }
    }
}

/// Lets the owner fill a folder that the ACL of the one above has given fewer rights; those that were wanting.
async fn lend(parent: &Dir, name: &Name) -> ferry_io::Result<u32> {
    let folder = parent.reach_dir(name, false).await?.as_file();
    let made = folder.stat().await?;
    let wanting = !made.mode & 0o700;
    if wanting != 0 {
        folder.set_mode(made.mode & 0o7777 | wanting).await?;
    }
    Ok(wanting)
}

/// Whether an entry of the target is a link that leads to a folder.
async fn is_link_to_folder(parent: &Dir, name: &Name, existing: &Stat) -> bool {
    existing.kind == FileKind::Symlink
        && parent.stat_entry(name, true).await.is_ok_and(|led| led.kind == FileKind::Directory)
}
