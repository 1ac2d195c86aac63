//! Perfetto's format for <https://ui.perfetto.dev>: tracks, slices, flows, counters.
//!
//! The program is a process. Each thread has a track with its own activity: executed operations, calls of
//! io_uring_enter(2), sleeps, submissions. Beneath a worker's track are scopes, fibers with their operations,
//! completions, events of the kernel, and counters, with as many tracks as overlap requires. Block devices have tracks
//! with their requests. A flow connects an
//! operation with its submission, the kernel's request and the completion, or with the pool thread that executed it.
//! Packets are not sorted by time, which Perfetto does; slices of one track are.

mod drawing;
mod flows;
mod kernel;
mod packets;
mod proto;
mod spans;
mod threads;

use std::io::{self, Write};

use self::drawing::Drawing;
use self::flows::Flows;
use self::packets::Packets;
use self::proto::{SystemInfo, Utsname};
use crate::model::Trace;

/// Writes a trace in Perfetto's format (protobuf, `perfetto.protos.Trace`). Times are those of CLOCK_MONOTONIC; a
/// snapshot relates them to real time.
///
/// # Errors
/// Those of `out`.
pub fn perfetto(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let about = &trace.about;
    let utsname = Utsname { sysname: Some("Linux".to_owned()), release: Some(about.kernel.clone()) };
    let system = SystemInfo { utsname: Some(utsname), num_cpus: Some(about.processors) };
    let mut packets = Packets::open(out, about.monotonic, about.began)?;
    packets.system(system)?;
    let mut drawing = Drawing { trace, packets, flows: Flows::of(trace), process: 0, threads: Vec::new() };
    drawing.process()?;
    drawing.threads()?;
    drawing.scopes()?;
    drawing.fibers()?;
    drawing.completions()?;
    drawing.requests()?;
    drawing.device_requests()?;
    drawing.kernel()?;
    drawing.counters()
}
