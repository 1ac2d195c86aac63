//! Reading a recording's file into a [`Trace`], in one pass over arbitrary bytes.
//!
//! Events of one thread come in order, those of different threads do not: a pool thread may report an operation before
//! the worker that requested it does. So `program.rs` collects everything, and joins and sorts it once the end is
//! read. A file without that end is truncated and not used.

mod names;
mod order;
mod program;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub use ferry_io::event::file::Broken;
use ferry_io::event::file::{Chunk, ChunkKind, Fields, Reader};
use ferry_io::event::kernel::summary_of;
use ferry_io::sampling::{self, SampleKind};
use ferry_io::{Cause, Errno};

use crate::Trace;
use crate::kernel::GETEVENTS;
use crate::model::{About, Lost, Role, Thread};
use names::Names;
use program::{LONGEST, Program};

/// Reads a recording from its file.
///
/// # Errors
/// The fault of the file.
pub fn open(path: &Path) -> Result<Trace, Broken> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Broken::Unreadable(Cause::Errno(Errno::ISDIR)));
    }
    if kind.is_file() { read(BufReader::new(file)) } else { Err(Broken::Foreign) }
}

/// Reads a recording from its bytes.
///
/// # Errors
/// The fault of the bytes.
pub fn read(source: impl Read) -> Result<Trace, Broken> {
    let mut reader = Reader::new(source)?;
    let (chunk, bytes) = reader.next_chunk()?;
    if chunk.kind != ChunkKind::Header {
        return Err(Broken::Damaged);
    }
    let header = Fields::of_bytes(bytes).ok_or(Broken::Damaged)?;
    let mut program = Program::new(Names::of(&header)?);
    let mut kernel = Kernel::default();
    let end = loop {
        let (chunk, bytes) = reader.next_chunk()?;
        match chunk.kind {
            ChunkKind::Header => return Err(Broken::Damaged),
            ChunkKind::Events => program.take(&chunk, bytes).ok_or(Broken::Damaged)?,
            ChunkKind::Kernel => kernel.take(&chunk, bytes).ok_or(Broken::Damaged)?,
            ChunkKind::KernelEnd => {
                let fields = Fields::of_bytes(bytes).ok_or(Broken::Damaged)?;
                kernel.summary = Some(summary_of(&fields).ok_or(Broken::Damaged)?);
            }
            ChunkKind::End => break Fields::of_bytes(bytes).ok_or(Broken::Damaged)?,
        }
    };
    if !reader.is_at_end()? {
        return Err(Broken::Damaged);
    }
    finish(&header, program, kernel, &end).ok_or(Broken::Damaged)
}

/// Events of the kernel.
#[derive(Default)]
struct Kernel {
    events: Vec<sampling::Event>,
    summary: Option<sampling::Summary>,
}

impl Kernel {
    /// Adds a chunk; `None` if it is malformed.
    fn take(&mut self, chunk: &Chunk, bytes: &[u8]) -> Option<()> {
        let mut decoder = sampling::Decoder::new(bytes, chunk.base);
        for _ in 0..chunk.events {
            self.events.push(decoder.next_event()?);
        }
        decoder.is_at_end().then_some(())
    }
}

/// Joins all parts; `None` if they do not belong together.
fn finish(header: &Fields, program: Program, kernel: Kernel, end: &Fields) -> Option<Trace> {
    let began = header.number("began")?;
    if program.events() != end.number::<u64>("events")? {
        return None;
    }
    let mut trace = Trace { about: about(header, end, began)?, ..Trace::default() };
    let is_too_late = |event: &sampling::Event| event.at.saturating_sub(began) > LONGEST;
    if trace.about.took > LONGEST || kernel.events.iter().any(is_too_late) {
        return None;
    }
    let (tids, roles) = (end.list("thread_tids"), end.texts("thread_roles"));
    if tids.len() != end.list("thread_names").len() || tids.len() != end.list("thread_roles").len() {
        return None;
    }
    for ((tid, role), name) in end.texts("thread_tids").zip(roles).zip(end.texts("thread_names")) {
        let role = match role.as_str() {
            "worker" => Role::Worker,
            "pool" => Role::Pool,
            "kernel" => Role::Kernel,
            _other => Role::Other,
        };
        trace.threads.push(Thread { tid: tid.parse().ok()?, role, name });
    }
    let names = end.texts("counter_names");
    let values = end.texts("counter_values").map(|value| value.parse().ok());
    trace.counters = names.zip(values).map(|(name, value)| Some((name, value?))).collect::<Option<_>>()?;
    trace.lost = Lost { program: end.number("lost")?, kernel: end.number("kernel_lost").unwrap_or(0) };
    let keys = program.put_into(&mut trace, began)?;
    // Without the summary, functions have no names, but the events are known.
    let summary = kernel.summary.unwrap_or_default();
    let mut events = kernel.events;
    events.extend(entered(&trace, began));
    let met = crate::kernel::add(&mut trace, began, events, &summary);
    crate::kernel::join(&mut trace, &keys, &met);
    Some(trace)
}

/// The program's own calls of io_uring_enter(2), which the recording of the kernel leaves out.
fn entered(trace: &Trace, began: u64) -> Vec<sampling::Event> {
    let calls = trace.enters.iter().filter_map(|enter| {
        let tid = trace.threads.get(usize::try_from(enter.thread).ok()?)?.tid;
        let event = |at: u64, what| sampling::Event {
            at: began.saturating_add(at),
            tid,
            processor: 0,
            chain: None,
            what,
        };
        let enters = SampleKind::Enter {
            requests: enter.submitted,
            completions: enter.waits.into(),
            flags: GETEVENTS,
        };
        let result = i32::try_from(enter.submitted).unwrap_or(i32::MAX);
        Some([event(enter.began, enters), event(enter.ended, SampleKind::Leave { result })])
    });
    calls.flatten().collect()
}

fn about(header: &Fields, end: &Fields, began: u64) -> Option<About> {
    Some(About {
        command: header.texts("command").collect(),
        run: header.text("run").unwrap_or_default(),
        recorder: header.text("recorder")?,
        kernel: header.text("kernel")?,
        processors: header.number("processors")?,
        backend: end.text("backend").unwrap_or_default(),
        began: header.number("began_since_1970")?,
        // The clock of a simulation is unrelated to others.
        monotonic: if end.text("backend").as_deref() == Some("sim") { 0 } else { began },
        took: end.number::<u64>("ended")?.saturating_sub(began),
        missing: end.texts("missing").collect(),
    })
}
