//! When simulated requests take effect and complete: the one place that asks chance for an order.
//!
//! A request has two moments, both drawn from the seed: when it takes effect on the disk, and when its completion is
//! delivered. In between it can't be cancelled any more, as with a device. The executor calls [`Sim::advance`] where
//! it would sleep: the clock jumps to the next moment, or to the next timer if that is sooner.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::answer::Answering;
use super::chance::Chance;
use super::disk::ROOT;
use super::world::World;
use super::{Inner, SimDescriptor};
use crate::buffers::Blocks;
use crate::dir::Dir;
use crate::error::{Error, Operation, Result};
use crate::inbox::Inbox;
use crate::op::{Descriptor, Op, Outcome};
use crate::slots::{Completion, Key};

/// What a turn of the executor costs, in nanoseconds of virtual time.
const TURN_NS: u64 = 500;
/// Every so many requests, one takes far longer than the others.
const LATE_PER_MILLION: u32 = 10_000;
const LATE_FACTOR: u64 = 50;
/// Of the files to be stored as they are read, so many are in memory.
const IN_MEMORY_PER_MILLION: u32 = 600_000;

/// One run's simulation.
pub(crate) struct Sim {
    seed: u64,
    world: Arc<Inner>,
    /// Real and virtual time at the start: virtual moments are told as `Instant`s after this one.
    start: Instant,
    start_ns: u64,
    descriptors: usize,
    schedule: Mutex<Schedule>,
}

struct Schedule {
    chance: Chance,
    /// By time, then by order of arrival.
    flights: BTreeMap<(u64, u64), Flight>,
    arrivals: u64,
    longest_ns: u64,
}

/// A request between its hand-over and its completion.
struct Flight {
    key: Key,
    owner: Arc<Inbox>,
    stage: Stage,
}

#[allow(clippy::large_enum_variant, reason = "most are on their way to the larger one")]
enum Stage {
    Asked(Op),
    Answered(Completion),
}

impl Sim {
    /// A run against `world`, or against an empty one.
    pub(crate) fn new(seed: u64, world: Option<&World>) -> Arc<Self> {
        let world = Arc::clone(&world.cloned().unwrap_or_default().inner);
        let (start_ns, longest_ns, descriptors) = {
            let disk = world.disk();
            (disk.clock_ns, disk.settings.longest_ns.max(1), disk.settings.descriptors)
        };
        let schedule =
            Schedule { chance: Chance::new(seed), flights: BTreeMap::new(), arrivals: 0, longest_ns };
        let schedule = Mutex::new(schedule);
        Arc::new(Self { seed, world, start: Instant::now(), start_ns, descriptors, schedule })
    }

    /// Lets the world see whether the run's blocks come back, and stop it.
    pub(crate) fn watch(&self, blocks: &Arc<Blocks>, stop: &Arc<AtomicBool>) {
        self.world.meanwhile.watch(Arc::downgrade(stop));
        *self.world.blocks.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(blocks);
    }

    /// Descriptors that may be open.
    pub(crate) fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// The bits taken from the mode of what is created.
    pub(crate) fn umask(&self) -> u32 {
        self.world.disk().settings.umask
    }

    /// Opens a folder by its path; links in it are followed, and the root is where it starts.
    pub(crate) fn open_root(&self, path: &Path) -> Result<Dir> {
        let path = path.as_os_str().as_encoded_bytes();
        let mut disk = self.world.disk();
        let opened = disk.walk(ROOT, path, true).and_then(|number| {
            disk.inode(number)?.folder()?;
            disk.open(number, OFlags::RDONLY | OFlags::DIRECTORY, path)
        });
        drop(disk);
        let handle = opened.map_err(|errno| Error::errno(Operation::Open, errno))?;
        let world = Arc::clone(&self.world);
        Ok(Dir::from_descriptor(Descriptor::Sim(SimDescriptor { world, handle })))
    }

    /// The virtual time, in nanoseconds.
    pub(crate) fn clock_ns(&self) -> u64 {
        self.world.disk().clock_ns
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Instant {
        let passed = self.world.disk().clock_ns.saturating_sub(self.start_ns);
        self.start + Duration::from_nanos(passed)
    }

    /// Does what a worker does at once if the file is in memory, as chance decides: so it can't be cancelled between its
    /// effect and its completion.
    pub(crate) fn transfer(&self, op: &mut Op) -> Option<std::result::Result<Outcome, Errno>> {
        if !matches!(op, Op::Load { into: Some(_), .. }) {
            return None;
        }
        let mut schedule = self.lock();
        if !schedule.chance.happens(IN_MEMORY_PER_MILLION) {
            return None;
        }
        let chance = &mut schedule.chance;
        Some(self.answered(op, |answering, op| answering.transfer(op), chance))
    }

    /// Takes a request, to be answered later.
    pub(crate) fn push(&self, key: Key, op: Op, owner: &Arc<Inbox>) {
        let now = self.world.disk().clock_ns;
        let mut schedule = self.lock();
        let at = now + schedule.delay();
        schedule.add(at, Flight { key, owner: Arc::clone(owner), stage: Stage::Asked(op) });
    }

    /// Nobody wants the result: perhaps the request is given back at once, perhaps it can't be stopped any more.
    pub(crate) fn cancel(&self, key: Key, owner: &Arc<Inbox>) {
        let now = self.world.disk().clock_ns;
        let mut schedule = self.lock();
        let is_it = |flight: &Flight| flight.key == key && Arc::ptr_eq(&flight.owner, owner);
        let at = schedule.flights.iter().find(|(_, flight)| is_it(flight)).map(|(&at, _)| at);
        if !schedule.chance.happens(500_000) {
            return;
        }
        let Some(flight) = at.and_then(|at| schedule.flights.remove(&at)) else { return };
        let stage = match flight.stage {
            Stage::Asked(op) => Stage::Answered((op, Err(Errno::CANCELED))),
            answered @ Stage::Answered(_) => answered,
        };
        schedule.add(now, Flight { stage, ..flight });
    }

    /// A turn of the executor: takes a little time, in which sometimes something happens.
    pub(crate) fn turn(&self) {
        self.world.disk().clock_ns += TURN_NS;
        let happens = {
            let mut schedule = self.lock();
            schedule.chance.happens(125_000) && !schedule.flights.is_empty()
        };
        if happens {
            self.step();
        }
    }

    /// The executor has nothing to do: on to the next moment at which it has.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn advance(&self, timer: Option<Instant>) {
        let timer_ns = timer.map(|timer| {
            let passed = timer.saturating_duration_since(self.start).as_nanos();
            self.start_ns + u64::try_from(passed).unwrap_or(u64::MAX / 2)
        });
        loop {
            let next = self.lock().flights.first_key_value().map(|(&(at, _), _)| at);
            match (next, timer_ns) {
                (None, None) => panic!(
                    "simulation with seed {}: deadlock: no operation is in flight, no timer is set, no fiber can run",
                    self.seed
                ),
                (None, Some(timer_ns)) => return self.set_clock(timer_ns),
                (Some(at), Some(timer_ns)) if timer_ns < at => return self.set_clock(timer_ns),
                (Some(_), _) => {
                    let delivered = self.step();
                    if delivered && self.lock().chance.happens(500_000) {
                        return;
                    }
                    if delivered && self.lock().flights.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    fn set_clock(&self, ns: u64) {
        let mut disk = self.world.disk();
        disk.clock_ns = disk.clock_ns.max(ns);
    }

    /// The next moment of a request; whether it was its completion.
    fn step(&self) -> bool {
        let mut schedule = self.lock();
        let Some(((at, _), flight)) = schedule.flights.pop_first() else { return false };
        self.set_clock(at);
        let Flight { key, owner, stage } = flight;
        match stage {
            Stage::Answered(completion) => {
                drop(schedule);
                owner.deliver([(key, completion)]);
                true
            }
            Stage::Asked(mut op) => {
                let result = self.answer(&mut op, &mut schedule.chance);
                let at = at + schedule.delay() / 4;
                schedule.add(at, Flight { key, owner, stage: Stage::Answered((op, result)) });
                false
            }
        }
    }

    fn answer(&self, op: &mut Op, chance: &mut Chance) -> std::result::Result<Outcome, Errno> {
        self.answered(op, |answering, op| answering.answer(op), chance)
    }

    fn answered(
        &self,
        op: &mut Op,
        answer: impl FnOnce(&mut Answering<'_>, &mut Op) -> std::result::Result<Outcome, Errno>,
        chance: &mut Chance,
    ) -> std::result::Result<Outcome, Errno> {
        for deed in self.world.meanwhile.due() {
            deed(&World { inner: Arc::clone(&self.world) });
        }
        let mut disk = self.world.disk();
        let result = answer(&mut Answering { world: &self.world, disk: &mut disk, chance }, op);
        if disk.settings.keeps_history {
            let line = format!("{} {}: {}", disk.clock_ns, op.operation().name(), describe(&result));
            disk.history.push(line);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Schedule {
    fn delay(&mut self) -> u64 {
        let longest = if self.chance.happens(LATE_PER_MILLION) {
            self.longest_ns.saturating_mul(LATE_FACTOR)
        } else {
            self.longest_ns
        };
        1 + self.chance.below(longest)
    }

    fn add(&mut self, at: u64, flight: Flight) {
        self.arrivals += 1;
        self.flights.insert((at, self.arrivals), flight);
    }
}

fn describe(result: &std::result::Result<Outcome, Errno>) -> String {
    match result {
        Ok(Outcome::Count(count)) => count.to_string(),
        Ok(Outcome::Offset(offset)) => format!("{offset:?}"),
        Ok(Outcome::Bytes(bytes)) => format!("{} bytes", bytes.len()),
        Ok(Outcome::Entries(entries)) => format!("{} entries", entries.entries.len()),
        Ok(Outcome::Stat(stat)) => format!("inode {}", stat.inode),
        Ok(Outcome::Done | Outcome::Descriptor(_) | Outcome::Entered(_) | Outcome::Loaded(_)) => {
            "done".to_owned()
        }
        Err(errno) => format!("{errno:?}"),
    }
}
