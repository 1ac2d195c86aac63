//! The task of `ferry sync`: make one tree equal to another, apply a plan, or undo a trash.

use std::path::{Path, PathBuf};

/// The task of a command line.
#[derive(Debug)]
pub(crate) enum Task {
    /// Two trees, what becomes of the actions, and the list of the names that take part.
    Sync(Box<ferry_sync::Request>, Output, Option<FilesFrom>),
    /// A plan to be performed.
    Apply(PathBuf),
    /// A trash, and the target that its entries go back to.
    Undo(PathBuf, PathBuf),
}

impl Task {
    /// Files on the devices that it reads from and writes to.
    pub(crate) fn places(&self) -> [&Path; 2] {
        match self {
            Self::Sync(request, ..) => [&request.source, &request.target],
            // Its trees are not known yet.
            Self::Apply(plan) => [plan, plan],
            Self::Undo(trash, target) => [trash, target],
        }
    }
}

/// A file of names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilesFrom {
    /// `-` for standard input.
    pub(crate) path: PathBuf,
    /// Byte that ends a name.
    pub(crate) end: u8,
}

/// Use of the actions: performed, printed or written to a plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Perform,
    Show,
    Plan(PathBuf),
}
