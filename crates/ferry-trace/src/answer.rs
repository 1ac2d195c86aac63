//! The first figures of a recording: how long operations were in flight, how busy threads were, and the longest wait.
//!
//! An operation is in flight from its submission until its completion ([`in_flight`]). A share of time is that of the
//! union of these intervals: time in which ten reads were in flight counts once.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use ferry_io::Operation as Kind;

use crate::Trace;
use crate::model::{Did, Nanos, Role};
use crate::summary::{Depth, Summary, duration, in_flight, span, span_of_request};

/// The first figures of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Time in flight by activity, descending; [`Activity::Other`] is last.
    pub in_flight: Vec<InFlight>,
    /// Time use of threads, if known.
    pub busy: Option<Busy>,
    /// Longest time from a request to its result, or of a ring's request to its completion.
    pub longest_wait: Option<Wait>,
    /// Operations in flight over time, or requests of rings if there are no operations.
    pub depth: Depth,
}

/// Kinds of operations that the answer puts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Reading: `read`, `load` and `chain`; opcodes that begin with READ.
    Read,
    /// Writing: `write` and `store`; opcodes that begin with WRITE.
    Write,
    /// Copying in the kernel: `copy_file_range` and `clone`; SPLICE and TEE.
    Copy,
    /// Syncing: `sync`; FSYNC and SYNC_FILE_RANGE.
    Sync,
    /// All other operations on files, folders and attributes.
    Metadata,
    /// Requests that do none of this, such as POLL_ADD and TIMEOUT.
    Other,
}

/// Time in which at least one operation of an activity was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// The activity.
    pub activity: Activity,
    /// That time; at most the duration of the recording.
    pub time: Nanos,
}

/// Threads whose time use is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Workers of the runtime. They are busy unless they are idle, also in a call that blocks.
    Workers,
    /// Threads of another program. They are busy while they do not sleep, as far as the kernel recorded it.
    Others,
}

/// Time use of threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// The threads.
    pub of: Threads,
    /// Number of threads.
    pub threads: u64,
    /// Sum of the times in which they were busy.
    pub time: Nanos,
    /// Sum of their lifetimes.
    pub lived: Nanos,
}

/// A wait for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Duration.
    pub took: Nanos,
    /// Operation or request that was waited for.
    pub on: Awaited,
}

/// Operation or request that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// An operation, in [`Trace::operations`].
    Operation(usize),
    /// A request, in [`Trace::requests`].
    Request(usize),
}

impl Answer {
    /// Computes the figures; the depth is given for `slots` equal parts of the recording.
    #[must_use]
    pub fn of(trace: &Trace, summary: &Summary, slots: usize) -> Self {
        Self {
            in_flight: activities(trace),
            busy: workers(trace, summary).or_else(|| others(trace)),
            longest_wait: longest_wait(trace, summary),
            depth: in_flight(trace, slots),
        }
    }
}

impl Activity {
    /// All activities.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Copy, Self::Sync, Self::Metadata, Self::Other];

    /// Name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Sync => "sync",
            Self::Metadata => "metadata",
            Self::Other => "other",
        }
    }

    fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Read | Kind::Load | Kind::Chain => Self::Read,
            Kind::Write | Kind::Store => Self::Write,
            Kind::CopyRange | Kind::Clone => Self::Copy,
            Kind::Sync => Self::Sync,
            Kind::Open
            | Kind::Stat
            | Kind::Seek
            | Kind::Allocate
            | Kind::Truncate
            | Kind::List
            | Kind::Examine
            | Kind::MakeDirectory
            | Kind::Symlink
            | Kind::ReadLink
            | Kind::Link
            | Kind::MakeNode
            | Kind::Rename
            | Kind::Unlink
            | Kind::SetOwner
            | Kind::SetMode
            | Kind::SetTimes
            | Kind::ListXattr
            | Kind::GetXattr
            | Kind::SetXattr
            | Kind::Close => Self::Metadata,
            Kind::Wait => Self::Other,
        }
    }

    fn of_opcode(opcode: &str) -> Self {
        match opcode {
            "SPLICE" | "TEE" => Self::Copy,
            "FSYNC" | "SYNC_FILE_RANGE" => Self::Sync,
            "OPENAT" | "OPENAT2" | "CLOSE" | "STATX" | "FALLOCATE" | "FTRUNCATE" | "FADVISE" | "RENAMEAT"
            | "UNLINKAT" | "MKDIRAT" | "SYMLINKAT" | "LINKAT" | "SETXATTR" | "FSETXATTR" | "GETXATTR"
            | "FGETXATTR" => Self::Metadata,
            opcode if opcode.starts_with("READ") => Self::Read,
            opcode if opcode.starts_with("WRITE") => Self::Write,
            _ => Self::Other,
        }
    }
}

fn activities(trace: &Trace) -> Vec<InFlight> {
    let took = trace.about.took;
    let mut spans: [Vec<(Nanos, Nanos)>; Activity::ALL.len()] = Default::default();
    for operation in &trace.operations {
        spans[Activity::of_kind(operation.kind) as usize].push(span(operation, took));
    }
    // Requests of the runtime belong to its operations.
    for request in trace.requests.iter().filter(|_| trace.operations.is_empty()) {
        spans[Activity::of_opcode(&request.opcode) as usize].push(span_of_request(request, took));
    }
    let all = Activity::ALL.into_iter().zip(spans).filter(|(_, spans)| !spans.is_empty());
    let mut found: Vec<InFlight> =
        all.map(|(activity, spans)| InFlight { activity, time: covered(spans, took) }).collect();
    found.sort_by_key(|its| (its.activity == Activity::Other, Reverse(its.time)));
    found
}

/// Duration of the union of intervals, as far as they are within the recording.
fn covered(mut spans: Vec<(Nanos, Nanos)>, took: Nanos) -> Nanos {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (began, ended) in spans {
        let (began, ended) = (began.max(until), ended.min(took));
        if began < ended {
            sum += ended - began;
            until = ended;
        }
    }
    sum
}

fn workers(trace: &Trace, summary: &Summary) -> Option<Busy> {
    let is_worker =
        |thread: u32| trace.threads.get(thread as usize).is_some_and(|its| its.role == Role::Worker);
    let its = summary.threads.iter().filter(|its| is_worker(its.thread));
    together(Threads::Workers, its.map(|its| (its.busy, its.lived)))
}

/// Sums up busy times and lifetimes; `None` without any lifetime.
fn together(of: Threads, each: impl Iterator<Item = (Nanos, Nanos)>) -> Option<Busy> {
    let sum = each.fold(Busy { of, threads: 0, time: 0, lived: 0 }, |sum, (time, lived)| Busy {
        of,
        threads: sum.threads + 1,
        time: sum.time.saturating_add(time),
        lived: sum.lived.saturating_add(lived),
    });
    (sum.lived > 0).then_some(sum)
}

/// A thread that the kernel saw sleeping or waking.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    is_seen: bool,
    began: Nanos,
    ended: Option<Nanos>,
    /// Time since which it has been awake.
    awake_since: Option<Nanos>,
    /// Time awake before.
    awake: Nanos,
}

impl Seen {
    fn wakes(&mut self, at: Nanos) {
        self.awake_since.get_or_insert(at);
        self.is_seen = true;
    }

    fn sleeps(&mut self, at: Nanos) {
        // A thread whose first event is that it falls asleep was awake before.
        let since = self.awake_since.take().or((!self.is_seen).then_some(self.began));
        self.awake = self.awake.saturating_add(since.map_or(0, |since| at.saturating_sub(since)));
        self.is_seen = true;
    }
}

fn others(trace: &Trace) -> Option<Busy> {
    let took = trace.about.took;
    let mut found = vec![Seen::default(); trace.threads.len()];
    for event in &trace.kernel {
        let Some(its) = found.get_mut(event.thread as usize) else { continue };
        match event.did {
            Did::Began => {
                its.began = event.at;
                its.wakes(event.at);
            }
            Did::Wake { .. } | Did::Run => its.wakes(event.at),
            Did::Sleep => its.sleeps(event.at),
            Did::Ended => {
                its.sleeps(event.at);
                its.ended = Some(event.at);
            }
            Did::TaskWork { .. } | Did::TaskAdd | Did::HandOver(_) => {}
        }
    }
    let its = found.into_iter().zip(&trace.threads);
    let its = its.filter(|(seen, thread)| seen.is_seen && thread.role == Role::Other);
    together(
        Threads::Others,
        its.map(|(seen, _)| {
            let ended = seen.ended.unwrap_or(took);
            let last = seen.awake_since.map_or(0, |since| ended.saturating_sub(since));
            (seen.awake.saturating_add(last), ended.saturating_sub(seen.began))
        }),
    )
}

fn longest_wait(trace: &Trace, summary: &Summary) -> Option<Wait> {
    if let Some(&index) = summary.longest.first() {
        let took = duration(trace.operations.get(index)?)?;
        return Some(Wait { took, on: Awaited::Operation(index) });
    }
    let requests = trace.requests.iter().enumerate().filter(|_| trace.operations.is_empty());
    // A poll or a timer waits as long as the program wants. It counts only if there is nothing else.
    let waits = requests.filter_map(|(index, request)| {
        let took = request.completed?.saturating_sub(request.submitted);
        Some((Activity::of_opcode(&request.opcode) != Activity::Other, took, Reverse(index)))
    });
    let (_, took, Reverse(index)) = waits.max()?;
    Some(Wait { took, on: Awaited::Request(index) })
}
