//! Several entries of one folder in one request.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::attributes::read_link_at;
use super::{call, xattr};
use crate::confine::at_flags;
use crate::entry::{Stat, Xattr};
use crate::facts::{self, FactCalls};
use crate::name::Name;
use crate::op::Outcome;

struct Calls<'a> {
    dir: BorrowedFd<'a>,
    /// Set if the last entry had no extended attributes.
    expects_none: bool,
}

impl FactCalls for Calls<'_> {
    fn stat(&mut self, name: &Name) -> Result<Stat, Errno> {
        let stat = call(|| rustix::fs::statat(self.dir, name.as_c_str(), at_flags(false)))?;
        Ok(Stat::from_kernel(&stat))
    }

    fn text(&mut self, name: &Name) -> Result<Vec<u8>, Errno> {
        read_link_at(self.dir, name.as_c_str())
    }

    fn xattrs(&mut self, name: &Name) -> Result<Vec<Xattr>, Errno> {
        if self.expects_none && xattr::has_none(self.dir, name)? {
            return Ok(Vec::new());
        }
        let found = xattr::of_entry(self.dir, name)?;
        self.expects_none = found.is_empty();
        Ok(found)
    }
}

/// Examines entries of a folder ([`crate::Dir::examine`]).
pub(super) fn examine(dir: BorrowedFd<'_>, names: &[Name], details: bool) -> Outcome {
    Outcome::Examined(facts::examine(&mut Calls { dir, expects_none: true }, names, details))
}
