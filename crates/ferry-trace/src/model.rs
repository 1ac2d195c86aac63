//! A recording in memory: all its contents in order of time.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC since the beginning of the recording. References are indices into the
//! vectors of the [`Trace`].

use ferry_io::sampling::DeviceKind;
use ferry_io::{Operation as Kind, Reason, Route, Way};

/// Nanoseconds since the beginning of the recording.
pub type Nanos = u64;

/// A recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Origin of the recording.
    pub about: About,
    /// Threads of the program, threads of the kernel that work for it, and block devices.
    pub threads: Vec<Thread>,
    /// Scopes by beginning; a parent precedes its children.
    pub scopes: Vec<Scope>,
    /// Fibers by beginning.
    pub fibers: Vec<Fiber>,
    /// Operations of the runtime, by the time of the request.
    pub operations: Vec<Operation>,
    /// Batches submitted to rings, by time.
    pub submissions: Vec<Submission>,
    /// The runtime's calls of io_uring_enter(2), by beginning.
    pub enters: Vec<Enter>,
    /// Periods in which workers were [`IDLE`], by beginning.
    pub rests: Vec<Rest>,
    /// Pieces of large files, by beginning.
    pub pieces: Vec<Piece>,
    /// Samples of resources in use, by time.
    pub samples: Vec<Sample>,
    /// Ring requests of any program as the kernel saw them, by time.
    pub requests: Vec<Request>,
    /// Requests of block devices as the kernel saw them, by time.
    pub device_requests: Vec<DeviceRequest>,
    /// Other events of the kernel, by time.
    pub kernel: Vec<KernelEvent>,
    /// Call chains of the kernel, innermost function first; see [`KernelEvent::chain`].
    pub chains: Vec<Vec<String>>,
    /// Counters of the same run by their names in `--stats`; empty for other programs.
    pub counters: Vec<(String, u64)>,
    /// Number of events that were dropped.
    pub lost: Lost,
}

/// Origin of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Arguments of the command line.
    pub command: Vec<String>,
    /// Run of an experiment that was recorded; may be empty.
    pub run: String,
    /// Version of ferry that recorded.
    pub recorder: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of online processors.
    pub processors: u32,
    /// Backend of the runtime; empty for other programs.
    pub backend: String,
    /// Beginning in nanoseconds since 1970.
    pub began: u64,
    /// Beginning in nanoseconds of CLOCK_MONOTONIC, which relates recordings to each other; 0 in a simulation.
    pub monotonic: u64,
    /// Duration of the recording.
    pub took: Nanos,
    /// Reasons why events of the kernel are missing, one a line.
    pub missing: Vec<String>,
}

/// Events dropped because buffers were full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events of the program.
    pub program: u64,
    /// Events of the kernel.
    pub kernel: u64,
}

/// Role of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A worker of the runtime.
    Worker,
    /// A blocking thread of the pool.
    Pool,
    /// A thread of the kernel that works for a ring (io-wq, SQPOLL).
    Kernel,
    /// Any other thread of the program.
    Other,
    /// A block device. It is no thread, but has a place among them in tables and pictures.
    Device,
}

/// A thread, or a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Thread number in the kernel; 0 in a simulation, and for a device.
    pub tid: u32,
    /// Role of the thread.
    pub role: Role,
    /// Its name, such as `worker 0`, `iou-wrk-4711` or `nvme0n1`.
    pub name: String,
}

/// Function that opened a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// `run`: outermost scope of a worker.
    Run,
    /// `scope`.
    Scope,
    /// `for_each`.
    ForEach,
    /// `both` or `first`.
    Join,
}

/// A scope. All its fibers end before it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Function that opened it.
    pub kind: ScopeKind,
    /// Its worker, in [`Trace::threads`].
    pub thread: u32,
    /// Fiber that opened it, in [`Trace::fibers`]; `None` for a worker's outermost scope.
    pub fiber: Option<u32>,
    /// Name given by the program; may be empty.
    pub name: String,
    /// Time of opening.
    pub began: Nanos,
    /// End of the scope and everything in it; `None` if the recording ended first or the event was lost.
    pub ended: Option<Nanos>,
    /// Time of cancellation.
    pub cancelled: Option<Nanos>,
}

/// A fiber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fiber {
    /// Its scope, in [`Trace::scopes`].
    pub scope: u32,
    /// Name given by the program, such as a file's name; may be empty. Invalid UTF-8 is replaced.
    pub name: String,
    /// Time of the first poll.
    pub began: Nanos,
    /// End; `None` as for scopes.
    pub ended: Option<Nanos>,
}

/// The way in which a ring's completion was found: the three timelines of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompletionMet {
    /// It was already in the completion queue; no call was made for it.
    Peek,
    /// io_uring_enter(2) with GETEVENTS found it without sleeping.
    AtOnce,
    /// The thread slept in that call until it was woken.
    Slept,
}

/// An operation of the runtime, from the request by a fiber until the worker took the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Kind of operation.
    pub kind: Kind,
    /// Worker of the fiber, in [`Trace::threads`].
    pub thread: u32,
    /// Fiber that requested it, in [`Trace::fibers`]; `None` outside any fiber or if the event was lost.
    pub fiber: Option<u32>,
    /// Path component that it acts on; may be empty.
    pub name: String,
    /// Requested number of bytes, or 0.
    pub size: u64,
    /// Offset of the first byte in the file, for a copy in the source; `None` at the file's own position, and for
    /// operations that have none.
    pub offset: Option<u64>,
    /// Route.
    pub route: Route,
    /// Reason for the route.
    pub reason: Reason,
    /// Time of the request.
    pub asked: Nanos,
    /// Time when it was handed to its backend: its batch was submitted, or it entered the pool's queue. The time of
    /// the request for inline operations.
    pub submitted: Option<Nanos>,
    /// Time when a thread began to execute it, where known (inline and pool).
    pub started: Option<Nanos>,
    /// Time of completion, where known (inline, pool, and rings if the kernel was recorded).
    pub completed: Option<Nanos>,
    /// Time when the worker took the result; `None` if the recording ended first or the event was lost.
    pub taken: Option<Nanos>,
    /// Number of bytes or another count, or the error number; `None` before the result was taken.
    pub result: Option<Result<u64, i32>>,
    /// True if the fiber no longer waited for it.
    pub abandoned: bool,
    /// Pool thread that executed it.
    pub ran_on: Option<u32>,
    /// Its batch, in [`Trace::submissions`].
    pub submission: Option<u32>,
    /// Its request as the kernel saw it, in [`Trace::requests`].
    pub request: Option<u32>,
    /// The way in which its completion was found; rings only.
    pub met: Option<CompletionMet>,
}

/// Reason for submitting a batch at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubmitReason {
    /// The ring was full.
    Full,
    /// No fiber could run, so the worker was about to sleep.
    Idle,
    /// Earlier than necessary: a batch begun early, a long series of inline calls, or a cancellation.
    Forced,
}

/// A batch of requests submitted to a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// Worker of the ring, in [`Trace::threads`].
    pub thread: u32,
    /// Time of submission.
    pub at: Nanos,
    /// Number of requests.
    pub requests: u32,
    /// Reason for submitting at that time.
    pub why: SubmitReason,
    /// The ring's requests in flight, including this batch.
    pub in_flight: u32,
}

/// A call of io_uring_enter(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enter {
    /// Calling thread, in [`Trace::threads`].
    pub thread: u32,
    /// Time of the call.
    pub began: Nanos,
    /// Time of its return.
    pub ended: Nanos,
    /// Number of requests submitted.
    pub submitted: u32,
    /// True if the call was to wait for a completion.
    pub waits: bool,
    /// True if the thread slept in it.
    pub slept: bool,
    /// Completions in the queue before the call.
    pub found: u32,
    /// Completions in the queue after the call.
    pub taken: u32,
}

/// Word for a worker without anything to do, in every picture and table. Asleep is a state of a thread that the kernel
/// reports.
pub const IDLE: &str = "idle";

/// A period in which a worker was [`IDLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// The worker, in [`Trace::threads`].
    pub thread: u32,
    /// Beginning of the wait.
    pub began: Nanos,
    /// End of the wait.
    pub ended: Nanos,
}

/// A piece of a large file, moved by the fastest of several ways or to compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Thread that executed the calls, in [`Trace::threads`].
    pub thread: u32,
    /// Beginning of the first call.
    pub began: Nanos,
    /// End of the last call.
    pub ended: Nanos,
    /// The way.
    pub way: Way,
    /// Bytes moved.
    pub bytes: u64,
    /// Set if this way was compared with the leading one.
    pub is_trial: bool,
}

/// Sampled resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gauge {
    /// Operations in flight on any route.
    InFlight,
    /// Blocks in use.
    Blocks,
    /// Open descriptors of the runtime.
    Descriptors,
}

/// A resource's use at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Its worker, in [`Trace::threads`].
    pub thread: u32,
    /// Time of the sample.
    pub at: Nanos,
    /// Sampled resource.
    pub gauge: Gauge,
    /// Number in use.
    pub value: u64,
}

/// A ring's request as the kernel saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Submitting thread, in [`Trace::threads`].
    pub thread: u32,
    /// Number of the ring.
    pub ring: u32,
    /// Operation, such as `READ`.
    pub opcode: String,
    /// The program's identification of the request.
    pub user_data: u64,
    /// Time when the kernel took it.
    pub submitted: Nanos,
    /// Time when its completion was written to the queue.
    pub completed: Option<Nanos>,
    /// Result in that completion.
    pub result: Option<i32>,
    /// Time when it was handed to a worker of the kernel.
    pub handed_over: Option<Nanos>,
}

/// A request to a block device, by any program of the machine or by the kernel itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    /// The device, in [`Trace::threads`].
    pub device: u32,
    /// Kind of the request.
    pub kind: DeviceKind,
    /// The first of its sectors of 512 bytes.
    pub sector: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Thread that gave it to the device, in [`Trace::threads`]; `None` if it is none of the program's, such as a thread
    /// of the kernel that writes back.
    pub thread: Option<u32>,
    /// Time when the device was given it.
    pub issued: Nanos,
    /// Time of completion; `None` if the recording ended first or the event was lost.
    pub completed: Option<Nanos>,
    /// True if it failed.
    pub is_failed: bool,
}

/// Reason why the kernel ran task work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// io_uring_enter(2) was waiting for completions and had not slept yet.
    GetEvents,
    /// io_uring_enter(2) was waiting for completions and had slept.
    GetEventsSlept,
    /// Another system call, or io_uring_enter(2) during submission.
    SystemCall,
    /// Interrupt from another processor.
    Ipi,
    /// A page fault.
    PageFault,
    /// Timer interrupt.
    Tick,
    /// Device interrupt.
    DeviceInterrupt,
    /// None of these, or an unknown call chain.
    Unknown,
}

impl Cause {
    /// All causes in the order of tables and legends.
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

    /// Returns how the completions of this task work were found. Task work run by anything but GETEVENTS has written
    /// them before the program looked.
    #[must_use]
    pub fn met(self) -> Option<CompletionMet> {
        match self {
            Self::GetEvents => Some(CompletionMet::AtOnce),
            Self::GetEventsSlept => Some(CompletionMet::Slept),
            Self::SystemCall | Self::Ipi | Self::PageFault | Self::Tick | Self::DeviceInterrupt => {
                Some(CompletionMet::Peek)
            }
            Self::Unknown => None,
        }
    }

    /// Name in tables and legends.
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

/// Activity of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Did {
    /// Ran task work: completions left for this thread.
    TaskWork {
        /// Reason for running it.
        cause: Cause,
        /// Units of work in this run.
        count: u32,
    },
    /// Left work for a thread (io_uring_task_add); the chain shows the origin.
    TaskAdd,
    /// Handed a request, by its index in [`Trace::requests`], to a worker of the kernel.
    HandOver(Option<u32>),
    /// The thread fell asleep.
    Sleep,
    /// The thread was made ready to run; the chain shows the origin.
    Wake {
        /// Thread of the program that woke it, in [`Trace::threads`].
        by: Option<u32>,
    },
    /// The thread ran again after a sleep without a recorded wake-up.
    Run,
    /// The thread began.
    Began,
    /// The thread ended.
    Ended,
}

impl Did {
    /// Returns cause and number of units, if this is task work.
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

/// An event of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEvent {
    /// Affected thread, in [`Trace::threads`].
    pub thread: u32,
    /// Time of the event.
    pub at: Nanos,
    /// Processor on which it happened.
    pub processor: u32,
    /// Activity.
    pub did: Did,
    /// Call chain, in [`Trace::chains`].
    pub chain: Option<u32>,
}
