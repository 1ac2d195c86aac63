//! Perfetto's own format, which <https://ui.perfetto.dev> opens: tracks, slices, flows, counters.
//!
//! The program is a process, and each thread has its track, with what the thread did: operations that it ran, calls
//! of io_uring_enter(2), sleeps, submissions. Beneath a worker's stand the scopes, the fibers with their operations,
//! completions, what the kernel did, and counters, on as many tracks as overlap. A flow leads from an operation to its
//! submission, the kernel's request and the completion, or to the thread of the pool that ran it.
//! Packets are not in order of time, which Perfetto puts them into; the slices of one track are.

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

/// Writes a trace in Perfetto's format (protobuf, `perfetto.protos.Trace`). Times are those of CLOCK_MONOTONIC, and the
/// file says what real time that was.
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
    drawing.kernel()?;
    drawing.counters()
}
