//! A regular file: open it, make its copy, move its bytes, keep its attributes, close.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Content, Dir, Errno, Error, File, FileKind, Name, OpenHow, Stat, Xattr, protect};

use crate::bytes;
use crate::copier::{Copier, Identity, Place, add, identity};
use crate::entry::{self, Seen};
use crate::folder::Role;
use crate::links::Claim;
use crate::meta::{self, Subject};
use crate::mode::New;
use crate::report::{FailureKind, Progress, Verb};
use crate::target::{self, Ahead, Target};

/// An open source; its bytes may have been read already.
pub(crate) struct Source {
    pub(crate) stat: Stat,
    pub(crate) xattrs: Vec<Xattr>,
    pub(crate) content: Content,
}

/// Copies a file, unless it is a further name of one that is copied: then it becomes a hard link to that copy.
pub(crate) async fn copy(copier: &Arc<Copier>, place: Place<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let permit = copier.files.acquire().await.map_err(io)?;
    let source = open(copier, place, seen.follow).await?;
    let stat = source.stat;
    if seen.stat.is_some_and(|seen| !seen.is_same_file(&stat)) {
        return Err(FailureKind::Replaced);
    }
    let is_first = match entry::claim(copier, place, &stat, seen.follow) {
        Claim::Alone => false,
        Claim::First => true,
        Claim::Left => return Ok(()),
        Claim::Linked(first) => {
            // Perhaps it must be copied after all, and waits for a permit of its own.
            drop((source, permit));
            return entry::link_to_copy(copier, place, &first, (stat.kind, seen.follow)).await;
        }
    };
    let copied = copy_open(copier, place, source, Some(seen.ahead)).await;
    drop(permit);
    if is_first {
        entry::end_claim(copier, place, &stat, copied.is_ok()).await;
    }
    copied
}

/// The same for a name of a file whose claim this run holds already, and goes on holding.
pub(crate) async fn copy_claimed(
    copier: &Arc<Copier>,
    place: Place<'_>,
    claimed: Identity,
    follow: bool,
) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let _permit = copier.files.acquire().await.map_err(io)?;
    let source = open(copier, place, follow).await?;
    if identity(&source.stat) != claimed {
        return Err(FailureKind::Replaced);
    }
    copy_open(copier, place, source, None).await
}

/// The same for a name that gets a copy of its own, whatever links it has.
pub(crate) async fn copy_alone(
    copier: &Arc<Copier>,
    place: Place<'_>,
    follow: bool,
) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let _permit = copier.files.acquire().await.map_err(io)?;
    let source = open(copier, place, follow).await?;
    copy_open(copier, place, source, None).await
}

async fn open(copier: &Copier, place: Place<'_>, follow: bool) -> Result<Source, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let (dir, _) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let name = entry::names(&place).0;
    let preserve = copier.options.preserve;
    let xattrs = preserve.mode || preserve.xattr;
    let source = if follow || copier.options.copy_contents || copier.clones_small_files(place.folder) {
        match open_step_by_step(copier, &dir, name, follow, xattrs).await {
            Ok(found) => found.ok_or(FailureKind::Replaced)?,
            Err(error) => return Err(unopened(&dir, name, follow, error).await),
        }
    } else {
        let block = copier.io.block().await.map_err(io)?;
        // A further name of a file that is copied already need not be read.
        let loaded = if preserve.links {
            dir.load_alone(name, block, xattrs).await
        } else {
            dir.load(name, block, xattrs).await
        };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return Err(unopened(&dir, name, follow, error).await),
        };
        Source { stat: loaded.stat, xattrs: loaded.xattrs, content: loaded.content }
    };
    if source.stat.kind != FileKind::Regular && !copier.options.copy_contents {
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

/// Opens without reading: where extents may be shared, or the name leads through a link. `None` if it has become
/// something that must not be opened.
async fn open_step_by_step(
    copier: &Copier,
    dir: &Dir,
    name: &Name,
    follow: bool,
    xattrs: bool,
) -> ferry_io::Result<Option<Source>> {
    let mut how = OpenHow::read();
    if follow {
        how = how.following();
    }
    if copier.options.copy_contents {
        // A FIFO is read once somebody writes to it.
        how = how.waiting();
    }
    let file = dir.open(name, how).await?;
    let stat = file.stat().await?;
    if stat.kind != FileKind::Regular && !copier.options.copy_contents {
        return Ok(None);
    }
    let xattrs = if xattrs { file.xattrs().await? } else { Vec::new() };
    Ok(Some(Source { stat, xattrs, content: Content::Open(file) }))
}

async fn copy_open(
    copier: &Arc<Copier>,
    place: Place<'_>,
    source: Source,
    ahead: Option<Ahead>,
) -> Result<(), FailureKind> {
    let ahead = match ahead {
        Some(ahead) => ahead,
        None => target::look(copier, place, &source.stat).await?,
    };
    let Some(target) = target::open(copier, place, &source.stat, ahead).await? else { return Ok(()) };
    let filled = fill(copier, place, source, &target).await;
    let Target { file, is_new, .. } = target;
    // Closed also if it is not whole; and over a network it is known only now whether it is.
    let closed = file.close().map_err(|error| FailureKind::Io { verb: Verb::Close, error });
    let copied = filled.and(closed);
    if copied.is_err() {
        if is_new {
            // What is not whole is not left behind as if it were.
            protect(target::remove(copier, place)).await.ok();
        }
        // What was there has changed nevertheless.
        copier.durable.await_end();
        return copied;
    }
    add(&copier.tally.files, 1);
    if syncs_itself(copier, &place) {
        entry::note_copied(copier, &place, FileKind::Regular);
    } else {
        entry::note_made(copier, &place, FileKind::Regular);
    }
    copied
}

async fn fill(
    copier: &Arc<Copier>,
    place: Place<'_>,
    source: Source,
    target: &Target<'_>,
) -> Result<(), FailureKind> {
    let Source { stat, xattrs, content } = source;
    Progress::add(&copier.progress.bytes_found, stat.size);
    let moved = bytes::move_all(copier, place.folder, &stat, content, target).await?;
    copier.count_bytes(moved.method, moved.bytes);
    if copier.options.explain {
        copier.observer.explained(&place.source_path(), moved.method, moved.why);
    }
    let failed = |error| FailureKind::Io { verb: Verb::Sync, error };
    if target.kind != FileKind::Regular {
        // Of what is no file, only a device can be made durable, and by itself alone.
        let is_device = target.kind == FileKind::BlockDevice && copier.options.fsync;
        return if is_device { target.file.sync().await.map_err(failed) } else { Ok(()) };
    }
    let new = target.is_new.then(|| New::entry(&place, target.kind, stat.mode));
    meta::keep(copier, &place, Subject::Open(&target.file), &stat, &xattrs, new).await?;
    if syncs_itself(copier, &place) {
        sync(copier, &place, &target.file).await.map_err(failed)?;
    }
    Ok(())
}

/// Whether a file is made durable as soon as it is copied: in a folder that was there, where it is the only change.
fn syncs_itself(copier: &Copier, place: &Place<'_>) -> bool {
    place.folder.role == Role::Root && copier.syncs_each.load(Ordering::Relaxed)
}

/// Makes a file durable, and its name: fsync(2) of the file does not bring its entry to the disk.
async fn sync(copier: &Copier, place: &Place<'_>, target: &File) -> ferry_io::Result<()> {
    target.sync().await?;
    let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
    match dir.as_file().sync().await {
        // A folder that may be searched, but not opened.
        Err(error) if error.is(Errno::BADF) => target.sync_filesystem().await,
        answer => answer,
    }
}
