//! Temporary folders that are removed with their owner.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::failure::Failure;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Owns a fresh, empty folder.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates the folder in the system's temporary folder. Fails if its name is taken.
    pub(crate) fn open() -> Result<Self, Failure> {
        Self::within(&env::temp_dir())
    }

    /// Creates the folder in another one. Fails if its name is taken.
    pub(crate) fn within(folder: &Path) -> Result<Self, Failure> {
        let index = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("ferry-xtask-{}-{index}", process::id()));
        fs::create_dir(&path).map_err(Failure::path("create", &path))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: cannot remove '{}': {error}", self.path.display());
        }
    }
}
