//! Judges a round: each target name holds a version of its source or is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ferry_copy::{Algorithm, Digest};

use super::bytes::describe;
use super::source::{BASE, Slot, Source};
use super::target::{Foreign, Last, Target};
use crate::manifest::Hashes;

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// `-a`: times and links are preserved.
    pub(super) archive: bool,
    /// `-u`: newer targets stay.
    pub(super) update: bool,
    /// An existing target may be removed even if the copy then fails.
    pub(super) removes: bool,
    /// On an overlay, changing a file of the lower layer separates its names.
    pub(super) parts_links: bool,
}

/// Paths of the failures that ferry recorded.
pub(super) struct Reported(BTreeSet<PathBuf>);

impl Reported {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let record = |line: &str| -> PathBuf {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record["target"].as_str().unwrap().into()
        };
        Self(text.lines().map(record).collect())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns true if a name or a directory above it is reported.
    fn has(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.0.contains(above))
    }
}

#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) wrong: Vec<String>,
    /// Number of names with a version of their source, including touched ones.
    pub(super) copied: usize,
    pub(super) touched: usize,
    /// Number of files whose hash in the manifest is right.
    pub(super) hashed: usize,
}

struct Judge<'a> {
    source: &'a Source,
    target: &'a Target,
    reported: &'a Reported,
    /// Lines of the manifest, if one was written.
    lines: Option<&'a Hashes>,
    rules: Rules,
    /// Source file and inode of each untouched copy.
    copies: BTreeMap<Slot, (u32, u64)>,
    /// Inodes of the source's names at the end.
    inodes: BTreeSet<u64>,
    verdict: Verdict,
}

pub(super) fn judge(
    source: &Source,
    target: &Target,
    (reported, lines): (&Reported, Option<&Hashes>),
    rules: Rules,
) -> Verdict {
    let (copies, inodes, verdict) = (BTreeMap::new(), source.inodes(), Verdict::default());
    let mut judge = Judge { source, target, reported, lines, rules, copies, inodes, verdict };
    for slot in source.shape.slots() {
        judge.name(slot);
    }
    judge.links();
    judge.foreign();
    judge.extras();
    judge.verdict.wrong.extend(source.damaged());
    judge.verdict
}

impl Judge<'_> {
    fn say(&mut self, slot: Slot, what: &str) {
        let path = self.source.shape.path(slot);
        let last = self.target.last.get(&slot);
        let reported = if self.is_reported(slot) { ", reported" } else { "" };
        let held = self.source.describe(slot);
        self.verdict
            .wrong
            .push(format!("target {path} (last {last:?}{reported}): {what}; its source held {held}"));
    }

    fn is_reported(&self, slot: Slot) -> bool {
        self.reported.has(&Path::new("t").join(self.source.shape.path(slot)))
    }

    fn name(&mut self, slot: Slot) {
        let path = self.target.at(slot);
        let Ok(found) = path.symlink_metadata() else { return self.missing(slot) };
        if found.is_file() {
            let bytes = fs::read(&path).unwrap();
            self.file(slot, &bytes, &found);
        } else if found.is_symlink() {
            let text = fs::read_link(&path).unwrap();
            if !self.source.held_link(slot, text.to_str().unwrap()) {
                self.say(slot, &format!("a link to {}", text.display()));
            }
        } else if !found.file_type().is_fifo() || !self.source.held_fifo(slot) {
            self.say(slot, &format!("{:?}", found.file_type()));
        }
    }

    fn missing(&mut self, slot: Slot) {
        let last = self.target.last.get(&slot).copied();
        if last == Some(Last::Removed) {
            return;
        }
        let is_reported = self.is_reported(slot);
        let had_been = last.is_some() || self.target.before.contains_key(&slot);
        if had_been && !(is_reported && self.rules.removes) {
            self.say(slot, "another program's file is gone");
        } else if self.source.only(slot).is_some() && !is_reported {
            self.say(slot, "it was neither copied nor reported");
        }
    }

    fn file(&mut self, slot: Slot, bytes: &[u8], found: &fs::Metadata) {
        let is_touched = self.target.last.contains_key(&slot);
        if let Some(number) = self.source.version(slot, bytes) {
            self.verdict.copied += 1;
            self.verdict.touched += usize::from(is_touched || self.source.only(slot).is_none());
            if !is_touched {
                self.copies.insert(slot, (number, found.ino()));
                self.times(slot, number, found);
                self.hash(slot, bytes);
                if self.inodes.contains(&found.ino()) && !self.links_to_linked(slot) {
                    self.say(slot, "it is another name of a source");
                }
            }
            return;
        }
        // A newer target counts as its source's copy; other names of the source are linked to it, as with cp.
        let links_newer = self.rules.archive && self.rules.update;
        let may_be = |at: Slot| at == slot || links_newer && self.source.shares(at, slot);
        let is_reported = self.is_reported(slot);
        let may_stay = |foreign: &Foreign| match self.target.before.get(&slot) {
            Some(&(number, is_newer)) if number == foreign.number => {
                is_reported || self.rules.update && is_newer || self.source.only(slot).is_none() || is_touched
            }
            Some(_) | None => true,
        };
        // Several files may be empty.
        let foreign = self.target.foreign.iter();
        let mut whole = foreign.filter(|foreign| may_be(foreign.slot) && foreign.is_whole(bytes)).peekable();
        if whole.peek().is_some() {
            if !whole.any(may_stay) {
                self.say(slot, "it is as it was, and not reported");
            }
            return;
        }
        let is_torn = self.target.torn.contains(&slot);
        // An incomplete target gets the oldest time, so that it is copied again.
        let was_there = is_touched || self.target.before.contains_key(&slot);
        let is_marked = is_reported && was_there && found.mtime() < i64::try_from(BASE).unwrap();
        if !is_torn && !is_marked {
            self.say(slot, &format!("{}, with a time of {}", describe(bytes), found.mtime()));
        }
    }

    /// Returns true if a name may be linked to a name that another program linked to its source. With `-u`
    /// such a target is not older and stays as the copy, as with cp.
    fn links_to_linked(&self, slot: Slot) -> bool {
        let mut linked = self.target.linked.iter();
        self.rules.archive && self.rules.update && linked.any(|at| self.source.shares(*at, slot))
    }

    fn times(&mut self, slot: Slot, number: u32, found: &fs::Metadata) {
        let expected = i64::try_from(BASE).unwrap() + i64::from(number);
        let is_kept = self.rules.archive && self.source.is_unchanged(number) && !self.is_reported(slot);
        if is_kept && found.len() > 0 && found.mtime() != expected {
            self.say(slot, &format!("file {number} with a time of {}, not {expected}", found.mtime()));
        }
    }

    /// Checks that a copy which no other program has touched has a line with its hash, or is reported.
    fn hash(&mut self, slot: Slot, bytes: &[u8]) {
        let Some(lines) = self.lines.filter(|_| !self.is_reported(slot)) else { return };
        let digest = Digest::of(Algorithm::Blake3, bytes).to_string();
        match lines.get(self.source.shape.path(slot).as_bytes()) {
            Some(line) if *line == digest => self.verdict.hashed += 1,
            Some(_) => self.say(slot, "the manifest has another hash"),
            None => self.say(slot, "the manifest has no line"),
        }
    }

    /// Checks that names of one file stay linked, unless another program replaced one of them.
    fn links(&mut self) {
        if !self.rules.archive || self.rules.parts_links {
            return;
        }
        let mut groups: BTreeMap<u32, Vec<(Slot, u64)>> = BTreeMap::new();
        let touched: BTreeSet<u32> =
            self.target.last.keys().flat_map(|slot| self.source.numbers(*slot)).collect();
        for (&slot, &(number, inode)) in &self.copies {
            if !touched.contains(&number) && self.source.only(slot) == Some(number) && !self.is_reported(slot)
            {
                groups.entry(number).or_default().push((slot, inode));
            }
        }
        for (number, names) in groups {
            if let Some((slot, _)) = names.iter().find(|(_, inode)| *inode != names[0].1) {
                let first = self.source.shape.path(names[0].0);
                self.say(*slot, &format!("file {number} is another one than that of {first}"));
            }
        }
    }

    /// Checks that the other program's files are intact, or became the whole copy, or are reported.
    fn foreign(&mut self) {
        let target = self.target;
        for foreign in target.foreign.iter().filter(|foreign| !foreign.is_torn) {
            let bytes = foreign.bytes();
            let is_whole = foreign.is_whole(&bytes) || self.source.version(foreign.slot, &bytes).is_some();
            if !is_whole && !self.is_reported(foreign.slot) {
                self.say(
                    foreign.slot,
                    &format!("file {} of another program: {}", foreign.number, describe(&bytes)),
                );
            }
        }
    }

    /// Checks that the target has no names that the source lacks.
    fn extras(&mut self) {
        let known: BTreeSet<PathBuf> = self.source.shape.slots().map(|slot| self.target.at(slot)).collect();
        let mut folders = vec![self.target.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap();
                if kind.is_dir() {
                    folders.push(path);
                } else if !known.contains(&path) {
                    self.verdict.wrong.push(format!("{} is left", path.display()));
                }
            }
        }
    }
}
