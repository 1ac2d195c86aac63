//! A source's folder, listed for a caller that chooses what is copied.

use ferry_io::Entry as ListedEntry;

use crate::listing::{Chunk, Listing as Unread};
use crate::report::{During as _, FailureKind, Verb};

/// Entries of a source's folder, which are read some at a time.
pub struct Listing {
    read: Vec<ListedEntry>,
    rest: Option<Unread>,
}

impl Listing {
    pub(super) fn of(chunk: Chunk) -> Self {
        Self { read: chunk.entries, rest: chunk.rest }
    }

    /// Returns the next entries; none at the end.
    ///
    /// # Errors
    /// Those of getdents64(2), after the entries read before.
    pub async fn next(&mut self) -> Result<Vec<ListedEntry>, FailureKind> {
        while self.read.is_empty()
            && let Some(rest) = self.rest.take()
        {
            *self = Self::of(rest.next().await.during(Verb::ReadDirectory)?);
        }
        Ok(std::mem::take(&mut self.read))
    }

    /// Returns true if [`Self::next`] returned everything.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.read.is_empty() && self.rest.is_none()
    }
}
