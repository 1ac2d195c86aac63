//! Attributes that `cp -a` keeps: owner, extended attributes with ACLs, mode, and times in nanoseconds.
//!
//! Only calls that change something are made: a file gets an owner or a mode if it was created with another one.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, Mode, Stat, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, getegid, geteuid};

/// Room for the names of a file's extended attributes, or for one value: the maximum of both on Linux.
const ROOM: usize = 64 << 10;
/// Room that is enough for most files.
const USUAL_ROOM: usize = 256;

/// Attributes of one file or folder.
#[derive(Debug)]
pub(super) struct Attributes {
    facts: Stat,
    extended: Vec<(CString, Vec<u8>)>,
}

impl Attributes {
    /// Reads the attributes of an open file, except for `facts`, which the caller has.
    pub(super) fn of(file: impl AsFd, facts: Stat) -> Result<Self, Errno> {
        let names = match in_room(|room| rustix::fs::flistxattr(&file, room).map(|(read, _)| read.to_vec())) {
            Err(Errno::OPNOTSUPP) => Vec::new(),
            names => names?,
        };
        let name = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::INVAL);
        let value = |name: &CStr| {
            in_room(|room| rustix::fs::fgetxattr(&file, name, room).map(|(read, _)| read.to_vec()))
        };
        let names = names.split(|byte| *byte == 0).filter(|bytes| !bytes.is_empty());
        let extended = names.map(|bytes| {
            let name = name(bytes)?;
            let value = value(&name)?;
            Ok((name, value))
        });
        Ok(Self { facts, extended: extended.collect::<Result<_, Errno>>()? })
    }

    /// Sets the attributes of a copy that was created with `created` permissions, if they are known.
    pub(super) fn set(&self, file: BorrowedFd<'_>, created: Option<Mode>) -> Result<(), Errno> {
        let owner = new_owner(&self.facts);
        if let Some((user, group)) = owner {
            rustix::fs::fchown(file, Some(user), Some(group))?;
        }
        if let Some(created) =
            created.filter(|created| !self.extended.is_empty() && !created.contains(Mode::WUSR))
        {
            // Without root, the kernel asks for the owner's permission to write, not for the descriptor's.
            rustix::fs::fchmod(file, created | Mode::WUSR)?;
        }
        for (name, value) in &self.extended {
            rustix::fs::fsetxattr(file, name.as_c_str(), value, XattrFlags::empty())?;
        }
        let mode = Mode::from_raw_mode(self.facts.st_mode & 0o7777);
        if Some(mode) != created || owner.is_some() || !self.extended.is_empty() {
            rustix::fs::fchmod(file, mode)?;
        }
        rustix::fs::futimens(file, &times(&self.facts))
    }
}

/// Sets the owner and times of a symbolic link's copy.
pub(super) fn set_of_link(folder: BorrowedFd<'_>, name: &CStr, facts: &Stat) -> Result<(), Errno> {
    if let Some((user, group)) = new_owner(facts) {
        rustix::fs::chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    rustix::fs::utimensat(folder, name, &times(facts), AtFlags::SYMLINK_NOFOLLOW)
}

/// Returns the permissions that new files of this process lack. umask(2) reports them only by changing them, so the first
/// call comes before other threads start.
pub(super) fn umask() -> Mode {
    static UMASK: OnceLock<Mode> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(umask);
        umask
    })
}

/// Calls `read` with little room, and with the maximum if that is not enough.
fn in_room(read: impl Fn(&mut [MaybeUninit<u8>]) -> Result<Vec<u8>, Errno>) -> Result<Vec<u8>, Errno> {
    match read(&mut [MaybeUninit::uninit(); USUAL_ROOM]) {
        Err(Errno::RANGE) => read(&mut vec![MaybeUninit::uninit(); ROOM]),
        read => read,
    }
}

/// Returns the owner, unless new files have the same one.
fn new_owner(facts: &Stat) -> Option<(Uid, Gid)> {
    let (user, group) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
    ((user, group) != (geteuid(), getegid())).then_some((user, group))
}

fn times(facts: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or_default(),
    };
    Timestamps {
        last_access: time(facts.st_atime, facts.st_atime_nsec),
        last_modification: time(facts.st_mtime, facts.st_mtime_nsec),
    }
}
