//! Hashes of files of the target with several names: the first name that is examined reads the file, and the others take its
//! result.
//!
//! A file is in the table until as many of its names were examined as it has, so that the table does not grow with those whose
//! names are all in the target. Guard: `a_file_with_several_names_is_read_once_for_its_hash`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ferry_copy::Digest;
use ferry_io::{Permit, Semaphore, Stat, Time};

/// Files with several names, by device and inode number.
#[derive(Default)]
pub(crate) struct Once {
    table: Mutex<HashMap<(u64, u64), Arc<Shared>>>,
}

/// A file with several names.
pub(super) struct Shared {
    /// Held while the file is read.
    turn: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Names that were examined, or are waiting.
    names: u64,
    /// The hash, and the attributes that the file had.
    known: Option<(u64, Time, Digest)>,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other name reads the file.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(super) async fn turn(&self) -> ferry_io::Result<Permit<'_>> {
        self.turn.acquire().await
    }

    /// Returns the hash, if the file has the attributes that it had when it was read.
    pub(super) fn digest(&self, now: &Stat) -> Option<Digest> {
        let known = self.lock().known;
        known.filter(|known| (known.0, known.1) == (now.size, now.times.modified)).map(|known| known.2)
    }

    /// Notes the hash of a file, and the attributes that it had before and after it was read.
    pub(super) fn note(&self, digest: Digest, seen: &Stat) {
        self.lock().known = Some((seen.size, seen.times.modified, digest));
    }
}

impl Once {
    /// Returns the file that an examined name belongs to; `None` if it has no other name.
    pub(super) fn file(&self, seen: &Stat) -> Option<Arc<Shared>> {
        if seen.links < 2 {
            return None;
        }
        let key = (seen.device, seen.inode);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Shared { turn: Semaphore::new(1), state: Mutex::default() });
        let shared = Arc::clone(table.entry(key).or_insert_with(new));
        let is_last = {
            let mut state = shared.lock();
            state.names += 1;
            state.names >= seen.links
        };
        if is_last {
            table.remove(&key);
        }
        Some(shared)
    }
}
