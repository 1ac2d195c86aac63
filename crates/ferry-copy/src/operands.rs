//! The operands copied so far: none is copied twice, and none overwrites the copy of an earlier one.
//!
//! A run with a single operand keeps none of this.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ferry_io::{FileKind, Stat};

use crate::folder::{Folder, Role};
use crate::identity::{Identity, identity};
use crate::mutex::lock;
use crate::paths::collapsed;
use crate::place::Entry;

/// Operands that are files are synced one by one if there are at most this many.
const FEW_FILES: usize = 16;

/// Facts that make two operands the same.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct OperandKey {
    pub(crate) source: Identity,
    /// The folder of the source; `None` for a folder, which has one name only. Links there are not followed, as by cp.
    pub(crate) above: Option<Identity>,
    pub(crate) name: OsString,
    /// The copy's path beneath its base.
    pub(crate) relative: PathBuf,
}

/// Memory of a run's operands.
#[derive(Default)]
pub(crate) struct Operands {
    /// Set if there are several.
    are_several: AtomicBool,
    /// Set if operands that are files are synced one by one.
    sync_each: AtomicBool,
    keys: Mutex<HashSet<OperandKey>>,
    /// Targets that this run has made for operands, folders aside.
    made: Mutex<HashMap<PathBuf, FileKind>>,
    /// Targets of operands that are folders, by source.
    folders: Mutex<HashMap<Identity, PathBuf>>,
    /// Filesystem of the operand being copied (`-x`).
    root_device: AtomicU64,
}

impl Operands {
    /// Notes how many there are, before the first is copied.
    pub(crate) fn expect(&self, count: usize, fsync: bool) {
        self.are_several.store(count > 1, Ordering::Relaxed);
        self.sync_each.store(fsync && count <= FEW_FILES, Ordering::Relaxed);
    }

    pub(crate) fn are_several(&self) -> bool {
        self.are_several.load(Ordering::Relaxed)
    }

    /// Returns true if a file operand is synced as soon as it is copied: in an existing folder it is the only change.
    pub(crate) fn is_synced_at_once(&self, entry: &Entry<'_>) -> bool {
        entry.folder.role == Role::Root && self.sync_each.load(Ordering::Relaxed)
    }

    /// Notes an operand; returns true if an equal one was noted before.
    pub(crate) fn is_repeated(&self, operand: OperandKey) -> bool {
        !lock(&self.keys).insert(operand)
    }

    fn is_operand(&self, entry: &Entry<'_>) -> bool {
        matches!(entry.folder.role, Role::Root | Role::Way) && self.are_several()
    }

    /// Notes the target made for an entry, if it is an operand.
    pub(crate) fn note_made(&self, entry: &Entry<'_>, kind: FileKind) {
        if self.is_operand(entry) {
            lock(&self.made).insert(collapsed(&entry.target_path()), kind);
        }
    }

    /// Returns the kind of the target that an earlier operand has made in the place of this one's.
    pub(crate) fn made_before(&self, entry: &Entry<'_>) -> Option<FileKind> {
        if !self.is_operand(entry) {
            return None;
        }
        lock(&self.made).get(&collapsed(&entry.target_path())).copied()
    }

    /// Returns the target to which an earlier operand has copied this source folder. Notes an operand for later ones.
    pub(crate) fn copied_folder(&self, folder: &Folder, source: &Stat) -> Option<PathBuf> {
        if !self.are_several() || folder.role == Role::Way {
            return None;
        }
        let mut folders = lock(&self.folders);
        let earlier = folders.get(&identity(source)).cloned();
        if folder.role == Role::Operand && earlier.is_none() {
            folders.insert(identity(source), folder.target_path());
        }
        earlier
    }

    /// Forgets a folder operand whose target was not made: later operands may be copied there.
    pub(crate) fn forget_folder(&self, folder: &Folder) {
        if folder.role == Role::Operand && self.are_several() {
            let target = folder.target_path();
            lock(&self.folders).retain(|_, made| *made != target);
        }
    }

    pub(crate) fn set_root_device(&self, device: u64) {
        self.root_device.store(device, Ordering::Relaxed);
    }

    pub(crate) fn root_device(&self) -> u64 {
        self.root_device.load(Ordering::Relaxed)
    }
}
