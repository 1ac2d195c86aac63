//! The file that `--plan` writes.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

/// Returns true if a file that may be missing is in a tree.
pub(super) fn is_in(file: &Path, tree: &Path) -> bool {
    let folder = file.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), tree.canonicalize()) {
        (Ok(folder), Ok(tree)) => folder.starts_with(tree),
        // What is missing has nothing in it; other failures are reported by the run.
        _ => false,
    }
}

/// The file of a plan.
pub(super) enum PlanFile {
    /// It gets its name when the plan is complete.
    New(NamedTempFile),
    /// A pipe or device.
    Special(File),
}

impl PlanFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).map(Self::Special),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => {
                let folder = path.parent().filter(|above| !above.as_os_str().is_empty());
                let mut builder = tempfile::Builder::new();
                // As a program makes files: the umask decides.
                builder.prefix(".ferry-plan-").permissions(Permissions::from_mode(0o666));
                builder.tempfile_in(folder.unwrap_or(Path::new("."))).map(Self::New)
            }
        }
    }

    pub(super) fn file(&self) -> io::Result<File> {
        match self {
            Self::New(file) => file.as_file().try_clone(),
            Self::Special(file) => file.try_clone(),
        }
    }

    pub(super) fn keep(self, path: &Path) -> io::Result<()> {
        match self {
            Self::New(file) => file.persist(path).map(drop).map_err(|error| error.error),
            Self::Special(_) => Ok(()),
        }
    }
}
