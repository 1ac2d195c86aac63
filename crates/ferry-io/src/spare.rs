//! What a worker keeps for its next fiber instead of giving it back: a block, a permit of each semaphore.
//!
//! Taking and giving back goes through memory that all processors share, and a small file would pay for that more than
//! for its bytes. So what a fiber gives back stays with its worker, unless somebody waits for it, and only until the worker
//! takes a turn or sleeps, which is soon: who has to wait is not kept waiting by somebody who does nothing (guard:
//! `a_spare_is_given_back_before_the_worker_sleeps`).

use std::cell::{Cell, RefCell};

use crate::buffers;
use crate::sync;

thread_local! {
    /// Whether this thread is a worker's, which gives back in time.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    static BLOCK: RefCell<Option<buffers::Spare>> = const { RefCell::new(None) };
    static PERMITS: RefCell<Vec<sync::Spare>> = const { RefCell::new(Vec::new()) };
}

/// Permits that a worker keeps.
const MOST_PERMITS: usize = 4;
/// Of so many blocks or permits each worker may keep one that it does not need just now.
pub(crate) const AMPLE: usize = 16;

/// Says whether this thread keeps anything; what it has is given back.
pub(crate) fn keep(keeps: bool) -> bool {
    give_back();
    KEEPS.replace(keeps)
}

/// Gives everything back.
pub(crate) fn give_back() {
    drop(BLOCK.take());
    drop(PERMITS.take());
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
        if kept.len() >= MOST_PERMITS {
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
