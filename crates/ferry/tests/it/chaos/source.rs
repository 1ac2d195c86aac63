//! The source: a tree whose files are replaced, changed, linked and removed, with the history of each name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use ferry_tree::fill::SplitMix64;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

use super::bytes;

/// Modification time of a file in seconds, minus its number.
pub(super) const BASE: u64 = 1_600_000_000;
/// Number of directories that may be exchanged; later ones are nested.
const FLAT: usize = 4;

/// Returns a number for a new file on either side.
pub(super) fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A name in the tree: directory and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot(pub(super) usize, pub(super) usize);

enum FileState {
    /// A regular file, complete before it had a name; its size.
    Whole(usize),
    /// A file changed while it had a name.
    Changed(Changed),
    Symlink,
    Fifo,
}

/// A file that is changed in place.
#[derive(Clone)]
struct Changed {
    now: Vec<u8>,
    version: u32,
    least: usize,
    most: usize,
    /// Sizes that it was cut to.
    cuts: Vec<usize>,
}

impl Changed {
    fn to(mut self, now: Vec<u8>) -> FileState {
        if now.len() < self.now.len() {
            self.cuts.push(now.len());
        }
        (self.least, self.most) = (self.least.min(now.len()), self.most.max(now.len()));
        FileState::Changed(Self { now, ..self })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) folders: usize,
    pub(super) names: usize,
    /// Number of additional files in the first directory, which are never touched.
    pub(super) crowd: usize,
}

impl Shape {
    fn folder(self, index: usize) -> String {
        if index < FLAT { format!("d{index}") } else { format!("deep{}", "/e".repeat(index - FLAT)) }
    }

    pub(super) fn path(self, Slot(folder, name): Slot) -> String {
        format!("{}/f{name}", self.folder(folder))
    }

    pub(super) fn slots(self) -> impl Iterator<Item = Slot> {
        let count = move |folder| if folder == 0 { self.names + self.crowd } else { self.names };
        (0..self.folders).flat_map(move |folder| (0..count(folder)).map(move |name| Slot(folder, name)))
    }

    pub(super) fn make_folders(self, root: &std::path::Path) {
        for folder in 0..self.folders {
            fs::create_dir_all(root.join(self.folder(folder))).unwrap();
        }
    }
}

pub(super) struct Source {
    pub(super) root: PathBuf,
    /// Directory in which files are made before they are renamed.
    pub(super) work: PathBuf,
    pub(super) shape: Shape,
    hot: Vec<Slot>,
    files: BTreeMap<u32, FileState>,
    now: BTreeMap<Slot, u32>,
    /// Files that each name has led to. Exchanged directories share their history.
    history: BTreeMap<Slot, BTreeSet<u32>>,
    /// Names that were free at some time.
    free: BTreeSet<Slot>,
    /// Directories with a shared history, by the first of them.
    group: Vec<usize>,
}

impl Source {
    pub(super) fn new(root: PathBuf, work: PathBuf, shape: Shape, hot: Vec<Slot>) -> Self {
        let group = (0..shape.folders).collect();
        let (files, now, history, free) = Default::default();
        Self { root, work, shape, hot, files, now, history, free, group }
    }

    /// Makes most names; some are links to other files.
    pub(super) fn fill(&mut self, numbers: &mut SplitMix64) {
        self.shape.make_folders(&self.root);
        let mut last = None;
        for slot in self.shape.slots() {
            let is_crowd = slot.1 >= self.shape.names;
            match last {
                _ if !is_crowd && numbers.percent(10) => self.note_free(slot),
                Some(other) if !is_crowd && numbers.percent(25) => self.link(other, slot),
                Some(_) | None => {
                    let size = if is_crowd { 40 } else { size(numbers) };
                    let Some((number, path)) = self.make(size) else { continue };
                    self.rename_to(&path, slot, number);
                }
            }
            if self.now.contains_key(&slot) && !is_crowd {
                last = Some(slot);
            }
        }
    }

    pub(super) fn at(&self, slot: Slot) -> PathBuf {
        self.root.join(self.shape.path(slot))
    }

    fn key(&self, slot: Slot) -> Slot {
        Slot(self.group[slot.0], slot.1)
    }

    fn make(&mut self, size: usize) -> Option<(u32, PathBuf)> {
        let number = next_number();
        let path = self.work.join(format!("n{number}"));
        make_file(&path, number, size)?;
        self.files.insert(number, FileState::Whole(size));
        Some((number, path))
    }

    fn note(&mut self, slot: Slot, number: u32) {
        self.now.insert(slot, number);
        let key = self.key(slot);
        self.history.entry(key).or_default().insert(number);
    }

    fn note_free(&mut self, slot: Slot) {
        self.now.remove(&slot);
        let key = self.key(slot);
        self.free.insert(key);
    }

    fn rename_to(&mut self, path: &std::path::Path, slot: Slot, number: u32) {
        if fs::rename(path, self.at(slot)).is_ok() {
            self.note(slot, number);
        }
    }

    pub(super) fn step(&mut self, numbers: &mut SplitMix64) {
        let (slot, other) =
            (self.hot[numbers.index(self.hot.len())], self.hot[numbers.index(self.hot.len())]);
        match numbers.below(20) {
            0..=4 => {
                if let Some((number, path)) = self.make(size(numbers)) {
                    self.rename_to(&path, slot, number);
                }
            }
            5 | 6 => self.remove(slot),
            7 | 8 => self.create(slot, size(numbers)),
            9 | 10 => self.link(slot, other),
            11 => self.cut(slot, numbers),
            12 => self.overwrite(slot, size(numbers)),
            13 => self.rename(slot, other),
            14 => self.exchange(slot, other),
            15 | 16 => self.renew(slot, other, numbers),
            17 => self.special(slot, numbers.percent(50)),
            18 => self.exchange_folders(numbers),
            _ => {
                self.remove(slot);
                self.create(slot, size(numbers));
            }
        }
    }

    fn remove(&mut self, slot: Slot) {
        if fs::remove_file(self.at(slot)).is_ok() {
            self.note_free(slot);
        }
    }

    /// Makes a file in place, in two writes.
    fn create(&mut self, slot: Slot, size: usize) {
        let number = next_number();
        let Ok(mut file) = File::options().write(true).create_new(true).open(self.at(slot)) else { return };
        let whole = bytes::fill(number, 0, size);
        let half = size / 2;
        let written = file.write_all(&whole[..half]).and_then(|()| file.write_all(&whole[half..]));
        let now = if written.is_ok() { whole } else { fs::read(self.at(slot)).unwrap() };
        let (least, most) = (0, now.len());
        self.files
            .insert(number, FileState::Changed(Changed { now, version: 0, least, most, cuts: Vec::new() }));
        self.note(slot, number);
    }

    fn link(&mut self, slot: Slot, other: Slot) {
        let path = self.work.join("link");
        let Some(&number) = self.now.get(&slot) else { return };
        if fs::hard_link(self.at(slot), &path).is_ok() {
            self.rename_to(&path, other, number);
            // rename(2) keeps both names if they are the same file.
            fs::remove_file(&path).ok();
        }
    }

    /// Regular file at a name, if it may be changed.
    fn regular(&self, slot: Slot) -> Option<(u32, Changed)> {
        let number = *self.now.get(&slot)?;
        match &self.files[&number] {
            FileState::Whole(size) => {
                let (now, least, most) = (bytes::fill(number, 0, *size), *size, *size);
                Some((number, Changed { now, version: 0, least, most, cuts: Vec::new() }))
            }
            FileState::Changed(changed) => Some((number, changed.clone())),
            FileState::Symlink | FileState::Fifo => None,
        }
    }

    fn cut(&mut self, slot: Slot, numbers: &mut SplitMix64) {
        let Some((number, changed)) = self.regular(slot) else { return };
        let size = numbers.index(changed.now.len() + 1);
        let Ok(file) = File::options().write(true).open(self.at(slot)) else { return };
        if file.set_len(size as u64).is_ok() {
            let now = changed.now[..size].to_vec();
            self.files.insert(number, changed.to(now));
        }
    }

    /// Overwrites a file with another version, in two writes.
    fn overwrite(&mut self, slot: Slot, size: usize) {
        let Some((number, mut changed)) = self.regular(slot) else { return };
        let Ok(file) = File::options().write(true).open(self.at(slot)) else { return };
        changed.version += 1;
        let new = bytes::fill(number, changed.version, size);
        let half = size / 2;
        let written = file.write_all_at(&new[..half], 0);
        let mut now = changed.now.clone();
        if written.and_then(|()| file.write_all_at(&new[half..], half as u64)).is_ok() {
            now.splice(..size.min(now.len()), new);
        } else {
            now = fs::read(self.at(slot)).unwrap();
        }
        self.files.insert(number, changed.to(now));
    }

    fn rename(&mut self, slot: Slot, other: Slot) {
        let (Some(&number), true) = (self.now.get(&slot), slot != other) else { return };
        if self.now.get(&other) != Some(&number) && fs::rename(self.at(slot), self.at(other)).is_ok() {
            self.note(other, number);
            self.note_free(slot);
        }
    }

    fn exchange(&mut self, slot: Slot, other: Slot) {
        let (Some(&number), Some(&second)) = (self.now.get(&slot), self.now.get(&other)) else { return };
        let (from, to) = (self.at(slot), self.at(other));
        if renameat_with(CWD, &from, CWD, &to, RenameFlags::EXCHANGE).is_ok() {
            self.note(slot, second);
            self.note(other, number);
        }
    }

    /// Removes all names of a file, then makes a file with two names: it may get the same inode number.
    fn renew(&mut self, slot: Slot, other: Slot, numbers: &mut SplitMix64) {
        let Some(&number) = self.now.get(&slot) else { return };
        let names: Vec<Slot> =
            self.now.iter().filter(|(_, at)| **at == number).map(|(slot, _)| *slot).collect();
        if names.iter().any(|name| !self.hot.contains(name)) {
            return;
        }
        names.into_iter().for_each(|name| self.remove(name));
        if let Some((number, path)) = self.make(size(numbers)) {
            self.rename_to(&path, slot, number);
            self.link(slot, other);
        }
    }

    fn special(&mut self, slot: Slot, is_link: bool) {
        let number = next_number();
        let path = self.work.join(format!("n{number}"));
        let made = if is_link {
            symlink(format!("file {number}"), &path).is_ok()
        } else {
            mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o640), 0).is_ok()
        };
        if made {
            self.files.insert(number, if is_link { FileState::Symlink } else { FileState::Fifo });
            self.rename_to(&path, slot, number);
        }
    }

    fn exchange_folders(&mut self, numbers: &mut SplitMix64) {
        // The first directory also has names that are never touched.
        let one = 1 + numbers.index(FLAT - 1);
        let two = 1 + one % (FLAT - 1);
        let path = |folder| self.root.join(self.shape.folder(folder));
        if renameat_with(CWD, path(one), CWD, path(two), RenameFlags::EXCHANGE).is_err() {
            return;
        }
        let (kept, merged) = (self.group[one].min(self.group[two]), self.group[one].max(self.group[two]));
        self.group.iter_mut().filter(|group| **group == merged).for_each(|group| *group = kept);
        for name in 0..self.shape.names {
            let held = self.history.remove(&Slot(merged, name)).unwrap_or_default();
            self.history.entry(Slot(kept, name)).or_default().extend(held);
            if self.free.remove(&Slot(merged, name)) {
                self.free.insert(Slot(kept, name));
            }
            let (first, second) = (self.now.remove(&Slot(one, name)), self.now.remove(&Slot(two, name)));
            for (slot, number) in [(Slot(one, name), second), (Slot(two, name), first)] {
                match number {
                    Some(number) => self.note(slot, number),
                    None => self.note_free(slot),
                }
            }
        }
    }

    fn held(&self, slot: Slot) -> impl Iterator<Item = (u32, &FileState)> {
        let numbers = self.history.get(&self.key(slot)).into_iter().flatten();
        numbers.map(|number| (*number, &self.files[number]))
    }

    /// File of a name that never led to another. Otherwise a listing may lack the name: POSIX lets readdir(3)
    /// skip an entry replaced meanwhile, as btrfs does.
    pub(super) fn only(&self, slot: Slot) -> Option<u32> {
        let mut held = self.held(slot);
        let only = held.next().map(|(number, _)| number);
        only.filter(|_| held.next().is_none() && !self.free.contains(&self.key(slot)))
    }

    pub(super) fn describe(&self, slot: Slot) -> String {
        let describe = |(number, what): (u32, &FileState)| match what {
            FileState::Whole(size) => format!("{number} of {size} bytes"),
            FileState::Changed(Changed { version, least, most, .. }) => {
                format!("{number} of {least} to {most} bytes, {version} times overwritten")
            }
            FileState::Symlink => format!("{number}, a link"),
            FileState::Fifo => format!("{number}, a FIFO"),
        };
        self.held(slot).map(describe).collect::<Vec<_>>().join("; ")
    }

    pub(super) fn numbers(&self, slot: Slot) -> impl Iterator<Item = u32> {
        self.held(slot).map(|(number, _)| number)
    }

    pub(super) fn shares(&self, slot: Slot, other: Slot) -> bool {
        let held: BTreeSet<u32> = self.numbers(slot).collect();
        self.numbers(other).any(|number| held.contains(&number))
    }

    pub(super) fn inodes(&self) -> BTreeSet<u64> {
        let found = self.now.keys().filter_map(|slot| self.at(*slot).symlink_metadata().ok());
        found.map(|found| found.ino()).collect()
    }

    /// File that the bytes are a version of. Mixtures are accepted only for files changed in place.
    pub(super) fn version(&self, slot: Slot, bytes: &[u8]) -> Option<u32> {
        let found = self.held(slot).find(|(number, what)| match what {
            FileState::Whole(size) => {
                bytes.len() == *size
                    && (*size == 0 || bytes::file_of(bytes) == Some(*number))
                    && bytes::is_mixture(bytes, *number, 0, &[])
            }
            FileState::Changed(changed) => {
                (changed.least..=changed.most).contains(&bytes.len())
                    && bytes::is_mixture(bytes, *number, changed.version, &changed.cuts)
            }
            FileState::Symlink | FileState::Fifo => false,
        });
        found.map(|(number, _)| number)
    }

    pub(super) fn is_unchanged(&self, number: u32) -> bool {
        matches!(self.files.get(&number), Some(FileState::Whole(_)))
    }

    pub(super) fn held_link(&self, slot: Slot, text: &str) -> bool {
        self.held(slot)
            .any(|(number, what)| matches!(what, FileState::Symlink) && text == format!("file {number}"))
    }

    pub(super) fn held_fifo(&self, slot: Slot) -> bool {
        self.held(slot).any(|(_, what)| matches!(what, FileState::Fifo))
    }

    /// Lists names of the source that the copy damaged.
    pub(super) fn damaged(&self) -> Vec<String> {
        let mut damaged = Vec::new();
        for &slot in self.now.keys() {
            if let Some((_, Changed { now: expected, .. })) = self.regular(slot) {
                let found = fs::read(self.at(slot)).unwrap_or_default();
                if found != expected {
                    let (found, expected) = (bytes::describe(&found), bytes::describe(&expected));
                    damaged.push(format!("source {}: {found}, should be {expected}", self.shape.path(slot)));
                }
            }
        }
        damaged
    }
}

pub(super) fn size(numbers: &mut SplitMix64) -> usize {
    match numbers.below(40) {
        0..=1 => 0,
        2..=24 => 32 + numbers.index(4_000),
        25..=35 => 5_000 + numbers.index(30_000),
        36..=38 => 270_000 + numbers.index(60_000),
        _ => 700_000 + numbers.index(500_000),
    }
}

/// Makes a file whose bytes, time and mode derive from its number.
pub(super) fn make_file(path: &std::path::Path, number: u32, size: usize) -> Option<File> {
    let mut file = File::options().read(true).write(true).create_new(true).open(path).ok()?;
    let is_made = file.write_all(&bytes::fill(number, 0, size)).is_ok();
    if !is_made {
        fs::remove_file(path).ok();
        return None;
    }
    let mode = [0o644, 0o600, 0o664, 0o755][(number % 4) as usize];
    file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(BASE + u64::from(number))).unwrap();
    Some(file)
}
