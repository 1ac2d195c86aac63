//! Flows of operations through events.

use super::packets::Event;
use crate::model::{Operation, Trace};
use ferry_io::Route;

/// Place that a flow passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Asked,
    Submission,
    Request,
    Run,
    Taken,
}

pub(super) struct Flows<'t> {
    trace: &'t Trace,
    /// Operations of each submission and of each request.
    submitted: Vec<Vec<usize>>,
    requested: Vec<Option<usize>>,
}

impl<'t> Flows<'t> {
    pub(super) fn of(trace: &'t Trace) -> Self {
        let mut submitted = vec![Vec::new(); trace.submissions.len()];
        let mut requested = vec![None; trace.requests.len()];
        for (index, operation) in trace.operations.iter().enumerate() {
            if let Some(batch) = operation.submission.and_then(|batch| submitted.get_mut(batch as usize)) {
                batch.push(index);
            }
            if let Some(request) = operation.request.and_then(|request| requested.get_mut(request as usize)) {
                *request = Some(index);
            }
        }
        Self { trace, submitted, requested }
    }

    pub(super) fn of_submission(&self, index: usize) -> &[usize] {
        self.submitted.get(index).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_request(&self, index: usize) -> Option<usize> {
        self.requested.get(index).copied().flatten()
    }

    /// Lets the flow of an operation pass through an event, or end there.
    pub(super) fn join(&self, event: &mut Event<'_>, index: usize, step: Step) {
        let Some(operation) = self.trace.operations.get(index) else { return };
        let last = self.last(operation, index);
        if last == Step::Asked {
            return;
        }
        let list = if last == step { &mut event.ending } else { &mut event.flows };
        list.push(index as u64 + 1);
    }

    /// Last place of an operation's flow. An operation with one place has no flow.
    fn last(&self, operation: &Operation, index: usize) -> Step {
        let submission = operation.submission.and_then(|batch| self.trace.submissions.get(batch as usize));
        // Only one of several operations that refer to a request owns it.
        let request = operation.request.filter(|request| self.of_request(*request as usize) == Some(index));
        let request = request.and_then(|request| self.trace.requests.get(request as usize));
        let ran_on = operation.ran_on.filter(|thread| (*thread as usize) < self.trace.threads.len());
        let taken = operation.taken.filter(|_| is_completed_by_ring(operation));
        let steps = [
            Some((operation.asked, Step::Asked)),
            submission.map(|submission| (submission.at, Step::Submission)),
            request.map(|request| (request.submitted, Step::Request)),
            ran_on.and(operation.started).map(|started| (started, Step::Run)),
            taken.map(|taken| (taken, Step::Taken)),
        ];
        let other = steps.iter().skip(1).flatten().max().copied();
        other.map_or(Step::Asked, |(_, step)| step)
    }
}

/// Returns true if its completion was taken from a ring.
pub(super) fn is_completed_by_ring(operation: &Operation) -> bool {
    operation.route == Route::Ring && operation.taken.is_some()
}
