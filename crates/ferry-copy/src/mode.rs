//! The mode of what this run makes where the source's is not kept: with which it begins, and what is put right at its
//! end.
//!
//! It is the source's less the umask, or with `--no-preserve=mode` the usual one less the umask. Three things stand
//! between that and simply creating it so. Nobody else writes to a folder until it is filled, for what they put there
//! would be taken for part of the target. A folder with a default ACL gives its own permissions, and the kernel leaves
//! the umask out: with `--no-preserve=mode` the ACL goes. And what is to have another owner is nobody else's business
//! until it has. Each bit is as GNU cp leaves it (guard: `crates/ferry/tests/it/modes.rs`).

use ferry_io::{Errno, File, FileKind};

use crate::copier::{Copier, Place};
use crate::folder::{Facts, Folder, Role};
use crate::meta;
use crate::options::Preserve;
use crate::report::{FailureKind, Verb};

/// Something that this run makes.
#[derive(Clone, Copy)]
pub(crate) struct New {
    pub(crate) kind: FileKind,
    /// The source's mode.
    pub(crate) mode: u32,
    /// Whether its folder may give it an ACL.
    pub(crate) inherits_acl: bool,
    /// Whether it is a folder on the way to an operand, which cp makes by simpler rules.
    is_way: bool,
    /// What its owner may do with it only until it is filled.
    lent: u32,
}

impl New {
    /// What is no folder.
    pub(crate) fn entry(place: &Place<'_>, kind: FileKind, mode: u32) -> Self {
        Self { kind, mode, inherits_acl: meta::gives_acl(place), is_way: false, lent: 0 }
    }

    pub(crate) fn folder(folder: &Folder, mode: u32, inherits_acl: bool) -> Self {
        let is_way = folder.role == Role::Way;
        Self { kind: FileKind::Directory, mode, inherits_acl, is_way, lent: 0 }
    }

    /// A folder, if this run made it.
    pub(crate) fn of(folder: &Folder, facts: &Facts) -> Option<Self> {
        let made = Self::folder(folder, facts.source.mode, facts.gives_acl);
        facts.is_new.then_some(Self { lent: facts.lent, ..made })
    }

    /// The mode with which it is created. A folder's owner must be able to fill it.
    pub(crate) fn first_mode(self, preserve: Preserve) -> u32 {
        let is_folder = self.kind == FileKind::Directory;
        match preserve.mode {
            true if is_folder && !self.is_way => 0o700,
            true if !is_folder => 0o600,
            true | false if is_folder => self.wanted(preserve) & !self.held_back(preserve) | 0o700,
            true | false => self.wanted(preserve) & !self.held_back(preserve),
        }
    }

    /// The mode that it is to have, before the umask.
    fn wanted(self, preserve: Preserve) -> u32 {
        // Setuid and sticky bits mean nothing on special files, and cp keeps them.
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

    /// The bits that it does without at first.
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

    /// The bits that it lacks in the end, and those that it has too many.
    fn wrong_bits(self, copier: &Copier) -> (u32, u32) {
        let preserve = copier.options.preserve;
        let wanted = self.wanted(preserve);
        let held_back = wanted & self.held_back(preserve);
        let lacking = if held_back == 0 { 0 } else { held_back & !copier.umask };
        let excessive = if self.kind == FileKind::Directory { !wanted & 0o700 | self.lent } else { 0 };
        (lacking, excessive)
    }

    /// Whether [`Self::settle`] has anything to do.
    pub(crate) fn is_unsettled(self, copier: &Copier) -> bool {
        let preserve = copier.options.preserve;
        !preserve.mode && (self.loses_acl(preserve) || self.wrong_bits(copier) != (0, 0))
    }

    /// Gives it its mode, where the source's is not kept and creating it has not done so.
    ///
    /// # Errors
    /// Only if the run has been cancelled; what can't be set is told.
    pub(crate) async fn settle(
        self,
        copier: &Copier,
        place: &Place<'_>,
        subject: &File,
    ) -> Result<(), FailureKind> {
        let preserve = copier.options.preserve;
        if preserve.mode || self.kind == FileKind::Symlink {
            return Ok(());
        }
        if self.loses_acl(preserve) {
            let set = meta::set_minimal_acl(subject, self.wanted(preserve) & !copier.umask).await;
            // Without ACLs there is none to lose.
            if !set.is_err_and(|error| error.is(Errno::OPNOTSUPP)) {
                return meta::told(copier, place, Verb::SetAcl, set).map(drop);
            }
        }
        let (lacking, excessive) = self.wrong_bits(copier);
        if (lacking, excessive) == (0, 0) {
            return Ok(());
        }
        let mode = if self.kind == FileKind::Regular {
            // Whatever the folder's ACL says of the owner.
            Ok(self.wanted(preserve) & !copier.umask)
        } else {
            subject.stat().await.map(|made| (made.mode | lacking) & !excessive)
        };
        let set = match mode {
            Ok(mode) => subject.set_mode(mode).await,
            Err(error) => Err(error),
        };
        meta::told(copier, place, Verb::SetMode, set).map(drop)
    }
}

#[cfg(test)]
mod tests;
