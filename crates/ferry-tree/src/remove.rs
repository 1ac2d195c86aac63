//! Removing a tree of any depth, for which neither `std::fs::remove_dir_all` (a descriptor and a stack frame
//! a level) nor a path (`PATH_MAX`) will do.

use crate::cursor::Cursor;
use crate::describe::{join, split};
use crate::error::{Context, Error, Operation};
use crate::open;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Mode, chmodat, unlinkat};
use rustix::io::{Errno, Result as CallResult};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is still to be done.
enum Step {
    Empty(Vec<u8>),
    Remove(Vec<u8>),
}

/// Removes whatever is at `path`, with all that is beneath it; links are not followed.
/// Directories that their owner may not read or change are made so first.
///
/// # Errors
/// The first call that fails. That `path` does not exist is one.
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

/// Enters a directory, giving its owner permission first.
fn allow(cursor: &mut Cursor, path: &[u8]) -> CallResult<()> {
    let (above, name) = split(path);
    cursor.go(above)?;
    if !rustix::process::geteuid().is_root() {
        chmodat(cursor.directory(), name, Mode::RWXU, AtFlags::empty())?;
    }
    cursor.go(path)
}

/// Removes what is in a directory, and notes its subdirectories as steps.
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
