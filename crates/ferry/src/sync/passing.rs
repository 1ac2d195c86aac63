//! Failures that may pass: whether it makes sense to run again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ferry_copy::{
    Copied, Explained, Failure, FailureKind, Observer, PartNote, PartState, Question, Unfinished,
};
use ferry_io::Errno;

use crate::events::Events;

/// Returns the pause after an attempt, counted from 0: 1, 2, 4 s and so on, at most 64 s.
pub(super) fn pause_after(attempt: u32) -> Duration {
    Duration::from_secs(1 << attempt.min(6))
}

/// Passes events on, and notes failures that may pass.
pub(super) struct Passing {
    inner: Arc<dyn Observer>,
    events: Option<Arc<Events>>,
    may_pass: AtomicBool,
    /// An error of a device that may pass once.
    is_io_error: AtomicBool,
    /// Bytes of incomplete files that the next run goes on after.
    kept: AtomicU64,
}

impl Passing {
    pub(super) fn new(inner: Arc<dyn Observer>, events: Option<Arc<Events>>) -> Self {
        let [may_pass, is_io_error] = [AtomicBool::new(false), AtomicBool::new(false)];
        Self { inner, events, may_pass, is_io_error, kept: AtomicU64::new(0) }
    }

    /// Returns the number of bytes of incomplete files that the next run goes on after.
    pub(super) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Returns true if a failure of this attempt may pass, and forgets them all.
    pub(super) fn may_pass(&self, is_first: bool) -> bool {
        let is_io_error = self.is_io_error.swap(false, Ordering::Relaxed);
        self.may_pass.swap(false, Ordering::Relaxed) || is_first && is_io_error
    }
}

impl Observer for Passing {
    fn failed(&self, failure: &Failure) {
        if let FailureKind::Io { error, .. } = &failure.kind {
            let is_any = [Errno::AGAIN, Errno::STALE, Errno::TIMEDOUT].iter().any(|errno| error.is(*errno));
            self.may_pass.fetch_or(is_any, Ordering::Relaxed);
            self.is_io_error.fetch_or(error.is(Errno::IO), Ordering::Relaxed);
        }
        let is_changed = matches!(failure.kind, FailureKind::Changed | FailureKind::Replaced);
        self.may_pass.fetch_or(is_changed, Ordering::Relaxed);
        self.inner.failed(failure);
        if let Some(events) = &self.events {
            events.failed(failure);
        }
    }

    fn copied(&self, copied: &Copied<'_>) {
        self.inner.copied(copied);
    }

    fn skipped(&self, target: &Path) {
        self.inner.skipped(target);
    }

    fn repeated(&self, source: &Path, is_folder: bool) {
        self.inner.repeated(source, is_folder);
    }

    fn removed(&self, target: &Path) {
        self.inner.removed(target);
    }

    fn taken_back(&self, backup: &Path, target: &Path) {
        self.inner.taken_back(backup, target);
    }

    fn agrees(&self, target: &Path, question: Question, is_over: &dyn Fn() -> bool) -> bool {
        self.inner.agrees(target, question, is_over)
    }

    fn explained(&self, explained: &Explained<'_>) {
        self.inner.explained(explained);
    }

    fn part(&self, note: &PartNote) {
        match note.state {
            PartState::Kept(bytes) => drop(self.kept.fetch_add(bytes, Ordering::Relaxed)),
            PartState::Continued(..) | PartState::Ignored(_) => {}
        }
        self.inner.part(note);
        if let Some(events) = &self.events {
            events.part(note);
        }
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.inner.unfinished(unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let pauses = [0, 1, 2, 6, 7, u32::MAX].map(|attempt| pause_after(attempt).as_secs());
        assert_eq!(pauses, [1, 2, 4, 64, 64, 64]);
    }
}
