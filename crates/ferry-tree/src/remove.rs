//! Removal of a tree of any depth. `std::fs::remove_dir_all` needs a descriptor and a stack frame a level, and a
//! path is limited by `PATH_MAX`.

use crate::cursor::Cursor;
use crate::describe::{join, split};
use crate::error::{Context, Error, Operation};
use crate::open;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Mode, chmodat, unlinkat};
use rustix::io::{Errno, Result as CallResult};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

enum Step {
    Empty(Vec<u8>),
    Remove(Vec<u8>),
}

/// Removes the entry at `path` with everything beneath; links are not followed. Directories that deny access to
/// their owner are made accessible first.
///
/// # Errors
/// The first call that fails, also if `path` does not exist.
pub fn remove(path: &Path) -> Result<(), Error> {
    let bytes = path.as_os_str().as_bytes();
    let (parent, name) = open::parent(bytes).context(Operation::Open, bytes)?;
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        other => return other.context(Operation::Remove, bytes),
    }
    let mut cursor = Cursor::new(open::directory(&parent, b".").context(Operation::Open, bytes)?);
    let mut steps = vec![Step::Empty(name.to_vec())];
    while let Some(step) = steps.pop() {
        match step {
            Step::Empty(directory) => {
                allow(&mut cursor, &directory).context(Operation::Open, &directory)?;
                steps.push(Step::Remove(directory.clone()));
                empty(cursor.directory(), &directory, &mut steps).context(Operation::Remove, &directory)?;
            }
            Step::Remove(directory) => {
                let (above, name) = split(&directory);
                cursor.go(above).context(Operation::Open, above)?;
                unlinkat(cursor.directory(), name, AtFlags::REMOVEDIR)
                    .context(Operation::Remove, &directory)?;
            }
        }
    }
    Ok(())
}

fn allow(cursor: &mut Cursor, path: &[u8]) -> CallResult<()> {
    let (above, name) = split(path);
    cursor.go(above)?;
    if !rustix::process::geteuid().is_root() {
        chmodat(cursor.directory(), name, Mode::RWXU, AtFlags::empty())?;
    }
    cursor.go(path)
}

/// Removes the entries of a directory, and adds its subdirectories as steps.
fn empty(directory: BorrowedFd<'_>, path: &[u8], steps: &mut Vec<Step>) -> CallResult<()> {
    for name in open::Names::list(directory)?.iter() {
        match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => steps.push(Step::Empty(join(path, name))),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
