//! Large files: which of their ranges are done.

use std::collections::{BTreeSet, HashMap};

use crate::message::{Key, Settings, Version};
use crate::text::Text;

#[derive(Debug)]
struct File {
    node: u64,
    name: Text,
    version: Version,
    /// Size of a range.
    range: u64,
    /// Offset of the next range that was never granted.
    next: u64,
    /// Offset below which all ranges are done.
    low: u64,
    /// Ranges above that are done, by their offset.
    done: BTreeSet<u64>,
    /// Ranges that ranks hold.
    held: u64,
    /// Set if a range could not be copied.
    has_failed: bool,
    /// The name that it is the copy of, if its file has several.
    owner: Option<u64>,
}

/// End of a large file.
pub(super) struct Ended {
    pub(super) node: u64,
    pub(super) owner: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Files {
    files: HashMap<u64, File>,
    next: u64,
}

impl Files {
    /// Adds a file; `None` if it is known, because an interrupted job has found it. Returns its first range.
    pub(super) fn add(
        &mut self,
        (node, name): (u64, &Text),
        version: Version,
        owner: Option<u64>,
        (settings, may_be_known): (&Settings, bool),
    ) -> Option<Key> {
        let is_it = |file: &File| file.node == node && file.name == *name;
        if may_be_known && self.files.values().any(is_it) {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let file = File {
            node,
            name: name.clone(),
            version,
            range: settings.range(version.size),
            next: 0,
            low: 0,
            done: BTreeSet::new(),
            held: 0,
            has_failed: false,
            owner,
        };
        self.files.insert(id, file);
        Some(Key::Range(id, 0))
    }

    /// Takes a range. The key of one that was given back names it; otherwise it is the next of its file, and the key
    /// stands for all that follow. Returns its offset, and the key of the rest.
    pub(super) fn next_range(&mut self, id: u64, key: Key) -> (u64, Option<Key>) {
        let (Some(file), Key::Range(_, start)) = (self.files.get_mut(&id), key) else { return (0, None) };
        file.held += 1;
        if start < file.next {
            return (start, None);
        }
        file.next = start + file.range;
        file.skip_done();
        let more = file.next < file.version.size && !file.has_failed;
        (start, more.then_some(Key::Range(id, file.next)))
    }

    /// Returns the number, the offset and the size of a range.
    pub(super) fn range(&self, id: u64, start: u64) -> Option<(u64, u64, u64)> {
        let file = self.files.get(&id)?;
        Some((id, start, file.range.min(file.version.size.saturating_sub(start))))
    }

    /// Returns a file's folder, name and version.
    pub(super) fn file(&self, id: u64) -> Option<(u64, &Text, Version)> {
        self.files.get(&id).map(|file| (file.node, &file.name, file.version))
    }

    /// Notes the outcome of a range. Returns what is left to be done, if that was the last.
    pub(super) fn end_range(&mut self, id: u64, start: u64, is_done: bool, is_replayed: bool) -> Option<Key> {
        let file = self.files.get_mut(&id)?;
        if !is_replayed {
            file.held = file.held.saturating_sub(1);
        }
        match is_done {
            true => file.end(start),
            false => file.has_failed = true,
        }
        if is_replayed { None } else { file.end_key(id) }
    }

    /// Notes that a range was given back untouched. Returns the end of a failed file that no rank works on.
    pub(super) fn give_back(&mut self, id: u64) -> Option<Key> {
        let file = self.files.get_mut(&id)?;
        file.held = file.held.saturating_sub(1);
        if file.has_failed { file.end_key(id) } else { None }
    }

    /// Returns true if the ranges of a file need not be copied, because one has failed.
    pub(super) fn has_failed(&self, id: u64) -> bool {
        self.files.get(&id).is_none_or(|file| file.has_failed)
    }

    /// Removes a file that has its name, or was removed.
    pub(super) fn end(&mut self, id: u64) -> Option<Ended> {
        let File { node, owner, .. } = self.files.remove(&id)?;
        Some(Ended { node, owner })
    }

    /// Returns what is to be done of each file, after records were replayed.
    pub(super) fn begin(&mut self) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .files
            .iter_mut()
            .filter_map(|(&id, file)| {
                file.next = file.low;
                file.skip_done();
                file.end_key(id).or(Some(Key::Range(id, file.next)))
            })
            .collect();
        keys.sort_unstable();
        keys
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }
}

impl File {
    fn end(&mut self, start: u64) {
        self.done.insert(start);
        while self.done.remove(&self.low) {
            self.low += self.range;
        }
    }

    /// Moves on behind ranges that an interrupted job has done.
    fn skip_done(&mut self) {
        while self.next < self.low || self.done.contains(&self.next) {
            self.next += self.range;
        }
    }

    fn end_key(&self, id: u64) -> Option<Key> {
        if self.has_failed {
            return (self.held == 0).then_some(Key::Discard(id));
        }
        (self.low >= self.version.size).then_some(Key::Close(id))
    }
}
