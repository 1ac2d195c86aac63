//! Large files: which of their ranges are done.
//!
//! A folder of which an interrupted job has listed a part is listed again. Until a rank has found a large file in it again,
//! no range of the file is granted, because the file's part may be missing. Then all its ranges are copied again. If the file
//! has another version, the part of the old one is removed. No other rank works on the file at that moment.

use std::collections::{BTreeSet, HashMap};

use crate::message::{Key, NewLarge, Settings, Version};
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
    /// Set if a range could not be copied, or the source has another version: the part is removed.
    has_failed: bool,
    /// Set once a rank has made the part. Before, only the first range is granted.
    has_part: bool,
    /// Set until the file is found again, or all of its folder is.
    is_awaited: bool,
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
    /// Adds a file. Returns its first range.
    pub(super) fn add(
        &mut self,
        (node, name): (u64, &Text),
        (version, has_part): (Version, bool),
        owner: Option<u64>,
        settings: &Settings,
    ) -> Key {
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
            has_part,
            is_awaited: false,
            owner,
        };
        self.files.insert(id, file);
        Key::Range(id, 0)
    }

    /// Notes that a file was found in a folder that is listed again. Returns true if the file is known in this version, and
    /// what is to be done of the known versions.
    pub(super) fn find_again(&mut self, node: u64, found: &NewLarge) -> (bool, Vec<Key>) {
        let (mut is_known, mut keys) = (false, Vec::new());
        let known = self.files.iter_mut().filter(|(_, file)| file.node == node && file.name == found.name);
        for (&id, file) in known {
            let is_it = file.version == found.version;
            is_known |= is_it;
            if !std::mem::take(&mut file.is_awaited) {
                continue;
            }
            if !is_it {
                file.has_failed = true;
            } else if found.lacks_part || file.has_failed {
                (file.low, file.done) = (0, BTreeSet::new());
                (file.has_failed, file.has_part) = (false, !found.lacks_part);
            }
            keys.push(file.begin(id));
        }
        keys.sort_unstable();
        (is_known, keys)
    }

    /// Has files wait until they are found again.
    pub(super) fn await_files(&mut self, is_awaited: impl Fn(u64) -> bool) {
        for file in self.files.values_mut() {
            file.is_awaited = is_awaited(file.node);
        }
    }

    /// Returns the folders of files that wait.
    pub(super) fn awaited(&self) -> BTreeSet<u64> {
        self.files.values().filter(|file| file.is_awaited).map(|file| file.node).collect()
    }

    /// Returns true if a file of a folder waits.
    pub(super) fn is_awaited(&self, node: u64) -> bool {
        self.files.values().any(|file| file.is_awaited && file.node == node)
    }

    /// Has the files of a folder wait no more, because all of it was found. Returns what is to be done of them.
    pub(super) fn release(&mut self, node: u64) -> Vec<Key> {
        let awaited = self.files.iter_mut().filter(|(_, file)| file.node == node && file.is_awaited);
        let mut keys: Vec<Key> = awaited
            .map(|(&id, file)| {
                file.is_awaited = false;
                file.begin(id)
            })
            .collect();
        keys.sort_unstable();
        keys
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
        let more = file.has_part && file.next < file.version.size && !file.has_failed;
        (start, more.then_some(Key::Range(id, file.next)))
    }

    /// Returns the number, the offset and the size of a range.
    pub(super) fn range(&self, id: u64, start: u64) -> Option<(u64, u64, u64)> {
        let file = self.files.get(&id)?;
        Some((id, start, file.range.min(file.version.size.saturating_sub(start))))
    }

    /// Returns true once a file has its part.
    pub(super) fn has_part(&self, id: u64) -> bool {
        self.files.get(&id).is_none_or(|file| file.has_part)
    }

    /// Returns a file's folder, name and version.
    pub(super) fn file(&self, id: u64) -> Option<(u64, &Text, Version)> {
        self.files.get(&id).map(|file| (file.node, &file.name, file.version))
    }

    /// Notes the outcome of a range. Returns what is to be done next, if that was the last range, or the one before which no
    /// other could be copied.
    pub(super) fn end_range(&mut self, id: u64, start: u64, is_done: bool, is_replayed: bool) -> Option<Key> {
        let file = self.files.get_mut(&id)?;
        if !is_replayed {
            file.held = file.held.saturating_sub(1);
        }
        let is_first = is_done && !file.has_part;
        match is_done {
            true => file.end(start),
            false => file.has_failed = true,
        }
        if is_replayed {
            return None;
        }
        file.end_key(id).or_else(|| is_first.then(|| file.begin(id)))
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

    /// Returns what is to be done of each file that does not wait, after records were replayed.
    pub(super) fn begin(&mut self) -> Vec<Key> {
        let files = self.files.iter_mut().filter(|(_, file)| !file.is_awaited);
        let mut keys: Vec<Key> = files.map(|(&id, file)| file.begin(id)).collect();
        keys.sort_unstable();
        keys
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }
}

impl File {
    /// Returns the first piece that is to be done.
    fn begin(&mut self, id: u64) -> Key {
        self.next = self.low;
        self.skip_done();
        self.end_key(id).unwrap_or(Key::Range(id, self.next))
    }

    fn end(&mut self, start: u64) {
        self.has_part = true;
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
