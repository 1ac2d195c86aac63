//! Number of entries that a job copies at once. The state of an entry takes about 7 KiB, also while the entry waits.
//!
//! A worker has up to 16 jobs, and each copies up to 64 entries at once. While files of large folders have to be waited for, that
//! would be a thousand entries for each worker. So jobs that begin beside others get less. Each gets enough to keep a device
//! busy that answers late, and to end soon after the others.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of entries that is divided by the number of jobs.
const ENTRIES: usize = 256;
/// Fewest entries of a job.
const FEWEST: usize = 16;

/// The jobs of a run that copy entries at once.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    jobs: AtomicUsize,
}

/// The entries of one job.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    of: &'a Shares,
    pub(crate) at_once: usize,
}

impl Shares {
    /// Returns the share of a job that begins now, of at most this number of entries.
    pub(crate) fn take(&self, most: usize) -> Share<'_> {
        let jobs = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        Share { of: self, at_once: most.min((ENTRIES / jobs).max(FEWEST)) }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.jobs.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_beside_many_others_copy_fewer_entries_at_once() {
        let shares = Shares::default();
        let taken: Vec<_> = (0..32).map(|_| shares.take(64)).collect();
        let at_once: Vec<usize> = taken.iter().map(|share| share.at_once).collect();
        assert_eq!((&at_once[..4], at_once[7], at_once[31]), (&[64; 4][..], 32, FEWEST));
        // Without a bound these were 2,048.
        assert!(at_once.iter().sum::<usize>() < 900, "{at_once:?}");
        assert_eq!(shares.take(1).at_once, 1);
        drop(taken);
        assert_eq!(shares.take(64).at_once, 64);
    }
}
