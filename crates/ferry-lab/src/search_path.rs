//! Programs found by their names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The program of that name, as execvp(3) finds it.
#[must_use]
pub fn find_program(name: &OsStr) -> Option<PathBuf> {
    let may_run =
        |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    let path = Path::new(name);
    if path.components().count() > 1 {
        return may_run(path).then(|| path.to_owned());
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).map(|folder| folder.join(name)).find(|path| may_run(path))
}
