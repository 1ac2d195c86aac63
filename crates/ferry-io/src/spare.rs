//! What a worker keeps for its next fiber instead of giving it back: a block, and a permit of each of a few semaphores.
//!
//! Taking and giving back goes through memory that all processors share, and a small file would pay for that more than
//! for its bytes. So what a fiber gives back stays with its worker, unless somebody waits for it, and only until the worker
//! takes its next turn, and it takes one before it sleeps (guard: `a_spare_is_given_back_by_the_next_turn`). A fiber that
//! blocks its worker by calls of its own blocks what is kept, too; that is why nothing is kept of what is scarce.

use std::cell::{Cell, RefCell};

use crate::buffers;
use crate::concurrent::thread_local;
use crate::sync;

thread_local! {
    /// Whether this thread is a worker's, which gives back in time.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    static BLOCK: RefCell<Option<buffers::Spare>> = const { RefCell::new(None) };
    static PERMITS: RefCell<Vec<sync::Spare>> = const { RefCell::new(Vec::new()) };
}

/// Semaphores of which a worker keeps a permit.
const MOST_PERMITS: usize = 4;
/// Of so many blocks, or permits of one semaphore, each worker may keep one that it does not need just now.
pub(crate) const AMPLE: usize = 16;

/// Says whether this thread keeps anything; what it has is given back.
pub(crate) fn keep(keeps: bool) -> bool {
    give_back();
    KEEPS.replace(keeps)
}

/// Gives everything back.
pub(crate) fn give_back() {
    drop(BLOCK.take());
    let mut permits = PERMITS.take();
    // Who is woken by this may keep others.
    permits.clear();
    if permits.capacity() > 0 && PERMITS.with_borrow(Vec::is_empty) {
        PERMITS.set(permits);
    }
}

/// Keeps a block, if there is none; else it comes back.
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

/// The block that is kept, if it is `wanted`.
pub(crate) fn take_block(wanted: impl Fn(&buffers::Spare) -> bool) -> Option<buffers::Spare> {
    BLOCK.with_borrow_mut(|kept| kept.take_if(|spare| wanted(spare)))
}

/// Keeps a permit, if there is room; else it comes back.
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

/// A permit that is kept, if it is `wanted`.
pub(crate) fn take_permit(wanted: impl Fn(&sync::Spare) -> bool) -> Option<sync::Spare> {
    PERMITS.with_borrow_mut(|kept| {
        let at = kept.iter().position(wanted)?;
        Some(kept.swap_remove(at))
    })
}

#[cfg(test)]
mod tests;
