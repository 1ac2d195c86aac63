//! Counters to which every worker adds at every file: each thread has a place of its own, so that they do not take the
//! same memory from each other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A total since the start. Reading it while others add gives what was there at some moment of the reading.
#[derive(Debug, Default)]
pub struct Counter {
    places: [Place; PLACES],
}

/// Threads beyond these share places.
const PLACES: usize = 8;

/// A cache line, which is what processors take from each other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place(AtomicU64);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: usize = THREADS.fetch_add(1, Ordering::Relaxed) % PLACES;
}

impl Counter {
    /// What was added so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.places.iter().map(|place| place.0.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn add(&self, n: u64) {
        let own = OWN.with(|own| *own);
        self.places[own].0.fetch_add(n, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_to_one_total() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..3 * PLACES {
                scope.spawn(|| (0..1000).for_each(|_| counter.add(2)));
            }
        });
        assert_eq!(counter.get(), 3 * PLACES as u64 * 2000);
    }
}
