//! The one folder that everything an experiment makes lives in.

use std::path::{Path, PathBuf};

use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags};

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
                Ok(()) => {
                    spread_folders(&path);
                    return Ok(Self { path, removed: false });
                }
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

/// Lets each folder in `folder` begin in a block group of its own, as in ext4's root (chattr(1), T): a copy does not get the
/// inodes of one that was removed just before, which takes longer. Other filesystems refuse this, and need not do it.
fn spread_folders(folder: &Path) {
    let mode = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(opened) = rustix::fs::open(folder, mode, Mode::empty())
        && let Ok(flags) = ioctl_getflags(&opened)
    {
        ioctl_setflags(&opened, flags | IFlags::TOPDIR).ok();
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
