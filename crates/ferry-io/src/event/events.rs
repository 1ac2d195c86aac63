//! The events of a recording, and what they name.

/// Identifies an operation that left its worker; unique among operations in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index of the worker's slot.
    pub index: u32,
    /// Number of earlier uses of the slot.
    pub generation: u32,
}

/// A request as it was asked for: operation, fiber, route and reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Index in the header's list of operations.
    pub kind: u8,
    /// Number of the fiber, or 0.
    pub fiber: u32,
    /// The path component of the request, or empty.
    pub name: &'a [u8],
    /// Number of bytes asked for, or 0.
    pub size: u64,
    /// Offset of the first byte in the file, for a copy in the source; `None` at the file's own position, and for
    /// operations that have none.
    pub offset: Option<u64>,
    /// Index in the header's list of routes.
    pub route: u8,
    /// Index in the header's list of reasons.
    pub reason: u8,
}

/// Call that opened a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// The start of a worker.
    Run,
    /// [`crate::scope`].
    Scope,
    /// [`crate::for_each`], or shared jobs.
    ForEach,
    /// [`crate::both`] or [`crate::first`].
    Join,
}

/// Reason why a batch was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitReason {
    /// The ring was full.
    Full,
    /// No fiber could run.
    Idle,
    /// The batch was submitted before it had to be.
    Forced,
}

/// State of the ring's completion when the worker took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionMet {
    /// The completion was present before the worker entered the ring.
    Peek,
    /// The call found the completion without sleeping.
    AtOnce,
    /// The worker slept in the call.
    Slept,
}

/// A sampled quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gauge {
    /// Operations of the worker in flight.
    InFlight,
    /// Blocks of the run in use.
    Blocks,
    /// Open descriptors of the run.
    Descriptors,
}

/// An event of the chunk's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are named as what they hold; Key, Asked and the enumerations say the rest"
)]
pub enum Event<'a> {
    /// A fiber is polled for the first time.
    FiberBegan {
        fiber: u32,
        scope: u32,
    },
    /// The program named the fiber.
    FiberNamed {
        fiber: u32,
        name: &'a [u8],
    },
    /// The fiber has ended and dropped all that it held.
    FiberEnded {
        fiber: u32,
    },
    /// A scope was opened by the fiber; by the worker if `fiber` is 0.
    ScopeOpened {
        scope: u32,
        opener: Opener,
        fiber: u32,
    },
    ScopeCancelled {
        scope: u32,
    },
    ScopeEnded {
        scope: u32,
    },
    /// An operation ran inline. It began at the event's time and took `took` ns; a negative result is an error number.
    Ran {
        asked: Asked<'a>,
        took: u64,
        result: i64,
    },
    /// An operation left its worker, `waited` ns after it was asked for. The pool has it once it was sent.
    Queued {
        key: Key,
        asked: Asked<'a>,
        waited: u64,
    },
    /// The pool has the operation in its queue.
    Sent {
        key: Key,
    },
    /// The ring passed the operation on to the pool.
    PassedOn {
        key: Key,
        reason: u8,
    },
    /// A thread of the pool begins the operation of this worker.
    Started {
        worker: u32,
        key: Key,
    },
    /// A thread of the pool has the result.
    Finished {
        worker: u32,
        key: Key,
    },
    /// The ring's completion was found in this state.
    CompletionMet {
        key: Key,
        how: CompletionMet,
    },
    /// The worker took the result.
    Taken {
        key: Key,
        result: i64,
        abandoned: bool,
    },
    /// The kernel has a batch.
    Submitted {
        requests: u32,
        why: SubmitReason,
        in_flight: u32,
    },
    /// A call of io_uring_enter(2), which began at the event's time and took `took` ns.
    Entered {
        took: u64,
        submitted: u32,
        waits: bool,
        slept: bool,
        found: u32,
        taken: u32,
    },
    /// The worker slept for `took` ns from the event's time on.
    Rested {
        took: u64,
    },
    /// A piece of a large file was moved by the calls of one way. The first call began at the event's time, and all took
    /// `took` ns.
    Moved {
        /// Index in the header's list of ways.
        way: u8,
        bytes: u64,
        took: u64,
        /// Set if this way was compared with the leading one.
        is_trial: bool,
    },
    Sampled {
        gauge: Gauge,
        value: u64,
    },
}
