//! Who may write to a file that others can reach, too: one at a time, whatever names it has.
//!
//! Who overwrites a file holds the turn that its identity leads to. Who makes one would need a further system call to
//! know its identity, and need not: no name but a symbolic link of the target leads to what is not whole yet. So makers
//! are only counted, until the first such link is met; who met it waits for those that are counted, and from then
//! on makers take turns as everybody does. A tree without such links pays nothing.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_io::{Permit, Result, Semaphore, Stat};

/// More than there are files at a time, so that two of them seldom meet by chance.
const TURNS: usize = if cfg!(loom) { 2 } else { 512 };

/// The turns of one run.
pub(crate) struct Turns {
    turns: Vec<Semaphore>,
    /// Files at a time.
    most: usize,
    /// One is held by each maker without a turn.
    making: Semaphore,
    /// Whether makers take turns.
    are_links_met: AtomicBool,
    /// Whether no maker without a turn is left.
    are_all_held: AtomicBool,
    /// Held by who waits for the makers.
    waiting: Semaphore,
}

impl Turns {
    /// For so many files at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            turns: (0..TURNS).map(|_| Semaphore::new(1)).collect(),
            most,
            making: Semaphore::new(most),
            are_links_met: AtomicBool::new(false),
            are_all_held: AtomicBool::new(false),
            waiting: Semaphore::new(1),
        }
    }

    /// Waits until nobody else writes to this file. Two files that are led to the same turn wait for each other,
    /// too, which does no harm: nobody holds two.
    pub(crate) async fn of(&self, file: &Stat) -> Result<Permit<'_>> {
        let mixed = (file.inode ^ file.device.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = usize::try_from(mixed >> 32).unwrap_or_default() % self.turns.len();
        self.turns[index].acquire().await
    }

    /// For who is about to make a file: `None` if it has to take the file's turn before it writes.
    pub(crate) async fn make(&self) -> Result<Option<Permit<'_>>> {
        if self.are_links_met.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let made = self.making.acquire().await?;
        // Perhaps it has waited for who waits for the makers.
        Ok(Some(made).filter(|_| !self.are_links_met.load(Ordering::SeqCst)))
    }

    /// A link leads to what is to be overwritten: from now on whoever writes holds the file's turn.
    pub(crate) async fn meet_link(&self) -> Result<()> {
        if self.are_all_held.load(Ordering::SeqCst) {
            return Ok(());
        }
        let _waiting = self.waiting.acquire().await?;
        if !self.are_all_held.load(Ordering::SeqCst) {
            self.are_links_met.store(true, Ordering::SeqCst);
            let mut made = Vec::new();
            while made.len() < self.most {
                made.push(self.making.acquire().await?);
            }
            self.are_all_held.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;
