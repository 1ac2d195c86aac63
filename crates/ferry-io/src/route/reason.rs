//! The routes of operations, and the reasons for taking them.

/// The place where an operation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// A plain system call on the worker's own thread.
    Inline,
    /// Submitted to the ring.
    Ring,
    /// A blocking call on a thread of the pool.
    Pool,
    /// A call in which the kernel moves data between two files.
    Offload,
}

impl Route {
    /// All routes, in the order of the counters.
    pub const ALL: [Self; 4] = [Self::Inline, Self::Ring, Self::Pool, Self::Offload];

    /// The name used in reports and by `--route`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Ring => "ring",
            Self::Pool => "pool",
            Self::Offload => "offload",
        }
    }
}

/// The reason for taking a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The option `route` forces it.
    Forced,
    /// It changes the filesystem, whose locks would serialise threads.
    Changes,
    /// It was tried without blocking.
    Asked,
    /// It was tried without blocking, and the answer was not in memory.
    Missed,
    /// Another file of its folder was not in memory.
    WithFolder,
    /// It was performed by the request that listed its folder.
    Preloaded,
    /// Recent calls of this kind did not block.
    RecentlyFast,
    /// Recent calls of this kind blocked.
    RecentlySlow,
    /// The worker has other work meanwhile.
    Overlaps,
    /// It waits for the device.
    Durable,
    /// It may block without end.
    Unbounded,
    /// The ring lacks the operation.
    NotInRing,
    /// No ring is available.
    NoRing,
    /// It is a chain of linked requests.
    Linked,
}

impl Reason {
    /// Returns true if the call's duration affects later decisions.
    pub(crate) fn learns(self) -> bool {
        matches!(self, Self::Asked | Self::RecentlyFast)
    }

    /// All reasons, in the order of the counters.
    pub const ALL: [Self; 14] = [
        Self::Forced,
        Self::Changes,
        Self::Asked,
        Self::Missed,
        Self::WithFolder,
        Self::Preloaded,
        Self::RecentlyFast,
        Self::RecentlySlow,
        Self::Overlaps,
        Self::Durable,
        Self::Unbounded,
        Self::NotInRing,
        Self::NoRing,
        Self::Linked,
    ];

    /// Name in recordings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forced => "forced",
            Self::Changes => "changes",
            Self::Asked => "asked",
            Self::Missed => "missed",
            Self::WithFolder => "with-folder",
            Self::Preloaded => "preloaded",
            Self::RecentlyFast => "recently-fast",
            Self::RecentlySlow => "recently-slow",
            Self::Overlaps => "overlaps",
            Self::Durable => "durable",
            Self::Unbounded => "unbounded",
            Self::NotInRing => "not-in-ring",
            Self::NoRing => "no-ring",
            Self::Linked => "linked",
        }
    }

    /// The reason in words, the end of a sentence such as "read went inline: ...".
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::Forced => "--route forces it",
            Self::Changes => "changes run inline, because more threads do not speed them up",
            Self::Asked => "tried without blocking; it succeeded at once",
            Self::Missed => "tried without blocking; the answer was not in memory",
            Self::WithFolder => "another file of its folder was not in memory",
            Self::Preloaded => "the request that listed its folder has read it",
            Self::RecentlyFast => "recent ones did not block",
            Self::RecentlySlow => "recent ones blocked",
            Self::Overlaps => "its worker had other work meanwhile",
            Self::Durable => "it waits for the device",
            Self::Unbounded => "it may block without end",
            Self::NoRing => "no ring is available",
            Self::NotInRing => "io_uring lacks the operation",
            Self::Linked => "only a ring can link requests",
        }
    }
}
