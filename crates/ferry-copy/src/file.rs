//! A regular file: open it, make its copy, move its bytes, keep its attributes, close.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{
    CONFINED, Content, Dir, Error, File, FileKind, Name, NewMode, OpenHow, Operation, Permit, Stat, Xattr,
    protect,
};

use crate::backup;
use crate::bytes;
use crate::copier::{Copier, Place, identity};
use crate::durable;
use crate::entry::{self, Seen, names};
use crate::folder::Role;
use crate::how::{self, How};
use crate::linking;
use crate::links::{self, Claim, Copy, Look};
use crate::meta;
use crate::mode::New;
use crate::options::{Dereference, Sparse};
use crate::report::{FailureKind, Verb};
use crate::staging::Staged;
use crate::target::{self, Ahead, Filling, Target};
use crate::unfinished;

/// An open source; its bytes may have been read already, or even be where they belong.
struct Source<'a> {
    stat: Stat,
    xattrs: Vec<Xattr>,
    content: Content,
    /// What allows to make its target.
    making: Option<Permit<'a>>,
}

/// Copies a file, unless it is a further name of one that is copied: then it becomes a hard link to that copy.
pub(crate) async fn copy(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let permit = copier.files.acquire().await.map_err(io)?;
    // Before it is opened: what is met by it later is the file that is open, or one that is gone.
    let known = match linking::is_met_by_links(copier, &place) {
        true => Some(linking::identify(copier, place, seen.follow).await?),
        false => None,
    };
    let source = open(copier, place, seen.follow, may_store(copier, &place, seen)).await?;
    let stat = source.stat;
    if seen.stat.is_some_and(|seen| !seen.is_same_file(&stat)) {
        return Err(FailureKind::Replaced);
    }
    let claimed = match claim(copier, place, &source, known, seen.look()).await? {
        Claim::Alone => None,
        Claim::First(file) => Some(file),
        Claim::Left => return Ok(()),
        Claim::Linked(file, first) => {
            // Perhaps it must be copied after all, and waits for a permit of its own.
            drop((source, permit));
            return Box::pin(linking::link_to_copy(copier, place, file, first, seen.look())).await;
        }
    };
    let copied = copy_open(copier, place, source, seen.ahead, claimed.is_some()).await;
    drop(permit);
    if let Some(file) = claimed {
        Box::pin(linking::end_claim(copier, place, file, copied.as_ref().ok().copied())).await;
    }
    copied.map(drop)
}

/// Claims a file that is open, if it may be met again by another name.
async fn claim(
    copier: &Copier,
    place: Place<'_>,
    source: &Source<'_>,
    known: Option<Stat>,
    look: Look,
) -> Result<Claim, FailureKind> {
    if !linking::is_claimed(copier, &place, &source.stat) {
        return Ok(Claim::Alone);
    }
    let identified = match (&source.content, known) {
        (Content::Open(file), _) => file.identify().await,
        // It was read and closed.
        (_, Some(known)) => Ok(known),
        // What has several names is left open.
        (_, None) => return Ok(Claim::Alone),
    };
    let identified = identified.map_err(|error| FailureKind::Io { verb: Verb::Stat, error })?;
    if identified.is_same_file(&source.stat) {
        Ok(linking::claim(copier, place, &identified, look))
    } else {
        Err(FailureKind::Replaced)
    }
}

/// Copies a name of a file whose claim this run holds already, and goes on holding, or of one that gets a copy of its own,
/// whatever names it has. Gives the copy.
pub(crate) async fn copy_again(
    copier: &Arc<Copier>,
    place: Place<'_>,
    claimed: Option<links::Source>,
    look: Look,
) -> Result<Option<Copy>, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let _permit = copier.files.acquire().await.map_err(io)?;
    let source = open(copier, place, look.follow, false).await?;
    if let Some(claimed) = claimed {
        let found = match &source.content {
            Content::Open(file) => links::Source::of(&file.identify().await.map_err(io)?),
            // It was read and closed, after its identity was asked for.
            Content::Whole(_) | Content::Stored(..) | Content::Begun(..) => claimed,
        };
        if found != claimed || !claimed.is(&source.stat) {
            return Err(FailureKind::Replaced);
        }
    }
    let asks = copier.asks() && look.found_free;
    let ahead = Box::pin(target::look_again(copier, place, &source.stat, asks)).await?;
    copy_open(copier, place, source, ahead, claimed.is_some()).await
}

/// Whether a file's copy may be made as soon as the file is read: whatever it turns out to be, its copy is a new file of
/// the same name.
fn may_store(copier: &Copier, place: &Place<'_>, seen: &Seen) -> bool {
    let (source, target) = names(place);
    let is_alone = !copier.options.preserve.links || copier.options.dereference == Dereference::Never;
    let options = &copier.options;
    let is_plain = is_alone
        && !options.attributes_only
        && !options.atomic
        && !options.debug
        && options.bandwidth.is_none();
    matches!(seen.ahead, Ahead::Free) && seen.stat.is_none() && is_plain && source == target
}

/// The mode with which a file's copy is made, whatever the file's own is.
fn first_mode(copier: &Copier, place: &Place<'_>) -> NewMode {
    let of = |mode| New::entry(place, FileKind::Regular, mode).first_mode(copier.options.preserve);
    NewMode { fixed: of(0), of_source: of(0o777) & !of(0) }
}

/// Opens the source, and reads it if it is small; with `stores`, its copy may be there then, too.
async fn open<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    follow: bool,
    stores: bool,
) -> Result<Source<'a>, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let (dir, target) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let name = names(&place).0;
    let preserve = copier.options.preserve;
    let xattrs = preserve.mode || preserve.xattr;
    let options = &copier.options;
    // Zeros become holes only where the bytes are looked at; `--debug` tries what cp would.
    let is_shaped = options.sparse == Sparse::Always
        || options.attributes_only
        || options.debug
        || copier.clones_small_files(place.folder);
    let source = if follow || options.copy_contents || is_shaped {
        Box::pin(open_step_by_step(copier, place, &dir, follow, xattrs)).await?
    } else {
        let block = copier.io.block().await.map_err(io)?;
        // A further name of a file that is copied already need not be read.
        // Not before the block: who waits for those that make files may hold one.
        let making = if stores { copier.turns.make().await.map_err(io)? } else { None };
        let alone = preserve.links;
        let loaded = if making.is_some() {
            dir.transfer(name, block, (xattrs, alone), &target, first_mode(copier, &place)).await
        } else if alone {
            dir.load_alone(name, block, xattrs).await
        } else {
            dir.load(name, block, xattrs).await
        };
        match loaded {
            Ok(loaded) => {
                Source { stat: loaded.stat, xattrs: loaded.xattrs, content: loaded.content, making }
            }
            Err(error) if error.is_cancelled() => return Err(io(error)),
            // Which of the steps it was shows when they are done one by one; not each costs the file.
            Err(_) => {
                Source { making, ..Box::pin(open_step_by_step(copier, place, &dir, follow, xattrs)).await? }
            }
        }
    };
    if source.stat.kind != FileKind::Regular && !copier.options.copy_contents && CONFINED {
        return Err(FailureKind::Replaced);
    }
    Ok(source)
}

/// Why a file could not be opened; perhaps not even its attributes can be had.
async fn unopened(dir: &Dir, name: &Name, follow: bool, error: Error) -> FailureKind {
    if error.is_cancelled() {
        return FailureKind::Io { verb: Verb::Open, error };
    }
    match dir.stat_entry(name, follow).await {
        Err(error) => FailureKind::Io { verb: Verb::Stat, error },
        Ok(_) => FailureKind::Io { verb: Verb::Open, error },
    }
}

/// Opens without reading: where extents may be shared, the name leads through a link, or one request for all failed.
async fn open_step_by_step(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    follow: bool,
    xattrs: bool,
) -> Result<Source<'static>, FailureKind> {
    let name = names(&place).0;
    let mut how = OpenHow::read();
    if follow {
        how = how.following();
    }
    if copier.options.copy_contents {
        // A FIFO is read once somebody writes to it.
        how = how.waiting();
    }
    // What comes through a FIFO changes its times, and may do so before they are looked at.
    let before = match copier.options.copy_contents {
        true => dir.stat_entry(name, follow).await.ok(),
        false => None,
    };
    let file = match dir.open(name, how).await {
        Ok(file) => file,
        Err(error) => return Err(Box::pin(unopened(dir, name, follow, error)).await),
    };
    let opened = file.stat().await.map_err(|error| FailureKind::Io { verb: Verb::Stat, error })?;
    let is_fifo = opened.kind == FileKind::Fifo;
    let before = before.filter(|before| is_fifo && identity(before) == identity(&opened));
    let stat = before.unwrap_or(opened);
    if stat.kind != FileKind::Regular && !copier.options.copy_contents {
        return Err(FailureKind::Replaced);
    }
    let xattrs = if xattrs { meta::found(copier, &place, file.xattrs().await)? } else { Vec::new() };
    Ok(Source { stat, xattrs, content: Content::Open(file), making: None })
}

/// Copies an open source; gives the copy if others are to be linked to it.
async fn copy_open(
    copier: &Arc<Copier>,
    place: Place<'_>,
    source: Source<'_>,
    ahead: Ahead,
    is_first: bool,
) -> Result<Option<Copy>, FailureKind> {
    let Source { stat, xattrs, content, making } = source;
    let target = match &content {
        Content::Stored(file, _) | Content::Begun(file, _) => Some(Target::stored(file.clone(), making)),
        Content::Whole(_) | Content::Open(_) => {
            let filling = Filling { making, is_read: matches!(content, Content::Whole(_)) };
            target::open(copier, place, &stat, ahead, filling).await?
        }
    };
    let Some(target) = target else { return Ok(None) };
    let filled = fill(copier, place, (&stat, &xattrs), content, &target).await;
    let copy = if is_first { target.file.identify().await.ok() } else { None };
    let (backup, how) = match end(copier, place, target, filled).await {
        Ok(ended) => ended,
        Err(kind) => {
            // What was there has changed nevertheless.
            copier.durable.await_end();
            return Err(kind);
        }
    };
    copier.tally.files.add(1);
    if syncs_itself(copier, &place) {
        entry::note_copied(copier, &place, FileKind::Regular, (backup.as_ref(), how));
    } else {
        entry::note_made(copier, &place, FileKind::Regular, (backup.as_ref(), how));
    }
    Ok(copy.map(|copy| Copy::of(&copy)))
}

/// The backup of what was there, and how a file was filled, if anyone wants to know.
type Ended = (Option<Name>, Option<How>);

/// Closes a target, also if it is not whole; and over a network it is known only now whether it is. A new target that is
/// not whole is removed, an existing one is marked. Returns the backup of what was there.
async fn end(
    copier: &Arc<Copier>,
    place: Place<'_>,
    target: Target<'_>,
    filled: Result<Option<How>, FailureKind>,
) -> Result<Ended, FailureKind> {
    let Target { file, is_new, staged, backup, existing, kind, .. } = target;
    if let Some(staged) = staged {
        return Box::pin(publish(copier, place, file, (staged, backup), filled)).await;
    }
    let is_marked = is_new || kind == FileKind::Regular && !copier.options.attributes_only;
    let kind = match filled {
        Ok(how) => {
            let is_unknown = is_new && place.folder.abilities().is_none_or(|known| known.close_may_fail());
            let known = if is_unknown { Box::pin(protect(file.stat())).await.ok() } else { existing };
            let Err(error) = file.close() else { return Ok((backup, how)) };
            let kind = FailureKind::Io { verb: Verb::Close, error };
            if is_marked {
                Box::pin(unfinished::give_up_closed(copier, place, known.as_ref(), is_new, &kind)).await;
            }
            kind
        }
        Err(kind) => {
            if is_marked {
                Box::pin(unfinished::give_up(copier, place, &file, existing.as_ref(), &kind)).await;
            } else if let Some(existing) = existing.filter(|existing| existing.kind == FileKind::Regular) {
                // Only its attributes were to change.
                Box::pin(protect(meta::give_back(copier, &file, &existing))).await;
            }
            // The first failure is the one that is reported.
            file.close().ok();
            kind
        }
    };
    Box::pin(backup::take_back(copier, place, backup.as_ref())).await;
    Err(kind)
}

/// The same for one that gets its name only now; a backup may have been made already.
async fn publish(
    copier: &Arc<Copier>,
    place: Place<'_>,
    file: File,
    (staged, made): (Staged, Option<Name>),
    filled: Result<Option<How>, FailureKind>,
) -> Result<Ended, FailureKind> {
    let failed = |error: Error| {
        let is_closing = error.operation == Operation::Close;
        FailureKind::Io { verb: if is_closing { Verb::Close } else { Verb::CreateFile }, error }
    };
    let how = match filled {
        Ok(how) => how,
        Err(kind) => {
            staged.discard(&file).await;
            Box::pin(backup::take_back(copier, place, made.as_ref())).await;
            return Err(kind);
        }
    };
    let kept = if staged.backs_up { Box::pin(backup::make(copier, place)).await } else { Ok(made) };
    let backup = match kept {
        Ok(backup) => backup,
        Err(kind) => {
            staged.discard(&file).await;
            return Err(kind);
        }
    };
    if let Err(error) = staged.publish(copier, place, file).await {
        Box::pin(backup::take_back(copier, place, backup.as_ref())).await;
        return Err(failed(error));
    }
    if syncs_itself(copier, &place) {
        let synced = sync_name(copier, &place).await;
        synced.map_err(|error| FailureKind::Io { verb: Verb::Sync, error })?;
    }
    Ok((backup, how))
}

/// Fills a file that is open; how, if anyone wants to know.
async fn fill(
    copier: &Arc<Copier>,
    place: Place<'_>,
    (stat, xattrs): (&Stat, &[Xattr]),
    content: Content,
    target: &Target<'_>,
) -> Result<Option<How>, FailureKind> {
    let how = if copier.options.attributes_only {
        None
    } else {
        move_bytes(copier, place, stat, content, target).await?
    };
    let failed = |error| FailureKind::Io { verb: Verb::Sync, error };
    if target.kind != FileKind::Regular {
        // Of what is no file, only a device can be made durable, and by itself alone.
        let is_device = target.kind == FileKind::BlockDevice && copier.options.fsync;
        if is_device {
            target.file.sync().await.map_err(failed)?;
        }
        return Ok(how);
    }
    let replaced = target.staged.as_ref().and_then(|staged| staged.replaced.as_ref());
    if let Some(replaced) = replaced {
        Box::pin(meta::keep_replaced(copier, &place, &target.file, replaced)).await?;
    }
    let is_new = target.is_new && replaced.is_none();
    let new = is_new.then(|| New::entry(&place, target.kind, stat.mode));
    meta::keep(copier, &place, &target.file, stat, xattrs, new).await?;
    if target.staged.is_some() && copier.options.atomic && copier.options.fsync {
        // A name must not outlive a crash that its bytes do not.
        Box::pin(target.file.sync()).await.map_err(failed)?;
    } else if syncs_itself(copier, &place) {
        Box::pin(sync(copier, &place, target)).await.map_err(failed)?;
    } else if copier.options.fsync && durable::is_synced_apart(copier, device_of(&place, target)) {
        Box::pin(target.file.sync()).await.map_err(failed)?;
    }
    Ok(how)
}

async fn move_bytes(
    copier: &Arc<Copier>,
    place: Place<'_>,
    stat: &Stat,
    content: Content,
    target: &Target<'_>,
) -> Result<Option<How>, FailureKind> {
    copier.progress.bytes_found.add(stat.size);
    let tried = match &content {
        Content::Open(source) if copier.options.debug => {
            Some(Box::pin(how::find_out(&copier.options, (stat, source), target)).await?)
        }
        Content::Open(_) | Content::Whole(_) | Content::Begun(..) | Content::Stored(..) => None,
    };
    let moved = bytes::move_all(copier, place.folder, stat, content, target).await?;
    copier.count_bytes(moved.method, moved.bytes);
    if copier.options.explain {
        copier.observer.explained(&place.source_path(), moved.method, moved.why);
    }
    Ok(tried.map(|tried| tried.if_not_shared(moved.method)))
}

/// Whether a file is made durable as soon as it is copied: in a folder that was there, where it is the only change.
fn syncs_itself(copier: &Copier, place: &Place<'_>) -> bool {
    place.folder.role == Role::Root && copier.syncs_each.load(Ordering::Relaxed)
}

/// The filesystem that a target is on, as far as is known.
fn device_of(place: &Place<'_>, target: &Target<'_>) -> Option<u64> {
    target.device().or_else(|| place.folder.abilities().map(|abilities| abilities.pair.1))
}

/// Makes a file durable, and its name: fsync(2) of the file does not bring its entry to the disk.
async fn sync(copier: &Copier, place: &Place<'_>, target: &Target<'_>) -> ferry_io::Result<()> {
    target.file.sync().await?;
    let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
    if dir.is_only_reached() && !durable::is_synced_apart(copier, device_of(place, target)) {
        return target.file.sync_filesystem().await;
    }
    durable::sync_folder(&dir).await
}

/// Makes a file's name durable; the end of the run does that where its folder may be searched, but not opened.
async fn sync_name(copier: &Copier, place: &Place<'_>) -> ferry_io::Result<()> {
    let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
    let device = place.folder.abilities().map(|abilities| abilities.pair.1);
    if dir.is_only_reached() && !durable::is_synced_apart(copier, device) {
        copier.durable.await_end();
        return Ok(());
    }
    durable::sync_folder(&dir).await
}
