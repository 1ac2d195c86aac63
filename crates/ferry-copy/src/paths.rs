//! Paths as the user writes them: components, slashes and dots keep their meaning.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use ferry_io::Name;

/// Returns a path without the slashes at its end: `a//` is `a`, and `//` is `/`.
#[must_use]
pub fn without_trailing_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(bytes.len().min(1), |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}

/// Splits a path into its folder, if it names one, and its last component, both without trailing slashes. The last
/// component of the root is empty.
#[must_use]
pub fn split_last(path: &Path) -> (Option<&Path>, &OsStr) {
    let bytes = without_trailing_slashes(path).as_os_str().as_bytes();
    match bytes.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => {
            let folder = without_trailing_slashes(Path::new(OsStr::from_bytes(&bytes[..=slash])));
            (Some(folder), OsStr::from_bytes(&bytes[slash + 1..]))
        }
        None => (None, OsStr::from_bytes(bytes)),
    }
}

/// Returns the path up to its last slash, as it is written: `link/.` is a folder, `link` the link to it.
pub(crate) fn folder_part(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let Some(slash) = bytes.iter().rposition(|&byte| byte == b'/') else { return Path::new(".") };
    without_trailing_slashes(Path::new(OsStr::from_bytes(&bytes[..=slash])))
}

/// Splits a path into the folder to open and the name in it. A path that ends in a slash or a dot is the folder itself.
pub(crate) fn folder_to_open(path: &Path) -> (&Path, Option<Name>) {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return (path, None);
    }
    match path.file_name().and_then(|name| Name::new(name.as_encoded_bytes())) {
        // Messages show the folder as it is written, slashes and all.
        Some(name) => {
            (Path::new(OsStr::from_bytes(&bytes[..bytes.len() - name.as_bytes().len()])), Some(name))
        }
        None => (path, None),
    }
}

/// Returns a path without the components that `.` and `..` make void.
pub(crate) fn collapsed(path: &Path) -> PathBuf {
    let mut left = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if left.file_name().is_some() => drop(left.pop()),
            Component::ParentDir | Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                left.push(component);
            }
        }
    }
    left
}
