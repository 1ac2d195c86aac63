//! Blocks and permits that a worker keeps for its next fiber: one block, and one permit of each of a few semaphores.
//!
//! Giving back and taking again touches memory that all processors share, which costs a small file more than its bytes.
//! So a worker keeps one unless a fiber waits for it, at most until its next turn, and it takes a turn before it sleeps
//! (guard: `a_spare_is_given_back_by_the_next_turn`). A fiber that makes blocking calls of its own blocks the kept ones
//! too, so nothing scarce is kept.

use std::cell::{Cell, RefCell};

use crate::buffers;
use crate::concurrent::thread_local;
use crate::sync;

thread_local! {
    /// Set on threads of workers, which give back in time.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    static BLOCK: RefCell<Option<buffers::Spare>> = const { RefCell::new(None) };
    static PERMITS: RefCell<Vec<sync::Spare>> = const { RefCell::new(Vec::new()) };
}

/// Semaphores of which a worker keeps a permit.
const MOST_PERMITS: usize = 4;
/// Number of blocks, or of permits of one semaphore, from which on workers keep some.
pub(crate) const AMPLE: usize = 16;

/// Switches keeping on or off for this thread, and gives back what it has.
pub(crate) fn keep(keeps: bool) -> bool {
    give_back();
    KEEPS.replace(keeps)
}

pub(crate) fn give_back() {
    drop(BLOCK.take());
    let mut permits = PERMITS.take();
    // The fibers woken by this may keep others.
    permits.clear();
    if permits.capacity() > 0 && PERMITS.with_borrow(Vec::is_empty) {
        PERMITS.set(permits);
    }
}

/// Keeps a block; returns it if one is kept already.
pub(crate) fn keep_block(block: buffers::Spare) -> Option<buffers::Spare> {
    if !KEEPS.get() {
        return Some(block);
    }
    BLOCK.with_borrow_mut(|kept| {
        if kept.is_some() {
            return Some(block);
        }
        *kept = Some(block);
        None
    })
}

pub(crate) fn take_block(wanted: impl Fn(&buffers::Spare) -> bool) -> Option<buffers::Spare> {
    BLOCK.with_borrow_mut(|kept| kept.take_if(|spare| wanted(spare)))
}

/// Keeps a permit; returns it if there is no room.
pub(crate) fn keep_permit(permit: sync::Spare) -> Option<sync::Spare> {
    if !KEEPS.get() {
        return Some(permit);
    }
    PERMITS.with_borrow_mut(|kept| {
        if kept.len() >= MOST_PERMITS || kept.iter().any(|other| other.is_alike(&permit)) {
            return Some(permit);
        }
        kept.push(permit);
        None
    })
}

pub(crate) fn take_permit(wanted: impl Fn(&sync::Spare) -> bool) -> Option<sync::Spare> {
    PERMITS.with_borrow_mut(|kept| {
        let at = kept.iter().position(wanted)?;
        Some(kept.swap_remove(at))
    })
}

#[cfg(test)]
mod tests;
