//! Stands in for rings in a build without the feature `uring`: none can be opened.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Operation, SetupError};
use crate::event::SubmitReason;
use crate::inbox::Inbox;
use crate::op::Op;
use crate::options::Options;
use crate::route::Reason;
use crate::shared::Shared;
use crate::slots::{Completion, Key};
use crate::stats::Counters;

/// A ring, of which there is none.
pub(crate) struct Ring(Infallible);

impl Ring {
    pub(crate) fn open(_: &Arc<Shared>, _: &Arc<Inbox>) -> Result<Self, SetupError> {
        Err(left_out())
    }

    pub(crate) fn can(&mut self, _: Operation) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_due(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn in_flight(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn has_slept(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_saturated(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn push(&mut self, _: Key, _: Op, _: Reason, _: u64) -> Result<(), Op> {
        match self.0 {}
    }

    pub(crate) fn enter_because(
        &mut self,
        _: SubmitReason,
        _: Option<Option<Duration>>,
        _: &Counters,
    ) -> Vec<(Key, Completion)> {
        match self.0 {}
    }

    pub(crate) fn start_batch(&mut self, _: &Counters) {
        match self.0 {}
    }

    pub(crate) fn take_passed_on(&mut self) -> Vec<(Operation, Reason)> {
        match self.0 {}
    }

    pub(crate) fn cancel(&mut self, _: Key) {
        match self.0 {}
    }
}

/// Returns the reason why there is no ring.
pub(crate) fn probe(_: &Options) -> Result<String, SetupError> {
    Err(left_out())
}

fn left_out() -> SetupError {
    SetupError::NoUring { reason: "this build of ferry-io lacks its feature `uring`".to_owned() }
}

/// Descriptors that a ring holds.
pub(crate) mod holding {
    use std::convert::Infallible;

    use rustix::fd::RawFd;

    /// A ring, of which there is none.
    pub(crate) struct Holding(Infallible);

    /// Returns nothing: no ring can hold the descriptors.
    pub(crate) fn hold(_: &[RawFd]) -> Option<Holding> {
        None
    }
}
