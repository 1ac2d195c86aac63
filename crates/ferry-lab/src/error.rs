//! Errors that end an experiment, and their exit codes.

use std::path::{Path, PathBuf};

use crate::message::{quoted, reason};
use crate::needs::Unmet;

/// Reason why an experiment measured nothing, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A wrong request.
    #[error("{0}")]
    Misuse(String),
    /// An unmet requirement. Nothing was written.
    #[error(transparent)]
    Unmet(#[from] Unmet),
    /// A call on a file failed.
    #[error("cannot {verb} {}: {why}", quoted(.path.as_os_str()))]
    File {
        /// Verb for the message: `create`.
        verb: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The error's text.
        why: String,
    },
    /// A tree could not be made, compared or removed.
    #[error(transparent)]
    Tree(#[from] ferry_tree::Error),
    /// A run failed; the other cells are still measured.
    #[error("{0}")]
    Run(String),
    /// A copy differs from its source; the other cells are still measured.
    #[error("{0}")]
    Differs(String),
    /// A run failed, so that there is nothing to compare the other cells with.
    #[error("{0}")]
    Aborted(String),
    /// Interrupted by a signal.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Returns the exit code: 1 failed, 2 wrong use, 130 interrupted.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Misuse(_) => 2,
            Self::Interrupted => 130,
            Self::Unmet(_)
            | Self::File { .. }
            | Self::Tree(_)
            | Self::Run(_)
            | Self::Differs(_)
            | Self::Aborted(_) => 1,
        }
    }

    /// A failed call on `path`.
    #[must_use]
    pub fn file(verb: &'static str, path: &Path, error: &std::io::Error) -> Self {
        Self::File { verb, path: path.to_owned(), why: reason(error) }
    }
}
