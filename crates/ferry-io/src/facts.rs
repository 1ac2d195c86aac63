//! Facts of one entry, and the reading of those of several entries by one request.

use rustix::io::Errno;

use crate::entry::{FileKind, Stat, Xattr};
use crate::name::Name;

/// Attributes of an entry, and its details: text of a link, extended attributes.
#[derive(Debug)]
pub struct Facts {
    /// Attributes of the entry itself; a link is not followed.
    pub stat: Stat,
    /// Text of a symbolic link; `None` for other kinds, and if it was not requested or not read.
    pub text: Option<Vec<u8>>,
    /// Every readable extended attribute; `None` if they were not requested or not read.
    pub xattrs: Option<Vec<Xattr>>,
}

impl Facts {
    /// Facts of an entry of which only attributes are known.
    pub(crate) fn of(stat: Stat) -> Self {
        Self { stat, text: None, xattrs: None }
    }
}

/// Bytes of extended attributes that one request returns.
pub(crate) const XATTR_BYTES: usize = 64 * 1024;

fn bytes_of(xattrs: &[Xattr]) -> usize {
    xattrs.iter().map(|(name, value)| name.as_bytes().len() + value.len()).sum()
}

/// Reads facts of an entry, with one backend's calls.
pub(crate) trait FactCalls {
    fn stat(&mut self, name: &Name) -> Result<Stat, Errno>;
    fn text(&mut self, name: &Name) -> Result<Vec<u8>, Errno>;
    fn xattrs(&mut self, name: &Name) -> Result<Vec<Xattr>, Errno>;
}

/// Examines entries.
pub(crate) fn examine(
    calls: &mut impl FactCalls,
    names: &[Name],
    details: bool,
) -> Vec<Result<Facts, Errno>> {
    let mut room = XATTR_BYTES;
    let one = |name: &Name| {
        let mut facts = Facts::of(calls.stat(name)?);
        if details {
            if facts.stat.kind == FileKind::Symlink {
                facts.text = calls.text(name).ok();
            }
            if room > 0 {
                let found = calls.xattrs(name).ok();
                let bytes = found.as_deref().map_or(0, bytes_of);
                facts.xattrs = found.filter(|_| bytes <= room);
                room = room.saturating_sub(bytes);
            }
        }
        Ok(facts)
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
