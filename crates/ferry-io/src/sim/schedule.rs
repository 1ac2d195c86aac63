//! Decides when simulated requests take effect and complete.
//!
//! Inline calls take effect at once and cost virtual time. A request of the ring has two moments, both drawn from the
//! seed: it takes effect on the disk, and later it completes. In between it can't be cancelled, as with a device. The
//! pool's queue is the real one (`pool.rs`); each call of the pool's threads is one moment of this schedule. When no
//! worker can run, the clock jumps to the next moment or timer (`seats.rs`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::calls::Called;
use super::chance::Chance;
use super::character::Character;
use super::disk::ROOT;
use super::seats::Seat;
use super::world::Simulation;
use super::{Inner, SimDescriptor};
use crate::buffers::Blocks;
use crate::descriptor::Descriptor;
use crate::descriptor::Dir;
use crate::entry::Time;
use crate::error::{Error, Operation, Result};
use crate::event;
use crate::op::Op;
use crate::pool::{Lane, Pool, Work};
use crate::route::{Reason, Route};
use crate::slots::{Completion, Key};
use crate::sys::Patience;

/// Cost of a turn of the executor, in nanoseconds of virtual time.
const TURN_NS: u64 = 500;
/// Share of requests that take far longer than the others, in millionths.
const LATE_PER_MILLION: u32 = 10_000;
const LATE_FACTOR: u64 = 50;
/// Probability that another worker runs before a call, in millionths.
pub(super) const GIVES_WAY: u32 = 30_000;

pub(crate) struct Sim {
    pub(super) seed: u64,
    pub(super) world: Arc<Inner>,
    /// Real and virtual time at the start. Virtual times are represented as `Instant`s after the real one.
    start: Instant,
    start_ns: u64,
    descriptors: usize,
    ring: Option<RingLimits>,
    pool: OnceLock<Weak<Pool>>,
    stop: OnceLock<Weak<AtomicBool>>,
    /// Seat of the running thread.
    pub(super) holder: AtomicUsize,
    schedule: Mutex<Schedule>,
}

struct RingLimits {
    /// Maximum number of requests in flight.
    most: usize,
    /// Operation that the ring does not support.
    lacks: Option<Operation>,
}

pub(super) struct Schedule {
    pub(super) chance: Chance,
    /// Ordered by time, then by arrival.
    pub(super) moments: BTreeMap<(u64, u64), Moment>,
    arrivals: u64,
    longest_ns: u64,
    pub(super) character: Character,
    pub(super) seats: Vec<Seat>,
    /// Seat of the running thread.
    pub(super) holder: usize,
    pub(super) is_deadlocked: bool,
}

/// An event outside the workers.
#[allow(clippy::large_enum_variant, reason = "most are on their way to the larger one")]
pub(super) enum Moment {
    /// An idle thread of the pool looks for a request.
    Woken,
    /// A new thread of the pool looks for a request.
    Started,
    /// A thread of the pool makes its next call.
    Works(Work),
    /// A thread of the pool delivers its result.
    Answers(Work),
    /// A request of this seat's ring takes effect.
    Asked(usize, Key, Op),
    /// A request of this seat's ring completes.
    Completed(usize, Key, Completion),
}

impl event::Clock for Sim {
    fn now_ns(&self) -> u64 {
        self.clock_ns()
    }
}

impl Sim {
    /// Creates a run.
    pub(crate) fn new(simulation: &Simulation) -> Arc<Self> {
        let (seed, world) = (simulation.seed, Arc::clone(&simulation.world.inner));
        let mut chance = Chance::new(seed);
        let (start_ns, longest_ns, descriptors) = {
            let mut disk = world.disk();
            disk.chance = Chance::new(chance.next());
            (disk.clock_ns, disk.settings.longest_ns.max(1), disk.settings.descriptors)
        };
        let has_ring = chance.happens(750_000);
        let most = 2 << (3 * chance.below(3));
        let lacking = [None, None, Some(Operation::Read), Some(Operation::Open)];
        let lacks = lacking[usize::try_from(chance.below(4)).unwrap_or_default()];
        let schedule = Schedule {
            character: Character::draw(&mut chance),
            chance,
            moments: BTreeMap::new(),
            arrivals: 0,
            longest_ns,
            seats: Schedule::first_seat(),
            holder: 0,
            is_deadlocked: false,
        };
        Arc::new(Self {
            seed,
            world,
            start: Instant::now(),
            start_ns,
            descriptors,
            ring: has_ring.then_some(RingLimits { most, lacks }),
            pool: OnceLock::new(),
            stop: OnceLock::new(),
            holder: AtomicUsize::new(0),
            schedule: Mutex::new(schedule),
        })
    }

    /// Connects the world with the run's blocks, to count those outstanding, and with its stop flag.
    pub(crate) fn watch(&self, blocks: &Arc<Blocks>, stop: &Arc<AtomicBool>) {
        self.world.meanwhile.watch(Arc::downgrade(stop));
        self.stop.set(Arc::downgrade(stop)).ok();
        *self.world.blocks.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(blocks);
    }

    /// Sets the pool whose threads are simulated.
    pub(crate) fn serve(&self, pool: &Arc<Pool>) {
        self.pool.set(Arc::downgrade(pool)).ok();
    }

    pub(crate) fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// Returns the timestamp for a file changed now.
    pub(crate) fn file_time(&self) -> Time {
        self.world.disk().now()
    }

    /// Returns the current time, which is never before a file's.
    pub(crate) fn real_time(&self) -> Time {
        self.world.disk().exact_now()
    }

    pub(crate) fn user(&self) -> u32 {
        self.world.disk().settings.uid
    }

    pub(crate) fn group(&self) -> u32 {
        self.world.disk().settings.gid
    }

    pub(crate) fn umask(&self) -> u32 {
        self.world.disk().settings.umask
    }

    /// Opens a folder by its path from the root and follows links.
    pub(crate) fn open_root(&self, path: &Path) -> Result<Dir> {
        let path = path.as_os_str().as_encoded_bytes();
        let mut disk = self.world.disk();
        let opened = disk.walk(ROOT, path, true).and_then(|number| {
            let device = disk.inode(number)?.device;
            disk.inode(number)?.folder()?;
            Ok((disk.open(number, OFlags::RDONLY | OFlags::DIRECTORY, path)?, device))
        });
        drop(disk);
        let (handle, device) = opened.map_err(|errno| Error::errno(Operation::Open, errno))?;
        Ok(Dir::from_descriptor(Descriptor::Sim(SimDescriptor::new(&self.world, handle, device))))
    }

    pub(crate) fn clock_ns(&self) -> u64 {
        self.world.disk().clock_ns
    }

    pub(crate) fn now(&self) -> Instant {
        let passed = self.clock_ns().saturating_sub(self.start_ns);
        self.start + Duration::from_nanos(passed)
    }

    pub(super) fn ns_of(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.start).as_nanos();
        self.start_ns + u64::try_from(passed).unwrap_or(u64::MAX / 2)
    }

    pub(super) fn set_clock(&self, ns: u64) {
        let mut disk = self.world.disk();
        disk.clock_ns = disk.clock_ns.max(ns);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.get().and_then(Weak::upgrade).is_some_and(|stop| stop.load(Ordering::SeqCst))
    }

    pub(crate) fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    pub(crate) fn can_in_ring(&self, operation: Operation) -> bool {
        let is_lacking = |ring: &RingLimits| ring.lacks == Some(operation);
        operation != Operation::Chain && !self.ring.as_ref().is_none_or(is_lacking)
    }

    /// Puts a request into the running worker's ring; returns it if the ring is full.
    pub(crate) fn push_to_ring(
        &self,
        key: Key,
        op: Op,
        (reason, asked): (Reason, u64),
    ) -> std::result::Result<(), Op> {
        let now = self.clock_ns();
        let mut schedule = self.lock();
        let most = self.ring.as_ref().map_or(0, |ring| ring.most);
        if schedule.running().in_ring >= most {
            return Err(op);
        }
        event::queued(key, &op, (Route::Ring, reason), asked);
        schedule.running().in_ring += 1;
        let (at, seat) = (now + schedule.delay(), schedule.holder);
        schedule.add(at, Moment::Asked(seat, key, op));
        Ok(())
    }

    /// Takes the completions of the running worker's ring; the flag is true if the ring is now empty.
    pub(crate) fn take_completed(&self) -> (Vec<(Key, Completion)>, bool) {
        let mut schedule = self.lock();
        let seat = schedule.running();
        let completed = std::mem::take(&mut seat.completed);
        seat.in_ring -= completed.len();
        (completed, seat.in_ring == 0)
    }

    pub(crate) fn has_completed(&self) -> bool {
        !self.lock().running().completed.is_empty()
    }

    /// Cancels a request. By chance it completes at once or goes on.
    pub(crate) fn cancel(&self, key: Key) {
        let now = self.clock_ns();
        let mut schedule = self.lock();
        let own = schedule.holder;
        let is_it = |moment: &Moment| match moment {
            Moment::Asked(seat, of, _) | Moment::Completed(seat, of, _) => (*seat, *of) == (own, key),
            Moment::Woken | Moment::Started | Moment::Works(_) | Moment::Answers(_) => false,
        };
        let at = schedule.moments.iter().find(|(_, moment)| is_it(moment)).map(|(&at, _)| at);
        if !schedule.chance.happens(500_000) {
            return;
        }
        let Some(moment) = at.and_then(|at| schedule.moments.remove(&at)) else { return };
        let moment = match moment {
            Moment::Asked(seat, key, op) => Moment::Completed(seat, key, (op, Err(Errno::CANCELED))),
            beyond @ (Moment::Completed(..)
            | Moment::Woken
            | Moment::Started
            | Moment::Works(_)
            | Moment::Answers(_)) => beyond,
        };
        schedule.add(now, moment);
    }

    /// Wakes an idle thread of the pool, or starts a new one, for pending work.
    pub(crate) fn need_thread(&self, is_new: bool) {
        let now = self.clock_ns();
        let mut schedule = self.lock();
        let at = now + schedule.delay() / 8;
        schedule.add(at, if is_new { Moment::Started } else { Moment::Woken });
    }

    /// Spends the time of one turn of the executor, in which other events may happen.
    pub(crate) fn turn(&self) {
        self.pass_time(TURN_NS);
        let mut schedule = self.lock();
        if schedule.chance.happens(125_000) {
            self.step(&mut schedule);
        }
        let gives_way = schedule.has_others() && schedule.chance.happens(GIVES_WAY);
        drop(schedule);
        if gives_way {
            self.give_way();
        }
    }

    pub(super) fn pass_time(&self, ns: u64) {
        self.world.disk().clock_ns += ns;
    }

    pub(super) fn step(&self, schedule: &mut Schedule) {
        let Some(((at, _), moment)) = schedule.moments.pop_first() else { return };
        self.set_clock(at);
        match moment {
            Moment::Woken => {
                if self.pool().is_some_and(|pool| pool.wake_simulated()) {
                    self.look_for_work(schedule, None);
                }
            }
            Moment::Started => self.look_for_work(schedule, None),
            Moment::Works(mut work) => {
                let mut calls = Called { sim: self, schedule, waited: false };
                let goes_on = work.step(&mut calls);
                let waited = calls.waited;
                let at = at + schedule.cost(waited);
                schedule.add(at, if goes_on { Moment::Works(work) } else { Moment::Answers(work) });
            }
            Moment::Answers(work) => {
                let left = work.deliver(self.now());
                self.look_for_work(schedule, left);
            }
            Moment::Asked(seat, key, mut op) => {
                let (answer, _) = self.answer(&mut op, Patience::Wait, schedule);
                let at = at + schedule.delay() / 4;
                schedule.add(at, Moment::Completed(seat, key, (op, answer)));
            }
            Moment::Completed(seat, key, completion) => {
                schedule.seats[seat].completed.push((key, completion));
            }
        }
    }

    /// Lets a thread of the pool take the next request, after it has left a lane.
    fn look_for_work(&self, schedule: &mut Schedule, left: Option<Lane>) {
        if let Some(work) = self.pool().and_then(|pool| pool.take_simulated(left, self.now())) {
            let at = self.clock_ns() + schedule.delay() / 8;
            schedule.add(at, Moment::Works(work));
        }
    }

    fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.get().and_then(Weak::upgrade)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Schedule {
    pub(super) fn running(&mut self) -> &mut Seat {
        let holder = self.holder;
        &mut self.seats[holder]
    }

    fn delay(&mut self) -> u64 {
        let longest = if self.chance.happens(LATE_PER_MILLION) {
            self.longest_ns.saturating_mul(LATE_FACTOR)
        } else {
            self.longest_ns
        };
        1 + self.chance.below(longest)
    }

    pub(super) fn cost(&mut self, waited: bool) -> u64 {
        let at_once = self.chance.below(Character::most_at_once_ns());
        if waited { Character::least_wait_ns() + self.delay() } else { at_once }
    }

    /// Sometimes changes the character of a device.
    pub(super) fn grow_older(&mut self) {
        if self.chance.happens(Character::CHANGES) {
            self.character = Character::draw(&mut self.chance);
        }
    }

    pub(super) fn add(&mut self, at: u64, moment: Moment) {
        self.arrivals += 1;
        self.moments.insert((at, self.arrivals), moment);
    }
}
