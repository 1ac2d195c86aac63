//! Tracks of the process, of its threads and of block devices, the parents of all other tracks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use super::flows::Flows;
use super::packets::{Event, Packets, Value};
use super::proto::{
    CounterDescriptor, ORDER_EXPLICIT, ProcessDescriptor, ThreadDescriptor, TrackDescriptor, UNIT_COUNT,
};
use crate::model::{Gauge, Role, Trace};

/// Track beneath a thread's track, from top to bottom.
#[derive(Debug, Clone, Copy)]
pub(super) enum Beneath {
    Scopes,
    Fibers,
    Operations,
    Completions,
    Kernel,
    Requests,
    Devices,
    Counter(Gauge),
    Overlapping,
}

impl Beneath {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scopes => "scopes",
            Self::Fibers => "fibers",
            Self::Operations => "operations",
            Self::Completions => "completions",
            Self::Kernel => "kernel",
            Self::Requests | Self::Devices => "requests",
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
            Self::Requests | Self::Devices => 6,
            Self::Counter(_) => 7,
        }
    }
}

/// A trace being written.
pub(super) struct Drawing<'t, 'w, W> {
    pub(super) trace: &'t Trace,
    pub(super) packets: Packets<'w, W>,
    pub(super) flows: Flows<'t>,
    pub(super) process: u64,
    pub(super) threads: Vec<u64>,
}

impl<W: Write> Drawing<'_, '_, W> {
    /// Writes the process, the origin of the recording, the runtime's counters, and a track for each thread.
    pub(super) fn process(&mut self) -> io::Result<()> {
        let about = &self.trace.about;
        // The first thread of a process has the process number. Threads of a simulation have none.
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
            if thread.role == Role::Device {
                let device = TrackDescriptor {
                    name: Some(thread.name.clone()),
                    parent_uuid: Some(self.process),
                    child_ordering: Some(ORDER_EXPLICIT),
                    ..TrackDescriptor::default()
                };
                self.threads.push(self.packets.track(device)?);
                continue;
            }
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

    /// Creates a track beneath a thread's; `None` if the thread is unknown.
    pub(super) fn beneath(&mut self, thread: u32, what: Beneath) -> io::Result<Option<u64>> {
        self.named(thread, what, what.name())
    }

    pub(super) fn named(&mut self, thread: u32, what: Beneath, name: &str) -> io::Result<Option<u64>> {
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

    pub(super) fn counters(&mut self) -> io::Result<()> {
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
