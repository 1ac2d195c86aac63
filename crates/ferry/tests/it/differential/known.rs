//! The differences that are meant: each has its reason in `docs/cp-differences.md`, by the same name.

use ferry_tree::attributes::{EntryKind, Time};
use ferry_tree::compare::{Difference, Holes, Options, What, snapshots};

use super::Outcome;
use super::scenes::{NOBODY, Scene};
use super::told::{Told, beneath, joined, normal, parent};
use crate::scene::OLD;

/// What the two programs did with one scene.
pub(crate) struct Compared<'a> {
    scene: &'a Scene,
    expected: &'a Outcome,
    actual: &'a Outcome,
    /// What each said on standard error.
    expected_said: Vec<Told>,
    actual_said: Vec<Told>,
    /// What of the target is not compared, with all that is beneath.
    spared: Vec<String>,
}

impl<'a> Compared<'a> {
    pub(crate) fn new(scene: &'a Scene, expected: &'a Outcome, actual: &'a Outcome) -> Self {
        let said = |outcome: &Outcome| outcome.messages.iter().map(|line| Told::of(line)).collect();
        let mut compared = Self {
            scene,
            expected,
            actual,
            expected_said: said(expected),
            actual_said: said(actual),
            spared: Vec::new(),
        };
        compared.spared = compared.spared();
        compared
    }

    /// What differs for no known reason.
    pub(crate) fn unexplained(&self) -> Vec<String> {
        let mut found = self.messages();
        if self.expected.code != self.actual.code && !(found.is_empty() && self.only_made_before()) {
            found.push(format!("exit code is {:?}, should be {:?}", self.actual.code, self.expected.code));
        }
        found.extend(self.lines());
        let options = Options { threads: 1, holes: Holes::Ignore, ..Options::all() };
        let trees = snapshots(&self.expected.tree, &self.actual.tree, &options);
        found.extend(trees.iter().filter(|difference| !self.is_meant(difference)).map(ToString::to_string));
        found
    }

    fn messages(&self) -> Vec<String> {
        let (mut lacking, mut added) = differing(&self.expected_said, &self.actual_said);
        lacking.retain(|told| !self.is_spared(told) && !self.is_made_before(told));
        added.retain(|told| !self.is_spared(told) && !self.is_told_in_addition(told));
        lacking.retain(|lacking| {
            let other = added.iter().position(|added| self.is_other_fault(lacking, added));
            other.map(|index| added.remove(index)).is_none()
        });
        let added = added.iter().map(|told| format!("says {}", told.line));
        added.chain(lacking.iter().map(|told| format!("does not say {}", told.line))).collect()
    }

    fn lines(&self) -> Vec<String> {
        let told = |outcome: &Outcome| outcome.lines.iter().map(|line| Told::of(line)).collect::<Vec<_>>();
        let (lacking, added) = differing(&told(self.expected), &told(self.actual));
        let added = added.into_iter().filter(|told| !self.is_spared(told));
        let lacking = lacking.into_iter().filter(|told| !self.is_spared(told) && !self.was_only_tried(told));
        let added = added.map(|told| format!("prints {}", told.line));
        added.chain(lacking.map(|told| format!("does not print {}", told.line))).collect()
    }

    /// *Into itself* and *Parents made before*: where one of the two has copied more.
    fn spared(&self) -> Vec<String> {
        let mut spared = Vec::new();
        for told in self.expected_said.iter().chain(&self.actual_said) {
            if told.says == "cannot copy a directory, %, into itself, %" {
                spared.push(told.names[1].clone());
            }
        }
        let made_before = self.expected_said.iter().filter(|told| self.is_made_before(told));
        spared.extend(made_before.map(|told| told.names[0].clone()));
        spared
    }

    fn is_spared_path(&self, path: &str) -> bool {
        self.spared.iter().any(|spared| beneath(path, spared).is_some())
    }

    /// Whether a line is about what is beneath what is spared.
    fn is_spared(&self, told: &Told) -> bool {
        told.names.iter().any(|name| {
            self.is_spared_path(name) || self.copies(name).iter().any(|copy| self.is_spared_path(copy))
        })
    }

    /// *Parents made before*: `--parents` with a folder that the way to another operand was made through.
    fn is_made_before(&self, told: &Told) -> bool {
        told.says == "cannot create directory %: File exists"
            && self.scene.arguments.iter().any(|word| word == "--parents")
            && !self.actual_said.iter().any(|said| said.is_same(told))
            && !self.actual.before.entries.contains_key(told.names[0].as_bytes())
    }

    /// Whether that is all that went wrong by GNU cp, and nothing by ferry.
    fn only_made_before(&self) -> bool {
        self.actual.code == Some(0)
            && self.actual_said.is_empty()
            && self.expected_said.iter().all(|told| self.is_made_before(told))
    }

    /// *Told when done*: what failed is no line of `-v`.
    fn was_only_tried(&self, told: &Told) -> bool {
        let is_of_copy = told.says.starts_with("% -> %") || told.says == "removed %";
        is_of_copy
            && self.actual.code == Some(1)
            && told.names.iter().any(|name| self.is_named(&self.actual_said, name))
    }

    /// Where a source's copy may be.
    fn copies(&self, source: &str) -> Vec<String> {
        let target = normal(&self.scene.target);
        let mut copies = Vec::new();
        for operand in self.scene.sources.iter().map(|operand| normal(operand)) {
            let Some(rest) = beneath(source, &operand) else { continue };
            let base = operand.rsplit('/').next().unwrap_or_default();
            for above in ["", base, &operand] {
                copies.push(joined(&joined(&target, above), rest));
            }
        }
        copies
    }

    /// Whether something was said of a path, or of what is copied to it.
    fn is_named(&self, said: &[Told], path: &str) -> bool {
        let mut names = said.iter().flat_map(|told| &told.names);
        names.any(|name| name == path || self.copies(name).iter().any(|copy| copy == path))
    }

    fn is_meant(&self, difference: &Difference) -> bool {
        let is_now = |time: &Time| time.seconds > OLD + 100_000;
        let failed = self.actual.code == Some(1);
        let path = String::from_utf8_lossy(&difference.path);
        if self.is_spared_path(&path) {
            return true;
        }
        // *Devices*: what is written into one is not given to it, but for its bytes.
        if self.was_kind(&difference.path, EntryKind::CharacterDevice) {
            return matches!(&difference.what, What::Mode { .. } | What::Owner { .. } | What::Mtime { .. });
        }
        match &difference.what {
            // What was not kept is of today.
            What::Mtime { source, target } if is_now(source) && is_now(target) => true,
            // *Tried and taken back*: a folder in which a backup was made and undone has changed, too.
            What::Mtime { source, .. } => {
                failed
                    && is_now(source)
                    && self.was_kind(&difference.path, EntryKind::Directory)
                    && self.was_tried_in(&path)
            }
            // *Special bits*: an existing target gets the source's, also if that has none.
            What::Mode { source, target } => {
                let was =
                    self.actual.before.entries.get(&difference.path).map_or(0, |facts| facts.attributes.mode);
                let (kept, lost) = (source & !target, target & !source);
                kept & !(was & 0o7000) == 0 && lost == 0
            }
            // *A failure costs nothing*: what is at the target is removed only for what can be made.
            What::ExtraInTarget(_) => {
                failed && self.is_as_before(&difference.path) && self.is_named(&self.actual_said, &path)
            }
            What::MissingInTarget(_)
            | What::Kind { .. }
            | What::Content { .. }
            | What::Size { .. }
            | What::Owner { .. }
            | What::Xattr { .. }
            | What::Acl { .. }
            | What::SymlinkTarget { .. }
            | What::Device { .. }
            | What::HardLink { .. }
            | What::Holes { .. }
            | What::Unreadable { .. } => false,
        }
    }

    /// Whether something was said of what is in a folder.
    fn was_tried_in(&self, folder: &str) -> bool {
        let mut names = self.expected_said.iter().flat_map(|told| &told.names);
        names
            .any(|name| parent(name) == folder || self.copies(name).iter().any(|copy| parent(copy) == folder))
    }

    fn was_kind(&self, path: &[u8], kind: EntryKind) -> bool {
        self.actual.before.entries.get(path).is_some_and(|facts| facts.attributes.kind == kind)
    }

    /// Whether ferry has left something as it was.
    fn is_as_before(&self, path: &[u8]) -> bool {
        let (Some(was), Some(is)) =
            (self.actual.before.entries.get(path), self.actual.tree.entries.get(path))
        else {
            return false;
        };
        let facts = |facts: &ferry_tree::capture::Facts| {
            let attributes = &facts.attributes;
            let owner = (attributes.uid, attributes.gid);
            (
                attributes.kind,
                attributes.mode,
                owner,
                attributes.mtime,
                facts.target.clone(),
                facts.hash,
                facts.xattrs.clone(),
            )
        };
        facts(was) == facts(is)
    }

    /// *Every attribute*: what can't be set of the others is told, too, where GNU cp gave up.
    fn is_told_in_addition(&self, told: &Told) -> bool {
        let is_of_mode = told.says == "preserving permissions for %: Operation not permitted"
            || told.says == "setting permissions for %: Operation not permitted";
        let gave_up =
            |said: &Told| said.says.starts_with("preserving times for %") && said.names == told.names;
        is_of_mode && (self.expected_said.iter().any(gave_up) || self.is_anothers(&told.names[0]))
    }

    /// Whether something belonged to another: that is an error of GNU cp's, but not told.
    fn is_anothers(&self, path: &str) -> bool {
        let was = self.actual.before.entries.get(path.as_bytes());
        self.scene.is_nobody
            && self.expected.code == Some(1)
            && was.is_some_and(|facts| facts.attributes.uid != NOBODY)
    }

    /// Whether of one entry another thing is told than by GNU cp, as there are two.
    fn is_other_fault(&self, lacking: &Told, added: &Told) -> bool {
        /// *One of two faults*, by GNU cp and by ferry: of a source and of its copy, or of one of them.
        const FAULTS: [(&str, &str); 5] = [
            ("cannot open % for reading: ", "cannot create regular file %: "),
            ("cannot open % for reading: ", "not writing through dangling symlink %"),
            ("cannot remove %: ", "cannot open % for reading: "),
            ("cannot stat %: ", "cannot create hard link % to %: "),
            ("cannot backup %: ", "%: can make relative symbolic links only in current directory"),
        ];
        /// *First of several names*: which of a file's names was copied, so that the others are linked to it.
        const FIRST: [(&str, &str); 2] = [
            ("cannot create regular file %: ", "cannot create hard link % to %: "),
            ("cannot create hard link % to %: ", "cannot create hard link % to %: "),
        ];
        let says = |pairs: &[(&str, &str)]| {
            pairs.iter().any(|(gnu, ferry)| lacking.says.starts_with(gnu) && added.says.starts_with(ferry))
        };
        let (of, other) = (&lacking.names[0], &added.names[0]);
        let is_of_one = of == other || self.copies(of).contains(other) || self.copies(other).contains(of);
        says(&FAULTS) && is_of_one
            || says(&FIRST) && of == other && lacking.errno() == added.errno()
            || self.is_lost_link(lacking, added)
            || self.is_of_one_way(lacking, added)
    }

    /// *The link itself*: GNU cp removes a link, or backs it up, that it is to copy onto itself by following it.
    fn is_lost_link(&self, lacking: &Told, added: &Told) -> bool {
        let was = self.actual.before.entries.get(added.names[0].as_bytes());
        lacking.says == "cannot open % for reading: No such file or directory"
            && added.says == "% and % are the same file"
            && added.names == [lacking.names[0].clone(), lacking.names[0].clone()]
            && was.is_some_and(|facts| facts.attributes.kind == EntryKind::Symlink)
    }

    /// *One of two faults*, of a way (`--parents`) that is no folder in the target, and not there in the source.
    fn is_of_one_way(&self, lacking: &Told, added: &Told) -> bool {
        let target = normal(&self.scene.target);
        let mut operands = self.scene.sources.iter().map(|operand| normal(operand));
        lacking.says == "% exists but is not a directory"
            && added.says == "failed to get attributes of %: No such file or directory"
            && operands.any(|operand| {
                beneath(&lacking.names[0], &target).is_some_and(|way| beneath(&operand, way).is_some())
                    && beneath(&operand, &added.names[0]).is_some()
            })
    }
}

/// What only one of two says, each way.
fn differing(expected: &[Told], actual: &[Told]) -> (Vec<Told>, Vec<Told>) {
    let mut added = actual.to_vec();
    let mut lacking = Vec::new();
    for told in expected {
        match added.iter().position(|added| added.is_same(told)) {
            Some(index) => drop(added.remove(index)),
            None => lacking.push(told.clone()),
        }
    }
    (lacking, added)
}
