//! Opens the perf events: each tracepoint on each processor, and a buffer for each processor.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::buffer::Buffer;
use super::tracepoint::{Format, Tracepoint};
use super::{Refusal, ThreadSelection};
use crate::perf::{self, Attributes, Control, EventScope};
use crate::ring::holding;

/// TID, TIME, CALLCHAIN, CPU, RAW.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 10;
/// Adds the number of lost events to a read count (Linux 6.0).
const WITH_LOST: u64 = 1 << 4;

/// State of the reading thread.
pub(super) struct Opened {
    pub(super) buffers: Vec<Buffer>,
    pub(super) events: Vec<OwnedFd>,
    pub(super) formats: Vec<Format>,
    /// Thread that is sampled from now on.
    pub(super) thread: Option<u32>,
    /// Lines that explain incomplete results.
    pub(super) missing: Vec<String>,
    /// True if each perf event counts its lost events (Linux 6.0); else only records in the buffers do.
    pub(super) tells_lost: bool,
}

impl Opened {
    /// Closes the perf events without waiting. The kernel waits for an RCU grace period (24 to 44 ms here) at the last
    /// one of each tracepoint. Descriptors registered with a ring are closed by the kernel after the ring; without
    /// rings, a thread closes them, and the process ends after it.
    pub(super) fn close_later(self) {
        let Self { buffers, events, .. } = self;
        let numbers: Vec<_> = events.iter().map(rustix::fd::AsRawFd::as_raw_fd).collect();
        if let Some(_holding) = holding::hold(&numbers) {
            // Dropped before the ring, whose references must be the last.
            return drop((buffers, events));
        }
        let closing = std::thread::Builder::new().name("closing".to_owned());
        // Without a thread, they are closed here.
        let _thread = closing.spawn(move || drop((buffers, events)));
    }
}

/// Opens all events that this kernel has; they count from now on, or from execve(2).
///
/// # Errors
/// [`Refusal`].
pub(super) fn open(whose: ThreadSelection, bytes: usize) -> Result<Opened, Refusal> {
    let (mut formats, mut missing) = formats(whose)?;
    if !is_outermost_namespace() {
        formats.retain(|format| format.tracepoint != Tracepoint::Waking);
        missing.push("in a PID namespace the kernel does not say who is woken: no wake-ups".to_owned());
    }
    let flags = match whose {
        ThreadSelection::Programs => perf::DISABLED | perf::ENABLE_ON_EXEC,
        ThreadSelection::ThisThread | ThreadSelection::Recorded => 0,
    };
    let mut base = Attributes {
        sample_period: 1,
        sample_kind: SAMPLE,
        read_format: WITH_LOST,
        flags: flags | perf::INHERIT | perf::NO_USER_CHAIN | perf::USE_CLOCK,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let (mut buffers, mut events) = (Vec::new(), Vec::new());
    for processor in processors() {
        let leader = match leader(base, processor) {
            Err(Errno::INVAL) => {
                base.read_format = 0;
                leader(base, processor)
            }
            other => other,
        };
        let leader = match leader {
            // The processor has just gone offline.
            Err(Errno::NODEV) => continue,
            other => other.map_err(|errno| Refusal::of("perf_event_open", errno))?,
        };
        let buffer = Buffer::map(leader, bytes).map_err(|errno| Refusal::of("mmap", errno))?;
        for format in &formats {
            let with_chain = format.tracepoint.has_chain()
                && !(whose == ThreadSelection::Recorded && format.tracepoint.is_of_anybody());
            events.push(event(base, format, with_chain, processor, &buffer)?);
        }
        buffers.push(buffer);
    }
    let thread =
        (whose != ThreadSelection::Programs).then(|| rustix::thread::gettid().as_raw_nonzero().get());
    let thread = thread.and_then(|tid| u32::try_from(tid).ok());
    Ok(Opened { buffers, events, formats, thread, missing, tells_lost: base.read_format == WITH_LOST })
}

/// Returns true if this process uses the PID namespace of the kernel's tracepoints (`PROC_PID_INIT_INO`).
fn is_outermost_namespace() -> bool {
    const OUTERMOST: u64 = 0xEFFF_FFFC;
    rustix::fs::stat("/proc/self/ns/pid").is_ok_and(|namespace| namespace.st_ino == OUTERMOST)
}

/// Returns this kernel's tracepoints, and a line for each missing one.
fn formats(whose: ThreadSelection) -> Result<(Vec<Format>, Vec<String>), Refusal> {
    let (mut formats, mut missing) = (Vec::new(), Vec::new());
    let is_left_out = |tracepoint: &Tracepoint| match whose {
        ThreadSelection::Programs => false,
        ThreadSelection::ThisThread => tracepoint.is_of_device(),
        ThreadSelection::Recorded => tracepoint.is_of_system_call(),
    };
    for tracepoint in Tracepoint::ALL.into_iter().filter(|tracepoint| !is_left_out(tracepoint)) {
        let name = tracepoint.name();
        match Format::of(tracepoint) {
            Ok(format) => formats.push(format),
            Err(errno @ (Errno::ACCESS | Errno::PERM)) => return Err(Refusal::of("tracefs", errno)),
            Err(Errno::NOENT) => missing.push(format!("this kernel has no tracepoint {name}")),
            Err(_) => missing.push(format!("what this kernel says about {name} is not understood")),
        }
    }
    let has_rings = formats.iter().any(|format| format.tracepoint.name().starts_with("io_uring:"));
    if has_rings {
        Ok((formats, missing))
    } else {
        Err(Refusal::Missing("tracepoints of io_uring, or no tracefs"))
    }
}

/// Opens the owner of a processor's buffer. It records threads' starts, ends and names, and context switches (Linux
/// 4.3; cheaper than their tracepoint).
fn leader(base: Attributes, processor: u32) -> Result<OwnedFd, Errno> {
    let flags = base.flags | perf::THREADS | perf::NAMES | perf::SWITCHES | perf::WITH_ORIGIN;
    perf::open(
        Attributes { kind: perf::SOFTWARE, config: perf::NOTHING, flags, ..base },
        EventScope::ThreadOn(processor),
    )
}

fn event(
    base: Attributes,
    format: &Format,
    with_chain: bool,
    processor: u32,
    buffer: &Buffer,
) -> Result<OwnedFd, Refusal> {
    let chain = if with_chain { 0 } else { perf::NO_KERNEL_CHAIN };
    let (flags, place) = if format.tracepoint.is_of_anybody() {
        let of_threads = perf::INHERIT | perf::DISABLED | perf::ENABLE_ON_EXEC;
        (base.flags & !of_threads, EventScope::Processor(processor))
    } else {
        (base.flags, EventScope::ThreadOn(processor))
    };
    let attributes =
        Attributes { kind: perf::TRACEPOINT, config: format.number.into(), flags: flags | chain, ..base };
    let event = perf::open(attributes, place).map_err(|errno| Refusal::of("perf_event_open", errno))?;
    perf::control(&event, Control::Output(buffer.event.as_fd()))
        .map_err(|errno| Refusal::of("PERF_EVENT_IOC_SET_OUTPUT", errno))?;
    // Without filters the kernel samples all events, which only takes more room.
    let _sampled_all =
        format.tracepoint.filter().map(|filter| perf::control(&event, Control::Filter(filter)));
    Ok(event)
}

/// Numbers of the processors that are online.
pub(super) fn processors() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let found: Option<Vec<std::ops::RangeInclusive<u32>>> = text.trim().split(',').map(range).collect();
    found.map_or_else(|| vec![0], |ranges| ranges.into_iter().flatten().collect())
}

/// `0-3` or `5`.
fn range(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}
