//! A regular file: open it, make its copy, move its bytes, keep its attributes, close.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Content, Dir, Error, File, FileKind, Name, OpenHow, Stat, Xattr, protect};

use crate::bytes;
use crate::copier::{Copier, Place, add};
use crate::entry::{self, Seen};
use crate::folder::Role;
use crate::meta::{self, Subject};
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
    if !entry::claim(copier, place, &stat).await? {
        return Ok(());
    }
    let copied = copy_open(copier, place, source, Some(seen.ahead)).await;
    drop(permit);
    entry::end_claim(copier, place, &stat, copied.is_ok()).await;
    copied
}

/// The same for a name whose claim this run holds already.
pub(crate) async fn copy_claimed(copier: &Arc<Copier>, place: Place<'_>) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let permit = copier.files.acquire().await.map_err(io)?;
    let source = open(copier, place, false).await?;
    let stat = source.stat;
    let copied = copy_open(copier, place, source, None).await;
    drop(permit);
    entry::end_claim(copier, place, &stat, copied.is_ok()).await;
    copied
}

/// The same for a name that gets a copy of its own, whatever links it has.
pub(crate) async fn copy_alone(copier: &Arc<Copier>, place: Place<'_>) -> Result<(), FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let _permit = copier.files.acquire().await.map_err(io)?;
    let source = open(copier, place, false).await?;
    copy_open(copier, place, source, None).await
}

async fn open(copier: &Copier, place: Place<'_>, follow: bool) -> Result<Source, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::Open, error };
    let (dir, _) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let name = entry::names(&place).0;
    let preserve = copier.options.preserve;
    let xattrs = preserve.mode || preserve.xattr;
    let source = if follow || copier.options.copy_contents || copier.clones_small_files() {
        match open_step_by_step(copier, &dir, name, follow, xattrs).await {
            Ok(found) => found.ok_or(FailureKind::Replaced)?,
            Err(error) => return Err(unopened(&dir, name, follow, error).await),
        }
    } else {
        let block = copier.io.block().await.map_err(io)?;
        let loaded = match dir.load(name, block, xattrs).await {
            Ok(loaded) => loaded,
            Err(error) => return Err(unopened(&dir, name, follow, error).await),
        };
        Source { stat: loaded.stat, xattrs: loaded.xattrs, content: loaded.content }
    };
    if source.stat.kind != FileKind::Regular && !copier.options.copy_contents {
        return Err(FailureKind::Replaced);
    }
    Progress::add(&copier.progress.bytes_found, source.stat.size);
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
    if copied.is_err() && is_new {
        // What is not whole is not left behind as if it were.
        protect(target::remove(copier, place)).await.ok();
        return copied;
    }
    add(&copier.tally.files, 1);
    entry::note_copied(copier, &place, FileKind::Regular);
    copied
}

async fn fill(
    copier: &Arc<Copier>,
    place: Place<'_>,
    source: Source,
    target: &Target,
) -> Result<(), FailureKind> {
    let Source { stat, xattrs, content } = source;
    let moved = bytes::move_all(copier, &stat, content, target).await?;
    copier.count_bytes(moved.method, moved.bytes);
    if copier.options.explain {
        copier.observer.explained(&place.source_path(), moved.method, moved.why);
    }
    if target.kind != FileKind::Regular {
        return Ok(());
    }
    let may_have_acl = !target.is_new || meta::gives_acl(&place);
    meta::keep(copier, &place, Subject::Open(&target.file), &stat, &xattrs, may_have_acl).await?;
    let is_operand = matches!(place.folder.role, Role::Root | Role::Way);
    if is_operand && copier.syncs_each.load(Ordering::Relaxed) {
        sync(copier, &place, &target.file)
            .await
            .map_err(|error| FailureKind::Io { verb: Verb::Sync, error })?;
    }
    Ok(())
}

/// Makes a file durable, and its name: fsync(2) of the file does not bring its entry to the disk.
async fn sync(copier: &Copier, place: &Place<'_>, target: &File) -> ferry_io::Result<()> {
    target.sync().await?;
    let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
    dir.as_file().sync().await
}
