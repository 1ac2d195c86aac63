//! Recordings: the events of a run and their compact form, which the same code writes and reads.
//!
//! A recording is a file of chunks. Each thread fills its own chunks, without a lock and without allocating
//! (`recorder.rs`). One thread writes them unchanged (`recording.rs`), so memory is bounded for a recording of any
//! length. An event in a chunk stores time, fiber and name relative to the event before (`code.rs`). [`mod@file`]
//! defines the chunks' headers, and `place.rs` chooses the path. Another crate evaluates recordings.
//!
//! Workers number their fibers and scopes from 1. [`Key`] identifies an operation that leaves its worker. Times are
//! nanoseconds of CLOCK_MONOTONIC, in a simulation of its virtual clock.
//!
//! Limits: a name is cut at 255 bytes. The run's counters do not include the recording's own system calls.
#![doc = ""]
#![doc = include_str!("../docs/recording.md")]

mod code;
mod events;
pub mod file;
pub mod kernel;
pub mod label;
mod place;
mod queue;
mod recorder;
mod recording;
mod subject;

pub(crate) use crate::counting::Count as Handovers;
pub use code::{Decoder, Encoder};
pub use events::{Asked, CompletionMet, Event, Gauge, Key, Opener, SubmitReason};
pub use recorder::name_fiber;
pub(crate) use recorder::*;
pub(crate) use recording::{Clock, Recording, Role};
pub use recording::{FILE_VARIABLE, KERNEL_VARIABLE, ProgramsRecording, Recorded, Tracing};
pub(crate) use subject::{finished, name_of, queued, ran, result_of, started, stored};

/// Counts operations that the kernel hands to its own workers, if that is permitted.
pub(crate) fn count_handovers() -> Option<Handovers> {
    Handovers::of_this_thread(crate::counting::Event::KernelWorkerHandover).ok()
}
