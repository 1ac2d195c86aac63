//! Differences as they are reported: their kind, their words, and the values of both sides for other programs.

use ferry_tree::Acl;
use ferry_tree::attributes::Time;
use ferry_tree::compare::{Difference, Mismatch};
use ferry_tree::quote::Quoted;
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use crate::errno;
use crate::escape::json_name;

/// Kinds of differences, in the order in which they are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Unreadable,
    Missing,
    Extra,
    Type,
    Content,
    Size,
    LinkTarget,
    Device,
    HardLink,
    Mode,
    Owner,
    Acl,
    Xattr,
    Holes,
    Times,
}

impl Kind {
    /// Returns the name in headings, in the verdict and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Type => "type",
            Self::Content => "content",
            Self::Size => "size",
            Self::LinkTarget => "link target",
            Self::Device => "device",
            Self::HardLink => "hard link",
            Self::Mode => "mode",
            Self::Owner => "owner",
            Self::Acl => "acl",
            Self::Xattr => "xattr",
            Self::Holes => "holes",
            Self::Times => "times",
        }
    }
}

/// A difference that can be reported.
pub(super) trait Described {
    fn kind(&self) -> Kind;
    /// Returns the path from the root, which is empty for the root itself.
    fn path(&self) -> &[u8];
    /// Returns the path as lines of text have it.
    fn quoted_path(&self) -> String;
    fn message(&self) -> String;
    /// Returns the values of both sides by their names in JSON.
    fn values(&self) -> Map<String, Value>;
}

impl Described for Difference {
    fn kind(&self) -> Kind {
        match self.mismatch {
            Mismatch::MissingInTarget(_) => Kind::Missing,
            Mismatch::ExtraInTarget(_) => Kind::Extra,
            Mismatch::Kind { .. } => Kind::Type,
            Mismatch::Content { .. } => Kind::Content,
            Mismatch::Size { .. } => Kind::Size,
            Mismatch::Mode { .. } => Kind::Mode,
            Mismatch::Owner { .. } => Kind::Owner,
            Mismatch::Mtime { .. } => Kind::Times,
            Mismatch::Xattr { .. } => Kind::Xattr,
            Mismatch::Acl { .. } => Kind::Acl,
            Mismatch::SymlinkTarget { .. } => Kind::LinkTarget,
            Mismatch::Device { .. } => Kind::Device,
            Mismatch::HardLink { .. } => Kind::HardLink,
            Mismatch::Holes { .. } => Kind::Holes,
            Mismatch::Unreadable { .. } => Kind::Unreadable,
        }
    }

    fn path(&self) -> &[u8] {
        &self.path
    }

    fn quoted_path(&self) -> String {
        let path: &[u8] = if self.path.is_empty() { b"." } else { &self.path };
        Quoted(path).to_string()
    }

    fn message(&self) -> String {
        self.mismatch.to_string()
    }

    fn values(&self) -> Map<String, Value> {
        let owner = |(uid, gid): (u32, u32)| json!({ "uid": uid, "gid": gid });
        let device = |(major, minor): (u32, u32)| json!({ "major": major, "minor": minor });
        match &self.mismatch {
            Mismatch::MissingInTarget(kind) => sides(kind.to_string().into(), Value::Null),
            Mismatch::ExtraInTarget(kind) => sides(Value::Null, kind.to_string().into()),
            Mismatch::Kind { source, target } => sides(source.to_string().into(), target.to_string().into()),
            Mismatch::Content { offset } => members([("offset", (*offset).into())]),
            Mismatch::Size { source, target } | Mismatch::Holes { source, target } => {
                sides((*source).into(), (*target).into())
            }
            Mismatch::Mode { source, target } => sides(octal(*source), octal(*target)),
            Mismatch::Owner { source, target } => sides(owner(*source), owner(*target)),
            Mismatch::Mtime { source, target } => sides(moment(*source), moment(*target)),
            Mismatch::Xattr { name, source, target } => {
                let mut values = sides(bytes(source.as_deref()), bytes(target.as_deref()));
                values.insert("name".to_owned(), json_name(name).into());
                values
            }
            Mismatch::Acl { default, source, target } => {
                let mut values = sides(acl(source.as_deref()), acl(target.as_deref()));
                values.insert("default".to_owned(), (*default).into());
                values
            }
            Mismatch::SymlinkTarget { source, target } => sides(bytes(Some(source)), bytes(Some(target))),
            Mismatch::Device { source, target } => sides(device(*source), device(*target)),
            Mismatch::HardLink { source, target } => {
                sides(bytes(source.as_deref()), bytes(target.as_deref()))
            }
            Mismatch::Unreadable { side, errno, .. } => {
                let mut values = failure(*errno);
                values.insert("side".to_owned(), side.to_string().into());
                values
            }
        }
    }
}

/// Returns values by their names.
pub(super) fn members<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn sides(source: Value, target: Value) -> Map<String, Value> {
    members([("source", source), ("target", target)])
}

/// Returns number and name of a system call's error.
pub(super) fn failure(errno: Errno) -> Map<String, Value> {
    let mut values = members([("errno", errno.raw_os_error().into())]);
    if let Some(name) = errno::name(errno) {
        values.insert("error".to_owned(), name.into());
    }
    values
}

/// Returns permission bits as four octal digits, as manifests have them.
pub(super) fn octal(mode: u32) -> Value {
    format!("{mode:04o}").into()
}

/// Returns seconds and nanoseconds since 1970, as manifests have them.
pub(super) fn moment(time: Time) -> Value {
    json!([time.seconds, time.nanoseconds])
}

fn bytes(value: Option<&[u8]>) -> Value {
    value.map(json_name).into()
}

/// Returns the short text form of acl(5), or the bytes of what is no ACL.
fn acl(value: Option<&[u8]>) -> Value {
    match value.and_then(Acl::decode) {
        Some(acl) => acl.to_string().into(),
        None => bytes(value),
    }
}
