//! Files that are overwritten in place, each with a mark while it may be incomplete (`staging/mark.rs`).

use ferry_io::{Dir, Result as IoResult, Stat};

use super::{Copier, attributes};
use crate::place::Entry;
use crate::report::FailureKind;
use crate::staging;
use crate::target::Ahead;
use crate::unfinished;

impl Copier {
    /// Overwrites a file in place. The folder's inode number is given.
    pub(super) async fn overwrite_marked(
        &self,
        entry: Entry<'_>,
        (dir, folder): (&Dir, u64),
        source: &Stat,
        target: &Stat,
    ) -> Result<(), FailureKind> {
        let is_new = staging::mark(dir, folder, entry.target, target).await;
        let overwritten = self.overwrite(entry, source, target).await;
        // After an error, the mark of an earlier run stays: that run has left the file incomplete.
        if overwritten.is_ok() || is_new && tells(dir.stat_entry(entry.target, false).await, target) {
            staging::unmark(dir, folder, entry.target, target).await;
        }
        overwritten
    }

    async fn overwrite(&self, entry: Entry<'_>, source: &Stat, target: &Stat) -> Result<(), FailureKind> {
        self.make_entry(entry, source, Ahead::Overwrite(*target)).await?;
        attributes::set_overwritten(&self.run, entry, source, target).await
    }
}

/// Returns true if a file that could not be overwritten needs no mark: it is as it was, or its time tells that it is
/// incomplete.
fn tells(found: IoResult<Stat>, target: &Stat) -> bool {
    found.is_ok_and(|found| {
        let is_as_before = found.is_same_file(target)
            && (found.size, found.times.modified) == (target.size, target.times.modified);
        is_as_before || unfinished::is_oldest(found.times.modified)
    })
}
