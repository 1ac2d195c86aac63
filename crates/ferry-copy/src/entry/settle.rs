//! Settling the claim of a name: its file's other names become links to its copy, or one of them takes its place.

use std::sync::Arc;

use ferry_io::FileKind;

use crate::claim::{self, Ended};
use crate::file;
use crate::finish;
use crate::linking;
use crate::links::{First, FirstCopy, NameClaim, NameLook, SourceIdentity, WaitingName};
use crate::other;
use crate::place::Entry;
use crate::report::FailureKind;
use crate::run::Run;
use crate::target;

/// Settles the claim of a name whose copy has ended, and returns how it ended.
pub(crate) async fn settle(
    run: &Arc<Run>,
    entry: Entry<'_>,
    look: NameLook,
    ended: Ended,
) -> Result<(), FailureKind> {
    match ended {
        Ended::Settled => Ok(()),
        Ended::First(file, Ok(copy)) => {
            link_waiting(run, entry, file, copy).await;
            Ok(())
        }
        Ended::First(file, Err(kind)) => {
            hand_over(run, file).await;
            Err(kind)
        }
        Ended::Later(file, first) => link(run, entry, file, first, look).await,
    }
}

/// Links the names that waited for one that is copied now.
async fn link_waiting(run: &Arc<Run>, entry: Entry<'_>, file: SourceIdentity, copy: Option<FirstCopy>) {
    let first = First::new(entry, copy, run.options.digest.is_some());
    for waiting in run.links.copied(file, first.clone()) {
        let linked = Box::pin(link(run, waiting.entry(), file, first.clone(), waiting.look)).await;
        if let Err(kind) = linked {
            run.fail(waiting.entry(), kind);
        }
        finish::end_one(run, waiting.folder).await;
    }
}

/// Has the names that waited for a failed one take its place, one after another, until one is copied. The others are
/// then linked to it.
async fn hand_over(run: &Arc<Run>, file: SourceIdentity) {
    while let Some(next) = run.links.failed(file) {
        let taken = take_over(run, next.entry(), file, next.look).await;
        let is_over = matches!(taken, Ok(TakenOver::First(_)));
        match taken {
            Ok(TakenOver::First(copy)) => link_waiting(run, next.entry(), file, copy).await,
            Ok(TakenOver::AnotherFile) => {}
            Err(kind) => run.fail(next.entry(), kind),
        }
        finish::end_one(run, next.folder).await;
        if is_over {
            return;
        }
    }
}

/// Outcome of copying a name in place of its file's first one.
enum TakenOver {
    /// It is the first name now, with this copy, if the copy could be examined.
    First(Option<FirstCopy>),
    /// The name is another file's by now, which was copied by itself.
    AnotherFile,
}

/// Copies a name as the first of its file.
async fn take_over(
    run: &Arc<Run>,
    entry: Entry<'_>,
    file: SourceIdentity,
    look: NameLook,
) -> Result<TakenOver, FailureKind> {
    let stat = claim::identify(run, entry, look.follow).await?;
    let is_file = SourceIdentity::of(&stat) == file;
    let by_content = run.options.copy_contents && stat.kind != FileKind::Symlink;
    let copy = if stat.kind == FileKind::Regular || by_content {
        file::copy_again(run, entry, is_file.then_some(file), look).await?
    } else {
        let ahead = target::look_again(run, entry, &stat, run.asks() && look.found_free).await?;
        other::make(run, entry, &stat, ahead).await?
    };
    match copy {
        _ if !is_file => Ok(TakenOver::AnotherFile),
        Some(copy) => Ok(TakenOver::First(Some(copy))),
        // The existing target stays, and counts as the copy.
        None => Ok(TakenOver::First(claim::existing_copy(run, entry).await)),
    }
}

/// Links a name to the copy of an earlier one. Where that can't be linked to, the name becomes the file's first.
///
/// Each round, another name has become the first since the last: there are no more rounds than names.
async fn link(
    run: &Arc<Run>,
    entry: Entry<'_>,
    file: SourceIdentity,
    mut first: First,
    look: NameLook,
) -> Result<(), FailureKind> {
    loop {
        if linking::link_to(run, entry, &first, look).await? {
            return Ok(());
        }
        match run.links.renew(file, &first, || WaitingName::of(entry, look)) {
            NameClaim::Linked(_, other) => first = other,
            NameClaim::First(_) | NameClaim::Alone => break,
            NameClaim::Left => return Ok(()),
        }
    }
    match Box::pin(take_over(run, entry, file, look)).await {
        Ok(TakenOver::First(copy)) => {
            Box::pin(link_waiting(run, entry, file, copy)).await;
            Ok(())
        }
        taken => {
            Box::pin(hand_over(run, file)).await;
            taken.map(drop)
        }
    }
}
