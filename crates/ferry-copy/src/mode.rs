//! Mode of a new target where the source's is not kept: the mode that it is created with, and the one that it gets at
//! its end.
//!
//! It is the source's mode less the umask, or with `--no-preserve=mode` the usual one less the umask. Three reasons
//! keep it from being created so at once:
//!
//! - Others must not write to a folder until it is filled: their files would be taken for part of the target.
//! - A folder with a default ACL gives its own permissions, and the kernel leaves the umask out. With
//!   `--no-preserve=mode` the ACL is removed.
//! - A target that is to have another owner stays private until it has.
//!
//! Each bit is as GNU cp leaves it (guard: `crates/ferry/tests/it/modes.rs`).

use std::sync::atomic::Ordering;

use ferry_io::{File, FileKind};

use crate::acl;
use crate::folder::{Facts, Folder, Role};
use crate::options::Preserve;
use crate::place::{Entry, Subject};
use crate::report::{FailureKind, Verb};
use crate::run::Run;

/// Bit of a mode by which new entries of a folder get its group.
pub(crate) const SET_GROUP_ID: u32 = 0o2000;

/// Modes of a target that this run makes, from its creation to its end.
#[derive(Clone, Copy)]
pub(crate) struct TargetMode {
    pub(crate) kind: FileKind,
    /// The source's mode.
    pub(crate) mode: u32,
    /// Set if its folder may give it an ACL.
    pub(crate) inherits_acl: bool,
    /// Set for a folder on the way to an operand, which cp makes by simpler rules.
    is_way: bool,
    /// Owner's permissions that it has only until it is filled.
    lent: u32,
}

impl TargetMode {
    /// For an entry that is no folder.
    pub(crate) fn entry(entry: Entry<'_>, kind: FileKind, mode: u32) -> Self {
        // Unknown for an operand's folder.
        let inherits_acl = entry.folder.facts().is_none_or(|facts| facts.gives_acl);
        Self { kind, mode, inherits_acl, is_way: false, lent: 0 }
    }

    /// For an existing target whose ACL is known: nothing is inherited.
    pub(crate) fn existing(kind: FileKind, mode: u32, has_acl: bool) -> Self {
        Self { kind, mode, inherits_acl: has_acl, is_way: false, lent: 0 }
    }

    pub(crate) fn folder(folder: &Folder, mode: u32, inherits_acl: bool) -> Self {
        let is_way = folder.role == Role::Way;
        Self { kind: FileKind::Directory, mode, inherits_acl, is_way, lent: 0 }
    }

    /// For a filled folder; `None` unless this run made it, or another process of its job.
    pub(crate) fn of(folder: &Folder, facts: &Facts) -> Option<Self> {
        let made = Self::folder(folder, facts.source.mode, facts.gives_acl);
        (facts.is_new || folder.is_made.load(Ordering::Relaxed)).then_some(Self { lent: facts.lent, ..made })
    }

    /// Mode that it is created with. A folder's owner must be able to fill it.
    pub(crate) fn first_mode(self, preserve: Preserve) -> u32 {
        let is_folder = self.kind == FileKind::Directory;
        match preserve.mode {
            true if is_folder && !self.is_way => 0o700,
            true if !is_folder => 0o600,
            true | false if is_folder => self.wanted(preserve) & !self.held_back(preserve) | 0o700,
            true | false => self.wanted(preserve) & !self.held_back(preserve),
        }
    }

    /// Mode that it is to have, before the umask.
    fn wanted(self, preserve: Preserve) -> u32 {
        // Setuid and sticky bits mean nothing on special files; cp keeps them.
        match (self.kind, preserve.refuse_mode) {
            (FileKind::Directory, true) if self.is_way => 0o777,
            (FileKind::Directory, true) => self.mode & 0o1000 | 0o777,
            (FileKind::Directory, false) => self.mode & 0o1777,
            (FileKind::Regular, true) => 0o666,
            (FileKind::Regular, false) => self.mode & 0o777,
            (FileKind::Socket, true) => self.mode & 0o7000 | 0o777,
            (_, true) => self.mode & 0o7000 | 0o666,
            (_, false) => self.mode,
        }
    }

    /// Bits that it lacks at first.
    fn held_back(self, preserve: Preserve) -> u32 {
        if preserve.ownership && self.is_way {
            self.mode & 0o077
        } else if preserve.ownership {
            0o077
        } else if self.kind == FileKind::Directory && (preserve.mode || !self.is_way) {
            0o022
        } else {
            0
        }
    }

    fn loses_acl(self, preserve: Preserve) -> bool {
        preserve.refuse_mode && self.inherits_acl && !self.is_way
    }

    /// Bits that are to be added and removed at its end.
    fn wrong_bits(self, run: &Run) -> (u32, u32) {
        let preserve = run.options.preserve;
        let wanted = self.wanted(preserve);
        let held_back = wanted & self.held_back(preserve);
        let lacking = if held_back == 0 { 0 } else { held_back & !run.user.umask };
        let excessive = if self.kind == FileKind::Directory { !wanted & 0o700 | self.lent } else { 0 };
        (lacking, excessive)
    }

    /// Returns true if [`Self::settle`] has anything to do.
    pub(crate) fn is_unsettled(self, run: &Run) -> bool {
        let preserve = run.options.preserve;
        !preserve.mode && (self.loses_acl(preserve) || self.wrong_bits(run) != (0, 0))
    }

    /// Gives it its final mode, if the source's is not kept and creating it has not done so.
    ///
    /// # Errors
    /// Only if the run has been cancelled; a mode that can't be set is reported.
    pub(crate) async fn settle(
        self,
        run: &Run,
        subject: Subject<'_>,
        file: &File,
    ) -> Result<(), FailureKind> {
        let preserve = run.options.preserve;
        if preserve.mode || self.kind == FileKind::Symlink {
            return Ok(());
        }
        if self.loses_acl(preserve) {
            let set = acl::set_minimal(file, self.wanted(preserve) & !run.user.umask).await;
            // A filesystem without ACLs has none to lose.
            if !set.is_err_and(|error| error.is(ferry_io::Errno::OPNOTSUPP)) {
                return run.note_attribute(subject, Verb::SetAcl, set).map(drop);
            }
        }
        let (lacking, excessive) = self.wrong_bits(run);
        if (lacking, excessive) == (0, 0) {
            return Ok(());
        }
        let mode = if self.kind == FileKind::Regular {
            // The mode also replaces the owner's permissions from the folder's ACL.
            Ok(self.wanted(preserve) & !run.user.umask)
        } else {
            file.stat().await.map(|made| (made.mode | lacking) & !excessive)
        };
        let set = match mode {
            Ok(mode) => file.set_mode(mode).await,
            Err(error) => Err(error),
        };
        run.note_attribute(subject, Verb::SetMode, set).map(drop)
    }
}

#[cfg(test)]
mod tests;
