//! Why an experiment ended early, and what that means for the process's exit code.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ferry_tree::quote::Quoted;
use rustix::io::Errno;

use crate::needs::Unmet;

/// Why nothing, or not all, was measured.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request makes no sense.
    #[error("{0}")]
    Misuse(String),
    /// Something that the experiment needs is not here. Nothing was written.
    #[error(transparent)]
    Unmet(#[from] Unmet),
    /// A call on a file failed.
    #[error("cannot {verb} {}: {why}", quoted(.path.as_os_str()))]
    File {
        /// What was being done: `create`.
        verb: &'static str,
        /// To what.
        path: PathBuf,
        /// The kernel's answer.
        why: String,
    },
    /// A tree could not be made, compared or removed.
    #[error(transparent)]
    Tree(#[from] ferry_tree::Error),
    /// One run failed; the others go on without its cell.
    #[error("{0}")]
    Run(String),
    /// What was written is not what it should be; the others go on without its cell.
    #[error("{0}")]
    Differs(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code: 1 failed, 2 wrong use, 130 interrupted.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Misuse(_) => 2,
            Self::Interrupted => 130,
            Self::Unmet(_) | Self::File { .. } | Self::Tree(_) | Self::Run(_) | Self::Differs(_) => 1,
        }
    }

    /// A call on `path` that failed.
    #[must_use]
    pub fn file(verb: &'static str, path: &Path, error: &std::io::Error) -> Self {
        Self::File { verb, path: path.to_owned(), why: reason(error) }
    }
}

/// The C library's words, as other programs print them.
pub(crate) fn reason(error: &std::io::Error) -> String {
    Errno::from_io_error(error)
        .map_or_else(|| error.to_string(), |errno| ferry_io::Cause::Errno(errno).to_string())
}

/// A name in quotes, in one line.
pub(crate) fn quoted(name: &OsStr) -> Quoted<'_> {
    Quoted(name.as_encoded_bytes())
}
