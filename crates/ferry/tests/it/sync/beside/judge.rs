//! Differences between the target of rsync and that of ferry, apart from those that docs/sync.md names.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::path::Path;

use ferry_tree::Snapshot;
use ferry_tree::attributes::{EntryKind, Inode};
use ferry_tree::capture::{Facts, capture};
use ferry_tree::compare::{Difference, Mismatch, Options, snapshots};

use super::super::compared;
use super::shown::Actions;

/// The source, the target before the runs, and which entries take part.
pub(super) struct Judge {
    source: Snapshot,
    before: Snapshot,
    /// Entries that rsync copies into an empty folder with the same selection.
    part: BTreeSet<Vec<u8>>,
    options: Given,
}

/// Options with which the programs differ.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) newer: bool,
    pub(super) list: bool,
    /// Patterns for folders, which protect both sides.
    pub(super) folder_patterns: bool,
}

/// Results of both programs on equal targets.
struct Made<'a> {
    judge: &'a Judge,
    ours: Snapshot,
    theirs: Snapshot,
    /// Properties in which ferry's target is not as the source, and not as it was before.
    unlike_source: Vec<Difference>,
    unlike_before: Vec<Difference>,
}

impl Judge {
    pub(super) fn new(pair: &Path, part: BTreeSet<Vec<u8>>, options: Given) -> Self {
        let [source, before] = ["source", "target"].map(|name| capture(&pair.join(name)).unwrap());
        Self { source, before, part, options }
    }

    /// Returns the differences between the targets of both programs, as lines.
    pub(super) fn differences(&self, pair: &Path) -> Vec<String> {
        let [ours, theirs] = ["target", "other"].map(|name| {
            let mut found = capture(&pair.join(name)).unwrap();
            found.entries.retain(|path, _| !path.starts_with(b".ferry-trash"));
            found
        });
        let options = Options { links: false, ..compared() };
        let [unlike_source, unlike_before] =
            [&self.source, &self.before].map(|tree| snapshots(tree, &ours, &options));
        let made = Made { judge: self, ours, theirs, unlike_source, unlike_before };
        let found = snapshots(&made.theirs, &made.ours, &options);
        let reported = found.iter().filter(|difference| !made.is_known(difference)).map(ToString::to_string);
        reported.chain(made.links()).collect()
    }

    /// Returns the files whose content has left their names, and that a program has not kept.
    pub(super) fn lost(&self, pair: &Path) -> Vec<String> {
        let read = |root: &Path| capture(root).unwrap_or_default();
        let trash = std::fs::read_dir(pair.join("target/.ferry-trash")).ok().and_then(|mut all| all.next());
        let kept = [
            trash.map_or_else(Snapshot::default, |trash| read(&trash.unwrap().path())),
            read(&pair.join("saved")),
        ];
        let after = [read(&pair.join("target")), read(&pair.join("other"))];
        let hash = |tree: &Snapshot, path: &Vec<u8>| tree.entries.get(path).and_then(|facts| facts.hash);
        let mut lost = Vec::new();
        for path in self.before.entries.keys().filter(|path| hash(&self.before, path).is_some()) {
            for (who, (after, kept)) in ["ferry", "rsync"].iter().zip(after.iter().zip(&kept)) {
                let wanted = hash(&self.before, path);
                if hash(after, path) != wanted && hash(kept, path) != wanted {
                    lost.push(format!("{who} has not kept {}", path.escape_ascii()));
                }
            }
        }
        lost
    }

    /// Returns the names of which only one program announces something. Of a file with several names, each program
    /// announces other ones; that of a list changes SOURCE's own attributes in ferry alone.
    pub(super) fn announced(&self, ours: &Actions, theirs: &Actions) -> Vec<String> {
        let has_names = |tree: &Snapshot, path: &[u8]| {
            tree.entries.get(path).is_some_and(|facts| {
                facts.attributes.kind != EntryKind::Directory && facts.attributes.link_count > 1
            })
        };
        let is_told = |path: &[u8]| {
            let is_root = path.is_empty() && self.options.list;
            !is_root
                && !self.is_protected(path)
                && !has_names(&self.source, path)
                && !has_names(&self.before, path)
        };
        theirs.differences(ours, is_told)
    }

    /// Returns true if an entry of the target takes no part, or is kept because it is newer.
    fn stays(&self, path: &[u8]) -> bool {
        !self.part.contains(path) || self.is_newer(path)
    }

    /// Returns true if a pattern for folders may match one side alone, of the entry or of a folder above it.
    fn is_protected(&self, path: &[u8]) -> bool {
        let is_folder = |tree: &Snapshot, path: &[u8]| {
            tree.entries.get(path).map(|facts| facts.attributes.kind == EntryKind::Directory)
        };
        let differs = |path: &[u8]| {
            let sides = [&self.source, &self.before].map(|tree| is_folder(tree, path));
            sides[0].is_some() && sides[1].is_some() && sides[0] != sides[1]
        };
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        self.options.folder_patterns && ends.chain([path.len()]).any(|end| differs(&path[..end]))
    }

    fn is_newer(&self, path: &[u8]) -> bool {
        let file = |tree: &Snapshot| {
            let facts = tree.entries.get(path)?;
            (facts.attributes.kind == EntryKind::File).then_some(facts.attributes.mtime)
        };
        self.options.newer && file(&self.source).is_some_and(|time| file(&self.before) > Some(time))
    }
}

impl Made<'_> {
    /// Returns true for a difference that docs/sync.md names. In all but the first two ferry's target is right.
    fn is_known(&self, found: &Difference) -> bool {
        let is_time = matches!(found.mismatch, Mismatch::Mtime { .. });
        let is_of_target = is_time && !self.judge.source.entries.contains_key(&found.path);
        if is_of_target || self.judge.is_protected(&found.path) {
            return true;
        }
        let is_acl = matches!(found.mismatch, Mismatch::Acl { default: false, .. });
        // rsync makes a mount point after it has set the time of the folder that it is in.
        let is_mount = is_time && (found.path.is_empty() || found.path == b"mounted");
        let is_root_of_list = found.path.is_empty() && self.judge.options.list;
        let is_known = is_acl
            || is_mount
            || is_root_of_list
            || self.judge.is_newer(&found.path)
            || self.has_foreign_names(&found.path);
        is_known && self.is_right(found)
    }

    /// Returns true if ferry's target is as the source in that property, or as before if the entry takes no part.
    fn is_right(&self, found: &Difference) -> bool {
        let is_root = found.path.is_empty() || found.path == b"mounted";
        let stays = !is_root && self.judge.stays(&found.path);
        let wrong = if stays { &self.unlike_before } else { &self.unlike_source };
        !wrong.iter().any(|wrong| {
            wrong.path == found.path && discriminant(&wrong.mismatch) == discriminant(&found.mismatch)
        })
    }

    /// Returns true if a name was linked to another one that the source has apart, or lacks: rsync has left both linked,
    /// or has set attributes of the other name before it replaced it.
    fn has_foreign_names(&self, path: &[u8]) -> bool {
        let is_foreign = |tree: &Snapshot| {
            let mut names = tree.entries.keys().filter(|name| is_linked(tree, path, name));
            names.any(|name| name != path && !is_linked(&self.judge.source, path, name))
        };
        is_foreign(&self.judge.before) || is_foreign(&self.theirs)
    }

    /// Returns names that are linked by one program only. rsync leaves links between names that its source has apart.
    fn links(&self) -> Vec<String> {
        let both: BTreeSet<_> = pairs(&self.ours).union(&pairs(&self.theirs)).cloned().collect();
        both.iter().filter_map(|(one, other)| self.links_of(one, other)).collect()
    }

    fn links_of(&self, one: &[u8], other: &[u8]) -> Option<String> {
        let is_there = |tree: &Snapshot| [one, other].iter().all(|&path| tree.entries.contains_key(path));
        let is_protected = [one, other].iter().any(|path| self.judge.is_protected(path));
        if is_protected || !is_there(&self.ours) || !is_there(&self.theirs) {
            return None;
        }
        let [source, ours, theirs] =
            [&self.judge.source, &self.ours, &self.theirs].map(|tree: &Snapshot| is_linked(tree, one, other));
        let takes_part = !self.judge.stays(one) && !self.judge.stays(other);
        // rsync also replaces a newer file, by a link to another name of its source.
        let is_newer = self.judge.is_newer(one) || self.judge.is_newer(other);
        let has_stayed = is_newer && is_linked(&self.judge.before, one, other);
        let is_right = ours == theirs || theirs && (!source || !takes_part) || ours && has_stayed;
        let (one, other) = (one.escape_ascii(), other.escape_ascii());
        (!is_right)
            .then(|| format!("{one} and {other}: linked source {source}, rsync {theirs}, ferry {ours}"))
    }
}

/// Pairs of names of one file.
fn pairs(tree: &Snapshot) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let mut files: BTreeMap<Inode, Vec<&Vec<u8>>> = BTreeMap::new();
    let is_file =
        |facts: &Facts| facts.attributes.kind != EntryKind::Directory && facts.attributes.link_count > 1;
    for (path, facts) in tree.entries.iter().filter(|(_, facts)| is_file(facts)) {
        files.entry(facts.attributes.inode).or_default().push(path);
    }
    let mut pairs = BTreeSet::new();
    for names in files.values() {
        for (at, one) in names.iter().enumerate() {
            pairs.extend(names[at + 1..].iter().map(|&other| ((*one).clone(), other.clone())));
        }
    }
    pairs
}

/// Returns true if both names are there, and lead to one file.
fn is_linked(tree: &Snapshot, one: &[u8], other: &[u8]) -> bool {
    let inode = |path| {
        let facts = tree.entries.get(path)?;
        (facts.attributes.kind != EntryKind::Directory).then_some(facts.attributes.inode)
    };
    inode(one).is_some_and(|found| inode(other) == Some(found))
}
