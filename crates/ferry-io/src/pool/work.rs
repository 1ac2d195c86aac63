//! Requests in the hands of a thread: the calls that each takes, and their answers.
//!
//! Whatever happens, each request is delivered once: a call that panics is answered with ECANCELED, and its panic is
//! kept for the worker; joined writes whose call panics are performed one by one (guard:
//! `a_batch_is_answered_whichever_of_its_files_panics`).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::descriptor::Fd;
use crate::entry::Entries;
use crate::error::Operation;
use crate::event;
use crate::inbox::Inbox;
use crate::op::{Op, Outcome};
use crate::preload::{Preload, Preloaded};
use crate::slots::{Completion, Key};
use crate::sys::{self, Patience, Wait};

pub(super) struct Request {
    pub(super) key: Key,
    pub(super) op: Op,
    pub(super) rest: Vec<(Key, Op)>,
    pub(super) owner: Arc<Inbox>,
    pub(super) lane: Option<Lane>,
    /// Set if the kernel was asked before and its answer was not in memory.
    pub(super) missed: bool,
    /// Progress of a request that may wait without end.
    pub(super) wait: Option<Box<Wait>>,
}

impl Request {
    pub(super) fn is(&self, key: Key, owner: &Arc<Inbox>) -> bool {
        self.key == key && Arc::ptr_eq(&self.owner, owner)
    }
}

/// The buffered reads, or the buffered writes, of one file: a single thread performs them in order. Several threads
/// would only contend for the inode's lock, and reads in order keep the kernel reading ahead.
pub(crate) type Lane = (usize, Operation);

pub(super) fn lane_of(op: &Op) -> Option<Lane> {
    if let Op::Read { file, .. } | Op::Write { file, .. } = op
        && !file.is_direct()
    {
        return Some((Arc::as_ptr(file).addr(), op.operation()));
    }
    None
}

/// Offset behind a write's last byte; `None` for other operations.
pub(super) fn end_of(op: &Op) -> Option<u64> {
    let Op::Write { at, .. } = op else { return None };
    at.checked_add(sys::bytes_to_write(op)?.len() as u64)
}

/// The performer of a thread's calls: the kernel or the simulation.
pub(crate) trait Calls {
    /// Set if each request's beginning and end are recorded.
    const IS_RECORDED: bool;

    fn perform(&mut self, op: &mut Op, patience: Patience) -> Result<Outcome, Errno>;

    /// Performs consecutive writes of one file in one call; returns the bytes written of all.
    fn write_joined(&mut self, ops: &[&Op]) -> Result<usize, Errno>;

    /// Reads small files of a folder that was just listed. Returns how long that took.
    fn preload(&mut self, folder: &Fd, entries: &Entries, plan: &Preload) -> (Vec<Preloaded>, Duration);
}

struct Kernel;

impl Calls for Kernel {
    const IS_RECORDED: bool = true;

    fn perform(&mut self, op: &mut Op, patience: Patience) -> Result<Outcome, Errno> {
        sys::perform(op, patience)
    }

    fn write_joined(&mut self, ops: &[&Op]) -> Result<usize, Errno> {
        sys::write_joined(ops.iter().copied())
    }

    fn preload(&mut self, folder: &Fd, entries: &Entries, plan: &Preload) -> (Vec<Preloaded>, Duration) {
        let begun = Instant::now();
        (sys::preload(folder.fd(), entries, plan), begun.elapsed())
    }
}

/// Makes calls for a worker. A panic is kept for the worker, and the request is answered: no other thread would answer
/// it.
pub(super) fn guarded<T>(owner: &Inbox, calls: impl FnOnce() -> T) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(calls)).map_err(|panic| {
        owner.deliver_panic(panic);
        Errno::CANCELED
    })
}

/// A request in the hands of a thread, call by call. Everything is begun before anything is waited for. Consecutive
/// writes are one call, and one more for each write that it did not reach.
pub(crate) struct Work {
    /// Results; EAGAIN until there is one.
    requests: Vec<(Key, Completion)>,
    owner: Arc<Inbox>,
    lane: Option<Lane>,
    missed: bool,
    calls: VecDeque<Call>,
    begun: Instant,
    /// Time for files that nobody waits for yet.
    preloading: Duration,
}

#[derive(Clone, Copy)]
enum Call {
    Joined,
    One(usize, Patience),
}

impl Work {
    pub(super) fn new(request: Request, begun: Instant) -> Self {
        let Request { key, op, rest, owner, lane, missed, .. } = request;
        let unanswered = |(key, op)| (key, (op, Err(Errno::AGAIN)));
        let requests: Vec<_> = std::iter::once((key, op)).chain(rest).map(unanswered).collect();
        let calls = match requests.len() {
            1 => VecDeque::from([Call::One(0, Patience::Wait)]),
            _ if lane.is_some() => VecDeque::from([Call::Joined]),
            several => (0..several).map(|at| Call::One(at, Patience::Begin)).collect(),
        };
        Self { requests, owner, lane, missed, calls, begun, preloading: Duration::ZERO }
    }

    /// Makes the next call; returns false if it was the last.
    pub(crate) fn step<C: Calls>(&mut self, calls: &mut C) -> bool {
        match self.calls.pop_front() {
            Some(Call::Joined) => self.write_joined(calls),
            Some(Call::One(at, patience)) => self.perform_one(calls, at, patience),
            None => {}
        }
        !self.calls.is_empty()
    }

    fn perform_one<C: Calls>(&mut self, calls: &mut C, at: usize, patience: Patience) {
        let is_alone = self.requests.len() == 1;
        let Some((key, (op, result))) = self.requests.get_mut(at) else { return };
        // A request begun before, or written with others, has been recorded.
        if C::IS_RECORDED && (is_alone || patience == Patience::Begin) {
            event::started(&self.owner, *key);
        }
        *result = guarded(&self.owner, || {
            let outcome = calls.perform(op, patience)?;
            self.preloading += fill_shelf(calls, op, &outcome);
            Ok(outcome)
        })
        .flatten();
        if patience == Patience::Begin && matches!(result, Err(Errno::AGAIN)) {
            self.calls.push_back(Call::One(at, Patience::Wait));
        } else if C::IS_RECORDED {
            event::finished(&self.owner, [*key]);
        }
    }

    fn write_joined<C: Calls>(&mut self, calls: &mut C) {
        if C::IS_RECORDED {
            self.requests.iter().for_each(|(key, _)| event::started(&self.owner, *key));
        }
        let ops: Vec<_> = self.requests.iter().map(|(_, (op, _))| op).collect();
        let written = guarded(&self.owner, || calls.write_joined(&ops)).flatten().unwrap_or(0);
        let sizes = ops.iter().map(|op| sys::bytes_to_write(op).map_or(0, <[u8]>::len)).collect();
        for (at, count) in share_out(written, sizes).enumerate() {
            if count == 0 {
                self.calls.push_back(Call::One(at, Patience::Wait));
            } else if let Some((key, (_, result))) = self.requests.get_mut(at) {
                *result = Ok(Outcome::Count(count));
                if C::IS_RECORDED {
                    event::finished(&self.owner, [*key]);
                }
            }
        }
    }

    /// Delivers the answers and returns the lane to be left.
    pub(crate) fn deliver(self, now: Instant) -> Option<Lane> {
        if self.missed {
            // A batch in memory takes longer than one call, though less than one wait.
            let calls = if self.requests.len() > 1 { 2 } else { 1 };
            let took = now.saturating_duration_since(self.begun).saturating_sub(self.preloading);
            self.owner.fruitless.observe(took / calls);
        }
        self.owner.deliver(self.requests);
        self.lane
    }
}

/// Reads small files of a folder that was just listed, if its request asks for that. Returns how long that took. The root
/// of a mount is left out, because the copy may not go on there.
fn fill_shelf<C: Calls>(calls: &mut C, op: &Op, outcome: &Outcome) -> Duration {
    if let (Op::Enter { dir, preload: Some(plan), .. }, Outcome::Entered(entered)) = (op, outcome) {
        let (folder, stat, entries) = &**entered;
        if stat.device == dir.device() {
            let (files, took) = calls.preload(folder, entries, plan);
            folder.preloaded().fill(files);
            return took;
        }
    }
    Duration::ZERO
}

pub(super) fn perform(request: Request) {
    let mut work = Work::new(request, Instant::now());
    while work.step(&mut Kernel) {}
    work.deliver(Instant::now());
}

/// Each write's share of the bytes that one call wrote.
pub(super) fn share_out(mut written: usize, sizes: Vec<usize>) -> impl Iterator<Item = usize> {
    sizes.into_iter().map(move |size| {
        let share = size.min(written);
        written -= share;
        share
    })
}

/// Performs a request on the calling worker's thread, unless it may wait without end.
pub(super) fn perform_here(request: Request) {
    if request.wait.is_none() {
        return perform(request);
    }
    let Request { key, op, owner, .. } = request;
    owner.deliver([(key, (op, Err(Errno::AGAIN)))]);
}
