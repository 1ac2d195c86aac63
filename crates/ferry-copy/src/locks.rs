//! Locks on folders that hold hidden names (`staging.rs`). Once a run has waited in vain for one lock, it waits for no
//! further one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ferry_io::{Dir, Result};

/// Number and length of the waits for a lock. A run that clears a folder holds its lock for one listing.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A run's knowledge of locks.
#[derive(Default)]
pub(crate) struct Locks {
    /// Set once a lock was held for longer than a listing takes.
    is_refused: AtomicBool,
}

impl Locks {
    /// Locks a folder, so that no other run clears it. Without locks on its filesystem no run clears it either.
    pub(crate) async fn share(&self, dir: &Dir) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if dir.try_lock(false) != Ok(false) || self.is_refused.load(Ordering::Relaxed) {
                return Ok(());
            }
            ferry_io::sleep(PAUSE).await?;
        }
        self.is_refused.store(true, Ordering::Relaxed);
        Ok(())
    }
}
