//! A file that gets its name when it is complete, such as that of `--plan`.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Returns true if a file that may be missing is in a tree.
pub(crate) fn is_in(file: &Path, tree: &Path) -> bool {
    let place = file.canonicalize().or_else(|_| folder_of(file).canonicalize());
    match (place, tree.canonicalize()) {
        (Ok(place), Ok(tree)) => place.starts_with(tree),
        // What is missing has nothing in it; other failures are reported by the run.
        _ => false,
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns true for `/dev/stdout` and other paths that lead to an open descriptor of the process, by way of links.
fn is_descriptor(path: &Path) -> bool {
    /// The kernel follows no more links (path_resolution(7)).
    const LINKS: usize = 40;
    let mut at = path.to_owned();
    for _ in 0..LINKS {
        let folder = folder_of(&at).to_owned();
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return true;
        }
        match std::fs::read_link(&at) {
            Ok(next) => at = folder.join(next),
            Err(_) => return false,
        }
    }
    false
}

/// A file that is written as a whole or not at all.
pub(crate) enum CompleteFile {
    /// It gets its name, which is behind links, when it is complete.
    New(NamedTempFile, PathBuf),
    /// A pipe, a device, or an open descriptor: what was written to it before stays.
    Special(File),
}

impl CompleteFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() || is_descriptor(path) => {
                OpenOptions::new().append(true).open(path).map(Self::Special)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            found => {
                let path = if found.is_ok() { path.canonicalize()? } else { path.to_owned() };
                let mut builder = tempfile::Builder::new();
                builder.prefix(".ferry-new-");
                // As a program makes files: the umask decides. Errors are the kernel's, without a path.
                let create = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
                builder.make_in(folder_of(&path), create).map(|file| Self::New(file, path))
            }
        }
    }

    pub(crate) fn file(&self) -> io::Result<File> {
        match self {
            Self::New(file, _) => file.as_file().try_clone(),
            Self::Special(file) => file.try_clone(),
        }
    }

    /// Makes a file durable before it gets its name.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Self::New(file, _) => file.as_file().sync_data(),
            Self::Special(_) => Ok(()),
        }
    }

    pub(crate) fn keep(self) -> io::Result<()> {
        match self {
            Self::New(file, path) => file.persist(path).map(drop).map_err(|error| error.error),
            Self::Special(_) => Ok(()),
        }
    }
}
