//! A folder of one's own under the system's temporary folder, removed when its owner goes.

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
    /// Makes the folder; fails where that name is taken.
    pub(crate) fn open() -> Result<Self, Failure> {
        let index = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("ferry-xtask-{}-{index}", process::id()));
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
