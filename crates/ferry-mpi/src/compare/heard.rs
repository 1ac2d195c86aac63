//! Messages to rank 0 about a comparison, as lines of JSON.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ferry_tree::compare::{Difference, Linked, Summary};
use serde::{Deserialize, Serialize};

/// A message about a comparison.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Heard {
    /// Counters since the last report.
    Counted(Summary),
    Difference(Difference),
    /// A difference in a range of a large file.
    InRange(Difference),
    /// A name of a file with several.
    Linked(Linked),
}

/// Messages for rank 0, until the next report.
#[derive(Default)]
pub(super) struct Messages {
    lines: Mutex<Vec<String>>,
    bytes: AtomicUsize,
    is_broken: AtomicBool,
}

impl Messages {
    pub(super) fn add(&self, what: &Heard) {
        let Ok(line) = serde_json::to_string(what) else {
            self.is_broken.store(true, Ordering::SeqCst);
            return;
        };
        self.bytes.fetch_add(line.len(), Ordering::SeqCst);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub(super) fn take(&self) -> Vec<String> {
        self.bytes.store(0, Ordering::SeqCst);
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of their bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Returns true once a message was lost.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }
}
