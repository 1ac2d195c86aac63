//! A folder's listing, taken a chunk at a time.
//!
//! A cookie means something only to the descriptor that it was read from. Overlayfs and many filesystems in user space
//! number the entries: on another descriptor each removal shifts those behind it, and a listing continued there would
//! miss some. So a listing keeps its descriptor until its end, also when the folder's own are closed (`folder.rs`), and
//! continues at that descriptor's position. Up to [`OpenListings`]' bound do so. The rest of any further listing is
//! read at once, and its names wait in memory, as GNU cp keeps those of every folder on its way
//! (guard: `a_folder_that_is_emptied_while_others_are_copied`). Guard: `so_many_listings_hold_a_descriptor`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferry_io::{Dir, Entries, Entry, Error, Result};

/// Entries in a chunk of names that wait in memory.
const CHUNK: usize = 1024;

/// Listings that hold a descriptor, up to a bound.
pub(crate) struct OpenListings {
    held: Arc<AtomicUsize>,
    most: usize,
}

/// Permit to hold a descriptor, given back on drop.
pub(crate) struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OpenListings {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    fn hold(&self) -> Option<Held> {
        let more = |held| (held < self.most).then_some(held + 1);
        let is_free = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        is_free.then(|| Held(Arc::clone(&self.held)))
    }
}

/// Rest of a folder's listing.
pub(crate) enum Listing {
    /// To be read from this descriptor's position on.
    Open(Dir, Held),
    /// Read already, up to an error if there was one.
    Read(VecDeque<Entry>, Option<Error>),
}

/// Some entries of a folder, and the rest of its listing.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) entries: Vec<Entry>,
    pub(crate) rest: Option<Listing>,
}

impl Chunk {
    /// Takes the first entries of a folder, read from this descriptor.
    pub(crate) async fn first(listings: &OpenListings, dir: Dir, first: Entries) -> Self {
        let Entries { entries, next } = first;
        let rest = match next {
            None => None,
            Some(_) => Some(match listings.hold() {
                Some(held) => Listing::Open(dir, held),
                None => read_to_end(&dir).await,
            }),
        };
        Self { entries, rest }
    }
}

async fn read_to_end(dir: &Dir) -> Listing {
    let mut read = VecDeque::new();
    loop {
        match dir.list(None).await {
            Ok(Entries { entries, next }) => {
                read.extend(entries);
                if next.is_none() {
                    return Listing::Read(read, None);
                }
            }
            Err(error) => return Listing::Read(read, Some(error)),
        }
    }
}

impl Listing {
    /// Returns a listing with nothing left but an error.
    pub(crate) fn failed(error: Error) -> Self {
        Self::Read(VecDeque::new(), Some(error))
    }

    /// Returns the next entries.
    ///
    /// # Errors
    /// Those of getdents64(2), after the entries listed before.
    pub(crate) async fn next(self) -> Result<Chunk> {
        match self {
            Self::Open(dir, held) => {
                let Entries { entries, next } = dir.list(None).await?;
                Ok(Chunk { entries, rest: next.map(|_| Self::Open(dir, held)) })
            }
            Self::Read(read, Some(error)) if read.is_empty() => Err(error),
            Self::Read(mut read, error) => {
                let entries = read.drain(..read.len().min(CHUNK)).collect();
                let is_over = read.is_empty() && error.is_none();
                Ok(Chunk { entries, rest: (!is_over).then_some(Self::Read(read, error)) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
