//! A recording that was read: everything in it, in order of time, each thing once.
//!
//! Times are nanoseconds of one clock (CLOCK_MONOTONIC), counted from when the recording began. What refers to something
//! else does so by its index in the [`Trace`]'s own vectors.

use ferry_io::{Operation as Kind, Reason, Route};

/// Nanoseconds since the recording began.
pub type Nanos = u64;

/// A recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// What was recorded, where, and how.
    pub about: About,
    /// Threads of the program, and of the kernel on its behalf.
    pub threads: Vec<Thread>,
    /// Scopes, by their beginning; a parent comes before its children.
    pub scopes: Vec<Scope>,
    /// Fibers, by their beginning.
    pub fibers: Vec<Fiber>,
    /// The runtime's operations, by when they were asked for.
    pub operations: Vec<Operation>,
    /// Batches of requests given to rings, by time.
    pub submissions: Vec<Submission>,
    /// Calls of io_uring_enter(2) by the runtime, by their beginning.
    pub enters: Vec<Enter>,
    /// When workers were [`IDLE`], by beginning.
    pub rests: Vec<Rest>,
    /// What was in use, by time.
    pub samples: Vec<Sample>,
    /// What rings were asked, as the kernel saw it, by time; of any program.
    pub requests: Vec<Request>,
    /// What else the kernel did, by time.
    pub kernel: Vec<KernelEvent>,
    /// Call chains of the kernel, innermost function first; [`KernelEvent::chain`] points here.
    pub chains: Vec<Vec<String>>,
    /// The runtime's own counters of the same run, by the names of `--stats`; empty for a program that is not ours.
    pub counters: Vec<(String, u64)>,
    /// Events that there was no room for.
    pub lost: Lost,
}

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The command line, an argument an entry.
    pub command: Vec<String>,
    /// Which run of an experiment it is of; empty if nobody said.
    pub run: String,
    /// The version of ferry that recorded.
    pub recorder: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that were online.
    pub processors: u32,
    /// Of the runtime; empty for a program that is not ours.
    pub backend: String,
    /// When the recording began, in nanoseconds since 1970.
    pub began: u64,
    /// The same in nanoseconds of CLOCK_MONOTONIC, by which times here become those of other recordings; 0 in a
    /// simulation.
    pub monotonic: u64,
    /// How long it took.
    pub took: Nanos,
    /// Why there is nothing of the kernel's side, or less than all of it; a line each.
    pub missing: Vec<String>,
}

/// Events that were dropped, because buffers were full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Of the program.
    pub program: u64,
    /// Of the kernel.
    pub kernel: u64,
}

/// Whose thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A worker of the runtime.
    Worker,
    /// A blocking thread of the runtime's pool.
    Pool,
    /// One that the kernel works on for a ring (io-wq, SQPOLL).
    Kernel,
    /// Any other of the program.
    Other,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its number, as the kernel has it; 0 in a simulation.
    pub tid: u32,
    /// What it is.
    pub role: Role,
    /// Its name, such as `worker 0` or `iou-wrk-4711`.
    pub name: String,
}

/// What opened a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// `run`: the outermost of a worker.
    Run,
    /// `scope`.
    Scope,
    /// `for_each`.
    ForEach,
    /// `both` or `first`.
    Join,
}

/// A scope: its fibers end before it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// What opened it.
    pub kind: ScopeKind,
    /// The worker it ran on, in [`Trace::threads`].
    pub thread: u32,
    /// The fiber that opened it, in [`Trace::fibers`]; none for a worker's outermost.
    pub fiber: Option<u32>,
    /// What the program called it, if it did.
    pub name: String,
    /// When it was opened.
    pub began: Nanos,
    /// When it had ended, with everything in it; none if the recording ended first, or that event was lost.
    pub ended: Option<Nanos>,
    /// When it was cancelled.
    pub cancelled: Option<Nanos>,
}

/// A fiber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fiber {
    /// Where it was spawned, in [`Trace::scopes`].
    pub scope: u32,
    /// What the program called it, if it did: a file's name, say. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// When it was first polled.
    pub began: Nanos,
    /// When it ended; none as with scopes.
    pub ended: Option<Nanos>,
}

/// How a ring's completion was met: the documents' three timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Met {
    /// It was there when the completion queue was looked at; no call was made for it.
    Peek,
    /// A call of io_uring_enter(2) with GETEVENTS found it without sleeping.
    AtOnce,
    /// The thread slept in that call, and was woken.
    Slept,
}

/// One operation of the runtime, from the fiber that asked to the worker that took the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What was asked.
    pub kind: Kind,
    /// The worker that was asked, in [`Trace::threads`].
    pub thread: u32,
    /// Who asked, in [`Trace::fibers`]; none where that event was lost, or outside any fiber.
    pub fiber: Option<u32>,
    /// The path component it is about, if it has one.
    pub name: String,
    /// Bytes asked for; 0 where there are none.
    pub size: u64,
    /// Where it ran.
    pub route: Route,
    /// Why there.
    pub reason: Reason,
    /// When the fiber asked.
    pub asked: Nanos,
    /// When it was the backend's: its batch was submitted, or it was in the pool's queue. Inline: when it was asked.
    pub submitted: Option<Nanos>,
    /// When somebody began to run it, where that is known (inline and pool).
    pub started: Option<Nanos>,
    /// When the answer was there, where that is known (inline, pool, and rings with the kernel's side recorded).
    pub completed: Option<Nanos>,
    /// When the worker took the answer; none if the recording ended first, or that event was lost.
    pub taken: Option<Nanos>,
    /// Bytes or another count, or the error's number; none if it has not been taken.
    pub result: Option<Result<u64, i32>>,
    /// The fiber did not wait for it any more.
    pub abandoned: bool,
    /// The pool's thread that ran it.
    pub ran_on: Option<u32>,
    /// The batch it was in, in [`Trace::submissions`].
    pub submission: Option<u32>,
    /// The kernel's view of it, in [`Trace::requests`].
    pub request: Option<u32>,
    /// How its completion was met; rings only.
    pub met: Option<Met>,
}

/// Why a batch was submitted when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The ring had no room for more.
    Full,
    /// No fiber could run: the worker was about to sleep.
    Idle,
    /// Before that: a batch begun early, a long stretch of inline calls, a cancellation.
    Forced,
}

/// A batch of requests given to a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// The ring's worker, in [`Trace::threads`].
    pub thread: u32,
    /// When it was the kernel's.
    pub at: Nanos,
    /// Requests in it.
    pub requests: u32,
    /// Why then.
    pub why: Why,
    /// The ring's requests in flight, this batch's among them.
    pub in_flight: u32,
}

/// One call of io_uring_enter(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enter {
    /// The calling thread, in [`Trace::threads`].
    pub thread: u32,
    /// When it was called.
    pub began: Nanos,
    /// When it returned.
    pub ended: Nanos,
    /// Requests that it submitted.
    pub submitted: u32,
    /// Whether it was to wait for a completion.
    pub waits: bool,
    /// Whether the thread slept in it.
    pub slept: bool,
    /// Completions that were there when it was called.
    pub found: u32,
    /// Completions that were there when it returned.
    pub taken: u32,
}

/// What a worker is that waits with nothing to do, in every picture and table. Asleep is what the kernel says of a thread.
pub const IDLE: &str = "idle";

/// A worker was [`IDLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// In [`Trace::threads`].
    pub thread: u32,
    /// When it began to wait.
    pub began: Nanos,
    /// When it went on.
    pub ended: Nanos,
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gauge {
    /// Operations in flight, whatever their route.
    InFlight,
    /// Blocks of the pool in use.
    Blocks,
    /// Open descriptors that the runtime holds.
    Descriptors,
}

/// What was in use at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Whose, in [`Trace::threads`].
    pub thread: u32,
    /// When.
    pub at: Nanos,
    /// Of what.
    pub gauge: Gauge,
    /// How many.
    pub value: u64,
}

/// One request of a ring, as the kernel saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The thread that submitted it, in [`Trace::threads`].
    pub thread: u32,
    /// Which ring: a number of its own for each.
    pub ring: u32,
    /// The operation, such as `READ`.
    pub opcode: String,
    /// What the program gave it to know it by.
    pub user_data: u64,
    /// When the kernel took it.
    pub submitted: Nanos,
    /// When its completion was written to the queue.
    pub completed: Option<Nanos>,
    /// The result that was written there.
    pub result: Option<i32>,
    /// When it was handed to a worker of the kernel, if it was.
    pub handed_over: Option<Nanos>,
}

/// What made the kernel run task work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// io_uring_enter(2) was waiting for completions, and had not slept yet.
    GetEvents,
    /// The same, after it had slept.
    GetEventsSlept,
    /// Any other system call, or io_uring_enter(2) while it submitted.
    SystemCall,
    /// An interrupt from another processor.
    Ipi,
    /// A page fault.
    PageFault,
    /// The timer's interrupt.
    Tick,
    /// A device's interrupt.
    DeviceInterrupt,
    /// None of these, or the call chain did not tell.
    Unknown,
}

impl Cause {
    /// Every cause, in the order in which they are told.
    pub const ALL: [Self; 8] = [
        Self::GetEvents,
        Self::GetEventsSlept,
        Self::SystemCall,
        Self::Ipi,
        Self::PageFault,
        Self::Tick,
        Self::DeviceInterrupt,
        Self::Unknown,
    ];

    /// How completions that it made run were met: what nothing but GETEVENTS made run was there before it was asked for.
    #[must_use]
    pub fn met(self) -> Option<Met> {
        match self {
            Self::GetEvents => Some(Met::AtOnce),
            Self::GetEventsSlept => Some(Met::Slept),
            Self::SystemCall | Self::Ipi | Self::PageFault | Self::Tick | Self::DeviceInterrupt => {
                Some(Met::Peek)
            }
            Self::Unknown => None,
        }
    }

    /// In words, for tables and legends.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GetEvents => "GETEVENTS, before sleeping",
            Self::GetEventsSlept => "GETEVENTS, after sleeping",
            Self::SystemCall => "another system call",
            Self::Ipi => "IPI",
            Self::PageFault => "page fault",
            Self::Tick => "tick",
            Self::DeviceInterrupt => "device interrupt",
            Self::Unknown => "unknown",
        }
    }
}

/// What the kernel did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Did {
    /// Ran what completions had left for this thread.
    TaskWork {
        /// What made it run.
        cause: Cause,
        /// Units of work in this run.
        count: u32,
    },
    /// Left work for a thread (io_uring_task_add): the chain says who did.
    TaskAdd,
    /// Handed a request to a worker of its own; the index in [`Trace::requests`].
    HandOver(Option<u32>),
    /// A thread fell asleep.
    Sleep,
    /// A thread was made ready to run; whose interrupt or thread did is in the chain and in `by`.
    Wake {
        /// The thread that woke it, in [`Trace::threads`], if it is one of the program's.
        by: Option<u32>,
    },
    /// A thread has a processor again after a sleep, from which nobody was seen to wake it.
    Run,
    /// A thread began.
    Began,
    /// A thread ended.
    Ended,
}

impl Did {
    /// What made task work run, and how many units of it, if that is what it did.
    pub(crate) fn task_work(&self) -> Option<(Cause, u32)> {
        match *self {
            Self::TaskWork { cause, count } => Some((cause, count)),
            Self::TaskAdd
            | Self::HandOver(_)
            | Self::Sleep
            | Self::Wake { .. }
            | Self::Run
            | Self::Began
            | Self::Ended => None,
        }
    }
}

/// One event of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEvent {
    /// The thread it happened to, in [`Trace::threads`].
    pub thread: u32,
    /// When.
    pub at: Nanos,
    /// On which processor.
    pub processor: u32,
    /// What.
    pub did: Did,
    /// By which functions, in [`Trace::chains`]; none where there is no chain.
    pub chain: Option<u32>,
}
