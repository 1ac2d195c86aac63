//! The mark of a run in the root of its target (`staging/run_mark.rs`).

use ferry_io::protect;

use super::{Copier, Pair};
use crate::lent;
use crate::staging::{OwnRunMark, RunMark};

impl Copier {
    /// Marks the target of a pair as changed by this run, until [`Self::unmark_run`]; `None` if that is impossible.
    pub async fn mark_run(&self, root: &Pair) -> Option<OwnRunMark> {
        lent::lend(&self.run, &root.0, false).await;
        let dir = self.run.dirs(&root.0).await.ok()?.target;
        root.touch();
        OwnRunMark::make(&dir, root.0.facts()?.target.1).await
    }

    /// Removes the mark of this run, and those of runs that have ended. With `--fsync`, all bytes are durable before.
    pub async fn unmark_run(&self, root: &Pair, own: Option<OwnRunMark>, ended: &[RunMark]) {
        if own.is_none() && ended.is_empty() {
            return;
        }
        // Not cancellable: a run that was interrupted leaves no mark.
        protect(self.remove_marks(root, own, ended)).await;
    }

    async fn remove_marks(&self, root: &Pair, own: Option<OwnRunMark>, ended: &[RunMark]) {
        let (Ok(dirs), Some(facts)) = (self.run.dirs(&root.0).await, root.0.facts()) else { return };
        let (dir, folder) = (dirs.target, facts.target.1);
        let syncs = self.run.options.fsync && !self.run.is_interrupted();
        if syncs && dir.sync_filesystem().await.is_err() {
            return;
        }
        // It may have its final mode by now, so that it is lent again.
        lent::take_back(&self.run, &root.0).await.ok();
        lent::lend(&self.run, &root.0, false).await;
        root.touch();
        if let Some(own) = own {
            own.remove(&dir, folder).await;
        }
        for mark in ended {
            mark.remove(&dir, folder).await;
        }
    }
}
