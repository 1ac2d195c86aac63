//! Calls of a simulated run: the inline calls of workers, and those of the pool's threads.

use std::time::Duration;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::answer::{Answering, Locked, handle_of};
use super::disk::Disk;
use super::schedule::{GIVES_WAY, Schedule, Sim};
use crate::buffers::Block;
use crate::descriptor::{Descriptor, Fd};
use crate::entry::Entries;
use crate::event;
use crate::name::Name;
use crate::op::{Op, Outcome};
use crate::pool::Calls;
use crate::preload::{Preload, Preloaded};
use crate::sys::Patience;

/// Probability that fibers give way after a call, in millionths.
const STRETCH_ENDS: u32 = 100_000;

type Answer = Result<Outcome, Errno>;

impl Sim {
    /// Performs a request on the running worker's own thread.
    pub(crate) fn perform(&self, op: &mut Op, patience: Patience) -> Answer {
        self.begin_call();
        let mut schedule = self.lock();
        let (answer, waited) = self.answer(op, patience, &mut schedule);
        self.end_call(&mut schedule, waited);
        answer
    }

    /// Makes a new file of these bytes on the running worker's own thread. Returns true if it contains all of them.
    pub(crate) fn store(
        &self,
        dir: &Fd,
        name: &Name,
        mode: Mode,
        block: &Block,
    ) -> Result<(Descriptor, bool), Errno> {
        self.begin_call();
        let mut schedule = self.lock();
        let Schedule { chance, character, .. } = &mut *schedule;
        let disk = Locked::of(&self.world);
        let mut answering = Answering::new(&self.world, disk, chance, (Patience::Wait, *character));
        let stored = answering.store(dir, name, mode.bits(), block.as_slice());
        drop(answering);
        self.end_call(&mut schedule, false);
        stored
    }

    /// Perhaps lets another worker run before a call.
    fn begin_call(&self) {
        let mut schedule = self.lock();
        let gives_way = schedule.has_others() && schedule.chance.happens(GIVES_WAY);
        drop(schedule);
        if gives_way {
            self.give_way();
        }
    }

    fn end_call(&self, schedule: &mut Schedule, waited: bool) {
        schedule.running().has_waited = waited;
        let took = schedule.cost(waited);
        self.pass_time(took);
        let now = self.clock_ns();
        let is_past = schedule.moments.first_key_value().is_some_and(|(&(at, _), _)| at <= now);
        if is_past && schedule.chance.happens(500_000) {
            self.step(schedule);
        }
    }

    pub(crate) fn has_waited(&self) -> bool {
        std::mem::take(&mut self.lock().running().has_waited)
    }

    /// Returns true if fibers should give way after the last call, even before the end of a long stretch.
    pub(crate) fn ends_stretch(&self) -> bool {
        self.lock().chance.happens(STRETCH_ENDS)
    }

    /// Answers a request; also returns true if it blocked.
    pub(super) fn answer(&self, op: &mut Op, patience: Patience, schedule: &mut Schedule) -> (Answer, bool) {
        schedule.grow_older();
        let Schedule { chance, character, .. } = schedule;
        let disk = Locked::of(&self.world);
        let mut answering = Answering::new(&self.world, disk, chance, (patience, *character));
        let answer = answering.answer(op);
        let waited = answering.waited;
        let disk = &mut *answering.disk;
        if disk.settings.keeps_history {
            let subject = subject(disk, op);
            let line =
                format!("{} {} {subject}: {}", disk.clock_ns, op.operation().name(), describe(&answer));
            disk.history.push(line);
        }
        (answer, waited)
    }
}

/// Calls of a simulated thread of the pool.
pub(super) struct Called<'a> {
    pub(super) sim: &'a Sim,
    pub(super) schedule: &'a mut Schedule,
    pub(super) waited: bool,
}

impl Calls for Called<'_> {
    const IS_RECORDED: bool = false;

    fn perform(&mut self, op: &mut Op, patience: Patience) -> Answer {
        let (answer, waited) = self.sim.answer(op, patience, self.schedule);
        self.waited |= waited;
        answer
    }

    fn write_joined(&mut self, ops: &[&Op]) -> Result<usize, Errno> {
        let Schedule { chance, character, .. } = &mut *self.schedule;
        let disk = Locked::of(&self.sim.world);
        let mut answering = Answering::new(&self.sim.world, disk, chance, (Patience::Wait, *character));
        answering.write_joined(ops)
    }

    fn preload(&mut self, folder: &Fd, entries: &Entries, plan: &Preload) -> (Vec<Preloaded>, Duration) {
        let Schedule { chance, character, .. } = &mut *self.schedule;
        let disk = Locked::of(&self.sim.world);
        let mut answering = Answering::new(&self.sim.world, disk, chance, (Patience::Wait, *character));
        let read = answering.preload(folder, entries, plan);
        self.waited |= answering.waited;
        (read, Duration::ZERO)
    }
}

/// Returns the name of a request's entry for the history, or the name by which its file was opened.
fn subject(disk: &Disk, op: &Op) -> String {
    let asked = disk.opened(handle_of(op.asked())).map(|open| open.name.escape_ascii().to_string());
    let (asked, name) = (asked.unwrap_or_default(), event::name_of(op));
    if name.is_empty() { asked } else { format!("{asked}/{}", name.escape_ascii()) }
}

fn describe(result: &Answer) -> String {
    match result {
        Ok(Outcome::Count(count)) => count.to_string(),
        Ok(Outcome::Offset(offset)) => format!("{offset:?}"),
        Ok(Outcome::Bytes(bytes)) => format!("{} bytes", bytes.len()),
        Ok(Outcome::Entries(entries)) => format!("{} entries", entries.entries.len()),
        Ok(Outcome::Examined(found)) => format!("{} entries", found.len()),
        Ok(Outcome::Stat(stat)) => format!("inode {}", stat.inode),
        Ok(Outcome::Done | Outcome::Descriptor(_) | Outcome::Entered(_) | Outcome::Loaded(_)) => {
            "done".to_owned()
        }
        Err(errno) => format!("{errno:?}"),
    }
}
