//! Inline calls: operations as plain system calls on the worker's own thread, and new files made of the bytes just
//! read.

use rustix::io::Errno;

use super::{Completed, LONGEST_STRETCH, Worker};
use crate::descriptor::File;
use crate::error::Operation;
use crate::event;
use crate::file::mode_bits;
use crate::loaded::{Content, Loaded};
use crate::name::Name;
use crate::op::{Into, Op, Outcome};
use crate::route::{Choice, Reason, Route, SLOW};
use crate::stats::add;
use crate::sys::{self, Patience};

impl Worker {
    /// Runs the operation here if that is its route and the kernel need not wait for it; otherwise returns the other
    /// route.
    pub(super) fn run_inline(
        &self,
        op: &mut Op,
        overlaps: bool,
        asked: u64,
    ) -> std::result::Result<Completed, Choice> {
        if let Some(choice) = self.joins_cold(op) {
            return Err(choice);
        }
        let choice = self.router.choose(op, overlaps);
        if choice.route != Route::Inline {
            return Err(choice);
        }
        let calls_before = self.inline_calls.replace(self.inline_calls.get() + 1);
        // Only choices that the call's duration can change are timed.
        let begun = choice.reason.learns().then(|| self.now());
        let ends_stretch = self.shared.sim.as_ref().is_some_and(|sim| sim.ends_stretch());
        if ends_stretch {
            self.inline_calls.set(LONGEST_STRETCH);
        }
        let mut result = match &self.shared.sim {
            Some(sim) => sim.perform(op, choice.patience),
            None => sys::perform(op, choice.patience),
        };
        if choice.patience == Patience::Ask {
            if matches!(result, Err(Errno::AGAIN)) {
                add(&self.counters.misses, 1);
                // A refusal is short, and a turn between two of them would send half a batch.
                if !ends_stretch {
                    self.inline_calls.set(calls_before);
                }
                return Err(self.router.missed(op));
            }
            self.router.note_answer();
        }
        if let Some(begun) = begun {
            // Calls that were asked may wait too: some filesystems can't be asked, others only about a part.
            let waited = self.now().saturating_duration_since(begun) > SLOW && self.has_waited();
            self.router.observe(op, waited);
        }
        let offloaded = matches!(op, Op::CopyRange { .. } | Op::Clone { .. });
        let route = if offloaded { Route::Offload } else { Route::Inline };
        self.counters.count(op.operation(), route, choice.reason);
        event::ran(op, (route, choice.reason), asked, &result);
        if let (Op::Load { name, into: Some(into), .. }, Ok(Outcome::Loaded(loaded))) = (&*op, &mut result) {
            self.store(name, into, loaded, choice.reason);
        }
        Ok(result)
    }

    /// Makes the file that the loaded bytes are for. If that fails, the caller goes on step by step and gets the error
    /// there.
    fn store(&self, name: &Name, into: &Into, loaded: &mut Loaded, reason: Reason) {
        let Content::Whole(block) = &loaded.content else { return };
        let mode = mode_bits(into.mode.of(&loaded.stat, &loaded.xattrs));
        let began = event::clock();
        let stored = match &self.shared.sim {
            Some(sim) => sim.store(&into.dir, name, mode, block),
            None => sys::store(into.dir.fd(), name, mode, block),
        };
        if let Ok((file, is_whole)) = stored {
            let size = block.as_slice().len() as u64;
            let file = File::from_descriptor(file.on(into.dir.device()));
            let begun = (!is_whole).then(|| file.clone());
            let read = std::mem::replace(&mut loaded.content, Content::Stored(file, size));
            if let (Some(file), Content::Whole(block)) = (begun, read) {
                loaded.content = Content::Begun(file, block);
            }
            let reason = if reason == Reason::Forced { reason } else { Reason::Changes };
            self.counters.count(Operation::Store, Route::Inline, reason);
            event::stored(name, size, reason, began);
        }
        self.inline_calls.set(self.inline_calls.get() + 1);
    }
}
