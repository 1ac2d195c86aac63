//! The router: decides where each operation runs. No other module does.
//!
//! [`Router::choose`] decides from the operation, the option `route`, and recent calls of its kind. Opens of existing
//! files and reads can be *asked*: with RESOLVE_CACHED and RWF_NOWAIT the kernel answers EAGAIN instead of blocking.
//! The others are judged by history. Costs are bimodal (memory or device), so there is no mean but a window of 16 bits,
//! one for each call that blocked. Two of them move a kind to the pool. One call in 64 is then tried inline, and one
//! that does not block brings the kind back. Operations that change a local filesystem stay inline: its locks serialise
//! them, and 32 threads contending for those of btrfs took 1.3 times as long. Where a server or a daemon performs the
//! changes, they are judged by history, too: waiting for it inline would leave as many in flight as there are workers.
//!
//! A slow call without a voluntary context switch was preempted and does not count. Asking stops after 16 refusals in a
//! row whose blocking calls were fast, because some filesystems, such as sysfs, always refuse; it is tried again now
//! and then. Where blocking calls take as long as a daemon's or a server's answer, asking goes on although it is always
//! refused. A refusal costs 0.4 to 0.6 µs (openat2 on sysfs and proc), while an unasked call would block the worker.
//!
//! Operations that may block without end, on the other end of a FIFO or on a terminal, never run on the worker.
//!
//! Limits: each worker has its own history, by operation and filesystem. A filesystem is recognised by the folder that
//! was entered or opened by path; a mount point that is opened without being entered counts as its parent's filesystem.
//! Four filesystems are told apart.

mod reason;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::descriptor::Fd;
use crate::error::Operation;
use crate::op::{Op, Sync};
use crate::options::RouteChoice;
use crate::sys::{self, Patience};

pub use reason::{Reason, Route};

/// Duration above which an inline call has blocked; handing it to the pool would have cost less.
pub(crate) const SLOW: Duration = Duration::from_micros(50);
const SLOW_OF_WINDOW: u32 = 2;
const PROBE_EVERY: u32 = 64;
/// Refusals in a row, each followed by a fast blocking call, after which asking stops.
const FRUITLESS: u32 = 16;
/// Calls without asking before it is tried again.
const ASK_AGAIN: u32 = 64;

/// The decision for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) route: Route,
    pub(crate) patience: Patience,
    pub(crate) reason: Reason,
}

/// The lack that keeps an operation out of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingLack {
    Ring,
    Operation,
}

impl Choice {
    /// The choice when the ring can't take the operation: the pool.
    pub(crate) fn without_ring(self, lack: RingLack) -> Self {
        let reason = match lack {
            RingLack::Ring if self.reason == Reason::Forced => Reason::NoRing,
            RingLack::Ring => self.reason,
            RingLack::Operation => Reason::NotInRing,
        };
        Self { route: Route::Pool, reason, ..self }
    }
}

/// Recent history of one operation on one filesystem.
#[derive(Default)]
struct Window {
    /// One bit for each of the last 16 calls, set if it blocked; newest lowest.
    waited: Cell<u16>,
    since_probe: Cell<u32>,
}

#[derive(Default)]
struct Filesystem {
    /// `st_dev`, or 0 while unused.
    device: Cell<u64>,
    /// Set if a server or a daemon performs its changes; `None` until the first one.
    is_remote: Cell<Option<bool>>,
    windows: [Window; Operation::ALL.len()],
}

/// Filesystems whose changes are performed by a server, a daemon or several machines, by magic number (statfs(2),
/// linux/magic.h and the filesystems' own headers): FUSE and virtiofs, NFS, SMB 1 to 3, 9p, Ceph, AFS by both clients,
/// Coda, Lustre, GPFS, BeeGFS, OrangeFS, GFS2 and OCFS2.
const REMOTE: [u64; 16] = [
    0x6573_5546,
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x00c3_6400,
    0x5346_414f,
    0x6b41_4653,
    0x7375_7245,
    0x0bd0_0bd0,
    0x4750_4653,
    0x1983_0326,
    0x2003_0528,
    0x0116_1970,
    0x7461_636f,
];

/// Filesystems with a history of their own; later ones share the last one's.
const FILESYSTEMS: usize = 4;

pub(crate) struct Router {
    forced: RouteChoice,
    has_ring: Cell<bool>,
    /// Calls since asking stopped or was last tried again.
    unasked: Cell<u32>,
    filesystems: [Filesystem; FILESYSTEMS],
    fruitless: Arc<Fruitless>,
}

/// Refusals in a row after which the blocking call was fast. Shared with the pool's threads, which make that call.
#[derive(Debug, Default)]
pub(crate) struct Fruitless(AtomicU32);

impl Fruitless {
    /// Notes the duration of a blocking call that followed a refusal.
    pub(crate) fn observe(&self, took: Duration) {
        if took < SLOW / 2 {
            self.0.fetch_add(1, Ordering::Relaxed);
        } else {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_asking_worth_it(&self) -> bool {
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

    /// Returns true if a request made of several operations is split, because the forced ring has only those.
    pub(crate) fn splits_requests(&self) -> bool {
        self.forces_ring()
    }

    /// Returns true if the kernel may move bytes between files by itself; a forced ring is to read and write them.
    pub(crate) fn may_offload(&self) -> bool {
        !self.forces_ring()
    }

    fn forces_ring(&self) -> bool {
        self.has_ring.get() && self.forced == RouteChoice::Ring
    }

    /// Returns true unless a ring was found to be unavailable.
    pub(crate) fn may_use_ring(&self) -> bool {
        self.has_ring.get()
    }

    /// Returns true if requests may be linked in a ring.
    pub(crate) fn may_chain(&self) -> bool {
        self.has_ring.get() && matches!(self.forced, RouteChoice::Auto | RouteChoice::Ring)
    }

    /// Notes that a ring is unavailable; the pool replaces it.
    pub(crate) fn give_up_ring(&self) {
        self.has_ring.set(false);
    }

    /// Decides where an operation runs. With `overlaps`, the worker has other work meanwhile.
    pub(crate) fn choose(&self, op: &Op, overlaps: bool) -> Choice {
        let wait = |route, reason| Choice { route, patience: Patience::Wait, reason };
        if sys::may_wait_for_ever(op) {
            // The worker would block; and a ring opens a FIFO without waiting for its other end.
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
            // One call gives a ring several transfers of a direct file, and the device works on all of them.
            let route = if op.is_direct() && self.has_ring.get() { Route::Ring } else { Route::Pool };
            return wait(route, Reason::Overlaps);
        }
        let window = self.window(op);
        let recently_slow = window.waited.get().count_ones() >= SLOW_OF_WINDOW;
        // Calls that recently blocked are not asked, even if the kernel would say that they don't: another part of the
        // answer may be missing from memory.
        let asked = Choice { route: Route::Inline, patience: Patience::Ask, reason: Reason::Asked };
        if can_be_asked(op) && !recently_slow && self.is_to_ask() {
            return asked;
        }
        // Starting write-back blocks too while the device's queue is full.
        if matches!(op, Op::Sync { .. }) {
            return wait(Route::Pool, Reason::Durable);
        }
        if !only_reads(op) && !self.is_remote(op.asked()) {
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

    /// Returns true if the next loads of small files on this filesystem are asked.
    pub(crate) fn asks_for_loads(&self, device: u64) -> bool {
        let waited = self.window_of(device, Operation::Load).waited.get();
        self.forced == RouteChoice::Auto
            && waited.count_ones() < SLOW_OF_WINDOW
            && self.fruitless.is_asking_worth_it()
    }

    /// Returns true if a request that lists a folder may read its files: no route is forced.
    pub(crate) fn may_preload(&self) -> bool {
        self.forced == RouteChoice::Auto
    }

    /// Returns true if entries that are examined on this filesystem have to be waited for.
    pub(crate) fn waits_for_entries(&self, device: u64) -> bool {
        self.window_of(device, Operation::Examine).waited.get().count_ones() >= SLOW_OF_WINDOW
    }

    /// Returns true if asking pays, or is to be tried again.
    fn is_to_ask(&self) -> bool {
        if self.fruitless.is_asking_worth_it() {
            return true;
        }
        let unasked = self.unasked.get() + 1;
        self.unasked.set(unasked % ASK_AGAIN);
        unasked == ASK_AGAIN
    }

    pub(crate) fn note_answer(&self) {
        if !self.fruitless.is_asking_worth_it() {
            self.fruitless.0.store(0, Ordering::Relaxed);
        }
    }

    /// Decides where an operation runs whose answer was not in memory.
    pub(crate) fn missed(&self, op: &Op) -> Choice {
        Choice { route: self.waiting_route(op), patience: Patience::Wait, reason: Reason::Missed }
    }

    /// The ring for reads, which the kernel completes by itself; the pool for operations that a ring would hand to a
    /// kernel worker.
    fn waiting_route(&self, op: &Op) -> Route {
        let by_ring = matches!(op, Op::Read { .. } | Op::ReadVectored { .. });
        if self.has_ring.get() && by_ring { Route::Ring } else { Route::Pool }
    }

    fn window(&self, op: &Op) -> &Window {
        self.window_of(op.device(), op.operation())
    }

    fn window_of(&self, device: u64, operation: Operation) -> &Window {
        &self.filesystem(device).windows[operation as usize]
    }

    fn filesystem(&self, device: u64) -> &Filesystem {
        let is_its = |filesystem: &&Filesystem| matches!(filesystem.device.get(), known if known == device || known == 0);
        let found = self.filesystems.iter().find(is_its).unwrap_or(&self.filesystems[FILESYSTEMS - 1]);
        if found.device.get() == 0 {
            found.device.set(device);
        }
        found
    }

    /// Returns true if a server or a daemon performs the changes of this descriptor's filesystem, which is asked once.
    pub(crate) fn is_remote(&self, descriptor: &Fd) -> bool {
        let filesystem = self.filesystem(descriptor.device());
        filesystem.is_remote.get().unwrap_or_else(|| {
            let is_remote = descriptor.filesystem_magic().is_some_and(|magic| REMOTE.contains(&magic));
            filesystem.is_remote.set(Some(is_remote));
            is_remote
        })
    }

    /// Notes whether an inline call blocked. An asked call may block too: the kernel may know nothing of asking, or
    /// have the inode of a folder in memory but not its blocks.
    pub(crate) fn observe(&self, op: &Op, waited: bool) {
        let window = self.window(op);
        let history = window.waited.get();
        // A kind that had left comes back at once.
        let left = history.count_ones() >= SLOW_OF_WINDOW;
        window.waited.set(if left && !waited { 0 } else { history << 1 | u16::from(waited) });
    }
}

fn can_be_asked(op: &Op) -> bool {
    if let Op::Open { flags, .. } = op {
        return !flags.intersects(OFlags::CREATE | OFlags::TRUNC);
    }
    matches!(op, Op::Read { .. } | Op::ReadVectored { .. } | Op::Load { .. } | Op::Enter { .. })
}

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
            | Op::Examine { .. }
            | Op::ReadLink { .. }
            | Op::ListXattr { .. }
            | Op::GetXattr { .. }
            | Op::Load { .. }
            | Op::Chain { .. }
    )
}

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
