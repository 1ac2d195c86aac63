//! The one folder that everything an experiment makes lives in.

use std::path::{Path, PathBuf};

use crate::error::Failure;

#[cfg(test)]
mod tests;

/// A folder that is removed when the experiment ends, however it ends.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    removed: bool,
}

impl WorkFolder {
    /// Makes a folder of a name of its own in `parent`.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn make(parent: &Path) -> Result<Self, Failure> {
        let parent = parent.canonicalize().map_err(|error| Failure::file("open", parent, &error))?;
        let process = std::process::id();
        let mut number = 0;
        loop {
            let path = parent.join(format!("ferry-lab-{process}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, removed: false }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(Failure::file("create", &path, &error)),
            }
        }
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it and says so if it can't be.
    ///
    /// # Errors
    /// The first call that failed.
    pub fn remove(mut self) -> Result<(), Failure> {
        self.removed = true;
        Ok(ferry_tree::remove::remove(&self.path)?)
    }
}

impl Drop for WorkFolder {
    /// An earlier error is reported; a failure to remove the folder is not.
    fn drop(&mut self) {
        if !self.removed {
            ferry_tree::remove::remove(&self.path).ok();
        }
    }
}
