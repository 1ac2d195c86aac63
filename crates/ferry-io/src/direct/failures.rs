//! What could not be written, until it is told.

use std::fmt;

use crate::error::Error;

/// So many are told one by one; of those beyond, how many there were.
const MOST: usize = 64;

/// One request that failed. What it was of is still in the cache and dirty: the next flush tries it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What came back.
    pub error: Error,
    /// Where the request began, in bytes.
    pub offset: u64,
    /// Bytes of the request that were not written; 0 for what is not about certain bytes, such as a sync.
    pub size: u64,
}

/// Why a flush did not make everything durable: each request that failed since the last one, once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    /// At most 64, oldest first.
    pub failures: Vec<Failure>,
    /// Those beyond, which were only counted.
    pub more: u64,
}

impl Failures {
    pub(super) fn of(failure: Failure) -> Self {
        Self { failures: vec![failure], more: 0 }
    }

    pub(super) fn add(&mut self, failure: Failure) {
        if self.failures.len() < MOST {
            self.failures.push(failure);
        } else {
            self.more += 1;
        }
    }

    /// How many requests failed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.failures.len() as u64 + self.more
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.failures.first() else { return f.write_str("nothing failed") };
        write!(f, "{}", first.error)?;
        if first.size > 0 {
            write!(f, ", {} bytes at {}", first.size, first.offset)?;
        }
        match self.count() - 1 {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl std::error::Error for Failures {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Operation;
    use rustix::io::Errno;

    #[test]
    fn failures_beyond_those_told_one_by_one_are_counted() {
        let mut failures = Failures::default();
        for offset in 0..100 {
            failures.add(Failure { error: Error::errno(Operation::Write, Errno::IO), offset, size: 7 });
        }
        assert_eq!((failures.failures.len(), failures.more, failures.count()), (MOST, 36, 100));
        assert_eq!(failures.to_string(), "write: Input/output error, 7 bytes at 0, and 99 more");
    }
}
