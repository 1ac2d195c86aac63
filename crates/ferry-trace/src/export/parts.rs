//! What an operation's time consists of: waiting told from being at work.

#[cfg(test)]
mod tests;

use ferry_io::Route;

use crate::model::{Nanos, Operation};

/// What an operation does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    /// It waits for its batch to be submitted, or for a thread that runs it.
    Queued,
    /// It is the ring's. Where the kernel's side was not recorded, that includes waiting to be taken.
    InRing,
    /// A thread runs it.
    Runs,
    /// Its answer is there; the worker has not taken it yet.
    Done,
}

impl Doing {
    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InRing => "in the ring",
            Self::Runs => "runs",
            Self::Done => "done, not taken",
        }
    }
}

/// A part of an operation's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) doing: Doing,
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
}

/// When the operation was over, or the recording.
pub(super) fn end(operation: &Operation, took: Nanos) -> Nanos {
    operation.taken.unwrap_or(took).max(operation.asked)
}

/// The parts of an operation, one after another, from when it was asked for to its [`end`]; those without length are
/// left out. Times out of order, as of clocks that disagree, are moved into it.
pub(super) fn parts(operation: &Operation, took: Nanos) -> impl Iterator<Item = Part> {
    let end = end(operation, took);
    let (work, begins) = match operation.route {
        Route::Ring => (Doing::InRing, operation.submitted),
        Route::Inline | Route::Pool | Route::Offload => (Doing::Runs, operation.started),
    };
    let begins = begins.unwrap_or(end).clamp(operation.asked, end);
    let done = operation.completed.unwrap_or(end).clamp(begins, end);
    let part = |doing, began, ended| Part { doing, began, ended };
    [part(Doing::Queued, operation.asked, begins), part(work, begins, done), part(Doing::Done, done, end)]
        .into_iter()
        .filter(|part| part.began < part.ended)
}
