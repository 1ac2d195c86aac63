//! A regular file from open to close: claim it, fill its target, keep its attributes.
//!
//! Returns before its claim is settled: `entry.rs` sees to the other names of the file.

pub(crate) mod plain;
mod source;

use std::sync::Arc;

use ferry_io::{Content, Error, File, FileKind, Name, Operation, Permit, Stat, protect};

use crate::backup;
use crate::bytes;
use crate::claim::{self, Ended};
use crate::debug;
use crate::digest::{Digest, Known};
use crate::folder::Dirs;
use crate::links::{FirstCopy, NameClaim, NameLook, SourceIdentity};
use crate::meta;
use crate::mode::TargetMode;
use crate::place::Entry;
use crate::report::{CpMeans, During as _, Explained, FailureKind, Verb};
use crate::run::{Details, Run};
use crate::staging::Staged;
use crate::sync;
use crate::target::{self, Ahead, Filling, Seen, Target};
use crate::trail::{self, AtLink, Trail};
use crate::unfinished;

use plain::{Held, Left};
use source::{Opening, Source};

/// Copies a file, unless it is a later name of a file that is claimed already.
pub(crate) async fn copy(run: &Arc<Run>, entry: Entry<'_>, seen: &Seen) -> Result<Ended, FailureKind> {
    let _permit = run.limits.files.acquire().await.during(Verb::Open)?;
    // Identified before it is opened: a file met by this identity later is the open one, or one that is gone.
    let known = match claim::is_met_by_links(run, entry) {
        true => Some(claim::identify(run, entry, seen.follow).await?),
        false => None,
    };
    let opening = Opening { follow: seen.follow, stores: source::may_store(run, entry, seen) };
    let source = source::open(run, entry, opening).await?;
    if seen.stat.is_some_and(|seen| !seen.is_same_file(&source.stat)) {
        return Err(FailureKind::Replaced);
    }
    claim_and_fill(run, entry, source, known, seen).await
}

/// Copies a file that a run of plain ones has left.
pub(crate) async fn go_on(
    run: &Arc<Run>,
    entry: Entry<'_>,
    left: Left<'_>,
    seen: &Seen,
) -> Result<Ended, FailureKind> {
    let (source, _permit) = open_left(run, entry, left).await?;
    claim_and_fill(run, entry, source, None, seen).await
}

/// As [`go_on`], but a file that `leaves` accepts is not copied: its attributes are returned instead.
pub(crate) async fn go_on_unless(
    run: &Arc<Run>,
    entry: Entry<'_>,
    left: Left<'_>,
    seen: &Seen,
    leaves: &dyn Fn(&Stat) -> bool,
) -> Result<Result<Ended, Stat>, FailureKind> {
    let (source, _permit) = open_left(run, entry, left).await?;
    let is_begun = matches!(source.content, Content::Stored(..) | Content::Begun(..));
    if !is_begun && leaves(&source.stat) {
        return Ok(Err(source.stat));
    }
    claim_and_fill(run, entry, source, None, seen).await.map(Ok)
}

async fn open_left<'a>(
    run: &'a Arc<Run>,
    entry: Entry<'_>,
    left: Left<'a>,
) -> Result<(Source<'a>, Permit<'a>), FailureKind> {
    let Left { rest, held: Held { making, permit } } = left;
    if let Some(refused) = rest.refused() {
        unfinished::take_back(run, entry, refused).await?;
    }
    Ok((source::go_on(run, entry, rest, making).await?, permit))
}

async fn claim_and_fill(
    run: &Arc<Run>,
    entry: Entry<'_>,
    source: Source<'_>,
    known: Option<Stat>,
    seen: &Seen,
) -> Result<Ended, FailureKind> {
    let claimed = match claim_open(run, entry, &source, known, seen.look()).await? {
        NameClaim::Alone => None,
        NameClaim::First(file) => Some(file),
        NameClaim::Left => return Ok(Ended::Settled),
        NameClaim::Linked(file, first) => return Ok(Ended::Later(file, first)),
    };
    let copied = fill_target(run, entry, source, seen.ahead, claimed.is_some()).await;
    match claimed {
        Some(file) => Ok(Ended::First(file, copied)),
        None => copied.map(|_| Ended::Settled),
    }
}

/// Claims an open file, if it may be met again by another name.
async fn claim_open(
    run: &Run,
    entry: Entry<'_>,
    source: &Source<'_>,
    known: Option<Stat>,
    look: NameLook,
) -> Result<NameClaim, FailureKind> {
    if !claim::is_claimed(run, entry, &source.stat) {
        return Ok(NameClaim::Alone);
    }
    let identified = match (&source.content, known) {
        (Content::Open(file), _) => file.identify().await,
        // It was read and closed.
        (_, Some(known)) => Ok(known),
        // A file with several names is left open.
        (_, None) => return Ok(NameClaim::Alone),
    };
    let identified = identified.during(Verb::Stat)?;
    if identified.is_same_file(&source.stat) {
        Ok(claim::claim(run, entry, &identified, look))
    } else {
        Err(FailureKind::Replaced)
    }
}

/// Copies a name whose file is `claimed` already, or which gets a copy of its own. Returns the copy's identity.
pub(crate) async fn copy_again(
    run: &Arc<Run>,
    entry: Entry<'_>,
    claimed: Option<SourceIdentity>,
    look: NameLook,
) -> Result<Option<FirstCopy>, FailureKind> {
    let _permit = run.limits.files.acquire().await.during(Verb::Open)?;
    let source = source::open(run, entry, Opening { follow: look.follow, stores: false }).await?;
    if let Some(claimed) = claimed {
        let found = match &source.content {
            Content::Open(file) => SourceIdentity::of(&file.identify().await.during(Verb::Open)?),
            // It was read and closed, after it was identified.
            Content::Whole(_) | Content::Stored(..) | Content::Begun(..) => claimed,
        };
        if found != claimed || !claimed.is(&source.stat) {
            return Err(FailureKind::Replaced);
        }
    }
    let asks = run.asks() && look.found_free;
    let ahead = Box::pin(target::look_again(run, entry, &source.stat, asks)).await?;
    fill_target(run, entry, source, ahead, claimed.is_some()).await
}

/// Opens the target of an open source, fills and closes it. Returns its identity if it `is_first` of its file's names.
async fn fill_target(
    run: &Arc<Run>,
    entry: Entry<'_>,
    source: Source<'_>,
    ahead: Ahead,
    is_first: bool,
) -> Result<Option<FirstCopy>, FailureKind> {
    let Source { stat, xattrs, content, is_like_source, making } = source;
    let filling = Filling { making, is_read: !matches!(content, Content::Open(_)), is_like_source };
    let target = match &content {
        Content::Stored(file, _) | Content::Begun(file, _) => Some(Target::stored(file.clone(), filling)),
        Content::Whole(_) | Content::Open(_) => target::open(run, entry, &stat, ahead, filling).await?,
    };
    let Some(mut target) = target else { return Ok(None) };
    target.trail = Trail::of(run, &content, target.kind).filter(|_| target.is_readable);
    let mut hashed = None;
    let device = target.device().or_else(|| entry.folder.abilities().map(|known| known.devices.target));
    let filled = async {
        let (means, digest) = move_bytes(run, entry, &stat, content, &target).await?;
        if target.kind != FileKind::Regular {
            // Of targets that are no files, only a device can be synced, and by itself alone.
            if target.kind == FileKind::BlockDevice && run.options.fsync {
                target.file.sync().await.during(Verb::Sync)?;
            }
            return Ok(means);
        }
        let replaced = target.staged.as_ref().and_then(|staged| staged.replaced.as_ref());
        if let Some(replaced) = replaced {
            Box::pin(meta::keep_replaced(run, entry.into(), &target.file, replaced)).await?;
        }
        // A part has a mode of its own.
        let is_new = target.is_new && replaced.is_none() && target.part().is_none();
        let new = is_new.then(|| TargetMode::entry(entry, target.kind, stat.mode));
        if target.is_like_source {
            meta::keep_times(run, entry.into(), &target.file, &stat).await?;
        } else {
            meta::keep(run, entry.into(), &target.file, &stat, &xattrs, new).await?;
        }
        if run.options.fsync {
            Box::pin(make_durable(run, entry, &target, device)).await.during(Verb::Sync)?;
        }
        if digest.is_some() || !target.is_readable {
            hashed = Some((digest, target.file.stat().await.during(Verb::StatTarget)?));
        }
        Ok(means)
    };
    let filled = filled.await;
    let copy = if is_first { target.file.identify().await.ok() } else { None };
    let Closed { backup, means } = match close(run, entry, target, filled).await {
        Ok(closed) => closed,
        Err(kind) => {
            // The existing target has changed although the copy failed.
            run.durable.await_end();
            return Err(kind);
        }
    };
    run.tally.files.add(1);
    let known = match hashed {
        Some((digest, stat)) => note_hashed(run, entry, digest, &stat).await,
        None => None,
    };
    let details = Details { backup: backup.as_ref(), means };
    if run.operands.is_synced_at_once(&entry) {
        run.note_copied(entry.into(), FileKind::Regular, &details);
    } else {
        run.note_made(entry.into(), FileKind::Regular, &details);
    }
    Ok(copy.map(|copy| FirstCopy::of(&copy).with_hash(known)))
}

/// Reports the hash of a complete target, and remembers it. A target that could not be read while it was filled is hashed
/// now: its mode may have changed. If it still can't be read, that is reported, and costs the copy nothing else.
async fn note_hashed(run: &Run, entry: Entry<'_>, digest: Option<Digest>, stat: &Stat) -> Option<Known> {
    let algorithm = run.options.digest?;
    let digest = match digest {
        Some(digest) => Ok(digest),
        None => Box::pin(trail::of_target(run, entry, stat, algorithm, AtLink::Follow)).await,
    };
    match digest {
        Ok(digest) => {
            run.note_hashed(entry, digest, stat);
            Some(Known::of(digest, stat))
        }
        Err(kind) => {
            trail::fail(run, entry, kind);
            None
        }
    }
}

/// Moves the bytes, unless only attributes are copied. With `--debug` returns the means that GNU cp would have used; for a
/// manifest, the hash.
async fn move_bytes(
    run: &Arc<Run>,
    entry: Entry<'_>,
    stat: &Stat,
    content: Content,
    target: &Target<'_>,
) -> Result<(Option<CpMeans>, Option<Digest>), FailureKind> {
    if run.options.attributes_only {
        return Ok((None, None));
    }
    run.progress.bytes_found.add(stat.size);
    let means = match &content {
        Content::Open(source) if run.options.debug => {
            Some(Box::pin(debug::find_out(&run.options, stat, source, target)).await?)
        }
        Content::Open(_) | Content::Whole(_) | Content::Begun(..) | Content::Stored(..) => None,
    };
    let digest = trail::of_content(run, &content, target.kind);
    let moved = bytes::move_all(run, entry.folder, stat, content, target).await?;
    run.tally.count_bytes(moved.method, moved.bytes);
    if run.options.explain {
        let source = &entry.source_path();
        let (method, bytes, why) = (moved.method, moved.bytes, moved.why);
        run.observer.explained(&Explained { source, method, why, bytes });
    }
    let digest = match &target.trail {
        Some(trail) => Some(Box::pin(trail.finish(run, &target.file)).await?),
        None => digest,
    };
    Ok((means.map(|means| means.if_not_shared(moved.method)), digest))
}

/// Syncs a filled file, unless the end of the run does (`--fsync`).
async fn make_durable(
    run: &Run,
    entry: Entry<'_>,
    target: &Target<'_>,
    device: Option<u64>,
) -> ferry_io::Result<()> {
    if target.staged.is_some() && (run.options.atomic || target.part().is_some()) {
        // A name must not outlive a crash that its bytes do not.
        target.file.sync().await
    } else if run.operands.is_synced_at_once(&entry) {
        sync::file(run, entry, &target.file, device).await
    } else if run.is_synced_apart(device) {
        target.file.sync().await
    } else {
        Ok(())
    }
}

/// A file that is complete and closed.
struct Closed {
    /// Name under which the replaced target is kept.
    backup: Option<Name>,
    means: Option<CpMeans>,
}

/// Closes a complete target; over a network, where that waits, on the route that is cheapest.
async fn close_file(run: &Run, entry: Entry<'_>, file: File) -> ferry_io::Result<()> {
    let waits = entry.folder.abilities().is_none_or(|known| known.close_may_fail());
    if waits && let Ok(Dirs { target, .. }) = run.dirs(entry.folder).await {
        return Box::pin(protect(file.close_in(&target))).await;
    }
    file.close()
}

/// Closes a target, complete or not; over a network, closing may report that it is not. An incomplete target is removed
/// if it is new, else marked.
async fn close(
    run: &Arc<Run>,
    entry: Entry<'_>,
    target: Target<'_>,
    filled: Result<Option<CpMeans>, FailureKind>,
) -> Result<Closed, FailureKind> {
    let Target { file, is_new, staged, backup, existing, kind, .. } = target;
    if let Some(staged) = staged {
        return Box::pin(publish(run, entry, file, staged, backup, filled)).await;
    }
    let is_marked = is_new || kind == FileKind::Regular && !run.options.attributes_only;
    let kind = match filled {
        Ok(means) => {
            let is_unknown = is_new && entry.folder.abilities().is_none_or(|known| known.close_may_fail());
            let known = if is_unknown { Box::pin(protect(file.stat())).await.ok() } else { existing };
            let Err(error) = close_file(run, entry, file).await else { return Ok(Closed { backup, means }) };
            let kind = Verb::Close.failed(error);
            if is_marked {
                Box::pin(unfinished::give_up_closed(run, entry, known.as_ref(), is_new, &kind)).await;
            }
            kind
        }
        Err(kind) => {
            if is_marked {
                Box::pin(unfinished::give_up(run, entry, &file, existing.as_ref(), &kind)).await;
            } else if let Some(existing) = existing.filter(|existing| existing.kind == FileKind::Regular) {
                // Only its attributes were to change.
                Box::pin(protect(meta::give_back(run, &file, &existing))).await;
            }
            // The first failure is the one that is reported.
            file.close().ok();
            kind
        }
    };
    Box::pin(backup::take_back(run, entry, backup.as_ref())).await;
    Err(kind)
}

/// Closes a target that gets its name only now; its backup may have been made before.
async fn publish(
    run: &Arc<Run>,
    entry: Entry<'_>,
    file: File,
    staged: Staged,
    made: Option<Name>,
    filled: Result<Option<CpMeans>, FailureKind>,
) -> Result<Closed, FailureKind> {
    let failed = |error: Error| {
        let verb = if error.operation == Operation::Close { Verb::Close } else { Verb::CreateFile };
        verb.failed(error)
    };
    let means = match filled {
        Ok(means) => means,
        Err(kind) => {
            let is_sound = !matches!(kind, FailureKind::Unverified);
            staged.discard(run, entry, &file, is_sound).await;
            Box::pin(backup::take_back(run, entry, made.as_ref())).await;
            return Err(kind);
        }
    };
    let kept = if staged.backs_up { Box::pin(backup::make(run, entry)).await } else { Ok(made) };
    let backup = match kept {
        Ok(backup) => backup,
        Err(kind) => {
            staged.discard(run, entry, &file, true).await;
            return Err(kind);
        }
    };
    if let Err(error) = staged.publish(run, entry, file).await {
        Box::pin(backup::take_back(run, entry, backup.as_ref())).await;
        return Err(failed(error));
    }
    if run.operands.is_synced_at_once(&entry) {
        sync::name(run, entry).await.during(Verb::Sync)?;
    }
    Ok(Closed { backup, means })
}
