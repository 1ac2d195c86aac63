//! Kinds of differences, each with its line of text.

use crate::acl::Acl;
use crate::attributes::{EntryKind, Time};
use crate::error::Operation;
use crate::quote::Quoted;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The original.
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

/// A difference at one path. Its `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Path from the root; empty for the root itself.
    #[serde(with = "text")]
    pub path: Vec<u8>,
    /// The property that differs.
    pub mismatch: Mismatch,
}

/// Property in which two entries of the same path differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mismatch {
    /// Only the source has it.
    MissingInTarget(EntryKind),
    /// Only the target has it.
    ExtraInTarget(EntryKind),
    /// Types differ.
    Kind {
        /// The source's type.
        source: EntryKind,
        /// The target's type.
        target: EntryKind,
    },
    /// Contents of equal size differ.
    Content {
        /// Offset of the first difference in bytes; `None` in snapshots.
        offset: Option<u64>,
    },
    /// Sizes differ.
    Size {
        /// The source's, in bytes.
        source: u64,
        /// The target's size.
        target: u64,
    },
    /// Modes differ.
    Mode {
        /// The source's, 0 to 0o7777.
        source: u32,
        /// The target's mode.
        target: u32,
    },
    /// Users or groups differ.
    Owner {
        /// The source's user and group.
        source: (u32, u32),
        /// The target's user and group.
        target: (u32, u32),
    },
    /// Modification times differ.
    Mtime {
        /// The source's time.
        source: Time,
        /// The target's time.
        target: Time,
    },
    /// An extended attribute differs, or only one side has it.
    Xattr {
        /// Its full name.
        name: Vec<u8>,
        /// The source's value.
        source: Option<Vec<u8>>,
        /// The target's value.
        target: Option<Vec<u8>>,
    },
    /// An ACL differs, or only one side has it. Values are the bytes of the attribute ([`Acl::decode`]).
    Acl {
        /// True for the default ACL, false for the access ACL.
        default: bool,
        /// The source's value.
        source: Option<Vec<u8>>,
        /// The target's value.
        target: Option<Vec<u8>>,
    },
    /// Targets of symbolic links differ.
    SymlinkTarget {
        /// Target of the source's link.
        source: Vec<u8>,
        /// Target of the target's link.
        target: Vec<u8>,
    },
    /// Device nodes have different numbers.
    Device {
        /// The source's major and minor number.
        source: (u32, u32),
        /// The target's major and minor number.
        target: (u32, u32),
    },
    /// Names that are one file on one side are different files on the other.
    HardLink {
        /// First other path, in byte order, of the same file in the source.
        source: Option<Vec<u8>>,
        /// First other path, in byte order, of the same file in the target.
        target: Option<Vec<u8>>,
    },
    /// Holes of one side are data on the other, which occupies considerably more space.
    Holes {
        /// Bytes that the source occupies.
        source: u64,
        /// Bytes that the target occupies.
        target: u64,
    },
    /// One side cannot be read, so a part of it was not compared.
    Unreadable {
        /// Side that failed.
        side: Side,
        /// Operation that failed.
        operation: Operation,
        /// Reason given by the kernel.
        #[serde(with = "number")]
        errno: Errno,
    },
}

/// A path as text, or as a list of numbers if it is no UTF-8.
pub(super) mod text {
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Path {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(in crate::compare) fn serialize<S: Serializer>(path: &[u8], to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(path) {
            Ok(text) => text.serialize(to),
            Err(_) => path.serialize(to),
        }
    }

    pub(in crate::compare) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        Path::deserialize(from).map(|path| match path {
            Path::Text(text) => text.into_bytes(),
            Path::Bytes(bytes) => bytes,
        })
    }
}

/// The errno of a difference as a number.
mod number {
    use rustix::io::Errno;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(errno: &Errno, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i32(errno.raw_os_error())
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Errno, D::Error> {
        i32::deserialize(from).map(Errno::from_raw_os_error)
    }
}

/// Difference of an entry that only one side has.
pub(super) fn alone(side: Side, kind: EntryKind) -> Mismatch {
    match side {
        Side::Source => Mismatch::MissingInTarget(kind),
        Side::Target => Mismatch::ExtraInTarget(kind),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { b"." } else { self.path.as_slice() };
        write!(out, "{}: {}", Quoted(path), self.mismatch)
    }
}

impl fmt::Display for Mismatch {
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

struct Pair((u32, u32));

impl fmt::Display for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.0.0, self.0.1)
    }
}

/// Number of bytes of an attribute's value that are shown.
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
