//! What the kernel does for a program's rings, event by event: tracepoints sampled by perf_event_open(2), with the
//! functions that led there.
//!
//! One event a tracepoint and processor, inherited by all threads and children that begin later, the kernel's workers
//! for their rings among them: so the kernel itself sorts out whose events these are. Wake-ups are sampled everywhere, and
//! those of other threads passed over: most come by an interrupt while others run. All events of a processor share one buffer; a thread of this module empties them
//! and hands on what it finds, in order of time. Nothing waits for it: what finds no room is counted as lost.
//!
//! Limits: it needs root or CAP_PERFMON, and root where tracefs is not mounted; the numbers of threads that others wake
//! are those of the outermost PID namespace, so in another no wake-ups are sampled. Of what happens while a processor other
//! than the first idles some kernels count events and give no samples (Linux 6.18 in a virtual machine, of its own clock's
//! ticks as well); a sleep of which no wake-up is found ends where the thread runs again, and [`Summary::missing`] says how many.
//! Descriptors: [`most_descriptors`]. The kernel takes 24 to 44 ms to let go of each tracepoint; who opens them again meanwhile waits for it.

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
mod open;
mod sleeps;
mod symbols;
#[cfg(test)]
mod tests;
mod tracepoint;

pub use code::{Decoder, Encoder};
pub use tracepoint::Tracepoint;

/// Bytes of all buffers together, at most; and of one.
const ALL_BUFFERS: usize = 256 << 20;
const ONE_BUFFER: usize = 8 << 20;
/// How long events wait to be taken from their buffers.
const PERIOD: Duration = Duration::from_millis(10);
/// An event may be written so much later than its time says, in nanoseconds: later ones wait for it.
const DELAY: u64 = 2_000_000;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at: u64,
    /// The thread that ran.
    pub tid: u32,
    /// The processor it ran on.
    pub processor: u32,
    /// By which functions, in [`Summary::chains`] by way of [`Summary::chain_of`].
    pub chain: Option<u32>,
    /// What happened.
    pub what: What,
}

/// What happened. A ring is the address of the kernel's own structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A thread began.
    Began {
        /// Who made it.
        parent: u32,
    },
    /// It has this name from now on; the event's time is not known, and 0.
    Named(String),
    /// It ended.
    Ended,
    /// It ran so many units of task work, of one ring in DEFER mode, else of all.
    TaskWork {
        /// How many.
        count: u32,
        /// Whose.
        ring: Option<u64>,
    },
    /// It left task work for who submitted this request.
    TaskAdd {
        /// The ring.
        ring: u64,
        /// What the request is known by.
        user_data: u64,
    },
    /// A ring took a request from it.
    Submit {
        /// The ring.
        ring: u64,
        /// What the request is known by.
        user_data: u64,
        /// The operation, in [`Summary::operations`].
        opcode: u8,
    },
    /// It handed a request to a kernel worker.
    HandOver {
        /// The ring.
        ring: u64,
        /// What the request is known by.
        user_data: u64,
    },
    /// It wrote a completion.
    Complete {
        /// The ring.
        ring: u64,
        /// What the request is known by.
        user_data: u64,
        /// The request's result.
        result: i32,
    },
    /// It called io_uring_enter(2).
    Enter {
        /// How many requests it submits.
        requests: u32,
        /// How many completions it waits for.
        completions: u32,
        /// The call's flags.
        flags: u32,
    },
    /// It returned from io_uring_enter(2).
    Leave {
        /// With this.
        result: i32,
    },
    /// It left its processor, to be woken.
    Sleep,
    /// It has a processor again after a sleep, of whose end there is no sample.
    Run,
    /// It woke a thread, or an interrupt did while it ran.
    Wake {
        /// Which.
        woken: u32,
        /// Whether an interrupt did, by itself or by what it left to be done (a software interrupt, which a thread's own call
        /// may run, too, as that to a socket of this machine).
        by_interrupt: bool,
    },
}

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Of the programs that the calling thread will start, each from its execve(2) on.
    Programs,
    /// Of the calling thread, and of those that it will start.
    ThisThread,
    /// The same but [`What::Enter`] and [`What::Leave`], for who records its own calls: as long as anybody follows a
    /// system call, each call of every thread of the machine takes the kernel's slow path. Wake-ups have no chain: else the
    /// kernel's symbols would be needed, which take 20 to 40 ms of processor, also where no task work ran.
    Recorded,
}

/// Why nothing can be sampled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The right is missing.
    #[error("it needs root or CAP_PERFMON")]
    NoRight,
    /// The kernel was built without it.
    #[error("the kernel has no {0}")]
    Missing(&'static str),
    /// There are more processors than descriptors for them.
    #[error("it needs more descriptors than the limit allows (RLIMIT_NOFILE)")]
    Descriptors,
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

/// What is known when it has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events that found no room.
    pub lost: u64,
    /// What is less than all, and why; a line each.
    pub missing: Vec<String>,
    /// Events of each tracepoint, those of no interest here among them.
    pub counts: Vec<(Tracepoint, u64)>,
    /// Names of ring operations.
    pub operations: Vec<(u8, String)>,
    /// Distinct call chains, innermost function first, as far as the entry into the kernel or the last interrupt.
    pub chains: Vec<Vec<String>>,
    /// Where in them the chain of an event is.
    pub chain_of: Vec<u32>,
}

/// Descriptors that sampling may need: one for each tracepoint and processor, one for each buffer, and one in passing.
#[must_use]
pub fn most_descriptors() -> usize {
    processors().len() * (Tracepoint::ALL.len() + 1) + 1
}

/// What is being sampled.
#[derive(Debug)]
pub struct Sampling {
    stop: Sender<()>,
    reader: JoinHandle<Summary>,
}

impl Sampling {
    /// Begins. `take` is called with batches of events in order of time, by a thread of its own.
    ///
    /// # Errors
    /// [`Refusal`]; a kernel that lacks a tracepoint is none, but [`Summary::missing`] says so.
    pub fn start(whose: Whose, take: impl FnMut(&[Event]) + Send + 'static) -> Result<Self, Refusal> {
        let processors = processors();
        Self::with_buffers(whose, (ALL_BUFFERS / processors.len().max(1)).min(ONE_BUFFER), take)
    }

    /// The same with buffers of at most so many bytes, a power of two of pages.
    ///
    /// # Errors
    /// As [`Sampling::start`].
    pub fn with_buffers(
        whose: Whose,
        bytes: usize,
        take: impl FnMut(&[Event]) + Send + 'static,
    ) -> Result<Self, Refusal> {
        let (hand_over, opened) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        // It begins before there are events to inherit, or it would be sampled itself.
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

    /// Ends; all events have been taken then.
    #[must_use]
    pub fn finish(self) -> Summary {
        drop(self.stop);
        match self.reader.join() {
            Ok(summary) => summary,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The reader's life.
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
            // While the program runs; at the end it would wait for it.
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
    // The buffers' own events bring what is known of threads.
    let of_buffers = opened.buffers.iter().map(|buffer| &buffer.event);
    let lost =
        if opened.tells_lost { opened.events.iter().chain(of_buffers).map(lost).sum() } else { decoder.lost };
    let mut counts: Vec<(Tracepoint, u64)> = decoder.counts.into_iter().collect();
    counts.sort_unstable();
    Summary { lost, missing, counts, operations: decoder.operations, chains, chain_of }
}

/// What an event lost: the second number that is read from it.
fn lost(event: &OwnedFd) -> u64 {
    let mut numbers = [0; 16];
    match rustix::io::read(event, &mut numbers) {
        Ok(16) => u64::from_ne_bytes(std::array::from_fn(|index| numbers[8 + index])),
        _ => 0,
    }
}

/// The time that events carry.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
