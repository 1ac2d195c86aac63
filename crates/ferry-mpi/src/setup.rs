//! The job as rank 0 tells it to the others before it begins.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ferry_cluster::{Settings, Text};
use ferry_tree::compare::Options;
use serde::{Deserialize, Serialize};

/// Folder in which `ferry sync` keeps what it has deleted, at the top of both sides.
const TRASH: &[u8] = b".ferry-trash";
/// File that marks a trash.
pub(crate) const MARK: &[u8] = b".ferry-is-trash";

/// Task of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Task {
    Copy {
        existing: Existing,
        /// Inode numbers of the source folder and of the target folder.
        identity: (u64, u64),
        options: CopyOptions,
    },
    Compare(Options),
}

/// Options of a copy, as each rank reads them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum CopyOptions {
    /// Arguments of `ferry cp`; `records` is set if rank 0 writes failures to a file.
    Cp { arguments: Vec<Text>, records: bool },
    /// Everything is kept, as by `cp -a`. `fsync` is set if what a lease has written is made durable before its report.
    Sync { fsync: bool },
}

/// Fate of existing entries of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Existing {
    /// They are replaced. In a job that goes on, complete ones stay.
    Replaced,
    /// They stay, with their attributes.
    Kept,
}

impl Existing {
    /// Returns the name of the task, by which its journal is known.
    pub(crate) fn task(self) -> &'static str {
        match self {
            Self::Replaced => "cp",
            Self::Kept => "sync",
        }
    }
}

/// A job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    source: Text,
    target: Text,
    pub(crate) task: Task,
    /// Sizes by which work is divided.
    pub(crate) settings: Settings,
    /// Number of ranks. That of the settings is the one that an interrupted job has begun with.
    pub(crate) ranks: u32,
    /// Set if `ferry cp`'s rules decide about existing targets, also in a job that goes on.
    pub(crate) by_rules: bool,
    /// Set if an interrupted job goes on: what it has completed stays.
    pub(crate) is_resumed: bool,
    /// Set if the target was made for this job.
    pub(crate) is_new: bool,
    /// Set if ranks measure spans for a recording.
    pub(crate) is_recorded: bool,
}

impl Setup {
    pub(crate) fn new(source: &Path, target: &Path, task: Task, settings: Settings) -> Self {
        Self {
            source: text(source),
            target: text(target),
            task,
            settings,
            ranks: settings.ranks,
            by_rules: false,
            is_resumed: false,
            is_new: false,
            is_recorded: false,
        }
    }

    fn existing(&self) -> Existing {
        match self.task {
            Task::Copy { existing, .. } => existing,
            Task::Compare(_) => Existing::Kept,
        }
    }

    /// Returns true if an existing target may stay.
    pub(crate) fn compares(&self) -> bool {
        self.is_resumed || self.keeps_existing()
    }

    /// Returns true if existing entries of the target stay.
    pub(crate) fn keeps_existing(&self) -> bool {
        self.existing() == Existing::Kept
    }

    /// Returns true if files with several names are left to `ferry sync`: one of their names may exist.
    pub(crate) fn leaves_linked(&self) -> bool {
        self.keeps_existing() && !self.is_new
    }

    /// Returns true if the entry of this name in this folder takes no part in a sync: a trash, or the mark of one.
    pub(crate) fn leaves_out(&self, folder: &Text, name: &[u8]) -> bool {
        self.keeps_existing() && folder.is_empty() && [TRASH, MARK].contains(&name)
    }

    pub(crate) fn source(&self) -> PathBuf {
        path(&self.source)
    }

    pub(crate) fn target(&self) -> PathBuf {
        path(&self.target)
    }
}

/// Returns the name of this machine.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

/// Returns a path or an argument as text.
pub(crate) fn text(path: impl AsRef<OsStr>) -> Text {
    Text::from(path.as_ref().as_bytes())
}

/// Returns the arguments that were passed as text.
pub(crate) fn words(arguments: &[Text]) -> Vec<OsString> {
    arguments.iter().map(|word| OsStr::from_bytes(word.as_bytes()).to_owned()).collect()
}

fn path(text: &Text) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.as_bytes()))
}
