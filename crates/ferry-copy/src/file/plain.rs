//! Plain files of a folder that this run has made: one operation copies those that are listed one after another.
//!
//! A file is plain if it is in memory, fits into a block, has no holes and no other kept name, and needs no call but
//! for its bytes and its times. Options that concern single files keep them out ([`plan`]). The first file that is not
//! plain is copied by the usual steps, from the one that it has reached.

use std::sync::Arc;

use ferry_io::{
    Entry as ListedEntry, Error, FileKind, Permit, Preload, Rest, Stored, TransferPlan, Transferred,
};

use super::source;
use crate::folder::{Dirs, Folder};
use crate::options::{Existing, Make, Options, Reflink, Sparse};
use crate::place::Entry;
use crate::report::{Method, Verb};
use crate::run::Run;
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
    Unclosed(Error, Held<'a>),
}

/// A file that is not plain, as far as it has come.
pub(crate) struct Left<'a> {
    pub(super) rest: Rest,
    pub(super) held: Held<'a>,
}

/// Permits of a run, which its last file keeps.
pub(crate) struct Held<'a> {
    /// Permit to create a target.
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

/// Returns true if no option keeps files out of runs.
fn let_run(options: &Options) -> bool {
    let preserve = options.preserve;
    // With a mode, the new file is whole, or it is handed back.
    let needs_nothing = preserve.mode || !(preserve.ownership || preserve.xattr || preserve.refuse_mode);
    needs_nothing
        && source::let_store(options)
        && options.make == Make::Copy
        && options.sparse != Sparse::Always
        && options.reflink != Reflink::Always
        && options.existing != Existing::Ask
        && options.backup.is_none()
        && !(options.copy_contents || options.verbose || options.explain || options.fsync)
}

/// Returns the treatment of plain files next to this one; `None` if none is plain.
fn plan(run: &Run, entry: Entry<'_>) -> Option<TransferPlan> {
    let preserve = run.options.preserve;
    if !entry.is_in_new_folder() || !let_run(&run.options) {
        return None;
    }
    let known = entry.folder.abilities()?;
    let shares = run.clones_small_files(entry.folder);
    let mode = source::first_mode(run, entry);
    // The first clone of a filesystem shows what it refuses. Over a network, closing may fail, and each file is
    // identified first.
    let is_plain = (!shares || known.has_cloned())
        && !known.close_may_fail()
        && (!preserve.mode || mode.at_once.is_some());
    is_plain.then_some(TransferPlan {
        xattrs: preserve.mode,
        alone: preserve.links,
        mode,
        needs_whole: preserve.mode,
        times: preserve.timestamps,
        shares,
    })
}

/// Returns the files that are read with the listing of a folder. Its copy must be new, and no option may keep a source from
/// being loaded as a whole.
pub(crate) fn preload(run: &Run, folder: &Folder) -> Option<Preload> {
    let (options, parent) = (&run.options, folder.parent()?);
    let loads_whole = source::let_store(options)
        && options.make == Make::Copy
        && options.sparse != Sparse::Always
        && options.existing != Existing::Ask
        && !(options.copy_contents || options.filtered)
        && !run.clones_small_files(parent);
    let is_new = parent.facts().is_some_and(|facts| facts.is_new);
    let is_local = parent.abilities().is_some_and(|known| !known.close_may_fail());
    let at_once = run.limits.preloaded_at_once;
    (is_new && is_local && loads_whole && at_once > 0).then(|| Preload {
        xattrs: options.preserve.mode || options.preserve.xattr,
        alone: options.preserve.links,
        largest: run.io.block_size() as u64,
        at_once,
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
    if run.pass().await.is_err() {
        return Ended::NotBegun(first);
    }
    let Ok(Dirs { source, target }) = run.dirs(folder).await else { return Ended::NotBegun(first) };
    if !source.transfers_many(&first.name) {
        return Ended::NotBegun(first);
    }
    let Ok(permit) = run.limits.files.acquire().await else { return Ended::NotBegun(first) };
    let Ok(block) = run.io.block().await else { return Ended::NotBegun(first) };
    let Ok(Some(making)) = run.turns.make().await else { return Ended::NotBegun(first) };
    let held = Held { making, permit };
    let mut many = source.transfer_many(&target, block, plan);
    let mut copied = Copied::default();
    let mut listed = first;
    let end = loop {
        match many.transfer(&listed.name) {
            Transferred::Stored(Stored { file, bytes, size }) => {
                copied.moved(bytes, size);
                if let Err(error) = file.close() {
                    break Some(End::Unclosed(error, held));
                }
                copied.files += 1;
            }
            Transferred::Left(rest) => break Some(End::Left(Left { rest, held })),
        }
        if many.is_over() {
            break None;
        }
        match next() {
            Some(more) => listed = more,
            None => break None,
        }
    };
    copied.note(run, if plan.shares { Method::Reflink } else { Method::Whole });
    match end {
        Some(end) => Ended::Last(Box::new(Last { listed, end })),
        None => Ended::Copied,
    }
}

/// Reports a copy whose closing failed, which stays: closing has freed its descriptor, so nothing proves which file it is.
pub(crate) async fn give_up_unclosed(run: &Run, entry: Entry<'_>, error: Error) {
    let kind = Verb::Close.failed(error);
    unfinished::give_up_closed(run, entry, None, true, &kind).await;
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
    sizes: u64,
}

impl Copied {
    fn moved(&mut self, bytes: u64, size: u64) {
        if bytes == 0 {
            self.empty += 1;
        } else {
            self.filled += 1;
        }
        self.bytes += bytes;
        self.sizes += size;
    }

    fn note(self, run: &Run, method: Method) {
        run.progress.bytes_found.add(self.sizes);
        run.progress.bytes_done.add(self.bytes);
        run.progress.entries_done.add(self.files);
        run.tally.count_many(Method::Nothing, self.empty, 0);
        run.tally.count_many(method, self.filled, self.bytes);
        run.tally.files.add(self.files);
    }
}

#[cfg(test)]
mod tests;
