//! Limit programs: bare copiers, which show how fast a copy can be on this machine.
//!
//! They are yardsticks and no copiers: threads make plain calls, without fibers, options or checks. Files, folders and
//! symbolic links are copied, with the modes that the umask leaves. On request, each file also gets the attributes that
//! `cp -a` keeps. Hard links and holes are not preserved. After an error no further folder is begun. The fastest of them
//! is the limit of a tree in a cache state.
//!
//! Each runs in its own process (the hidden command `ferry lab strategy`), because copiers are timed as commands; so a
//! limit includes the start of ferry's executable.
//!
//! Memory holds the names of folders that are not yet listed, 256 loaded files, and the threads' blocks. Folders stay
//! open while such names or loaded files belong to them. The soft limit of open files is raised as far as allowed.

mod attributes;
mod entry;
mod limit;
mod readers;
mod single;
mod tree;

use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use self::limit::{Calls, Kind, Limit};
use crate::error::Failure;

#[cfg(test)]
mod tests;

/// Copies `source`, a file or a folder, to `target`, which must not exist.
///
/// # Errors
/// The first call that failed.
pub fn copy(how: &Limit, source: &Path, target: &Path) -> Result<(), Failure> {
    raise_open_files()?;
    if how.preserves {
        // Before threads start.
        attributes::umask();
    }
    let facts = rustix::fs::statat(CWD, source, AtFlags::empty()).map_err(failed("open", source))?;
    if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
        rustix::fs::mkdir(target, Mode::from_raw_mode(0o777)).map_err(failed("create", target))?;
        let root = entry::Folder { source: folder(source)?, target: folder(target)? };
        return if how.calls == Calls::Readers { readers::copy(how, root) } else { tree::copy(how, root) };
    }
    entry::Copier::new(how).file((CWD, source), (CWD, target)).map_err(failed("copy", source))
}

/// Raises the soft limit of open files to the hard limit.
fn raise_open_files() -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).map_err(|errno| {
        let reason = crate::message::reason(&errno.into());
        Failure::Run(format!("cannot raise the limit of open files: {reason}"))
    })
}

fn folder(path: &Path) -> Result<OwnedFd, Failure> {
    rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(failed("open", path))
}

fn failed(verb: &'static str, path: &Path) -> impl Fn(Errno) -> Failure {
    move |errno| Failure::file(verb, path, &errno.into())
}
