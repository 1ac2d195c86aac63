//! Where an operation runs, and why: the one place that decides.
//!
//! Called by the worker for every operation ([`Router::choose`]) and told what inline calls took
//! ([`Router::observe`]). The choice is made from three things: what the operation is (opens of existing files and
//! reads can be *asked*: the kernel says EAGAIN instead of waiting), what the option `route` forces, and, for calls
//! that can't be asked, what the last ones of that kind took. Costs are bimodal (memory or device), so there is no
//! mean: a window of 16 yes-or-no answers to "did it wait", and a kind leaves the inline route when 2 of them did. It
//! then goes to the pool; one in 64 is tried inline, and one that did not wait brings the kind back. What changes a
//! filesystem stays: its locks serialise it, and 32 threads that fought for those of btrfs took 1.3 times as long.
//!
//! A call over the threshold that made no voluntary context switch was preempted, not waiting, and does not count.
//! Asking stops after a run of misses whose blocking call turned out to be fast: some filesystems say EAGAIN always, such
//! as sysfs. It is tried again now and then. Where that call takes as long as a daemon's or a server's answer, asking never
//! stops, though it is never answered: a refused question costs 0.4 to 0.6 µs (openat2 on sysfs and proc), which such a call
//! does not notice, and if it were not asked it would wait on the worker until it was found to be slow.
//!
//! What may wait without end, for the other end of a FIFO or for a terminal, never runs on the worker.
//!
//! Limits: histories are a worker's own, by kind of operation and filesystem. A filesystem is known by where a folder was
//! entered or opened by path; what is opened in it counts as its own, so a folder that something is mounted on and that is opened
//! without being entered counts as its parent's. Four filesystems are told apart.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::error::Operation;
use crate::op::{Op, Sync};
use crate::options::RouteChoice;
use crate::stats::Route;
use crate::sys::{self, Patience};

/// An inline call that takes longer is waiting for something: a hand-over to the pool costs less.
pub(crate) const SLOW: Duration = Duration::from_micros(50);
const SLOW_OF_WINDOW: u32 = 2;
const PROBE_EVERY: u32 = 64;
/// Fruitless questions in a row before asking stops.
const FRUITLESS: u32 = 16;
/// Calls that are not asked before one is again.
const ASK_AGAIN: u32 = 64;

/// Why a route was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The option said so.
    Forced,
    /// It changes the filesystem, whose locks let only so many do that at a time.
    Changes,
    /// The kernel is asked, and says EAGAIN rather than wait.
    Asked,
    /// It was asked, and the answer was not in memory.
    Missed,
    /// The last calls of this kind did not wait.
    RecentlyFast,
    /// The last calls of this kind waited.
    RecentlySlow,
    /// The caller, or its worker, has other work to do meanwhile.
    Overlaps,
    /// It always waits for the device.
    Durable,
    /// It may wait for somebody else, without end.
    Unbounded,
    /// The ring has no such operation.
    NotInRing,
    /// There is no ring to be had.
    NoRing,
    /// It is a chain of linked requests.
    Linked,
}

impl Reason {
    /// Whether how long the operation takes decides where the next of its kind goes.
    pub(crate) fn learns(self) -> bool {
        matches!(self, Self::Asked | Self::RecentlyFast)
    }

    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 12] = [
        Self::Forced,
        Self::Changes,
        Self::Asked,
        Self::Missed,
        Self::RecentlyFast,
        Self::RecentlySlow,
        Self::Overlaps,
        Self::Durable,
        Self::Unbounded,
        Self::NotInRing,
        Self::NoRing,
        Self::Linked,
    ];

    /// The name used in recordings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forced => "forced",
            Self::Changes => "changes",
            Self::Asked => "asked",
            Self::Missed => "missed",
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

    /// The reason in words, as it ends a sentence such as "read went inline, ...".
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::Forced => "as --route says",
            Self::Changes => "changing a filesystem gains nothing from more threads",
            Self::Asked => "asked where it can be, the kernel did not say that it would wait",
            Self::Missed => "the kernel was asked and did not have it in memory",
            Self::RecentlyFast => "the last ones did not wait",
            Self::RecentlySlow => "the last ones waited",
            Self::Overlaps => "its worker had more to do meanwhile",
            Self::Durable => "it waits for the device",
            Self::Unbounded => "it may wait for somebody else without end",
            Self::NoRing => "there is no ring to be had",
            Self::NotInRing => "io_uring has no such operation",
            Self::Linked => "only a ring links requests to a chain",
        }
    }
}

/// Where to, how patiently, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) route: Route,
    pub(crate) patience: Patience,
    pub(crate) reason: Reason,
}

/// One kind's recent history.
#[derive(Default)]
struct Window {
    /// The last 16 answers to "did it wait", newest lowest.
    waited: Cell<u16>,
    since_probe: Cell<u32>,
}

/// What the operations on one filesystem have taken lately.
#[derive(Default)]
struct Filesystem {
    /// 0 until one is met.
    device: Cell<u64>,
    windows: [Window; Operation::ALL.len()],
}

/// So many filesystems are told apart; those that are met later share the last one's history.
const FILESYSTEMS: usize = 4;

/// One worker's decisions.
pub(crate) struct Router {
    forced: RouteChoice,
    has_ring: Cell<bool>,
    /// Calls since asking stopped, or since it was last tried again.
    unasked: Cell<u32>,
    filesystems: [Filesystem; FILESYSTEMS],
    fruitless: Arc<Fruitless>,
}

/// Counts questions that were answered "not in memory" although the blocking call did not wait. Kept where the
/// pool's threads, which make that call, can reach it.
#[derive(Debug, Default)]
pub(crate) struct Fruitless(AtomicU32);

impl Fruitless {
    /// Tells how long a blocking call took after the kernel had said that it would wait.
    pub(crate) fn observe(&self, took: Duration) {
        if took < SLOW / 2 {
            self.0.fetch_add(1, Ordering::Relaxed);
        } else {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    fn is_asking_worth_it(&self) -> bool {
        self.0.load(Ordering::Relaxed) < FRUITLESS
    }
}

impl Router {
    pub(crate) fn new(forced: RouteChoice, has_ring: bool, fruitless: Arc<Fruitless>) -> Self {
        Self {
            forced,
            has_ring: Cell::new(has_ring),
            unasked: Cell::new(0),
            filesystems: Default::default(),
            fruitless,
        }
    }

    /// Whether everything that the ring has must go there.
    pub(crate) fn forces_ring(&self) -> bool {
        self.has_ring.get() && self.forced == RouteChoice::Ring
    }

    /// Whether a ring has not yet been found impossible.
    pub(crate) fn may_use_ring(&self) -> bool {
        self.has_ring.get()
    }

    /// Whether requests may be linked in a ring.
    pub(crate) fn may_chain(&self) -> bool {
        self.has_ring.get() && matches!(self.forced, RouteChoice::Auto | RouteChoice::Ring)
    }

    /// There is no ring to be had: from now on the pool does what it would have done.
    pub(crate) fn give_up_ring(&self) {
        self.has_ring.set(false);
    }

    /// Decides for one operation. `overlaps` says that its worker has more to do than wait for it.
    pub(crate) fn choose(&self, op: &Op, overlaps: bool) -> Choice {
        let wait = |route, reason| Choice { route, patience: Patience::Wait, reason };
        if sys::may_wait_for_ever(op) {
            // The worker would wait with it; and a ring opens a FIFO without waiting first, and is content with that.
            let may_ring = self.has_ring.get() && !matches!(op, Op::Open { .. });
            return match self.forced {
                RouteChoice::Ring if may_ring => wait(Route::Ring, Reason::Forced),
                RouteChoice::Pool => wait(Route::Pool, Reason::Forced),
                RouteChoice::Auto | RouteChoice::Inline | RouteChoice::Ring => {
                    wait(Route::Pool, Reason::Unbounded)
                }
            };
        }
        match self.forced {
            RouteChoice::Inline => return wait(Route::Inline, Reason::Forced),
            RouteChoice::Pool => return wait(Route::Pool, Reason::Forced),
            RouteChoice::Ring if self.has_ring.get() && in_ring(op) => {
                return wait(Route::Ring, Reason::Forced);
            }
            RouteChoice::Ring if in_ring(op) => return wait(Route::Inline, Reason::NoRing),
            RouteChoice::Ring => return wait(Route::Inline, Reason::NotInRing),
            RouteChoice::Auto => {}
        }
        if let Op::Chain { .. } = op {
            return wait(Route::Ring, Reason::Linked);
        }
        if overlaps {
            // A ring takes several transfers of a direct file by one call, and the device works on all of them.
            let route = if op.is_direct() && self.has_ring.get() { Route::Ring } else { Route::Pool };
            return wait(route, Reason::Overlaps);
        }
        let window = self.window(op);
        let recently_slow = window.waited.get().count_ones() >= SLOW_OF_WINDOW;
        // Who says that it is in memory and waits all the same, perhaps for another part of it, is not asked.
        let asked = Choice { route: Route::Inline, patience: Patience::Ask, reason: Reason::Asked };
        if can_be_asked(op) && !recently_slow && self.is_to_ask() {
            return asked;
        }
        // Beginning to write back waits, too, where the device's queue is full.
        if matches!(op, Op::Sync { .. }) {
            return wait(Route::Pool, Reason::Durable);
        }
        if !only_reads(op) {
            return wait(Route::Inline, Reason::Changes);
        }
        if !recently_slow {
            return wait(Route::Inline, Reason::RecentlyFast);
        }
        let since = window.since_probe.get() + 1;
        window.since_probe.set(since % PROBE_EVERY);
        if since == PROBE_EVERY {
            let may_ask = can_be_asked(op) && self.fruitless.is_asking_worth_it();
            return if may_ask { asked } else { wait(Route::Inline, Reason::RecentlyFast) };
        }
        wait(Route::Pool, Reason::RecentlySlow)
    }

    /// Whether asking pays, or is to be tried again.
    fn is_to_ask(&self) -> bool {
        if self.fruitless.is_asking_worth_it() {
            return true;
        }
        let unasked = self.unasked.get() + 1;
        self.unasked.set(unasked % ASK_AGAIN);
        unasked == ASK_AGAIN
    }

    /// A question was answered without waiting: asking pays.
    pub(crate) fn note_answer(&self) {
        if !self.fruitless.is_asking_worth_it() {
            self.fruitless.0.store(0, Ordering::Relaxed);
        }
    }

    /// Where an operation goes whose answer was not in memory.
    pub(crate) fn missed(&self, op: &Op) -> Choice {
        Choice { route: self.waiting_route(op), patience: Patience::Wait, reason: Reason::Missed }
    }

    /// The ring for reads, which the kernel finishes by itself; the pool for everything that the ring would only hand to
    /// a kernel worker.
    fn waiting_route(&self, op: &Op) -> Route {
        let by_ring = matches!(op, Op::Read { .. } | Op::ReadVectored { .. });
        if self.has_ring.get() && by_ring { Route::Ring } else { Route::Pool }
    }

    /// The history of an operation's kind on its filesystem.
    fn window(&self, op: &Op) -> &Window {
        let device = op.device();
        let is_its = |filesystem: &&Filesystem| matches!(filesystem.device.get(), known if known == device || known == 0);
        let found = self.filesystems.iter().find(is_its).unwrap_or(&self.filesystems[FILESYSTEMS - 1]);
        if found.device.get() == 0 {
            found.device.set(device);
        }
        &found.windows[op.operation() as usize]
    }

    /// Tells how an inline call went. One that was asked may wait, too: where the kernel can't be asked, or for a part that
    /// it is not asked about, as when the inode of a folder is in memory and its blocks are not.
    pub(crate) fn observe(&self, op: &Op, waited: bool) {
        let window = self.window(op);
        let history = window.waited.get();
        // A kind that had left and does not wait any more comes back at once.
        let left = history.count_ones() >= SLOW_OF_WINDOW;
        window.waited.set(if left && !waited { 0 } else { history << 1 | u16::from(waited) });
    }
}

/// Whether the kernel can be asked not to wait.
fn can_be_asked(op: &Op) -> bool {
    if let Op::Open { flags, .. } = op {
        return !flags.intersects(OFlags::CREATE | OFlags::TRUNC);
    }
    matches!(op, Op::Read { .. } | Op::ReadVectored { .. } | Op::Load { .. } | Op::Enter { .. })
}

/// Whether the operation leaves the filesystem as it is.
fn only_reads(op: &Op) -> bool {
    if let Op::Open { flags, .. } = op {
        return !flags.intersects(OFlags::CREATE | OFlags::TRUNC);
    }
    matches!(
        op,
        Op::Stat { .. }
            | Op::Read { .. }
            | Op::ReadVectored { .. }
            | Op::Seek { .. }
            | Op::List { .. }
            | Op::Enter { .. }
            | Op::ReadLink { .. }
            | Op::ListXattr { .. }
            | Op::GetXattr { .. }
            | Op::Load { .. }
            | Op::Chain { .. }
    )
}

/// Whether io_uring has the operation.
fn in_ring(op: &Op) -> bool {
    if let Op::Sync { how, .. } = op {
        return !matches!(how, Sync::Filesystem | Sync::Finish { .. });
    }
    matches!(
        op,
        Op::Open { .. }
            | Op::Stat { .. }
            | Op::Read { .. }
            | Op::Write { .. }
            | Op::ReadVectored { .. }
            | Op::WriteVectored { .. }
            | Op::Allocate { .. }
            | Op::Truncate { .. }
            | Op::MakeDirectory { .. }
            | Op::Symlink { .. }
            | Op::Link { .. }
            | Op::Rename { .. }
            | Op::Unlink { .. }
            | Op::Chain { .. }
    )
}

#[cfg(test)]
mod tests;
