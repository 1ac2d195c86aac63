//! POSIX access control lists and their representation in extended attributes.
//!
//! The layout follows `linux/posix_acl_xattr.h`: version 2, then eight bytes an entry, little-endian.

/// Extended attribute of an access ACL.
pub const ACCESS_XATTR: &[u8] = b"system.posix_acl_access";
/// Extended attribute of a directory's default ACL.
pub const DEFAULT_XATTR: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const NO_ID: u32 = u32::MAX;

/// A POSIX ACL. Permissions are three bits: 4 read, 2 write, 1 execute (see acl(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acl {
    /// The owner's permissions.
    pub owner: u16,
    /// Named users and their permissions, ascending by id.
    pub users: Vec<(u32, u16)>,
    /// The owning group's permissions.
    pub group: u16,
    /// Named groups and their permissions, ascending by id.
    pub groups: Vec<(u32, u16)>,
    /// Upper bound for named users and all groups; required if any user or group is named.
    pub mask: Option<u16>,
    /// Permissions of all others.
    pub other: u16,
}

impl Acl {
    /// Returns the ACL that is equivalent to `mode`.
    #[must_use]
    pub fn from_mode(mode: u32) -> Self {
        let mut acl = Self::default();
        acl.set_mode(mode);
        acl
    }

    /// Grants a named user permissions, and widens the mask to let them through.
    #[must_use]
    pub fn user(mut self, uid: u32, permissions: u16) -> Self {
        self.users.retain(|(other, _)| *other != uid);
        self.users.push((uid, permissions & 7));
        self.users.sort_unstable();
        self.widened(permissions)
    }

    /// Grants a named group permissions, and widens the mask to let them through.
    #[must_use]
    pub fn named_group(mut self, gid: u32, permissions: u16) -> Self {
        self.groups.retain(|(other, _)| *other != gid);
        self.groups.push((gid, permissions & 7));
        self.groups.sort_unstable();
        self.widened(permissions)
    }

    fn widened(mut self, permissions: u16) -> Self {
        self.mask = Some((self.mask.unwrap_or(self.group) | permissions) & 7);
        self
    }

    /// Returns true if the kernel stores this ACL as a mode only: no named entries and no mask.
    pub(crate) fn is_minimal(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty() && self.mask.is_none()
    }

    /// Returns the permission bits of a file with this access ACL. The group bits are those of the mask, if there
    /// is one.
    #[must_use]
    pub fn mode(&self) -> u32 {
        let group = self.mask.unwrap_or(self.group);
        u32::from(self.owner) << 6 | u32::from(group) << 3 | u32::from(self.other)
    }

    /// Applies chmod(2) to an access ACL.
    pub fn set_mode(&mut self, mode: u32) {
        let three = |shift: u32| u16::try_from(mode >> shift & 7).unwrap_or(0);
        self.owner = three(6);
        self.other = three(0);
        match &mut self.mask {
            Some(mask) => *mask = three(3),
            None => self.group = three(3),
        }
    }

    /// Encodes the ACL as the value of an extended attribute.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        let mut entry = |tag: u16, permissions: u16, id: u32| {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        };
        entry(USER_OBJ, self.owner, NO_ID);
        self.users.iter().for_each(|(id, permissions)| entry(USER, *permissions, *id));
        entry(GROUP_OBJ, self.group, NO_ID);
        self.groups.iter().for_each(|(id, permissions)| entry(GROUP, *permissions, *id));
        self.mask.iter().for_each(|mask| entry(MASK, *mask, NO_ID));
        entry(OTHER, self.other, NO_ID);
        bytes
    }

    /// Decodes the value of an extended attribute; `None` if it is not an ACL.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != VERSION || entries.len() % 8 != 0 {
            return None;
        }
        let mut acl = Self::default();
        for entry in entries.chunks_exact(8) {
            let [tag_low, tag_high, low, high, id @ ..] = entry else { return None };
            let permissions = u16::from_le_bytes([*low, *high]);
            let id = u32::from_le_bytes(id.try_into().ok()?);
            match u16::from_le_bytes([*tag_low, *tag_high]) {
                USER_OBJ => acl.owner = permissions,
                USER => acl.users.push((id, permissions)),
                GROUP_OBJ => acl.group = permissions,
                GROUP => acl.groups.push((id, permissions)),
                MASK => acl.mask = Some(permissions),
                OTHER => acl.other = permissions,
                _ => return None,
            }
        }
        Some(acl)
    }
}

impl std::fmt::Display for Acl {
    /// Writes the short text form of acl(5): `u::rwx,u:7:r--,g::r-x,m::r-x,o::---`.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |bits: u16| {
            let letter = |bit: u16, letter: char| if bits & bit == 0 { '-' } else { letter };
            String::from_iter([letter(4, 'r'), letter(2, 'w'), letter(1, 'x')])
        };
        write!(out, "u::{}", text(self.owner))?;
        self.users.iter().try_for_each(|(id, bits)| write!(out, ",u:{id}:{}", text(*bits)))?;
        write!(out, ",g::{}", text(self.group))?;
        self.groups.iter().try_for_each(|(id, bits)| write!(out, ",g:{id}:{}", text(*bits)))?;
        self.mask.iter().try_for_each(|bits| write!(out, ",m::{}", text(*bits)))?;
        write!(out, ",o::{}", text(self.other))
    }
}

#[cfg(test)]
mod tests;
