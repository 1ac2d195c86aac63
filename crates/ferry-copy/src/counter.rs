//! Counters that every worker adds to at every file. Each thread adds to a cache line of its own.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A total since the start. A read while others add returns the total of some moment during the read.
#[derive(Debug, Default)]
pub struct Counter {
    cells: [Cell; CELLS],
}

/// Number of cells; further threads share them.
const CELLS: usize = 8;

/// A cache line, the unit that processors contend for.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell(AtomicU64);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: usize = THREADS.fetch_add(1, Ordering::Relaxed) % CELLS;
}

impl Counter {
    /// Returns the total so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.cells.iter().map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }

    /// Adds a number.
    pub fn add(&self, n: u64) {
        let own = OWN.with(|own| *own);
        self.cells[own].0.fetch_add(n, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_to_one_total() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..3 * CELLS {
                scope.spawn(|| (0..1000).for_each(|_| counter.add(2)));
            }
        });
        assert_eq!(counter.get(), 3 * CELLS as u64 * 2000);
    }
}
