//! Inline calls: operations as plain system calls on the worker's own thread, and new files made of the bytes just
//! read.

use rustix::io::Errno;

use super::{Completed, LONGEST_STRETCH, Worker};
use crate::buffers::Block;
use crate::descriptor::{Fd, File};
use crate::error::Operation;
use crate::event;
use crate::file::mode_bits;
use crate::loaded::{Content, Loaded};
use crate::name::Name;
use crate::op::{Into, Op, Outcome};
use crate::preload::Preloaded;
use crate::route::{Choice, Reason, Route, SLOW};
use crate::stats::add;
use crate::sys::{self, Patience};

/// Entries that are examined in the time of one call that is not slow.
const EXAMINED_AS_ONE: u32 = 8;

impl Worker {
    /// Runs the operation here if that is its route and the kernel need not wait for it; otherwise returns the other
    /// route.
    pub(super) fn run_inline(
        &self,
        op: &mut Op,
        overlaps: bool,
        asked: u64,
    ) -> std::result::Result<Completed, Choice> {
        if let Some(mut result) = self.take_preloaded(op, asked) {
            self.store_loaded(op, &mut result, Reason::Preloaded);
            return Ok(result);
        }
        if let Some(choice) = self.joins_cold(op) {
            return Err(choice);
        }
        let choice = self.router.choose(op, overlaps);
        if choice.route != Route::Inline {
            return Err(choice);
        }
        // Only choices that the call's duration can change are timed.
        let begun = choice.reason.learns().then(|| self.now());
        let mut result = self.try_here(op, choice.patience)?;
        if let Some(begun) = begun {
            // Calls that were asked may wait too: some filesystems can't be asked, others only about a part.
            let slow = SLOW * op.entries().div_ceil(EXAMINED_AS_ONE);
            let waited = self.now().saturating_duration_since(begun) > slow && self.has_waited();
            self.router.observe(op, waited);
        }
        self.note_ran(op, choice.reason, asked, &result);
        self.store_loaded(op, &mut result, choice.reason);
        Ok(result)
    }

    /// Makes the new file that a load is for, if it was loaded. On a remote filesystem the caller makes it step by step,
    /// and each step has a route of its own.
    fn store_loaded(&self, op: &Op, result: &mut Completed, reason: Reason) {
        if let (Op::Load { name, into: Some(into), .. }, Ok(Outcome::Loaded(loaded))) = (op, result)
            && !self.router.is_remote(&into.dir)
        {
            drop(self.store(name, into, loaded, reason));
        }
    }

    /// Loads a file that was read when its folder was listed.
    fn take_preloaded(&self, op: &mut Op, asked: u64) -> Option<Completed> {
        let Op::Load { dir, name, xattrs, alone, block: Some(block), opened: None, .. } = op else {
            return None;
        };
        let Preloaded { stat, xattrs: found, bytes, .. } = dir.preloaded().take(name)?;
        if !stat.is_read(*alone) || *xattrs && found.is_none() {
            return None;
        }
        block.as_mut_capacity().get_mut(..bytes.len())?.copy_from_slice(&bytes);
        block.set_filled(bytes.len());
        let Op::Load { block, .. } = op else { return None };
        let content = Content::Whole(block.take()?);
        let loaded = Loaded { stat, xattrs: found.unwrap_or_default(), content };
        let result = Ok(Outcome::Loaded(Box::new(loaded)));
        self.note_ran(op, Reason::Preloaded, asked, &result);
        Some(result)
    }

    /// Makes an operation's calls on this thread.
    fn perform(&self, op: &mut Op, patience: Patience) -> Completed {
        let calls_before = self.inline_calls.get();
        self.inline_calls.set(calls_before.saturating_add(op.entries()));
        let ends_stretch = self.shared.sim.as_ref().is_some_and(|sim| sim.ends_stretch());
        if ends_stretch {
            self.inline_calls.set(LONGEST_STRETCH);
        }
        let result = match &self.shared.sim {
            Some(sim) => sim.perform(op, patience),
            None => sys::perform(op, patience),
        };
        // A refusal is short, and a turn between two of them would send half a batch.
        if patience == Patience::Ask && matches!(result, Err(Errno::AGAIN)) && !ends_stretch {
            self.inline_calls.set(calls_before);
        }
        result
    }

    /// Returns true if a run of transfers from this folder may begin with this file (`many.rs`).
    pub(crate) fn begins_run(&self, source: &Fd, name: &Name) -> bool {
        if event::is_on() {
            return false;
        }
        let left = self.slow_runs.get();
        if left > 0 {
            self.slow_runs.set(left - 1);
            return false;
        }
        // Cold files of a folder go to the pool together.
        let may_begin = !self.is_due() && self.cold.borrow().is_empty();
        may_begin && (source.preloaded().has(name) || self.router.asks_for_loads(source.device()))
    }

    /// Returns true if this thread has slept since the last look, which may be earlier than the run. Then the `next`
    /// files begin no run.
    pub(crate) fn ends_slow_run(&self, next: u32) -> bool {
        let has_waited = self.has_waited();
        if has_waited {
            self.pause_runs(next);
        }
        has_waited
    }

    /// The `next` files begin no run.
    pub(crate) fn pause_runs(&self, next: u32) {
        self.slow_runs.set(next);
    }

    /// Runs an operation here if the kernel need not wait for it; otherwise returns the other route.
    pub(crate) fn ask(&self, op: &mut Op, asked: u64) -> std::result::Result<Completed, Choice> {
        if let Some(result) = self.take_preloaded(op, asked) {
            return Ok(result);
        }
        if !self.router.asks_for_loads(op.device()) {
            return Err(self.router.missed(op));
        }
        let result = self.try_here(op, Patience::Ask)?;
        self.note_ran(op, Reason::Asked, asked, &result);
        Ok(result)
    }

    /// Runs an operation here, whatever it waits for.
    pub(crate) fn do_inline(&self, mut op: Op, reason: Reason) -> Completed {
        let asked = event::clock();
        let result = self.perform(&mut op, Patience::Wait);
        self.note_ran(&op, reason, asked, &result);
        result
    }

    /// Makes an operation's calls on this thread. If it is asked and its data is not in memory, returns the other route.
    fn try_here(&self, op: &mut Op, patience: Patience) -> std::result::Result<Completed, Choice> {
        let result = self.perform(op, patience);
        if patience == Patience::Ask {
            if matches!(result, Err(Errno::AGAIN)) {
                add(&self.counters.misses, 1);
                return Err(self.router.missed(op));
            }
            self.router.note_answer();
        }
        Ok(result)
    }

    /// Counts and records an operation that has run on this thread.
    fn note_ran(&self, op: &Op, reason: Reason, asked: u64, result: &Completed) {
        let route = route_here(op);
        self.counters.count(op.operation(), route, reason);
        event::ran(op, (route, reason), asked, result);
    }

    /// Makes the file that the loaded bytes are for, and returns the block if all bytes are stored. If that fails, the
    /// caller goes on step by step and gets the error there.
    pub(crate) fn store(
        &self,
        name: &Name,
        into: &Into,
        loaded: &mut Loaded,
        reason: Reason,
    ) -> Option<Block> {
        let Content::Whole(block) = &loaded.content else { return None };
        let mode = mode_bits(into.mode.of(&loaded.stat, &loaded.xattrs));
        let began = event::clock();
        let stored = match &self.shared.sim {
            Some(sim) => sim.store(&into.dir, name, mode, block),
            None => sys::store(into.dir.fd(), name, mode, block),
        };
        self.inline_calls.set(self.inline_calls.get() + 1);
        let mut free = None;
        if let Ok((file, is_whole)) = stored {
            let size = block.as_slice().len() as u64;
            let file = File::from_descriptor(file.on(into.dir.device()));
            let begun = (!is_whole).then(|| file.clone());
            let read = std::mem::replace(&mut loaded.content, Content::Stored(file, size));
            match (begun, read) {
                (Some(file), Content::Whole(block)) => loaded.content = Content::Begun(file, block),
                (None, Content::Whole(block)) => free = Some(block),
                (_, Content::Open(_) | Content::Stored(..) | Content::Begun(..)) => {}
            }
            let reason = if reason == Reason::Forced { reason } else { Reason::Changes };
            self.counters.count(Operation::Store, Route::Inline, reason);
            event::stored(name, size, reason, began);
        }
        free
    }
}

/// Returns the route under which a call on this thread is counted.
fn route_here(op: &Op) -> Route {
    let is_offloaded = matches!(op, Op::CopyRange { .. } | Op::CopyPieces { .. } | Op::Clone { .. });
    if is_offloaded { Route::Offload } else { Route::Inline }
}
