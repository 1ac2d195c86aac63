//! Extended attributes of any entry, by open directory and name. Links are not followed.
//!
//! The kernel has xattr calls relative to a directory only since Linux 6.13 (`setxattrat`). So the entry is reached
//! through `/proc/self/fd`, which needs no permission to open it, but needs /proc.

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lsetxattr};
use rustix::io::{Errno, Result};
use std::collections::BTreeMap;

/// Buffer of the first attempt for a list or value. A longer one takes a second call.
const COMMON_BYTES: usize = 1024;
/// Kernel's limit for a list and for a value (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const MAX_BYTES: usize = 65_536;

/// Extended attributes by full name, including ACLs.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

fn path(directory: impl AsFd, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// Names under which XFS shows ACLs to root a second time (attr(5), `/etc/xattr.conf`).
const ACLS_AGAIN: [&[u8]; 2] = [b"trusted.SGI_ACL_FILE", b"trusted.SGI_ACL_DEFAULT"];

/// Reads all attributes of `name`; none where the filesystem has no attributes. An attribute that vanishes
/// meanwhile is left out.
pub(crate) fn read(directory: impl AsFd, name: &[u8]) -> Result<Xattrs> {
    let path = path(directory, name);
    let list = match grow(|buffer| llistxattr(path.as_slice(), buffer)) {
        Ok(list) => list,
        Err(Errno::OPNOTSUPP) => return Ok(Xattrs::new()),
        Err(errno) => return Err(errno),
    };
    let mut xattrs = Xattrs::new();
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !ACLS_AGAIN.contains(name));
    for name in names {
        match grow(|buffer| lgetxattr(path.as_slice(), name, buffer)) {
            Ok(value) => drop(xattrs.insert(name.to_vec(), value)),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(xattrs)
}

/// Calls with a buffer that usually suffices, then with one that always does.
fn grow(call: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut common = [0; COMMON_BYTES];
    match call(&mut common) {
        Ok(size) => Ok(common[..size].to_vec()),
        Err(Errno::RANGE) => {
            let mut buffer = vec![0; MAX_BYTES];
            let size = call(&mut buffer)?;
            buffer.truncate(size);
            Ok(buffer)
        }
        Err(errno) => Err(errno),
    }
}

pub(crate) fn set(directory: impl AsFd, name: &[u8], key: &[u8], value: &[u8]) -> Result<()> {
    lsetxattr(path(directory, name).as_slice(), key, value, XattrFlags::empty())
}

/// Returns true if a security module, not a user, sets this attribute.
pub(crate) fn is_label(name: &[u8]) -> bool {
    matches!(name, b"security.selinux" | b"security.ima" | b"security.evm" | b"security.SMACK64")
}
