//! Plain files of a folder that this run has made: one operation copies those that are listed one after another.
//!
//! A file is plain if it is in memory, fits into a block, has no holes and no other kept name, and needs no call but
//! for its bytes and its times. Options that concern single files keep them out ([`plan`]). The first file that is not
//! plain is copied by the usual steps, from the one that it has reached.

use std::sync::Arc;

use ferry_io::{
    Entry as ListedEntry, Error, FileKind, Permit, Rest, Stat, Stored, TransferPlan, Transferred,
};

use super::source;
use crate::folder::{Dirs, Folder};
use crate::options::{Make, Sparse};
use crate::place::Entry;
use crate::report::{Method, Verb};
use crate::run::{Details, Run};
use crate::target::{Ahead, Seen};
use crate::unfinished;

/// The file that ended a run of plain ones.
pub(crate) struct Last<'a> {
    pub(crate) listed: ListedEntry,
    pub(crate) end: End<'a>,
}

/// Its state.
pub(crate) enum End<'a> {
    /// It is not plain.
    Left(Left<'a>),
    /// Closing its copy failed.
    Unclosed(Option<Stat>, Error),
}

/// A file that is not plain, as far as it has come.
pub(crate) struct Left<'a> {
    pub(super) rest: Rest,
    /// Permit to create its target.
    pub(super) making: Permit<'a>,
    /// Permit for a file in flight.
    pub(super) permit: Permit<'a>,
}

/// Outcome of a run of plain files.
pub(crate) enum Ended<'a> {
    /// No run was begun: this entry is copied by the usual steps.
    NotBegun(ListedEntry),
    /// All were copied.
    Copied,
    /// All but the last.
    Last(Box<Last<'a>>),
}

/// Returns the treatment of plain files next to this one; `None` if none is plain.
fn plan(run: &Run, entry: Entry<'_>) -> Option<TransferPlan> {
    let options = &run.options;
    let preserve = options.preserve;
    let seen = Seen { follow: false, stat: None, ahead: Ahead::Free };
    let is_plain = entry.is_in_new_folder()
        && source::may_store(run, entry, &seen)
        && options.make == Make::Copy
        && options.sparse != Sparse::Always
        && options.backup.is_none()
        && !(options.copy_contents || options.verbose || options.explain || options.fsync)
        && !run.asks()
        && !run.clones_small_files(entry.folder);
    if !is_plain {
        return None;
    }
    let mode = source::first_mode(run, entry);
    let needs_nothing = if preserve.mode {
        mode.at_once.is_some()
    } else {
        !(preserve.ownership || preserve.xattr || preserve.refuse_mode)
    };
    needs_nothing.then_some(TransferPlan {
        xattrs: preserve.mode,
        alone: preserve.links,
        mode,
        needs_whole: preserve.mode,
        times: preserve.timestamps,
        identifies: entry.folder.abilities().is_none_or(|known| known.close_may_fail()),
    })
}

/// Copies a file and those after it while they are plain. `next` returns the next file of the folder.
pub(crate) async fn copy_run<'a>(
    run: &'a Run,
    folder: &Arc<Folder>,
    first: ListedEntry,
    next: impl Fn() -> Option<ListedEntry>,
) -> Ended<'a> {
    if first.kind != Some(FileKind::Regular) {
        return Ended::NotBegun(first);
    }
    let Some(plan) = plan(run, Entry::of(folder, &first.name)) else { return Ended::NotBegun(first) };
    // Errors belong to the usual steps.
    let Ok(Dirs { source, target }) = run.dirs(folder).await else { return Ended::NotBegun(first) };
    if !source.transfers_many() {
        return Ended::NotBegun(first);
    }
    let Ok(permit) = run.limits.files.acquire().await else { return Ended::NotBegun(first) };
    let Ok(block) = run.io.block().await else { return Ended::NotBegun(first) };
    let Ok(Some(making)) = run.turns.make().await else { return Ended::NotBegun(first) };
    let mut many = source.transfer_many(&target, block, plan);
    let mut copied = Copied::default();
    let mut listed = first;
    let end = loop {
        match many.transfer(&listed.name) {
            Transferred::Stored(Stored { file, bytes, size, made }) => {
                copied.moved(bytes, size);
                if let Err(error) = file.close() {
                    break Some(End::Unclosed(made, error));
                }
                copied.files += 1;
                run.note_copied(
                    Entry::of(folder, &listed.name).into(),
                    FileKind::Regular,
                    &Details::default(),
                );
            }
            Transferred::Left(rest) => break Some(End::Left(Left { rest, making, permit })),
        }
        if many.is_over() {
            break None;
        }
        match next() {
            Some(more) => listed = more,
            None => break None,
        }
        ferry_io::name_fiber(listed.name.as_bytes());
    };
    copied.note(run);
    match end {
        Some(end) => Ended::Last(Box::new(Last { listed, end })),
        None => Ended::Copied,
    }
}

/// Gives up a copy whose closing failed, and reports it.
pub(crate) async fn give_up_unclosed(run: &Run, entry: Entry<'_>, made: Option<Stat>, error: Error) {
    let kind = Verb::Close.failed(error);
    unfinished::give_up_closed(run, entry, made.as_ref(), true, &kind).await;
    run.fail(entry, kind);
}

/// Counts of a run, added to the totals at its end: other workers change these, too.
#[derive(Default)]
struct Copied {
    files: u64,
    empty: u64,
    filled: u64,
    bytes: u64,
    /// Sizes of the sources as they were opened.
    found: u64,
}

impl Copied {
    fn moved(&mut self, bytes: u64, size: u64) {
        if bytes == 0 {
            self.empty += 1;
        } else {
            self.filled += 1;
        }
        self.bytes += bytes;
        self.found += size;
    }

    fn note(self, run: &Run) {
        run.progress.bytes_found.add(self.found);
        run.progress.bytes_done.add(self.bytes);
        run.progress.entries_done.add(self.files);
        run.tally.count_many(Method::Nothing, self.empty, 0);
        run.tally.count_many(Method::Whole, self.filled, self.bytes);
        run.tally.files.add(self.files);
    }
}
