//! `--manifest`: the file of hashes, which gets its name when it is complete.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::Algorithm;
use ferry_sync::manifest::{Format, Manifest};

use crate::arguments::Usage;
use crate::complete_file::CompleteFile;
use crate::output::describe;
use crate::quote::quote;

/// Values of `--hash`.
pub(crate) const ALGORITHMS: [(&str, Algorithm); 2] =
    [("blake3", Algorithm::Blake3), ("sha256", Algorithm::Sha256)];

/// A manifest that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) path: PathBuf,
    pub(crate) algorithm: Algorithm,
}

impl Wanted {
    /// Combines `--manifest` and `--hash`.
    pub(crate) fn of(path: Option<PathBuf>, algorithm: Option<Algorithm>) -> Result<Option<Self>, Usage> {
        match (path, algorithm) {
            (Some(path), algorithm) => Ok(Some(Self { path, algorithm: algorithm.unwrap_or_default() })),
            (None, Some(_)) => Err(Usage::with_hint("--hash needs --manifest")),
            (None, None) => Ok(None),
        }
    }
}

/// A manifest that is being collected.
pub(crate) struct Collected {
    pub(crate) manifest: Arc<Manifest>,
    path: PathBuf,
    file: CompleteFile,
}

impl Collected {
    /// Creates the file, without its name.
    ///
    /// # Errors
    /// Those of creating it.
    pub(crate) fn begin(wanted: &Wanted) -> io::Result<Self> {
        let file = CompleteFile::create(&wanted.path)?;
        Ok(Self { manifest: Arc::new(Manifest::new(wanted.algorithm)), path: wanted.path.clone(), file })
    }

    fn write(self) -> io::Result<()> {
        let mut out = BufWriter::new(self.file.file()?);
        self.manifest.write(&mut out, Format::of(&self.path))?;
        out.flush()?;
        self.file.sync()?;
        self.file.keep()
    }
}

/// Writes the manifest of a run that has reached its end. Otherwise, an older file stays. Returns the message for the user
/// if the manifest was not written.
pub(crate) fn end(collected: Option<Collected>, is_whole: bool) -> Option<String> {
    let collected = collected?;
    let name = quote(&collected.path);
    if !is_whole {
        return Some(format!("the manifest {name} was not written, because the run was stopped"));
    }
    let written = collected.write();
    written.err().map(|error| format!("cannot write the manifest {name}: {}", describe(&error)))
}

/// Reads the value of `--manifest`.
pub(crate) fn path(text: &std::ffi::OsStr) -> Result<PathBuf, Usage> {
    if text.is_empty() {
        return Err(Usage::with_hint("a file's name is empty"));
    }
    Ok(Path::new(text).to_owned())
}
