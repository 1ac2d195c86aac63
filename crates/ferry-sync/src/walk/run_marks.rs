//! Marks of other runs in the target's root: those of killed runs, and of runs at work.

use ferry_copy::RunMark;
use ferry_io::{Dir, Time};

use super::Walk;

impl Walk<'_> {
    /// Takes the marks, if the walk has examined everything: then no file lacks bytes because of a run that has ended.
    pub(crate) fn take_run_marks(&mut self) -> Vec<RunMark> {
        let choices = &self.choices;
        let is_whole = !choices.selector.is_active() && choices.list.is_none() && !choices.is_part;
        let marks = std::mem::take(&mut self.run_marks);
        if is_whole && self.found.failed == 0 && !self.io.is_stopped() { marks } else { Vec::new() }
    }
}

/// Returns the time since which files of a tree may lack bytes, if a run ended with its session.
pub(super) async fn doubted_since(marks: &[RunMark], root: &Dir, inode: u64) -> Option<Time> {
    let mut first: Option<Time> = None;
    for mark in marks {
        let since = mark.doubts_since(root, inode).await;
        first = first.into_iter().chain(since).min();
    }
    first
}
