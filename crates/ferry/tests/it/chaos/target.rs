//! The target: another program that replaces, removes and changes names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use ferry_tree::fill::SplitMix64;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::bytes;
use super::source::{Shape, Slot, make_file, next_number, size};

/// Maximum number of the other program's files in a round.
const MOST: usize = 600;

/// A complete file of the other program, kept open so that its bytes can be read after its name is gone.
pub(super) struct Foreign {
    pub(super) number: u32,
    pub(super) slot: Slot,
    size: usize,
    file: File,
    /// True if the other program changed it after naming it.
    pub(super) is_torn: bool,
}

impl Foreign {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.file.metadata().unwrap().len()).unwrap()];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    pub(super) fn is_whole(&self, found: &[u8]) -> bool {
        found == bytes::fill(self.number, 0, self.size)
    }
}

/// Last action of the other program on a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Placed,
    Linked,
    Removed,
    Torn,
}

/// Actions that the other program may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    /// Writing to the file at a name, which may be a copy.
    pub(super) tears: bool,
    /// Linking a target's name to its source.
    pub(super) links_sources: bool,
}

/// The tree, and the other program's actions.
pub(super) struct Target {
    pub(super) root: PathBuf,
    source: PathBuf,
    work: PathBuf,
    shape: Shape,
    hot: Vec<Slot>,
    habits: Habits,
    pub(super) foreign: Vec<Foreign>,
    pub(super) last: BTreeMap<Slot, Last>,
    /// Files present before the copy; true if newer than every source.
    pub(super) before: BTreeMap<Slot, (u32, bool)>,
    pub(super) torn: BTreeSet<Slot>,
    /// Names that were linked to their sources at some time.
    pub(super) linked: BTreeSet<Slot>,
}

impl Target {
    pub(super) fn new(place: &std::path::Path, shape: Shape, hot: Vec<Slot>, habits: Habits) -> Self {
        let (root, source, work) = (place.join("t"), place.join("s"), place.join("w"));
        let (foreign, last, before, torn, linked) = Default::default();
        Self { root, source, work, shape, hot, habits, foreign, last, before, torn, linked }
    }

    /// Makes files that are older or newer than their sources.
    pub(super) fn fill(&mut self, numbers: &mut SplitMix64) {
        self.shape.make_folders(&self.root);
        let shape = self.shape;
        for slot in shape.slots().filter(|slot| slot.1 < shape.names) {
            if numbers.percent(40) {
                continue;
            }
            let Some(number) = self.make(slot, size(numbers)) else { continue };
            let is_newer = numbers.percent(50);
            let seconds = if is_newer { 4_000_000_000 } else { 1_000 };
            let file = &self.foreign.last().unwrap().file;
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
            fs::rename(self.made(number), self.at(slot)).unwrap();
            self.before.insert(slot, (number, is_newer));
        }
    }

    pub(super) fn at(&self, slot: Slot) -> PathBuf {
        self.root.join(self.shape.path(slot))
    }

    fn made(&self, number: u32) -> PathBuf {
        self.work.join(format!("n{number}"))
    }

    fn make(&mut self, slot: Slot, size: usize) -> Option<u32> {
        // Each file keeps a descriptor open.
        if self.foreign.len() >= MOST {
            return None;
        }
        let number = next_number();
        let file = make_file(&self.made(number), number, size)?;
        self.foreign.push(Foreign { number, slot, size, file, is_torn: false });
        Some(number)
    }

    /// Chooses a name, preferably a recently created one.
    fn pick(&self, numbers: &mut SplitMix64) -> Slot {
        let any = |numbers: &mut SplitMix64| self.hot[numbers.index(self.hot.len())];
        for _ in 0..8 {
            let slot = any(numbers);
            if !self.last.contains_key(&slot) && self.at(slot).symlink_metadata().is_ok() {
                return slot;
            }
        }
        any(numbers)
    }

    pub(super) fn step(&mut self, numbers: &mut SplitMix64) {
        let slot = self.pick(numbers);
        // The copy has not made the directory yet.
        if !self.at(slot).parent().is_some_and(std::path::Path::exists) {
            return;
        }
        match numbers.below(10) {
            0..=3 => self.place(slot, size(numbers), false),
            4 => self.place(slot, size(numbers), true),
            5 => self.exchange(slot, size(numbers)),
            6 => {
                if fs::remove_file(self.at(slot)).is_ok() {
                    self.last.insert(slot, Last::Removed);
                }
            }
            7 | 8 if self.habits.links_sources => self.link_source(slot),
            9 if self.habits.tears => self.tear(slot, numbers),
            _ => self.place(slot, size(numbers), false),
        }
    }

    /// Renames a complete file into place, and optionally keeps another link to it.
    fn place(&mut self, slot: Slot, size: usize, is_linked: bool) {
        let Some(number) = self.make(slot, size) else { return };
        if is_linked {
            fs::hard_link(self.made(number), self.work.join(format!("k{number}"))).unwrap();
        }
        if fs::rename(self.made(number), self.at(slot)).is_ok() {
            self.last.insert(slot, Last::Placed);
        }
    }

    fn exchange(&mut self, slot: Slot, size: usize) {
        let Some(number) = self.make(slot, size) else { return };
        if renameat_with(CWD, self.made(number), CWD, self.at(slot), RenameFlags::EXCHANGE).is_ok() {
            self.last.insert(slot, Last::Placed);
        }
    }

    fn link_source(&mut self, slot: Slot) {
        let path = self.work.join("source");
        if fs::hard_link(self.source.join(self.shape.path(slot)), &path).is_ok() {
            if fs::rename(&path, self.at(slot)).is_ok() {
                self.last.insert(slot, Last::Linked);
                self.linked.insert(slot);
            }
            fs::remove_file(&path).ok();
        }
    }

    /// Truncates or overwrites the file at a name.
    fn tear(&mut self, slot: Slot, numbers: &mut SplitMix64) {
        let Ok(found) = self.at(slot).symlink_metadata() else { return };
        if !found.is_file() {
            return;
        }
        let Ok(file) = File::options().write(true).open(self.at(slot)) else { return };
        let found = file.metadata().unwrap();
        for foreign in &mut self.foreign {
            foreign.is_torn |= foreign.file.metadata().unwrap().ino() == found.ino();
        }
        self.last.insert(slot, Last::Torn);
        self.torn.insert(slot);
        let length = usize::try_from(found.len()).unwrap();
        if numbers.percent(50) {
            file.set_len(numbers.index(length + 1) as u64).ok();
        } else {
            file.write_all_at(b"torn", numbers.index(length + 1) as u64).ok();
        }
    }
}
