//! What is traced: the events of a run, and their compact form, written and read by the same code.
//!
//! A recording is a file of chunks. Each thread fills chunks of its own, without a lock and without allocating
//! (`recorder.rs`); a thread writes them as they are (`recording.rs`), so a recording of any length needs only so much
//! memory. In a chunk an event tells its time, its fiber and its name by what differs from the event before
//! (`code.rs`); what stands around chunks is in [`mod@file`], and where that is kept in `place.rs`. What becomes of a
//! recording is another crate's affair.
//!
//! Numbers of fibers and scopes are their worker's own and begin with 1; operations that leave their worker are known by
//! [`Key`]. Times are nanoseconds of CLOCK_MONOTONIC, in a simulation of its virtual clock.
//!
//! Limits: a name is cut at 255 bytes. What the recording itself costs in system calls is not among the run's counters.

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

pub use code::{Decoder, Encoder};
pub use events::{Asked, Event, Gauge, Key, Met, Opener, Why};
pub use recorder::name_fiber;
pub(crate) use recorder::*;
pub(crate) use recording::{Clock, Recording, Role};
pub use recording::{ProgramsRecording, Recorded, Tracing};
pub(crate) use subject::{finished, name_of, queued, ran, result_of, started, stored};
