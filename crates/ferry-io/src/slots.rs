//! Operations in flight: the waker of each, and the fate of results that nobody waits for.
//!
//! A slot is taken when an operation leaves the worker and released when its completion is taken. The backend owns the
//! request, with its memory and descriptors, from the hand-over until it hands it back (guard:
//! `an_abandoned_operation_is_reaped`). A fiber that stops waiting only marks the slot; the late result, perhaps an
//! open descriptor, is dropped when it arrives.

use std::task::Waker;

use rustix::io::Errno;

use crate::event;
use crate::op::{Op, Outcome};

/// Name of one operation in flight; a slot used again has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl From<Key> for event::Key {
    fn from(key: Key) -> Self {
        Self { index: key.index, generation: key.generation }
    }
}

pub(crate) type Completion = (Op, Result<Outcome, Errno>);

#[allow(
    clippy::large_enum_variant,
    reason = "a completion waits in its slot, where nothing is allocated for it"
)]
enum State {
    Free,
    Waiting(Option<Waker>),
    Done(Completion),
    Abandoned,
}

struct Slot {
    generation: u32,
    state: State,
}

#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    in_flight: usize,
    done: usize,
}

impl Slots {
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Number of slots, and of the free ones among them.
    #[cfg(not(loom))]
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.slots.len(), self.free.len())
    }

    /// Completed operations whose fibers have not run since.
    pub(crate) fn done(&self) -> usize {
        self.done
    }

    /// Operations whose futures still wait.
    pub(crate) fn waited_for(&self) -> Vec<Key> {
        let waited_for = |slot: &Slot| matches!(slot.state, State::Waiting(_));
        let slots = (0..).zip(&self.slots).filter(|(_, slot)| waited_for(slot));
        slots.map(|(index, slot)| Key { index, generation: slot.generation }).collect()
    }

    pub(crate) fn take(&mut self) -> Key {
        self.in_flight += 1;
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.state = State::Waiting(None);
            return Key { index, generation: slot.generation };
        }
        let index = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot { generation: 0, state: State::Waiting(None) });
        Key { index, generation: 0 }
    }

    /// Releases the slot of an operation that could not be handed over.
    pub(crate) fn give_back(&mut self, key: Key) {
        self.in_flight -= 1;
        self.release(key);
    }

    /// Takes the completion, or leaves `waker` to be called when it arrives.
    pub(crate) fn poll(&mut self, key: Key, waker: &Waker) -> Option<Completion> {
        let slot = self.slot(key)?;
        match std::mem::replace(&mut slot.state, State::Free) {
            State::Done(completion) => {
                self.done -= 1;
                self.release(key);
                Some(completion)
            }
            State::Waiting(previous) => {
                let kept = previous.filter(|previous| previous.will_wake(waker));
                slot.state = State::Waiting(Some(kept.unwrap_or_else(|| waker.clone())));
                None
            }
            state @ (State::Free | State::Abandoned) => {
                slot.state = state;
                None
            }
        }
    }

    /// Stores a completion; returns the waker to call, and the completion if nobody waits for it.
    pub(crate) fn complete(
        &mut self,
        key: Key,
        completion: Completion,
    ) -> (Option<Waker>, Option<Completion>) {
        let Some(slot) = self.slot(key) else { return (None, Some(completion)) };
        match std::mem::replace(&mut slot.state, State::Free) {
            State::Waiting(waker) => {
                slot.state = State::Done(completion);
                self.in_flight -= 1;
                self.done += 1;
                (waker, None)
            }
            State::Abandoned => {
                self.in_flight -= 1;
                self.release(key);
                (None, Some(completion))
            }
            state @ (State::Free | State::Done(_)) => {
                slot.state = state;
                (None, Some(completion))
            }
        }
    }

    /// Marks an operation that nobody waits for; returns its completion if it has arrived.
    pub(crate) fn abandon(&mut self, key: Key) -> Option<Completion> {
        let slot = self.slot(key)?;
        match std::mem::replace(&mut slot.state, State::Abandoned) {
            State::Done(completion) => {
                self.done -= 1;
                self.release(key);
                Some(completion)
            }
            State::Free | State::Waiting(_) | State::Abandoned => None,
        }
    }

    fn slot(&mut self, key: Key) -> Option<&mut Slot> {
        self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)
    }

    fn release(&mut self, key: Key) {
        if let Some(slot) = self.slot(key) {
            slot.state = State::Free;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(key.index);
        }
    }
}

#[cfg(test)]
mod tests;
