//! One entry from listing to report: its kind decides how it is copied, and its other names are settled.
//!
//! 1. Find out its kind, and the fate of an existing target (`target.rs`).
//! 2. Copy it: `file.rs` and `other.rs` open, claim and fill, and return before the claim is settled.
//! 3. Settle the claim (`entry/settle.rs`): link the names that waited, or have one of them take over.
//!
//! Nothing below calls back.

pub(crate) mod settle;

use std::sync::Arc;

use ferry_io::{FileKind, Stat};

use crate::claim::{self, Ended};
use crate::file;
use crate::file::plain::{self, End, Last};
use crate::folder::Folder;
use crate::linking;
use crate::links::NameClaim;
use crate::options::{Dereference, Make};
use crate::other;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::target::{self, Ahead, Seen};

/// Outcome of an entry.
pub(crate) enum Outcome {
    /// It was copied or left alone.
    Done,
    /// It is a folder, to be entered; through a link if `follow`.
    Folder { follow: bool },
}

/// An entry as it was listed or named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed {
    /// Its kind, if the listing has it.
    pub(crate) kind: Option<FileKind>,
    /// Set for an operand: `-H` follows it too.
    pub(crate) is_operand: bool,
}

/// Copies an entry of any kind.
pub(crate) async fn copy(run: &Arc<Run>, entry: Entry<'_>, listed: Listed) -> Result<Outcome, FailureKind> {
    run.pass().await.during(Verb::Stat)?;
    let follows = match run.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => listed.is_operand,
        Dereference::Never => false,
    };
    let follow = follows && matches!(listed.kind, None | Some(FileKind::Symlink));
    let mut known = None;
    let kind = match listed.kind {
        Some(kind) if !follow => kind,
        Some(_) | None => known.insert(run.stat(entry, follow).await?).kind,
    };
    if kind == FileKind::Directory {
        let is_entered = run.options.recursive;
        return if is_entered { Ok(Outcome::Folder { follow }) } else { Err(FailureKind::OmittingDirectory) };
    }
    if listed.is_operand {
        run.walk_shrinks();
    }
    if run.options.strict_kinds && kind.is_special() {
        return Err(FailureKind::SpecialSource);
    }
    let seen = see(run, entry, follow, known).await?;
    let ended = match seen.ahead {
        Ahead::Made => return Ok(Outcome::Done),
        Ahead::Stays | Ahead::IsNewer => Box::pin(leave(run, entry, &seen)).await?,
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Replace(_) | Ahead::BackUp | Ahead::Occupied => {
            let by_content =
                kind == FileKind::Regular || run.options.copy_contents && kind != FileKind::Symlink;
            match run.options.make {
                Make::HardLink => {
                    Box::pin(linking::link_to_source(run, entry, &seen)).await?;
                    Ended::Settled
                }
                Make::SymbolicLink => {
                    Box::pin(other::link_to_source(run, entry, &seen)).await?;
                    Ended::Settled
                }
                Make::Copy if by_content => file::copy(run, entry, &seen).await?,
                Make::Copy => Box::pin(other::copy(run, entry, &seen)).await?,
            }
        }
    };
    if !matches!(ended, Ended::Settled) {
        Box::pin(settle::settle(run, entry, seen.look(), ended)).await?;
    }
    Ok(Outcome::Done)
}

/// Copies the file that ended a run of plain ones, and reports its failure.
pub(crate) async fn end_run(run: &Arc<Run>, folder: &Arc<Folder>, last: Last<'_>) {
    let Last { listed, end } = last;
    let entry = Entry::of(folder, &listed.name);
    let mut is_done = true;
    match end {
        End::Left(left) => {
            let seen = Seen { follow: false, stat: None, ahead: Ahead::Free };
            let ended = match file::go_on(run, entry, left, &seen).await {
                Ok(ended) => settle::settle(run, entry, seen.look(), ended).await,
                Err(kind) => Err(kind),
            };
            if let Err(kind) = ended {
                is_done = !kind.is_cancelled();
                run.fail(entry, kind);
            }
        }
        End::Unclosed(error, _held) => plain::give_up_unclosed(run, entry, error).await,
    }
    run.progress.entries_done.add(u64::from(is_done));
}

/// Decides about the target before the source is opened.
async fn see(run: &Run, entry: Entry<'_>, follow: bool, known: Option<Stat>) -> Result<Seen, FailureKind> {
    if entry.is_in_new_folder() {
        return Ok(Seen { follow, stat: known, ahead: Ahead::Free });
    }
    let source = match known {
        Some(stat) => stat,
        None => run.stat(entry, follow).await?,
    };
    let ahead = Box::pin(target::look(run, entry, &source)).await?;
    Ok(Seen { follow, stat: Some(source), ahead })
}

/// Leaves the target as it is. A newer one (`-u`) counts as its source's copy: other names become links to it, or it
/// becomes a link to theirs.
async fn leave(run: &Arc<Run>, entry: Entry<'_>, seen: &Seen) -> Result<Ended, FailureKind> {
    run.note_skipped(entry);
    let is_newer = matches!(seen.ahead, Ahead::IsNewer) && run.options.make == Make::Copy;
    let Some(stat) = seen.stat.filter(|_| is_newer) else {
        return Ok(Ended::Settled);
    };
    Ok(match claim::claim_unopened(run, entry, &stat, seen.look()).await {
        // The target stays even if the source's name leads to another file by now.
        Err(FailureKind::Replaced) | Ok(NameClaim::Alone | NameClaim::Left) => Ended::Settled,
        Ok(NameClaim::First(file)) => Ended::First(file, Ok(claim::existing_copy(run, entry).await)),
        Ok(NameClaim::Linked(file, first)) => Ended::Later(file, first),
        Err(kind) => return Err(kind),
    })
}
