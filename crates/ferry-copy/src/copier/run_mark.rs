//! The mark of a run in the root of its target (`staging/run_mark.rs`). The root keeps its time and its mode.
//!
//! Limit: a change of the root by another program at the same moment does not show in its time.

use ferry_io::{Dir, protect};

use super::{Copier, Pair};
use crate::lent;
use crate::staging::{OwnRunMark, RunMark};
use crate::sync;

impl Copier {
    /// Marks the target of a pair as changed by this run, until [`Self::unmark_run`]; `None` if that is impossible.
    pub async fn mark_run(&self, root: &Pair) -> Option<OwnRunMark> {
        let folder = root.0.facts()?.target.1;
        let mark = async |dir: &Dir| OwnRunMark::make(dir, folder).await;
        protect(self.with_root(root, mark)).await.flatten()
    }

    /// Removes the mark of this run, and those of runs that have ended. If this run was stopped, or something may not be durable
    /// that should be, the marks stay.
    pub async fn unmark_run(&self, root: &Pair, own: Option<OwnRunMark>, ended: &[RunMark]) {
        if own.is_none() && ended.is_empty()
            || self.is_stopped()
            || !sync::filesystems(&self.run, false).await
        {
            return;
        }
        let Some(facts) = root.0.facts() else { return };
        let folder = facts.target.1;
        let remove = async |dir: &Dir| {
            if let Some(own) = own {
                own.remove(dir, folder).await;
            }
            for mark in ended {
                mark.remove(dir, folder).await;
            }
        };
        protect(self.with_root(root, remove)).await;
    }

    /// Changes the entries of a target's folder, which keeps its time. A user's own folder keeps its mode, too.
    async fn with_root<T>(&self, root: &Pair, change: impl AsyncFnOnce(&Dir) -> T) -> Option<T> {
        let dir = self.run.dirs(&root.0).await.ok()?.target;
        let before = dir.stat().await.ok()?;
        // `lend` asks once for each folder. Taken back first, it asks again: the root may have its final mode by now.
        lent::take_back(&self.run, &root.0).await.ok();
        lent::lend(&self.run, &root.0, false).await;
        let changed = change(&dir).await;
        dir.as_file().set_times(before.times).await.ok();
        lent::take_back(&self.run, &root.0).await.ok();
        Some(changed)
    }
}
