//! Turns to write to a file: one fiber at a time, whatever names the file has.
//!
//! A fiber that overwrites a file holds the turn of the file's identity. A fiber that makes a file would need another
//! system call to know the identity, and does without: only a symbolic link of the target can lead to an incomplete
//! file. So makers are only counted, until the first such link is met. The fiber that met it waits for all counted
//! makers, and from then on makers take turns, too. A tree without such links pays nothing.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_io::{Permit, Result, Semaphore, Stat};

/// Number of turns: more than files in flight, so that two files seldom share one.
const TURNS: usize = if cfg!(loom) { 2 } else { 512 };

/// The turns of one run.
pub(crate) struct Turns {
    /// Made when the first is taken: most runs need none.
    turns: OnceLock<Vec<Semaphore>>,
    /// Files in flight.
    most: usize,
    /// Permits held by makers without a turn.
    making: Semaphore,
    /// Set once makers take turns.
    are_links_met: AtomicBool,
    /// Set once no maker without a turn is left.
    are_all_held: AtomicBool,
    /// Held while the makers are waited for.
    waiting: Semaphore,
}

impl Turns {
    /// Returns the turns for `most` files in flight.
    pub(crate) fn new(most: usize) -> Self {
        let turns = OnceLock::new();
        if cfg!(loom) {
            // Its models forbid to make semaphores while threads run.
            turns.get_or_init(all);
        }
        Self {
            turns,
            most,
            making: Semaphore::new(most),
            are_links_met: AtomicBool::new(false),
            are_all_held: AtomicBool::new(false),
            waiting: Semaphore::new(1),
        }
    }

    /// Waits until no other fiber writes to this file. Two files may share a turn and wait for each other: no fiber
    /// holds two turns, so this can't deadlock.
    pub(crate) async fn of(&self, file: &Stat) -> Result<Permit<'_>> {
        let mixed = (file.inode ^ file.device.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let turns = self.turns.get_or_init(all);
        let index = usize::try_from(mixed >> 32).unwrap_or_default() % turns.len();
        turns[index].acquire().await
    }

    /// Returns the permit to make a file without its turn; `None` if the maker must take the turn before it writes.
    pub(crate) async fn make(&self) -> Result<Option<Permit<'_>>> {
        if self.are_links_met.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let made = self.making.acquire().await?;
        // A link may have been met while this fiber waited.
        Ok(Some(made).filter(|_| !self.are_links_met.load(Ordering::SeqCst)))
    }

    /// Notes a link to a file that is to be overwritten: from now on every writer holds its file's turn.
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

fn all() -> Vec<Semaphore> {
    (0..TURNS).map(|_| Semaphore::new(1)).collect()
}

#[cfg(loom)]
#[cfg(test)]
mod model;
