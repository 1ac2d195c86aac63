//! Many new entries of one folder, copied as the walk copies them: plain files in runs, the others as fibers.

use std::cell::RefCell;
use std::collections::VecDeque;

use ferry_io::{Entry as ListedEntry, FileKind, Name, Stat, for_each};

use super::listed::Listing;
use super::{Copier, Pair, Sides};
use crate::entry::settle::settle;
use crate::file;
use crate::file::plain::{self, End, Ended, Last};
use crate::listing::Chunk;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::staging;
use crate::target::{Ahead, Seen};

impl Copier {
    /// Number of entries of one folder to be copied at once.
    #[must_use]
    pub fn entries_at_once(&self) -> usize {
        self.run.limits.entries_at_once
    }

    /// Counts entries as done, for a progress bar.
    pub fn count_entries(&self, number: u64) {
        self.run.progress.entries_done.add(number);
    }

    /// Begins to list the source of a pair.
    ///
    /// # Errors
    /// If it can't be opened or listed.
    pub async fn list(&self, pair: &Pair) -> Result<Listing, FailureKind> {
        let source = self.run.dirs(&pair.0).await.during(Verb::OpenDirectory)?.source;
        let first = source.list(Some(0)).await.during(Verb::ReadDirectory)?;
        Ok(Listing::of(Chunk::first(&self.run.open_listings, source, first).await))
    }

    /// Copies entries that the target lacks, and reports those that fail. Returns the ones that were left: folders, and
    /// files that `leaves` accepts by their attributes. A file with one name that fits into a block may be copied all the
    /// same.
    pub async fn copy_new(
        &self,
        pair: &Pair,
        entries: Vec<ListedEntry>,
        leaves: &dyn Fn(&Stat) -> bool,
    ) -> Vec<(Name, Stat)> {
        pair.touch();
        let rest = RefCell::new(VecDeque::from(entries));
        let left = RefCell::new(Vec::new());
        let next = || rest.borrow_mut().pop_front();
        let next_file = || {
            let is_file = rest.borrow().front().is_some_and(|next| next.kind == Some(FileKind::Regular));
            if is_file { next() } else { None }
        };
        let ended =
            for_each(self.entries_at_once(), std::iter::from_fn(next), async |listed: ListedEntry| {
                if ferry_io::is_cancelled() {
                    return Err(());
                }
                let copied = match plain::copy_run(&self.run, &pair.0, listed, next_file).await {
                    Ended::Copied => return Ok(()),
                    Ended::NotBegun(listed) => {
                        (self.copy_unless(pair, &listed.name, leaves).await, listed.name)
                    }
                    Ended::Last(last) => {
                        let Last { listed, end } = *last;
                        (Box::pin(self.end_run(pair, &listed.name, end, leaves)).await, listed.name)
                    }
                };
                match copied {
                    (Ok(None), _) => {}
                    (Ok(Some(stat)), name) => left.borrow_mut().push((name.detached(), stat)),
                    (Err(kind), name) => self.run.fail(Entry::of(&pair.0, &name), kind),
                }
                Ok(())
            });
        // Ends early only in a cancelled run.
        ended.await.ok();
        left.into_inner()
    }

    /// Copies the file that ended a run of plain ones; returns the attributes of one that is left.
    async fn end_run(
        &self,
        pair: &Pair,
        name: &Name,
        end: End<'_>,
        leaves: &dyn Fn(&Stat) -> bool,
    ) -> Result<Option<Stat>, FailureKind> {
        let (run, entry) = (&self.run, Entry::of(&pair.0, name));
        let seen = Seen { follow: false, stat: None, ahead: Ahead::Free };
        match end {
            End::Left(left) => match file::go_on_unless(run, entry, left, &seen, leaves).await? {
                Ok(ended) => settle(run, entry, seen.look(), ended).await.map(|()| None),
                Err(stat) => Ok(Some(stat)),
            },
            End::Unclosed(error, _held) => {
                plain::give_up_unclosed(run, entry, error).await;
                Ok(None)
            }
        }
    }

    /// Copies an entry of any kind; returns the attributes of one that is left.
    async fn copy_unless(
        &self,
        pair: &Pair,
        name: &Name,
        leaves: &dyn Fn(&Stat) -> bool,
    ) -> Result<Option<Stat>, FailureKind> {
        let source = self.run.stat(Entry::of(&pair.0, name), self.follows()).await?;
        if source.kind == FileKind::Directory || leaves(&source) {
            return Ok(Some(source));
        }
        if self.by_rules {
            return self.copy_by_rules(pair, name).await.map(|()| None);
        }
        self.copy(pair, name, Sides { source: &source, target: None }).await.map(|()| None)
    }

    /// Removes the hidden names of the target's folder, whose runs have all ended.
    ///
    /// # Errors
    /// If the folder can't be opened or listed.
    pub async fn clear_hidden(&self, pair: &Pair) -> Result<(), FailureKind> {
        let target = self.run.dirs(&pair.0).await.during(Verb::Remove)?.target;
        let folder = target.stat().await.during(Verb::StatTarget)?.inode;
        staging::clear_all(&target, folder).await.during(Verb::Remove)
    }
}
