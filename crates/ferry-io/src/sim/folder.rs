//! A simulated folder's entries: found by name, listed by cookie.
//!
//! The order of a listing comes from the names' hashes, as on most filesystems, so an entry made while the folder is
//! listed may appear or not. An entry keeps its cookie as long as it lives (guard: `cookies_are_stable`).

use std::collections::BTreeMap;
use std::ops::Bound;

use super::chance::hash;

/// Cookies fit in a positive file offset, and zero is the start.
const COOKIES: u64 = 1 << 62;

/// The entries of one folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// The folder above; the root's is itself.
    pub(super) parent: u64,
    by_name: BTreeMap<Vec<u8>, u64>,
    by_cookie: BTreeMap<u64, Entry>,
    ignores_case: bool,
}

/// A name and the number of its inode.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) inode: u64,
}

impl Folder {
    pub(super) fn new(parent: u64, ignores_case: bool) -> Self {
        Self { parent, ignores_case, ..Self::default() }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<u64> {
        let cookie = self.by_name.get(&self.key(name))?;
        self.by_cookie.get(cookie).map(|entry| entry.inode)
    }

    /// Adds an entry whose name is not taken.
    pub(super) fn add(&mut self, name: &[u8], inode: u64) {
        let key = self.key(name);
        let mut cookie = hash(&key) % COOKIES + 1;
        while self.by_cookie.contains_key(&cookie) {
            cookie = cookie % COOKIES + 1;
        }
        self.by_name.insert(key, cookie);
        self.by_cookie.insert(cookie, Entry { name: name.to_vec(), inode });
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<u64> {
        let cookie = self.by_name.remove(&self.key(name))?;
        self.by_cookie.remove(&cookie).map(|entry| entry.inode)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_cookie.is_empty()
    }

    /// The entries behind a cookie, zero for all.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let behind = (Bound::Excluded(cookie), Bound::Unbounded);
        self.by_cookie.range(behind).map(|(&cookie, entry)| (cookie, entry))
    }

    fn key(&self, name: &[u8]) -> Vec<u8> {
        if self.ignores_case { name.to_ascii_lowercase() } else { name.to_vec() }
    }
}
