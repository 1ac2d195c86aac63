//! Owners, modes, times and extended attributes.

use std::ffi::{CStr, CString};

use rustix::io::Errno;

use super::Answering;
use crate::descriptor::Fd;
use crate::entry::{FileKind, Times, Xattr, readable};
use crate::error::Operation;
use crate::name::Name;
use crate::op::FileOrEntry;
use crate::sim::disk::{Inode, READ, WRITE};

const LONGEST_NAME: usize = 255;
const LARGEST_VALUE: usize = 64 * 1024;

impl Answering<'_> {
    pub(super) fn set_owner(&mut self, file: &Fd, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
        self.meet_fault_on(Operation::SetOwner, &[file])?;
        let number = self.dir_inode(file)?;
        let (user, group) = (self.disk.settings.uid, self.disk.settings.gid);
        let inode = self.disk.inode_mut(number)?;
        let may_set_uid = uid.is_none_or(|uid| uid == inode.uid && uid == user);
        let may_set_gid = gid.is_none_or(|gid| user == inode.uid && (gid == inode.gid || gid == group));
        if user != 0 && !(may_set_uid && may_set_gid) {
            return Err(Errno::PERM);
        }
        inode.uid = uid.unwrap_or(inode.uid);
        inode.gid = gid.unwrap_or(inode.gid);
        if inode.kind() != FileKind::Directory {
            // Root clears setuid too. Setgid stays without group execute permission: it means mandatory locking.
            inode.mode &= if inode.mode & 0o010 != 0 { !0o6000 } else { !0o4000 };
        }
        self.disk.touch(number)
    }

    pub(super) fn set_mode(&mut self, file: &Fd, mode: u32) -> Result<(), Errno> {
        self.meet_fault_on(Operation::SetMode, &[file])?;
        let number = self.dir_inode(file)?;
        let inode = self.disk.inode(number)?;
        if inode.kind() == FileKind::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        self.disk.owns(inode)?;
        let (user, group) = (self.disk.settings.uid, self.disk.settings.gid);
        let inode = self.disk.inode_mut(number)?;
        let loses_setgid = user != 0 && group != inode.gid;
        inode.mode = mode & if loses_setgid { 0o5777 } else { 0o7777 };
        self.disk.touch(number)
    }

    pub(super) fn set_times(&mut self, file: &Fd, times: Times) -> Result<(), Errno> {
        self.meet_fault_on(Operation::SetTimes, &[file])?;
        let number = self.dir_inode(file)?;
        self.disk.owns(self.disk.inode(number)?)?;
        self.disk.inode_mut(number)?.times = times;
        self.disk.touch(number)
    }

    pub(super) fn list_xattrs(&mut self, place: &FileOrEntry) -> Result<Vec<u8>, Errno> {
        self.meet_fault_at(Operation::ListXattr, place)?;
        let number = self.inode_of(place)?;
        if !self.disk.settings.has_xattrs {
            return Err(Errno::OPNOTSUPP);
        }
        let is_root = self.disk.settings.uid == 0;
        let names = self.disk.inode(number)?.xattrs.keys();
        let seen = names.filter(|name| is_root || !name.to_bytes().starts_with(b"trusted."));
        Ok(seen.flat_map(|name| name.to_bytes_with_nul()).copied().collect())
    }

    pub(super) fn get_xattr(&mut self, place: &FileOrEntry, name: &CStr) -> Result<Vec<u8>, Errno> {
        self.meet_fault_at(Operation::GetXattr, place)?;
        let inode = self.disk.inode(self.inode_of(place)?)?;
        self.value_of(inode, name)
    }

    /// Returns all readable extended attributes, for a load.
    pub(super) fn all_xattrs(&mut self, number: u64, file: &Name) -> Result<Vec<Xattr>, Errno> {
        self.next_call();
        self.meet_fault(Operation::ListXattr, &[file.as_bytes()])?;
        if !self.disk.settings.has_xattrs {
            return Ok(Vec::new());
        }
        let names: Vec<_> = self.disk.inode(number)?.xattrs.keys().cloned().collect();
        readable(names.iter().map(CString::as_c_str), |name| {
            self.next_call();
            self.meet_fault(Operation::GetXattr, &[file.as_bytes()])?;
            self.value_of(self.disk.inode(number)?, name)
        })
    }

    fn value_of(&self, inode: &Inode, name: &CStr) -> Result<Vec<u8>, Errno> {
        self.check_attribute(inode, name, READ)?;
        inode.xattrs.get(name).cloned().ok_or(Errno::NODATA)
    }

    pub(super) fn set_xattr(&mut self, file: &Fd, name: &CStr, value: Option<&[u8]>) -> Result<(), Errno> {
        self.meet_fault_on(Operation::SetXattr, &[file])?;
        let number = self.dir_inode(file)?;
        self.check_attribute(self.disk.inode(number)?, name, WRITE)?;
        let xattrs = &mut self.disk.inode_mut(number)?.xattrs;
        match value {
            Some(value) if value.len() > LARGEST_VALUE => return Err(Errno::TOOBIG),
            Some(value) => drop(xattrs.insert(name.to_owned(), value.to_vec())),
            None => drop(xattrs.remove(name).ok_or(Errno::NODATA)?),
        }
        self.disk.touch(number)
    }

    /// Fails unless the attribute's namespace is known and open to the user on this file (xattr(7)).
    fn check_attribute(&self, inode: &Inode, name: &CStr, want: u32) -> Result<(), Errno> {
        if !self.disk.settings.has_xattrs {
            return Err(Errno::OPNOTSUPP);
        }
        let name = name.to_bytes();
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(Errno::RANGE);
        }
        let refused = if want == READ { Errno::NODATA } else { Errno::PERM };
        let is_root = self.disk.settings.uid == 0;
        if name.starts_with(b"user.") {
            match inode.kind() {
                FileKind::Regular | FileKind::Directory => self.disk.may(inode, want),
                FileKind::Symlink
                | FileKind::Fifo
                | FileKind::Socket
                | FileKind::CharDevice
                | FileKind::BlockDevice => Err(refused),
            }
        } else if name.starts_with(b"trusted.") {
            if is_root { Ok(()) } else { Err(refused) }
        } else if name.starts_with(b"security.") || name.starts_with(b"system.") {
            if is_root || want == READ { Ok(()) } else { self.disk.owns(inode) }
        } else {
            Err(Errno::OPNOTSUPP)
        }
    }
}
