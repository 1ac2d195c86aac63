//! Writes and syncs that failed since the last flush.

use std::fmt;

use ferry_io::Error;

/// Maximum number of failures kept; further ones are only counted.
const MOST: usize = 64;

/// A failed request. Its blocks stay dirty in the cache, and the next flush tries them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The error of the request.
    pub error: Error,
    /// Offset of the first byte that was not written.
    pub offset: u64,
    /// Number of bytes that were not written; 0 for a sync.
    pub size: u64,
}

/// Requests that failed since the last flush, each reported once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    /// Up to 64 failures, oldest first.
    pub failures: Vec<Failure>,
    /// Number of further failures.
    pub more: u64,
}

impl Failures {
    pub(crate) fn of(failure: Failure) -> Self {
        Self { failures: vec![failure], more: 0 }
    }

    pub(crate) fn add(&mut self, failure: Failure) {
        if self.failures.len() < MOST {
            self.failures.push(failure);
        } else {
            self.more += 1;
        }
    }

    /// Returns the number of failed requests.
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
    use ferry_io::{Errno, Operation};

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
