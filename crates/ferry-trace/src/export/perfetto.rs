//! Perfetto's own format, which <https://ui.perfetto.dev> opens: tracks, slices, flows, counters.
//!
//! The program is a process, and each thread has its track, with what the thread did: operations that it ran, calls
//! of io_uring_enter(2), sleeps, submissions. Beneath a worker's stand the scopes, the fibers with their operations,
//! completions, what the kernel did, and counters, on as many tracks as overlap. A flow leads from an operation to its
//! submission, the kernel's request and the completion, or to the thread of the pool that ran it.
//! Packets are not in order of time, which Perfetto puts them into; the slices of one track are.

mod flows;
mod kernel;
mod packets;
mod proto;
mod spans;
mod threads;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use self::flows::Flows;
use self::packets::{Event, Packets, Value};
use self::proto::{
    CounterDescriptor, ORDER_EXPLICIT, ProcessDescriptor, SystemInfo, ThreadDescriptor, TrackDescriptor,
    UNIT_COUNT, Utsname,
};
use crate::model::{Gauge, Trace};

/// What stands beneath a thread's track, from above.
#[derive(Debug, Clone, Copy)]
enum Beneath {
    Scopes,
    Fibers,
    Operations,
    Completions,
    Kernel,
    Requests,
    Counter(Gauge),
    Overlapping,
}

impl Beneath {
    fn name(self) -> &'static str {
        match self {
            Self::Scopes => "scopes",
            Self::Fibers => "fibers",
            Self::Operations => "operations",
            Self::Completions => "completions",
            Self::Kernel => "kernel",
            Self::Requests => "requests",
            Self::Counter(Gauge::InFlight) => "in flight",
            Self::Counter(Gauge::Blocks) => "blocks",
            Self::Counter(Gauge::Descriptors) => "descriptors",
            Self::Overlapping => "overlapping",
        }
    }

    fn rank(self) -> i32 {
        match self {
            Self::Overlapping => 0,
            Self::Scopes => 1,
            Self::Fibers => 2,
            Self::Operations => 3,
            Self::Completions => 4,
            Self::Kernel => 5,
            Self::Requests => 6,
            Self::Counter(_) => 7,
        }
    }
}

/// A trace that is being written.
struct Drawing<'t, 'w, W> {
    trace: &'t Trace,
    packets: Packets<'w, W>,
    flows: Flows<'t>,
    process: u64,
    /// The track of each thread.
    threads: Vec<u64>,
}

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

impl<W: Write> Drawing<'_, '_, W> {
    /// The process, what is known of the recording, the runtime's own counters, and a track for each thread.
    fn process(&mut self) -> io::Result<()> {
        let about = &self.trace.about;
        // The first thread of a process has its number. A simulation has none.
        let lowest = self.trace.threads.iter().map(|thread| thread.tid).filter(|tid| *tid != 0).min();
        let pid = lowest.and_then(|tid| i32::try_from(tid).ok()).unwrap_or(1);
        self.process = self.packets.track(TrackDescriptor {
            process: Some(ProcessDescriptor {
                pid: Some(pid),
                cmdline: about.command.clone(),
                process_name: about.command.first().cloned(),
            }),
            ..TrackDescriptor::default()
        })?;
        for (index, thread) in (1_i64..).zip(&self.trace.threads) {
            let tid = if thread.tid == 0 { index } else { i64::from(thread.tid) };
            let track = self.packets.track(TrackDescriptor {
                parent_uuid: Some(self.process),
                thread: Some(ThreadDescriptor {
                    pid: Some(pid),
                    tid: Some(tid),
                    thread_name: Some(thread.name.clone()),
                }),
                child_ordering: Some(ORDER_EXPLICIT),
                ..TrackDescriptor::default()
            })?;
            self.threads.push(track);
        }
        self.about()
    }

    fn about(&mut self) -> io::Result<()> {
        let Self { trace, packets, process, .. } = self;
        let about = &trace.about;
        let command = about.command.join(" ");
        let mut recording = Event::new(*process, 0, "recording", "recording").with(vec![
            ("command", Value::Text(&command)),
            ("recorder", Value::Text(&about.recorder)),
            ("backend", Value::Text(&about.backend)),
            ("lost events of the program", Value::Count(trace.lost.program)),
            ("lost events of the kernel", Value::Count(trace.lost.kernel)),
        ]);
        recording.arguments.extend((!about.run.is_empty()).then_some(("run", Value::Text(&about.run))));
        recording.arguments.extend(about.missing.iter().map(|line| ("missing", Value::Text(line))));
        packets.slice(recording, about.took)?;
        for (name, value) in &trace.counters {
            let counter = Event::new(*process, about.took, "counter", name);
            packets.instant(counter.with(vec![("value", Value::Count(*value))]))?;
        }
        Ok(())
    }

    /// A track beneath a thread's; nothing where there is no such thread.
    fn beneath(&mut self, thread: u32, what: Beneath) -> io::Result<Option<u64>> {
        self.named(thread, what, what.name())
    }

    fn named(&mut self, thread: u32, what: Beneath, name: &str) -> io::Result<Option<u64>> {
        let Some(parent) = self.threads.get(thread as usize).copied() else { return Ok(None) };
        let counter =
            matches!(what, Beneath::Counter(_)).then_some(CounterDescriptor { unit: Some(UNIT_COUNT) });
        let descriptor = TrackDescriptor {
            name: Some(name.to_owned()),
            parent_uuid: Some(parent),
            counter,
            sibling_order_rank: Some(what.rank()),
            ..TrackDescriptor::default()
        };
        self.packets.track(descriptor).map(Some)
    }

    fn counters(&mut self) -> io::Result<()> {
        let mut tracks = HashMap::new();
        for sample in &self.trace.samples {
            let track = match tracks.entry((sample.thread, sample.gauge)) {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(new) => self
                    .beneath(sample.thread, Beneath::Counter(sample.gauge))?
                    .map(|track| *new.insert(track)),
            };
            if let Some(track) = track {
                self.packets.counter(track, sample.at, sample.value)?;
            }
        }
        Ok(())
    }
}
