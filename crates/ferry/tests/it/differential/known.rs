//! Intended differences; `docs/cp-differences.md` gives the reasons under the same names.

use ferry_tree::attributes::{EntryKind, Time};
use ferry_tree::compare::{Difference, Holes, Mismatch, Options, snapshots};

use super::Outcome;
use super::scenes::{NOBODY, Scene};
use super::told::{Told, beneath, joined, normal, parent};
use crate::scene::OLD;

/// Results of both programs in one scene.
pub(crate) struct Compared<'a> {
    scene: &'a Scene,
    expected: &'a Outcome,
    actual: &'a Outcome,
    /// Parsed messages of each.
    expected_said: Vec<Told>,
    actual_said: Vec<Told>,
    /// Paths in the target that are not compared, including everything below.
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

    /// Differences without a known reason.
    pub(crate) fn unexplained(&self) -> Vec<String> {
        let mut found = self.messages();
        if self.expected.code != self.actual.code && !(found.is_empty() && self.is_only_here()) {
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
        lacking
            .retain(|told| !self.is_spared(told) && !self.is_made_before(told) && !self.is_of_device(told));
        added.retain(|told| {
            !self.is_spared(told) && !self.is_told_in_addition(told) && !self.is_repeated(told)
        });
        lacking.retain(|lacking| {
            let other = added.iter().position(|added| self.is_other_fault(lacking, added));
            other.map(|index| added.remove(index)).is_none()
        });
        added.retain(|told| !self.is_same_by_link(told));
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

    /// *Into itself* and *Parents made before*: one program copied more.
    fn spared(&self) -> Vec<String> {
        let mut spared = Vec::new();
        for told in self.expected_said.iter().chain(&self.actual_said) {
            if told.says == "cannot copy a directory, %, into itself, %" {
                spared.push(told.names[1].clone());
            }
        }
        let made_before = self.expected_said.iter().filter(|told| self.is_made_before(told));
        spared.extend(made_before.map(|told| told.names[0].clone()));
        let refused = self.expected_said.iter().filter(|told| self.is_refused_for_dot(told));
        spared.extend(refused.map(|told| told.names[0].clone()));
        let first_here = self.actual_said.iter().filter(|told| self.is_first_here(told));
        spared.extend(first_here.map(|told| told.names[0].clone()));
        spared
    }

    fn is_spared_path(&self, path: &str) -> bool {
        self.spared.iter().any(|spared| beneath(path, spared).is_some())
    }

    fn is_spared(&self, told: &Told) -> bool {
        told.names.iter().any(|name| {
            self.is_spared_path(name) || self.copies(name).iter().any(|copy| self.is_spared_path(copy))
        })
    }

    /// *First of several names*: GNU cp replaced it by a link to another name.
    fn is_first_here(&self, told: &Told) -> bool {
        let name = told.names.first().map_or("", String::as_str).as_bytes();
        let is_linked = self.expected.tree.entries.get(name).is_some_and(|it| it.attributes.link_count > 1);
        told.says == "cannot create regular file %: Permission denied" && is_linked && self.is_as_before(name)
    }

    /// *Repeated*: GNU cp retries a failure, and fails again.
    fn is_repeated(&self, told: &Told) -> bool {
        let failed = "cannot overwrite non-directory % with directory %";
        let is_failed = |said: &Told| said.says == failed && said.names[1] == told.names[0];
        told.says == "warning: source directory % specified more than once"
            && self.expected_said.iter().any(is_failed)
    }

    /// *Parents made before*: `--parents` with a directory already made for another operand.
    fn is_made_before(&self, told: &Told) -> bool {
        told.says == "cannot create directory %: File exists"
            && self.scene.arguments.iter().any(|word| word == "--parents")
            && !self.actual_said.iter().any(|said| said.is_same(told))
            && !self.actual.before.entries.contains_key(told.names[0].as_bytes())
    }

    /// *Devices*: attributes are not set on a device, so this can't fail.
    fn is_of_device(&self, told: &Told) -> bool {
        told.says == "preserving times for %: Operation not permitted"
            && self.was_kind(told.names[0].as_bytes(), EntryKind::CharacterDevice)
    }

    /// *The same by a link*: GNU cp considers names equal if the directory's name is a link. *The link
    /// itself*: with `-u` it finds nothing to do.
    fn is_same_by_link(&self, told: &Told) -> bool {
        let was_link = |path: &str| self.was_kind(path.as_bytes(), EntryKind::Symlink);
        told.says == "% and % are the same file"
            && (was_link(parent(&told.names[0]))
                || was_link(&told.names[1]) && self.scene.arguments.iter().any(|word| word == "-u"))
    }

    /// Returns true if only one program failed, and only in a permitted way.
    fn is_only_here(&self) -> bool {
        let may_fail = |told: &Told| {
            self.is_made_before(told) || self.is_of_device(told) || self.is_refused_for_dot(told)
        };
        match self.actual.code {
            Some(0) => self.actual_said.is_empty() && self.expected_said.iter().all(may_fail),
            _ => self.actual_said.iter().all(|told| {
                let is_asked = self.expected_said.iter().any(|asked| is_in_vain(asked, told));
                is_asked || self.expected_said.is_empty() && self.is_same_by_link(told)
            }),
        }
    }

    /// *Printed when done*: `-v` does not print failed entries.
    fn was_only_tried(&self, told: &Told) -> bool {
        let is_of_copy = told.says.starts_with("% -> %") || told.says == "removed %";
        is_of_copy
            && self.actual.code == Some(1)
            && told.names.iter().any(|name| self.is_named(&self.actual_said, name))
            || told.says == "removed %" && self.is_replaced_for_dot(&told.names[0])
    }

    /// *Backup for a dot*: the target is no directory, and makes room for a directory that is named by a dot.
    fn is_replaced_for_dot(&self, path: &str) -> bool {
        let is_dot = |source: &String| matches!(source.rsplit('/').next(), Some("." | ".."));
        path == normal(&self.scene.target)
            && self.scene.sources.iter().any(is_dot)
            && self.is_kind(path.as_bytes(), EntryKind::Directory)
            && !self.was_kind(path.as_bytes(), EntryKind::Directory)
    }

    /// *Backup for a dot*: returns true for that target's backup.
    fn is_backup_for_dot(&self, path: &str) -> bool {
        let target = normal(&self.scene.target);
        path.starts_with(&target) && parent(path) == parent(&target) && self.is_replaced_for_dot(&target)
    }

    /// *Backup for a dot*: returns true if GNU cp has refused such a copy.
    fn is_refused_for_dot(&self, told: &Told) -> bool {
        told.says == "cannot create directory %: File exists" && self.is_replaced_for_dot(&told.names[0])
    }

    /// *Backup for a dot*: returns true for the folder of a target that only ferry has backed up.
    fn is_around_backup_for_dot(&self, path: &str) -> bool {
        path == parent(&normal(&self.scene.target))
            && self.expected_said.iter().any(|told| self.is_refused_for_dot(told))
    }

    /// *Attributes of folders behind links*: returns true for the copy of a folder that was reached through a link.
    fn is_folder_behind_link(&self, path: &str) -> bool {
        let was_linked = |entry: &[u8]| {
            let source = String::from_utf8_lossy(entry);
            self.was_kind(entry, EntryKind::Symlink) && self.copies(&source).iter().any(|copy| copy == path)
        };
        self.is_kind(path.as_bytes(), EntryKind::Directory)
            && self.actual.before.entries.keys().any(|entry| was_linked(entry))
    }

    /// Paths where a source's copy may be.
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
        // *Devices*: only bytes are written to a device.
        if self.was_device(&difference.path)
            && matches!(
                &difference.mismatch,
                Mismatch::Mode { .. } | Mismatch::Owner { .. } | Mismatch::Mtime { .. }
            )
        {
            return true;
        }
        match &difference.mismatch {
            // Times that were not preserved are of today.
            Mismatch::Mtime { source, target } if is_now(source) && is_now(target) => true,
            // *FIFOs that are read* change their times.
            Mismatch::Mtime { source, .. } if is_now(source) && self.is_of_fifo(&path) => true,
            // *Backup for a dot*: the directory in which the backup was made.
            Mismatch::Mtime { target, .. } if is_now(target) && self.is_around_backup_for_dot(&path) => true,
            // *Tried and taken back*: a directory changes when a backup in it is undone.
            Mismatch::Mtime { source, .. } => {
                failed
                    && is_now(source)
                    && self.was_kind(&difference.path, EntryKind::Directory)
                    && self.was_tried_in(&path)
            }
            // *Special bits*: an existing target gets those of the source.
            Mismatch::Mode { source, target } => {
                let was =
                    self.actual.before.entries.get(&difference.path).map_or(0, |facts| facts.attributes.mode);
                let (kept, lost) = (source & !target, target & !source);
                // A sticky bit also stays in a setgid directory.
                let is_sticky = lost == 0o1000 && source & 0o2000 != 0 && self.has_word("--no-preserve=mode");
                // It is also kept on world-writable directories.
                let is_kept_here = lost == 0o1000
                    && self.scene.is_nobody
                    && self.is_kind(&difference.path, EntryKind::Directory);
                kept & !(was & 0o7000) == 0 && (lost == 0 || is_kept_here)
                    || is_sticky
                    || self.has_inherited(&difference.path)
                    || self.was_made_writable(&path)
            }
            // *Every attribute*.
            Mismatch::Xattr { name, source: None, target } => {
                self.scene.is_nobody && self.was_forbidden(&path, name, target.as_deref())
            }
            Mismatch::Acl { .. } if self.was_made_writable(&path) => true,
            // *Attributes of folders behind links*.
            Mismatch::Acl { source: None, target: Some(_), .. } if self.is_folder_behind_link(&path) => true,
            // *Inherited ACLs*: the copy has the source's ACL, or none.
            Mismatch::Acl { source: Some(_), target: None, .. } if self.keeps_mode() => true,
            Mismatch::Owner { .. } | Mismatch::Acl { .. } => self.has_inherited(&difference.path),
            // *A failure costs nothing*: a target is removed only if it can be replaced.
            Mismatch::ExtraInTarget(_) => {
                failed && self.is_as_before(&difference.path) && self.is_named(&self.actual_said, &path)
                    || self.is_backup_for_dot(&path)
            }
            Mismatch::MissingInTarget(_)
            | Mismatch::Kind { .. }
            | Mismatch::Content { .. }
            | Mismatch::Size { .. }
            | Mismatch::Xattr { .. }
            | Mismatch::SymlinkTarget { .. }
            | Mismatch::Device { .. }
            | Mismatch::HardLink { .. }
            | Mismatch::Holes { .. }
            | Mismatch::Unreadable { .. } => false,
        }
    }

    fn has_word(&self, word: &str) -> bool {
        self.scene.arguments.iter().any(|given| given == word)
    }

    fn is_of_fifo(&self, path: &str) -> bool {
        let mut fifos = self.scene.fifos.iter();
        self.has_word("--copy-contents")
            && fifos.any(|fifo| self.copies(&normal(fifo)).iter().any(|copy| copy == path))
    }

    fn keeps_mode(&self) -> bool {
        ["-a", "-p", "--preserve=mode"].iter().any(|word| self.has_word(word))
    }

    fn was_tried_in(&self, folder: &str) -> bool {
        let mut names = self.expected_said.iter().flat_map(|told| &told.names);
        names
            .any(|name| parent(name) == folder || self.copies(name).iter().any(|copy| parent(copy) == folder))
    }

    /// *First of several names*: returns true if a name of the file is in a directory that passes on an ACL
    /// or its group.
    fn has_inherited(&self, path: &[u8]) -> bool {
        let [expected, actual] = [self.expected, self.actual].map(|outcome| &outcome.tree.entries);
        let (Some(expected_file), Some(file)) = (expected.get(path), actual.get(path)) else { return false };
        let inode = file.attributes.inode;
        let gives = |name: &[u8]| {
            let above = &name[..name.iter().rposition(|&byte| byte == b'/').unwrap_or(0)];
            actual.get(above).is_some_and(|folder| {
                let has_default = folder.xattrs.keys().any(|name| name == b"system.posix_acl_default");
                folder.attributes.mode & 0o2000 != 0 || has_default
            })
        };
        expected_file.attributes.link_count > 1
            && file.attributes.link_count == expected_file.attributes.link_count
            && actual.iter().any(|(name, facts)| facts.attributes.inode == inode && gives(name))
    }

    /// Returns true if GNU cp made the file read-only before setting an attribute, and so failed.
    fn was_forbidden(&self, path: &str, name: &[u8], value: Option<&[u8]>) -> bool {
        let before = &self.actual.before.entries;
        let mut sources = before.iter().filter(|(source, _)| {
            self.copies(&String::from_utf8_lossy(source)).iter().any(|copy| copy == path)
        });
        before.contains_key(path.as_bytes())
            && sources.any(|(_, source)| {
                source.attributes.mode & 0o200 == 0 && source.xattrs.get(name).map(Vec::as_slice) == value
            })
    }

    /// *Every attribute*: a new read-only file gets the source's mode again after its attributes, despite
    /// umask and ACL.
    fn was_made_writable(&self, path: &str) -> bool {
        let before = &self.actual.before.entries;
        let mut sources = before.iter().filter(|(source, _)| {
            self.copies(&String::from_utf8_lossy(source)).iter().any(|copy| copy == path)
        });
        let expected = self.expected.tree.entries.get(path.as_bytes());
        let mode = expected.map_or(0, |made| made.attributes.mode);
        self.scene.is_nobody
            && self.scene.arguments.iter().any(|word| word == "--preserve=xattr")
            && !before.contains_key(path.as_bytes())
            && sources.any(|(_, source)| source.attributes.mode & 0o777 == mode && mode & 0o200 == 0)
    }

    fn was_device(&self, path: &[u8]) -> bool {
        let Some(facts) = self.actual.tree.entries.get(path) else { return false };
        let inode = facts.attributes.inode;
        facts.attributes.kind == EntryKind::CharacterDevice
            && self.actual.before.entries.values().any(|was| was.attributes.inode == inode)
    }

    fn is_kind(&self, path: &[u8], kind: EntryKind) -> bool {
        self.actual.tree.entries.get(path).is_some_and(|facts| facts.attributes.kind == kind)
    }

    fn was_kind(&self, path: &[u8], kind: EntryKind) -> bool {
        self.actual.before.entries.get(path).is_some_and(|facts| facts.attributes.kind == kind)
    }

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

    /// *Every attribute*: ferry reports further attributes after the point where GNU cp stops.
    fn is_told_in_addition(&self, told: &Told) -> bool {
        let is_of_mode = told.says == "preserving permissions for %: Operation not permitted"
            || told.says == "setting permissions for %: Operation not permitted";
        let gave_up =
            |said: &Told| said.says.starts_with("preserving times for %") && said.names == told.names;
        is_of_mode && (self.expected_said.iter().any(gave_up) || self.is_anothers(&told.names[0]))
    }

    /// Returns true if another user owns the file: GNU cp exits with an error but prints none.
    fn is_anothers(&self, path: &str) -> bool {
        let was = self.actual.before.entries.get(path.as_bytes());
        self.scene.is_nobody
            && self.expected.code == Some(1)
            && was.is_some_and(|facts| facts.attributes.uid != NOBODY)
    }

    /// Returns true if both programs report different failures of one entry.
    fn is_other_fault(&self, lacking: &Told, added: &Told) -> bool {
        /// *One of two faults*: GNU cp's and ferry's message.
        const FAULTS: [(&str, &str); 11] = [
            ("cannot create directory %: File exists", "cannot backup %: "),
            ("cannot open % for reading: ", "cannot create regular file %: "),
            ("cannot open % for reading: ", "not writing through dangling symlink %"),
            ("cannot remove %: ", "cannot open % for reading: "),
            ("cannot stat %: ", "cannot create hard link % to %: "),
            ("cannot backup %: ", "cannot open % for reading: "),
            ("cannot backup %: ", "cannot create hard link % to %: "),
            ("cannot copy cyclic symbolic link %", "cannot overwrite non-directory % with directory %"),
            ("cannot remove %: ", "cannot create hard link % to %: "),
            ("cannot remove %: ", "%: can make relative symbolic links only in current directory"),
            ("cannot backup %: ", "%: can make relative symbolic links only in current directory"),
        ];
        /// *First of several names*: the name that was copied, so that others link to it.
        const FIRST: [(&str, &str); 3] = [
            ("cannot create regular file %: ", "cannot create hard link % to %: "),
            ("cannot create hard link % to %: ", "cannot create regular file %: "),
            ("cannot create hard link % to %: ", "cannot create hard link % to %: "),
        ];
        let says = |pairs: &[(&str, &str)]| {
            pairs.iter().any(|(gnu, ferry)| lacking.says.starts_with(gnu) && added.says.starts_with(ferry))
        };
        let (Some(of), Some(other)) = (lacking.names.first(), added.names.first()) else { return false };
        let is_of_one = of == other || self.copies(of).contains(other) || self.copies(other).contains(of);
        says(&FAULTS) && is_of_one
            || self.is_folder_in_the_way(lacking, added)
            || says(&FIRST) && of == other && lacking.errno() == added.errno()
            || self.is_lost_link(lacking, added)
            || self.is_no_folder(lacking, added)
            || is_in_vain(lacking, added)
    }

    /// *A folder in the way*: GNU cp tries to create a file there instead of a backup.
    fn is_folder_in_the_way(&self, lacking: &Told, added: &Told) -> bool {
        let is_of_source = lacking.says.starts_with("cannot open % for reading: ")
            && Some(&lacking.names[0]) == added.names.get(1);
        let is_relative_link = lacking.says
            == "%: can make relative symbolic links only in current directory"
            && lacking.names[0] == added.names[0];
        added.says == "cannot overwrite directory % with non-directory %"
            && (is_of_source || is_relative_link)
            || added.says == "cannot overwrite directory % with non-directory %"
                && (lacking.says.starts_with("cannot create ") || lacking.says.starts_with("cannot remove "))
                && ["File exists", "Is a directory", "Permission denied"].contains(&lacking.errno())
                && lacking.names[0] == added.names[0]
    }

    /// *One of two faults*: a dangling link named with a slash.
    fn is_no_folder(&self, lacking: &Told, added: &Told) -> bool {
        ["Not a directory", "File exists"].contains(&lacking.errno())
            && lacking.says.starts_with("cannot create hard link % to %: ")
            && added.says == "cannot create hard link % to %: No such file or directory"
            && lacking.names == added.names
            && self.was_kind(lacking.names[0].as_bytes(), EntryKind::Symlink)
    }

    /// *The link itself*: GNU cp removes or backs up a link copied onto itself.
    fn is_lost_link(&self, lacking: &Told, added: &Told) -> bool {
        let is_lost = lacking.says == "cannot open % for reading: No such file or directory"
            || lacking.says == "cannot read symbolic link %: No such file or directory"
            || lacking.says == "cannot create hard link % to %: No such file or directory";
        is_lost
            && added.says == "% and % are the same file"
            && lacking.names.last() == added.names.first()
            && self.copies(&added.names[0]).contains(&added.names[1])
            && self.was_kind(added.names[1].as_bytes(), EntryKind::Symlink)
    }
}

/// *Asked in vain*: overwriting a directory named by a dot, with `-T`.
fn is_in_vain(lacking: &Told, added: &Told) -> bool {
    lacking.says == "overwrite %? "
        && added.says == "cannot overwrite directory % with non-directory %"
        && lacking.names[0] == added.names[0]
        && lacking.names[0].is_empty()
}

/// Messages of only one program, in both directions.
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
