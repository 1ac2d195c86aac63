//! Paths as the user writes them: their parts, and the path that a source keeps below a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) use ferry_copy::{split_last as split, without_trailing_slashes};

/// Last component, or `None` for `.`, `..` and the root.
pub(super) fn name_beneath(source: &Path) -> Option<&OsStr> {
    let (_, name) = split(source);
    (!matches!(name.as_bytes(), b"" | b"." | b"..")).then_some(name)
}

/// `.` for a source that ends in `/.`, because cp's messages include it.
pub(super) fn dot_of(source: &Path) -> PathBuf {
    if split(source).1 == "." { PathBuf::from(".") } else { PathBuf::new() }
}

/// Returns the path below `base` for `--parents`: the source without its root, otherwise as written.
///
/// A `..` that leads above `base` is appended to `base`, and everything before it is dropped.
pub(super) fn path_beneath(source: &Path, base: &mut PathBuf) -> PathBuf {
    let path = without_trailing_slashes(source).as_os_str().as_bytes();
    let (mut depth, mut relative) = (0_usize, path);
    let mut rest = path;
    while !rest.is_empty() {
        let (part, after) = match rest.iter().position(|byte| *byte == b'/') {
            Some(slash) => (&rest[..slash], &rest[slash + 1..]),
            None => (rest, &b""[..]),
        };
        rest = after;
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => {
                base.push("..");
                relative = rest;
            }
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    let root = relative.iter().take_while(|byte| **byte == b'/').count();
    PathBuf::from(OsStr::from_bytes(&relative[root..]))
}

pub(super) fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}
