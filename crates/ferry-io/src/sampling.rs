//! Kernel events of a program's rings, sampled one by one with their call chains (perf_event_open(2)).
//!
//! One perf event for each tracepoint and processor is inherited by all later threads and children, including the
//! kernel's workers for their rings. So the kernel itself selects the program's events. Wake-ups are sampled for the
//! whole machine and filtered here, because most come by an interrupt while other threads run. Requests of block
//! devices are those of the whole machine, because threads of the kernel write back what a program has written. All
//! perf events of a processor share one buffer. A thread of this module empties the buffers and passes the events on in order of time.
//! Nothing waits for it: events without room are counted as lost.
//!
//! Limits: needs root or CAP_PERFMON, and root if tracefs is not mounted. Wake-ups name threads by the outermost PID
//! namespace, so none are sampled in another. Some kernels give no samples of events on idle processors other than the
//! first (Linux 6.18 in a virtual machine). A sleep without a known wake-up ends where the thread runs again, and
//! [`Summary::missing`] reports their number. Descriptors: [`most_descriptors`]. The kernel takes 24 to 44 ms to
//! release each tracepoint; opening it again meanwhile waits.
#![doc = ""]
#![doc = include_str!("../docs/sampling.md")]

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use thiserror::Error;

use crate::perf::{self, Control};
use open::{Opened, open, processors};
use sleeps::Sleeps;
use symbols::Symbols;

mod buffer;
mod code;
mod decode;
mod device;
mod open;
mod sleeps;
mod symbols;
#[cfg(test)]
mod tests;
mod tracepoint;

pub use code::{Decoder, Encoder};
pub use device::DeviceKind;
pub use tracepoint::Tracepoint;

/// Maximum sizes in bytes of all buffers together, and of one.
const ALL_BUFFERS: usize = 256 << 20;
const ONE_BUFFER: usize = 8 << 20;
/// Interval at which buffers are emptied.
const PERIOD: Duration = Duration::from_millis(10);
/// Longest time in nanoseconds from an event to its record. Later events wait that long, to keep the order.
const DELAY: u64 = 2_000_000;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time in nanoseconds of CLOCK_MONOTONIC.
    pub at: u64,
    /// The thread that ran.
    pub tid: u32,
    /// The processor on which it ran.
    pub processor: u32,
    /// Index in [`Summary::chain_of`], which leads to the call chain in [`Summary::chains`].
    pub chain: Option<u32>,
    /// Kind of the event.
    pub what: SampleKind,
}

/// Kind of an event, with the thread as its subject. A ring is identified by its address in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleKind {
    /// A thread began.
    Began {
        /// The thread that created it.
        parent: u32,
    },
    /// A thread has this name from now on. The event has no time, so it is 0.
    Named(String),
    /// A thread ended.
    Ended,
    /// A thread ran task work: of one ring in DEFER mode, else of all.
    TaskWork {
        /// Number of units.
        count: u32,
        /// The ring in DEFER mode.
        ring: Option<u64>,
    },
    /// A thread queued task work for the submitter of this request.
    TaskAdd {
        /// The ring.
        ring: u64,
        /// User data of the request.
        user_data: u64,
    },
    /// A ring took a request from it.
    Submit {
        /// The ring.
        ring: u64,
        /// User data of the request.
        user_data: u64,
        /// The operation, a key of [`Summary::operations`].
        opcode: u8,
    },
    /// A request was handed to a kernel worker.
    HandOver {
        /// The ring.
        ring: u64,
        /// User data of the request.
        user_data: u64,
    },
    /// A completion was written.
    Complete {
        /// The ring.
        ring: u64,
        /// User data of the request.
        user_data: u64,
        /// The request's result.
        result: i32,
    },
    /// io_uring_enter(2) was called.
    Enter {
        /// Number of requests to submit.
        requests: u32,
        /// Number of completions to wait for.
        completions: u32,
        /// The call's flags.
        flags: u32,
    },
    /// io_uring_enter(2) returned.
    Leave {
        /// Its result.
        result: i32,
    },
    /// A thread left its processor to sleep.
    Sleep,
    /// A thread runs again after a sleep without a sampled wake-up.
    Run,
    /// The thread woke another one, or an interrupt did while the thread ran.
    Wake {
        /// The woken thread.
        woken: u32,
        /// True for an interrupt or a software interrupt. A thread's own call may run the latter too, for example to a
        /// local socket.
        by_interrupt: bool,
    },
    /// A block device was given a request, by any thread of the machine.
    DeviceIssue {
        /// Number of the device, a key of [`Summary::devices`].
        device: u32,
        /// The first of its sectors of 512 bytes.
        sector: u64,
        /// Kind of the request.
        kind: DeviceKind,
        /// Number of bytes.
        bytes: u32,
    },
    /// A block device completed a request, while any thread ran.
    DeviceComplete {
        /// Number of the device.
        device: u32,
        /// The first sector.
        sector: u64,
        /// Kind of the request.
        kind: DeviceKind,
        /// True if it failed.
        is_failed: bool,
    },
}

/// Selection of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadSelection {
    /// Programs that the calling thread will start, each from its execve(2) on.
    Programs,
    /// The calling thread, and threads and programs that it will start, without block devices.
    ThisThread,
    /// As [`Self::ThisThread`] with block devices, and without [`SampleKind::Enter`] and [`SampleKind::Leave`], for a
    /// program that records its own calls. While a system call is traced, every system call of the machine takes the kernel's slow path.
    /// Wake-ups have no chain: resolving it would need the kernel's symbols, 20 to 40 ms of processor time.
    Recorded,
}

/// Reason why nothing can be sampled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The right is missing.
    #[error("it needs root or CAP_PERFMON")]
    NoRight,
    /// The kernel lacks a feature.
    #[error("the kernel has no {0}")]
    Missing(&'static str),
    /// The limit of descriptors is too low for this number of processors.
    #[error("it needs more descriptors than the limit allows (RLIMIT_NOFILE)")]
    Descriptors,
    /// The program that started this one records the kernel.
    #[error("FERRY_TRACE_KERNEL=0 leaves it out")]
    LeftOut,
    /// Anything else.
    #[error("{0} failed: {1}")]
    Failed(&'static str, Errno),
}

impl Refusal {
    fn of(call: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::ACCESS | Errno::PERM => Self::NoRight,
            Errno::NOSYS => Self::Missing("perf events"),
            Errno::MFILE | Errno::NFILE => Self::Descriptors,
            errno => Self::Failed(call, errno),
        }
    }
}

/// Result of a finished sampling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of events without room.
    pub lost: u64,
    /// Lines that explain incomplete results.
    pub missing: Vec<String>,
    /// Number of events of each tracepoint, including those that were filtered out here.
    pub counts: Vec<(Tracepoint, u64)>,
    /// Names of ring operations.
    pub operations: Vec<(u8, String)>,
    /// Names of block devices by number.
    pub devices: Vec<(u32, String)>,
    /// Distinct call chains, innermost function first, up to the entry into the kernel or the last interrupt.
    pub chains: Vec<Vec<String>>,
    /// Index into [`Self::chains`] for each event's chain.
    pub chain_of: Vec<u32>,
}

/// Maximum number of descriptors for sampling: one for each tracepoint and processor, one for each buffer, and a
/// temporary one.
#[must_use]
pub fn most_descriptors() -> usize {
    processors().len() * (Tracepoint::ALL.len() + 1) + 1
}

/// A sampling in progress.
#[derive(Debug)]
pub struct Sampling {
    stop: Sender<()>,
    reader: JoinHandle<Summary>,
}

impl Sampling {
    /// Begins. A thread of its own calls `take` with batches of events in order of time.
    ///
    /// # Errors
    /// [`Refusal`]; a missing tracepoint is only noted in [`Summary::missing`].
    pub fn start(
        whose: ThreadSelection,
        take: impl FnMut(&[Event]) + Send + 'static,
    ) -> Result<Self, Refusal> {
        let processors = processors();
        Self::with_buffers(whose, (ALL_BUFFERS / processors.len().max(1)).min(ONE_BUFFER), take)
    }

    /// As [`Sampling::start`], with buffers of at most `bytes`, a power of two of pages.
    ///
    /// # Errors
    /// As [`Sampling::start`].
    pub fn with_buffers(
        whose: ThreadSelection,
        bytes: usize,
        take: impl FnMut(&[Event]) + Send + 'static,
    ) -> Result<Self, Refusal> {
        let (hand_over, opened) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        // Started before the events are inherited, or it would be sampled itself.
        let reader = std::thread::Builder::new().name("sampling".to_owned());
        let reader = reader.spawn(move || match opened.recv() {
            Ok(opened) => read(opened, &stopped, take),
            Err(mpsc::RecvError) => Summary::default(),
        });
        let reader = reader.map_err(|error| {
            Refusal::of("starting a thread", Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
        })?;
        let sent = hand_over.send(open(whose, bytes)?);
        debug_assert!(sent.is_ok(), "it waits for this");
        Ok(Self { stop, reader })
    }

    /// Ends, after all events have been taken.
    #[must_use]
    pub fn finish(self) -> Summary {
        drop(self.stop);
        match self.reader.join() {
            Ok(summary) => summary,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Body of the reading thread.
fn read(mut opened: Opened, stopped: &Receiver<()>, mut take: impl FnMut(&[Event])) -> Summary {
    let mut decoder = decode::Decoder::of(std::mem::take(&mut opened.formats), opened.thread);
    let mut arrived = vec![Vec::new(); opened.buffers.len()];
    let (mut waiting, mut ready_events) = (Vec::new(), Vec::new());
    let mut sleeps = Sleeps::default();
    let mut symbols = None;
    loop {
        let ends = stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
        if ends {
            for event in opened.events.iter().chain(opened.buffers.iter().map(|buffer| &buffer.event)) {
                let disabled = perf::control(event, Control::Disable);
                debug_assert!(disabled.is_ok(), "an event can be disabled");
            }
        }
        let before = if ends { u64::MAX } else { now().saturating_sub(DELAY) };
        for (buffer, bytes) in opened.buffers.iter_mut().zip(&mut arrived) {
            bytes.clear();
            buffer.drain(bytes);
            decoder.decode_threads(bytes, &mut waiting);
        }
        for bytes in &arrived {
            decoder.decode(bytes, &mut waiting);
        }
        if !decoder.distinct.is_empty() {
            // Read while the program runs, because at the end the program would wait for it.
            symbols.get_or_insert_with(Symbols::text);
        }
        waiting.sort_by_key(|event| event.at);
        let ready = waiting.partition_point(|event| event.at < before);
        ready_events.clear();
        ready_events.extend(waiting.drain(..ready).filter(|event| sleeps.is_told(event)));
        take(&ready_events);
        if ends {
            let summary = summary(decoder, &sleeps, &opened, &symbols.unwrap_or_default());
            opened.close_later();
            return summary;
        }
    }
}

fn summary(decoder: decode::Decoder, sleeps: &Sleeps, opened: &Opened, symbols: &[u8]) -> Summary {
    let mut missing = opened.missing.clone();
    let symbols = Symbols::find(symbols, &decoder.distinct);
    if symbols.is_hidden() && !decoder.distinct.is_empty() {
        missing.push(
            "the kernel hides its addresses (kernel.kptr_restrict): functions have no names".to_owned(),
        );
    }
    if decoder.chainless > 0 {
        missing.push(format!(
            "{} events came by more than {} different ways: these have no call chain",
            decoder.chainless,
            decode::MOST_CHAINS
        ));
    }
    if sleeps.unseen > 0 && decoder.has(Tracepoint::Waking) {
        missing.push(format!(
            "no wake-up was found for {} of {} sleeps: they end where the thread runs again",
            sleeps.unseen, sleeps.begun
        ));
    }
    missing.extend(unsampled(&decoder, opened));
    let (mut chains, mut chain_of): (Vec<Vec<String>>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut known = std::collections::HashMap::new();
    for addresses in &decoder.distinct {
        let chain = symbols.chain(addresses);
        let next = u32::try_from(chains.len()).unwrap_or(u32::MAX);
        let index = *known.entry(chain).or_insert_with_key(|chain| {
            chains.push(chain.clone());
            next
        });
        chain_of.push(index);
    }
    // The buffers' own events record threads.
    let of_buffers = opened.buffers.iter().map(|buffer| &buffer.event);
    let lost =
        if opened.tells_lost { opened.events.iter().chain(of_buffers).map(lost).sum() } else { decoder.lost };
    let mut counts: Vec<(Tracepoint, u64)> = decoder.counts.into_iter().collect();
    counts.sort_unstable();
    let devices = decoder.devices.into_iter().map(|number| (number, device::name(number))).collect();
    Summary { lost, missing, counts, operations: decoder.operations, devices, chains, chain_of }
}

/// Explains completions of block devices that the kernel has counted, and gave no sample of.
///
/// Linux 6.18 in a virtual machine gives mostly none of an event whose interrupt finds its processor idle, whatever the
/// attributes of the perf event and the owner of its buffer.
fn unsampled(decoder: &decode::Decoder, opened: &Opened) -> Option<String> {
    let mut counted = 0;
    for events in opened.events.chunks(decoder.formats.len().max(1)) {
        let completions = events.iter().zip(&decoder.formats);
        for (event, _) in completions.filter(|(_, format)| format.tracepoint == Tracepoint::DeviceComplete) {
            let [count, lost] = counts(event);
            counted += count.saturating_sub(lost);
        }
    }
    let sampled = decoder.counts.get(&Tracepoint::DeviceComplete).copied().unwrap_or(0);
    (counted > sampled).then(|| {
        format!(
            "the kernel gave no sample of {} of {counted} completions of block devices, as some kernels do on idle processors: \
             these requests have no end",
            counted - sampled
        )
    })
}

/// Number of lost events.
fn lost(event: &OwnedFd) -> u64 {
    let [_, lost] = counts(event);
    lost
}

/// Numbers of all events and of lost ones, which is 0 if the kernel does not count these.
fn counts(event: &OwnedFd) -> [u64; 2] {
    let mut numbers = [0; 16];
    let read = rustix::io::read(event, &mut numbers).unwrap_or_default();
    let number = |at: usize| {
        let is_whole = read >= at + 8;
        if is_whole { u64::from_ne_bytes(std::array::from_fn(|index| numbers[at + index])) } else { 0 }
    };
    [number(0), number(8)]
}

/// The time on the events' clock.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
