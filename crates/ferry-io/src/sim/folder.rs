//! Entries of a simulated folder, found by name and listed by cookie.
//!
//! A listing is ordered by the hashes of the names, as on most filesystems. So an entry made during a listing may
//! appear or not. An entry keeps its cookie for life (guard: `cookies_are_stable`).

use std::collections::BTreeMap;
use std::ops::Bound;

use super::chance::hash;

/// Cookies are below this number, so that they fit in a positive file offset; zero is the start.
const COOKIES: u64 = 1 << 62;

#[derive(Debug, Clone, Default)]
pub(super) struct Folder {
    /// Parent folder; the root is its own parent.
    pub(super) parent: u64,
    by_name: BTreeMap<Vec<u8>, u64>,
    by_cookie: BTreeMap<u64, Entry>,
    ignores_case: bool,
}

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

    /// Adds an entry under a free name.
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

    /// Returns the entries after a cookie; all of them after zero.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let behind = (Bound::Excluded(cookie), Bound::Unbounded);
        self.by_cookie.range(behind).map(|(&cookie, entry)| (cookie, entry))
    }

    fn key(&self, name: &[u8]) -> Vec<u8> {
        if self.ignores_case { name.to_ascii_lowercase() } else { name.to_vec() }
    }
}
