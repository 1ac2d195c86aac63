//! Access control lists (acl(5)), as the kernel stores them in extended attributes.

use std::ffi::CStr;

use ferry_io::{Dir, Errno, File, Result as IoResult, Stat, Xattr};

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Returns true if new entries of a folder inherit a default ACL, or if that can't be found out.
pub(crate) async fn has_default(dir: &Dir) -> bool {
    dir.as_file().xattrs().await.map_or(true, |found| holds_default(&found))
}

pub(crate) fn holds_default(xattrs: &[Xattr]) -> bool {
    xattrs.iter().any(|(name, _)| name.to_bytes() == DEFAULT_ACL)
}

/// Sets an access ACL that equals `mode`.
pub(crate) async fn set_minimal(file: &File, mode: u32) -> IoResult<()> {
    file.set_xattr(c"system.posix_acl_access", &minimal_acl(mode)).await
}

/// Removes a folder's default ACL, if it has one.
pub(crate) async fn remove_default(folder: &File) -> IoResult<()> {
    let no_entries = 2_u32.to_le_bytes();
    supported(folder.set_xattr(c"system.posix_acl_default", &no_entries).await)
}

/// Returns true if an ACL may give access that the mode does not show. The group's bits are its mask: without them no
/// entry gives anything (acl(5)).
pub(crate) async fn allows_more(file: &File, existing: &Stat) -> bool {
    let has_access = |found: Vec<Xattr>| found.iter().any(|(name, _)| name.to_bytes() == ACCESS_ACL);
    existing.mode & 0o070 != 0 && file.xattrs().await.map_or(true, has_access)
}

pub(crate) fn holds_access(xattrs: &[Xattr]) -> bool {
    access(xattrs).is_some()
}

/// Returns the ACL that gives access to its own file, as the kernel stores it.
pub(crate) fn access(xattrs: &[Xattr]) -> Option<&[u8]> {
    let mut found = xattrs.iter().filter(|(name, _)| name.to_bytes() == ACCESS_ACL);
    found.next().map(|(_, value)| &value[..])
}

/// Returns true for the ACL that gives access to its own file.
pub(crate) fn is_access(name: &CStr) -> bool {
    name.to_bytes() == ACCESS_ACL
}

pub(crate) fn is_acl(name: &CStr) -> bool {
    name.to_bytes() == ACCESS_ACL || name.to_bytes() == DEFAULT_ACL
}

/// Sets the source's ACLs. With `may_have_other`, also removes an ACL that the target may have from elsewhere.
pub(crate) async fn keep(file: &File, xattrs: &[Xattr], mode: u32, may_have_other: bool) -> IoResult<()> {
    let mut has_access = false;
    let mut kept = Ok(());
    for (name, value) in xattrs.iter().filter(|(name, _)| is_acl(name)) {
        let set = file.set_xattr(name, value).await;
        let is_lost = name.to_bytes() == DEFAULT_ACL || says_more_than_mode(value);
        has_access |= name.to_bytes() == ACCESS_ACL && set.is_ok();
        kept = kept.and(if is_lost { set } else { supported(set) });
    }
    if !has_access && may_have_other {
        // Also if the source's own ACL can't be set.
        kept = kept.and(supported(set_minimal(file, mode).await));
    }
    kept
}

/// Sets the source's default ACL, if it has one.
pub(crate) async fn keep_default(file: &File, xattrs: &[Xattr]) -> IoResult<()> {
    match xattrs.iter().find(|(name, _)| name.to_bytes() == DEFAULT_ACL) {
        Some((name, value)) => file.set_xattr(name, value).await,
        None => Ok(()),
    }
}

/// Turns the refusal of a filesystem without ACLs into success: nothing there has an ACL.
pub(crate) fn supported(answer: IoResult<()>) -> IoResult<()> {
    match answer {
        Err(error) if error.is(Errno::OPNOTSUPP) => Ok(()),
        answer => answer,
    }
}

/// Returns true if an ACL has other entries than the three of the mode, so that a filesystem without ACLs loses them.
fn says_more_than_mode(acl: &[u8]) -> bool {
    acl.len() > minimal_acl(0).len()
}

/// Returns the ACL that is equal to a mode; the kernel stores none for it. Layout: version 2, then owner, group and
/// others, each with tag, permissions and an unused identifier, little endian.
fn minimal_acl(mode: u32) -> Vec<u8> {
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, shift) in [(0x01_u16, 6), (0x04, 3), (0x20, 0)] {
        acl.extend_from_slice(&tag.to_le_bytes());
        let bits = u16::try_from(mode >> shift & 7).unwrap_or_default();
        acl.extend_from_slice(&bits.to_le_bytes());
        acl.extend_from_slice(&u32::MAX.to_le_bytes());
    }
    acl
}

#[cfg(test)]
mod tests;
