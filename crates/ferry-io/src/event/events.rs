//! The events of a recording, and what they name.

/// An operation that left its worker; no two in flight at a time share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The worker's slot.
    pub index: u32,
    /// How often that was used before.
    pub generation: u32,
}

/// What was asked, by whom, and where it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Its place in the header's list of operations.
    pub kind: u8,
    /// The fiber, or 0.
    pub fiber: u32,
    /// The path component that it is about, if it has one.
    pub name: &'a [u8],
    /// Bytes asked for, where there are any.
    pub size: u64,
    /// Its place in the header's list of routes.
    pub route: u8,
    /// Its place in the header's list of reasons.
    pub reason: u8,
}

/// What opened a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// A worker's beginning.
    Run,
    /// [`crate::scope`].
    Scope,
    /// [`crate::for_each`], or shared jobs.
    ForEach,
    /// [`crate::both`] or [`crate::first`].
    Join,
}

/// Why a batch was submitted when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The ring had no room for more.
    Full,
    /// No fiber could run.
    Idle,
    /// Before that.
    Forced,
}

/// How a ring's completion was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It was there before the ring was entered.
    Peek,
    /// Entering found it without sleeping.
    AtOnce,
    /// The worker slept there.
    Slept,
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gauge {
    /// The worker's operations in flight.
    InFlight,
    /// Blocks of the run in use.
    Blocks,
    /// Descriptors of the run that are open.
    Descriptors,
}

/// What happened, on the chunk's thread.
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
    /// The fiber has ended, with all that it held.
    FiberEnded {
        fiber: u32,
    },
    /// A scope was opened, by the fiber or, where that is 0, by the worker.
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
    /// An operation that ran where it was asked for, then, for so long. A result below 0 is an error's number.
    Ran {
        asked: Asked<'a>,
        took: u64,
        result: i64,
    },
    /// An operation left its worker, so long after it was asked for. In the pool's queue it is only once it was sent.
    Queued {
        key: Key,
        asked: Asked<'a>,
        waited: u64,
    },
    /// The pool has it.
    Sent {
        key: Key,
    },
    /// The ring passed it on to the pool.
    PassedOn {
        key: Key,
        reason: u8,
    },
    /// A thread of the pool begins it; the worker is that thread's number that asked.
    Started {
        worker: u32,
        key: Key,
    },
    /// The answer is there.
    Finished {
        worker: u32,
        key: Key,
    },
    /// How the ring's completion of it was met.
    Met {
        key: Key,
        how: Met,
    },
    /// The worker took the answer.
    Taken {
        key: Key,
        result: i64,
        abandoned: bool,
    },
    /// A batch is the kernel's.
    Submitted {
        requests: u32,
        why: Why,
        in_flight: u32,
    },
    /// A call of io_uring_enter(2), from then on, for so long.
    Entered {
        took: u64,
        submitted: u32,
        waits: bool,
        slept: bool,
        found: u32,
        taken: u32,
    },
    /// The worker slept, from then on, for so long.
    Rested {
        took: u64,
    },
    Sampled {
        gauge: Gauge,
        value: u64,
    },
}
