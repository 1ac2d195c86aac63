//! Entering a folder: open its source, make or find its target, note the attributes to be kept at its end.

use std::sync::Arc;

use ferry_io::{Cause, Dir, Entries, Errno, Error, FileKind, Name, Preload, Stat, Xattr};

use crate::abilities::DevicePair;
use crate::acl;
use crate::backup;
use crate::folder::{Dirs, Facts, Folder, Role, open_target};
use crate::identity::identity;
use crate::listing::Chunk;
use crate::meta;
use crate::mode::TargetMode;
use crate::naming::Control;
use crate::options::{Dereference, Existing, Make};
use crate::place::{Entry, Subject};
use crate::report::{During as _, FailureKind, Verb};
use crate::run::{Details, Run};
use crate::staging;
use crate::sync;
use crate::through;

/// Opens a folder's source, makes its target, and returns its first entries; `None` if it isn't entered. With `preload`,
/// its small files may be read as they are now.
pub(crate) async fn enter(run: &Run, folder: &Arc<Folder>, preload: Option<Preload>) -> Option<Chunk> {
    match try_enter(run, folder, preload).await {
        Ok(chunk) => chunk,
        Err(kind) => {
            run.operands.forget_folder(folder);
            run.fail(Subject::Folder(folder), kind);
            None
        }
    }
}

/// Returns true if links to a folder are followed: then it may be copied more than once.
fn is_followed(run: &Run, folder: &Folder) -> bool {
    match run.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => folder.role == Role::Operand,
        Dereference::Never => false,
    }
}

/// Returns the failure `why`, unless the folder's existing target forbids the copy anyway.
async fn refused(folder: &Folder, target_parent: &Dir, why: FailureKind) -> FailureKind {
    let Some(name) = folder.target_name() else { return why };
    match target_parent.stat_entry(name, false).await {
        Ok(existing) if existing.kind != FileKind::Directory => FailureKind::DirectoryOverFile,
        Err(error) if !error.is(Errno::NOENT) => Verb::StatTarget.failed(error),
        Ok(_) | Err(_) => why,
    }
}

/// Returns the operand that a folder is beneath, or the folder itself.
fn operand_of(folder: &Arc<Folder>) -> &Arc<Folder> {
    let mut at = folder;
    while let Some(parent) = at.parent().filter(|_| at.role != Role::Operand) {
        at = parent;
    }
    at
}

/// Returns true if an earlier operand has copied this folder to the same target, which is reported. To another target
/// it may be copied again only if links are followed.
async fn is_repeated(
    run: &Run,
    folder: &Arc<Folder>,
    source: &Stat,
    target_parent: &Dir,
) -> Result<bool, FailureKind> {
    let Some(first) = run.operands.copied_folder(folder, source) else { return Ok(false) };
    let target = folder.target_path();
    // `FOLDER/.` is no repeat of `FOLDER`, as by cp.
    if first == target && !target.as_os_str().as_encoded_bytes().ends_with(b"/.") {
        run.observer.repeated(&operand_of(folder).source_path(), true);
        return Ok(true);
    }
    if is_followed(run, folder) {
        Ok(false)
    } else {
        Err(refused(folder, target_parent, FailureKind::CopiedBefore { first }).await)
    }
}

async fn try_enter(
    run: &Run,
    folder: &Arc<Folder>,
    preload: Option<Preload>,
) -> Result<Option<Chunk>, FailureKind> {
    let Some(parent) = folder.parent() else { return Ok(None) };
    run.pass().await.during(Verb::OpenDirectory)?;
    let Dirs { source: source_parent, target: target_parent } =
        run.dirs(parent).await.during(Verb::OpenDirectory)?;
    let (source, stat, entries) = match open_source(folder, &source_parent, preload).await {
        Ok(opened) => opened,
        Err(error) => {
            make_unreadable(run, folder, &source_parent, &target_parent).await?;
            return Err(Verb::OpenDirectory.failed(error));
        }
    };
    if let Some(copied) = copied_into(folder, &stat) {
        run.fail_at(copied.source_path(), copied.target_path(), FailureKind::IntoItself);
        return Ok(None);
    }
    if run.options.dereference == Dereference::Always && is_its_own_ancestor(folder, &stat) {
        return Err(refused(folder, &target_parent, FailureKind::CyclicLink).await);
    }
    if is_repeated(run, folder, &stat, &target_parent).await? {
        return Ok(None);
    }
    let keeps = run.options.preserve;
    let xattrs = if keeps.mode || keeps.xattr {
        meta::found(run, Subject::Folder(folder), source.as_file().xattrs().await)?
    } else {
        Vec::new()
    };
    let inherits_acl = meta::inherits_acl(folder, &target_parent).await;
    let (target, made) = make_target(run, folder, &target_parent, &stat, inherits_acl).await?;
    let target_stat = target.stat().await.during(Verb::CreateDirectory)?;
    if !made.is_new {
        staging::clear_leftovers(run, &target).await;
    }
    // With `-n` every entry stays, and of a folder on the way nothing is copied.
    let stays = run.options.existing == Existing::Keep || folder.role == Role::Way;
    if !made.is_new && target_stat.is_same_file(&stat) && !stays {
        return Err(FailureKind::SameFile);
    }
    let entries = if folder.role == Role::Operand {
        run.operands.set_root_device(stat.device);
        // Listed before the target was made, a source that holds it would not show it.
        source.list(Some(0)).await.during(Verb::ReadDirectory)?
    } else {
        entries
    };
    let gives_acl = if made.is_new { inherits_acl } else { acl::has_default(&target).await };
    let devices = DevicePair { source: stat.device, target: target_stat.device };
    run.meet(folder, devices, &target);
    if run.options.fsync {
        Box::pin(run.durable.meet(target_stat.device, &target, || folder.target_path())).await;
    }
    if folder.role == Role::Operand && is_elsewhere(&source_parent, &stat).await {
        run.devices.watch(&source, Some(&target));
    }
    let facts = facts(run, stat, &target_stat, xattrs, gives_acl, &made);
    let listed = source.clone();
    folder.open_with(facts, Dirs { source, target });
    run.open_folders.add(folder);
    run.tally.directories.add(1);
    if made.is_new {
        run.note_made(Subject::Folder(folder), FileKind::Directory, &Details::default());
    }
    let is_way = folder.role == Role::Way;
    let stays_out = run.options.one_file_system && !is_way && stat.device != run.operands.root_device();
    if stays_out {
        return Ok(None);
    }
    Ok(Some(Chunk::first(&run.open_listings, listed, entries).await))
}

/// Returns true if a folder is on another device than the folder above: it is a mount point, or a link has led to it.
async fn is_elsewhere(parent: &Dir, folder: &Stat) -> bool {
    parent.stat().await.is_ok_and(|above| above.device != folder.device)
}

/// Makes an empty copy of a folder that can't be opened, with its kept attributes.
async fn make_unreadable(
    run: &Run,
    folder: &Arc<Folder>,
    source_parent: &Dir,
    target_parent: &Dir,
) -> Result<(), FailureKind> {
    let given = folder.given_source().unwrap_or(source_parent);
    let stat = match folder.source_name() {
        Some(name) => source_parent.stat_entry(name, folder.follows()).await,
        None => given.stat().await,
    };
    let stat = stat.during(Verb::Stat)?;
    if stat.kind != FileKind::Directory {
        return Ok(());
    }
    let xattrs = match folder.source_name() {
        Some(name) => source_parent.entry_xattrs(name).await,
        None => given.as_file().xattrs().await,
    };
    let xattrs = xattrs.unwrap_or_default();
    let inherits_acl = meta::inherits_acl(folder, target_parent).await;
    let (target, made) = make_target(run, folder, target_parent, &stat, inherits_acl).await?;
    let target_stat = target.stat().await.during(Verb::StatTarget)?;
    if made.is_new {
        run.note_made(Subject::Folder(folder), FileKind::Directory, &Details::default());
    }
    let gives_acl = if made.is_new { inherits_acl } else { acl::has_default(&target).await };
    let facts = facts(run, stat, &target_stat, xattrs, gives_acl, &made);
    meta::keep_folder(run, folder, &facts, &target).await?;
    if run.is_synced_apart(Some(target_stat.device)) {
        let synced = sync::folder(&target).await;
        synced.during(Verb::Sync)?;
    }
    Ok(())
}

/// Returns the folder above this one whose target is the source: it would be copied into itself without end.
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

async fn open_source(
    folder: &Folder,
    parent: &Dir,
    preload: Option<Preload>,
) -> ferry_io::Result<(Dir, Stat, Entries)> {
    let source = match (folder.given_source(), folder.source_name()) {
        (Some(given), _) => given.clone(),
        (None, Some(name)) if folder.follows() => parent.open_dir_following(name).await?,
        (None, Some(name)) => return parent.enter(name, preload).await,
        (None, None) => parent.clone(),
    };
    let stat = source.stat().await?;
    if folder.role == Role::Way {
        // Only its requested entries are copied; it need not be readable.
        return Ok((source, stat, Entries::default()));
    }
    match source.list(None).await {
        // It could be opened only to be reached.
        Err(error) if error.is(Errno::BADF) => Err(Error { cause: Cause::Errno(Errno::ACCESS), ..error }),
        entries => Ok((source, stat, entries?)),
    }
}

fn is_its_own_ancestor(folder: &Folder, stat: &Stat) -> bool {
    let mut at = folder.parent();
    while let Some(ancestor) = at {
        let is_it = ancestor.facts().is_some_and(|facts| facts.source.is_same_file(stat));
        // Of a folder on the way only the requested entries are copied.
        if is_it && ancestor.role != Role::Way {
            return true;
        }
        at = ancestor.parent();
    }
    false
}

/// Origin of a target folder.
#[derive(Default)]
struct Made {
    /// Set if this run made it.
    is_new: bool,
    /// Set if a link led to it.
    follows: bool,
    /// Owner's permissions that it has only until it is filled.
    lent: u32,
}

fn facts(run: &Run, source: Stat, target: &Stat, xattrs: Vec<Xattr>, gives_acl: bool, made: &Made) -> Facts {
    // New files get the group of this process or that of their folder. The owner is the folder's, because this run has
    // just made it.
    let is_certain = made.is_new && target.uid == run.user.id && target.gid == run.user.group;
    Facts {
        source,
        target: identity(target),
        xattrs,
        is_new: made.is_new,
        gives_acl,
        gives_owner: is_certain.then_some((target.uid, target.gid)),
        follows: made.follows,
        lent: made.lent,
    }
}

/// Opens the target folder, which is made if it is missing.
async fn make_target(
    run: &Run,
    folder: &Arc<Folder>,
    parent: &Dir,
    source: &Stat,
    inherits_acl: bool,
) -> Result<(Dir, Made), FailureKind> {
    let Some(name) = folder.target_name() else { return Ok((parent.clone(), Made::default())) };
    // The way may lead through a link, as the base may.
    let is_way = folder.role == Role::Way;
    let verb = if is_way { Verb::CreateWay } else { Verb::CreateDirectory };
    let failed = |error| verb.failed(error);
    let mode = TargetMode::folder(folder, source.mode, inherits_acl).first_mode(run.options.preserve);
    let mut follows = is_way;
    let is_new = match parent.make_dir(name, mode).await {
        Ok(()) => true,
        Err(error) if error.is(Errno::EXIST) => {
            let existing = match parent.stat_entry(name, is_way).await {
                // A link to nothing.
                Err(lost) if is_way && lost.is(Errno::NOENT) => return Err(failed(error)),
                existing => existing.map_err(failed)?,
            };
            if existing.kind == FileKind::Directory && folder.role == Role::New {
                return Err(FailureKind::Unlisted);
            }
            if existing.kind != FileKind::Directory && is_way {
                return Err(FailureKind::WayIsFile);
            }
            // As with cp, a link that can be backed up is not followed.
            follows = is_way
                || run.options.keep_directory_symlink
                    && run.options.backup.is_none()
                    && is_link_to_folder(parent, name, &existing).await;
            if existing.kind != FileKind::Directory && !follows {
                let leads_back = existing.kind == FileKind::Symlink
                    && run.options.make == Make::Copy
                    && run.options.existing != Existing::Keep
                    && !run.options.remove_destination
                    && parent.stat_entry(name, true).await.is_ok_and(|led| led.is_same_file(source));
                if leads_back {
                    return Err(FailureKind::SameFile);
                }
                Box::pin(displace(run, folder, parent, name, mode)).await?;
            }
            existing.kind != FileKind::Directory && !follows
        }
        // If even a look is refused, that refusal is reported.
        Err(error) if error.is(Errno::ACCESS) && !is_way => {
            return Err(match parent.stat_entry(name, false).await {
                Err(lost) if lost.is(Errno::ACCESS) => Verb::StatTarget.failed(lost),
                _ => failed(error),
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let lent = if is_new && inherits_acl { lend(parent, name).await.map_err(failed)? } else { 0 };
    let target = if follows {
        through::open_folder(run, parent, name).await
    } else {
        open_target(parent, name, false).await
    };
    Ok((target.map_err(failed)?, Made { is_new, follows, lent }))
}

/// Makes a folder in the place of an existing file, which is backed up (`--backup`).
async fn displace(
    run: &Run,
    folder: &Arc<Folder>,
    target_parent: &Dir,
    name: &Name,
    mode: u32,
) -> Result<(), FailureKind> {
    let (Some(backup), Some(above)) = (&run.options.backup, folder.parent()) else {
        return Err(FailureKind::DirectoryOverFile);
    };
    let source = folder.source_name();
    let entry = Entry { folder: above, source: source.unwrap_or(name), target: name };
    // Numbered backups keep this run's own copies, too.
    if backup.control != Control::Numbered && run.operands.made_before(&entry).is_some() {
        return Err(FailureKind::JustCreated);
    }
    if source.is_some() && backup::destroys_source(run, entry, backup).await? {
        return Err(FailureKind::BackupDestroysSource);
    }
    let kept = backup::make(run, entry).await?;
    match target_parent.make_dir(name, mode).await {
        Ok(()) => Ok(()),
        Err(error) => {
            backup::take_back(run, entry, kept.as_ref()).await;
            Err(Verb::CreateDirectory.failed(error))
        }
    }
}

/// Gives the owner the permissions to fill a folder that an inherited ACL lacks. Returns those that were added.
async fn lend(parent: &Dir, name: &Name) -> ferry_io::Result<u32> {
    let folder = parent.reach_dir(name, false).await?.as_file();
    let made = folder.stat().await?;
    let wanting = !made.mode & 0o700;
    if wanting != 0 {
        folder.set_mode(made.mode & 0o7777 | wanting).await?;
    }
    Ok(wanting)
}

/// Returns true if an entry of the target is a link that leads to a folder.
async fn is_link_to_folder(parent: &Dir, name: &Name, existing: &Stat) -> bool {
    existing.kind == FileKind::Symlink
        && parent.stat_entry(name, true).await.is_ok_and(|led| led.kind == FileKind::Directory)
}
