//! The ways in which two trees can differ, and the line that says so.

use crate::acl::Acl;
use crate::attributes::{EntryKind, Time};
use crate::error::Operation;
use crate::quote::Quoted;
use rustix::io::Errno;
use std::fmt;

/// One of the two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one that was copied.
    Source,
    /// The copy.
    Target,
}

impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

/// A path, from the roots, at which the trees differ, and in what. Its `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path; empty for the roots themselves.
    pub path: Vec<u8>,
    /// What differs.
    pub what: What,
}

/// What differs between two entries of the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Only the source has it.
    MissingInTarget(EntryKind),
    /// Only the target has it.
    ExtraInTarget(EntryKind),
    /// They are of different types.
    Kind {
        /// The source's type.
        source: EntryKind,
        /// The target's.
        target: EntryKind,
    },
    /// Files of the same size hold different bytes, first at this offset (unknown from snapshots).
    Content {
        /// Counted in bytes.
        offset: Option<u64>,
    },
    /// Files are of different size.
    Size {
        /// The source's, in bytes.
        source: u64,
        /// The target's.
        target: u64,
    },
    /// Modes differ.
    Mode {
        /// The source's, 0 to 0o7777.
        source: u32,
        /// The target's.
        target: u32,
    },
    /// User or group differ.
    Owner {
        /// The source's user and group.
        source: (u32, u32),
        /// The target's.
        target: (u32, u32),
    },
    /// Times of the last change differ.
    Mtime {
        /// The source's.
        source: Time,
        /// The target's.
        target: Time,
    },
    /// An extended attribute differs, or only one side has it.
    Xattr {
        /// Its full name.
        name: Vec<u8>,
        /// The source's value.
        source: Option<Vec<u8>>,
        /// The target's.
        target: Option<Vec<u8>>,
    },
    /// An ACL differs, or only one side has it. Values are the attribute's bytes ([`Acl::decode`]).
    Acl {
        /// Whether it is the default ACL; else the access ACL.
        default: bool,
        /// The source's.
        source: Option<Vec<u8>>,
        /// The target's.
        target: Option<Vec<u8>>,
    },
    /// Symbolic links name different targets.
    SymlinkTarget {
        /// What the source's names.
        source: Vec<u8>,
        /// What the target's names.
        target: Vec<u8>,
    },
    /// Device nodes stand for different devices.
    Device {
        /// The source's major and minor number.
        source: (u32, u32),
        /// The target's.
        target: (u32, u32),
    },
    /// The path is the same file as an earlier path on one side only, or as different ones.
    HardLink {
        /// The first path, in byte order, that is the same file in the source, if it is another one.
        source: Option<Vec<u8>>,
        /// The same in the target.
        target: Option<Vec<u8>>,
    },
    /// Holes of one side are filled with data on the other, which occupies clearly more.
    Holes {
        /// What the source occupies, in bytes.
        source: u64,
        /// What the target occupies.
        target: u64,
    },
    /// One side can't be read, so that part of it was not compared.
    Unreadable {
        /// Which.
        side: Side,
        /// What was tried.
        operation: Operation,
        /// What the kernel said.
        errno: Errno,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { b"." } else { self.path.as_slice() };
        write!(out, "{}: {}", Quoted(path), self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingInTarget(kind) => write!(out, "missing in the target ({kind})"),
            Self::ExtraInTarget(kind) => write!(out, "only in the target ({kind})"),
            Self::Kind { source, target } => sides(out, "type", source, target),
            Self::Content { offset: Some(offset) } => write!(out, "content differs from byte {offset} on"),
            Self::Content { offset: None } => out.write_str("content differs"),
            Self::Size { source, target } => {
                write!(out, "size is {source} bytes in the source, {target} in the target")
            }
            Self::Mode { source, target } => {
                write!(out, "mode is {source:04o} in the source, {target:04o} in the target")
            }
            Self::Owner { source, target } => sides(out, "owner", Pair(*source), Pair(*target)),
            Self::Mtime { source, target } => sides(out, "time of change", source, target),
            Self::Xattr { name, source, target } => {
                write!(out, "attribute {} ", Quoted(name))?;
                sides(out, "", Value(source.as_deref()), Value(target.as_deref()))
            }
            Self::Acl { default, source, target } => {
                let label = if *default { "default ACL" } else { "ACL" };
                sides(out, label, AclValue(source.as_deref()), AclValue(target.as_deref()))
            }
            Self::SymlinkTarget { source, target } => {
                sides(out, "link target", Quoted(source), Quoted(target))
            }
            Self::Device { source, target } => sides(out, "device", Pair(*source), Pair(*target)),
            Self::HardLink { source, target } => {
                sides(out, "hard link", LinkedTo(source.as_deref()), LinkedTo(target.as_deref()))
            }
            Self::Holes { source, target } => {
                write!(out, "holes differ: it occupies {source} bytes in the source, {target} in the target")
            }
            Self::Unreadable { side, operation, errno } => {
                write!(out, "cannot {operation} it in the {side}: {errno}")
            }
        }
    }
}

fn sides(
    out: &mut fmt::Formatter<'_>,
    label: &str,
    source: impl fmt::Display,
    target: impl fmt::Display,
) -> fmt::Result {
    let space = if label.is_empty() { "" } else { " " };
    write!(out, "{label}{space}is {source} in the source, {target} in the target")
}

/// `7:8`.
struct Pair((u32, u32));

impl fmt::Display for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.0.0, self.0.1)
    }
}

/// An attribute's value, cut after this many bytes.
const SHOWN_BYTES: usize = 64;

struct Value<'a>(Option<&'a [u8]>);

impl fmt::Display for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => out.write_str("absent"),
            Some(value) if value.len() <= SHOWN_BYTES => Quoted(value).fmt(out),
            Some(value) => write!(out, "{}... ({} bytes)", Quoted(&value[..SHOWN_BYTES]), value.len()),
        }
    }
}

struct AclValue<'a>(Option<&'a [u8]>);

impl fmt::Display for AclValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(Acl::decode) {
            Some(acl) => acl.fmt(out),
            None => Value(self.0).fmt(out),
        }
    }
}

struct LinkedTo<'a>(Option<&'a [u8]>);

impl fmt::Display for LinkedTo<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => Quoted(path).fmt(out),
            None => out.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests;
