//! Parts of an operation's time.

#[cfg(test)]
mod tests;

use ferry_io::Route;

use crate::model::{Nanos, Operation};

/// State of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    /// Waiting for its batch to be submitted, or for a thread to execute it.
    Queued,
    /// In the ring. Includes waiting for the worker if the kernel was not recorded.
    InRing,
    /// Executed by a thread.
    Runs,
    /// Completed; the worker has not taken the result yet.
    Done,
}

impl Doing {
    /// Name in legends.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InRing => "in the ring",
            Self::Runs => "runs",
            Self::Done => "completed, not taken",
        }
    }
}

/// A period in which an operation was in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) doing: Doing,
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
}

/// End of the operation, or of the recording.
pub(super) fn end(operation: &Operation, took: Nanos) -> Nanos {
    operation.taken.unwrap_or(took).max(operation.asked)
}

/// Parts of an operation from its request to its [`end`], without empty ones. Times out of order, for example from
/// clocks that disagree, are clamped.
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
