//! Stands in for recordings in a build without the feature `trace`: nothing is recorded, and it costs nothing.

use std::convert::Infallible;
use std::sync::Arc;

use rustix::io::Errno;

use crate::error::SetupError;

#[allow(unreachable_pub, reason = "with the feature they are public")]
mod events;
mod subject;

use events::Asked;
pub(crate) use events::{CompletionMet, Event, Key, Opener, SubmitReason};
pub(crate) use subject::{finished, name_of, queued, ran, result_of, started, stored};

/// Settings of a recording, of which there are none.
#[derive(Debug, Clone)]
pub struct Tracing(Infallible);

impl Tracing {
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        match self.0 {}
    }
}

/// Result of a recording, of which there is none.
#[derive(Debug, Clone)]
pub struct Recorded(Infallible);

/// Clock of a simulation.
pub(crate) trait Clock: Send + Sync {
    fn now_ns(&self) -> u64;
}

#[derive(Clone, Copy)]
pub(crate) enum Role {
    Worker,
    Pool,
}

/// A recording, of which there is none.
pub(crate) struct Recording(Infallible);

impl Recording {
    pub(crate) fn begin(
        _: Option<&Tracing>,
        _: usize,
        _: Option<Arc<dyn Clock>>,
        _: usize,
    ) -> Result<Option<Arc<Self>>, SetupError> {
        Ok(None)
    }

    pub(crate) fn descriptors_of_kernel(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn add_thread(&self, _: Role) -> u32 {
        match self.0 {}
    }

    pub(crate) fn finish(&self, _: &str, _: &[(String, u64)]) -> Recorded {
        match self.0 {}
    }
}

/// A count of the kernel's hand-overs, of which there is none.
pub(crate) struct Handovers(Infallible);

impl Handovers {
    pub(crate) fn so_far(&self) -> Result<u64, Errno> {
        match self.0 {}
    }
}

/// Returns nothing: the kernel's events are not counted.
pub(crate) fn count_handovers() -> Option<Handovers> {
    None
}

/// Guard during which a thread would record.
pub(crate) struct Traced;

pub(crate) fn enter(_: Option<(&Arc<Recording>, u32)>) -> Traced {
    Traced
}

#[inline]
pub(crate) fn is_on() -> bool {
    false
}

#[inline]
pub(crate) fn clock() -> u64 {
    0
}

#[inline]
pub(crate) fn record_at(_: u64, _: &Event<'_>) {}

#[inline]
pub(crate) fn record(_: &Event<'_>) {}

pub(crate) fn running_fiber() -> u32 {
    0
}

/// Guard during which a fiber is polled.
pub(crate) struct Running;

#[inline]
pub(crate) fn run_fiber(_: u32) -> Running {
    Running
}

#[inline]
pub(crate) fn begin_fiber(_: u32) -> u32 {
    0
}

#[inline]
pub(crate) fn end_fiber(_: u32) {}

/// A future that would be recorded as a fiber.
pub(crate) struct Branch;

impl Branch {
    pub(crate) fn of(_: u32) -> Self {
        Self
    }

    pub(crate) fn untold() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn run(&self) -> Running {
        Running
    }

    pub(crate) fn end(&mut self) {}
}

/// Does nothing, because this build of ferry-io lacks its feature `trace`.
#[inline]
pub fn name_fiber(_: impl AsRef<[u8]>) {}

/// Guard of a scope that would be recorded.
pub(crate) struct Span;

#[inline]
pub(crate) fn open_scope(_: Opener) -> Span {
    Span
}

impl Span {
    pub(crate) fn scope(&self) -> u32 {
        0
    }
}

pub(crate) fn cancel_scope(_: u32) {}

pub(crate) fn sample(_: usize, _: usize) {}

fn tell_descriptors() -> u64 {
    0
}

#[inline]
pub(crate) fn descriptor_opened() -> bool {
    false
}

#[inline]
pub(crate) fn descriptor_closed() {}
