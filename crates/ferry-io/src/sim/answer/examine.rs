//! Several entries of one folder in one request: other processes may act between its calls.

use rustix::io::Errno;

use super::Answering;
use crate::descriptor::Fd;
use crate::entry::{Stat, Xattr, names_in, readable};
use crate::facts::{self, FactCalls, Facts};
use crate::name::Name;
use crate::op::FileOrEntry;

struct Calls<'a, 'b> {
    answering: &'a mut Answering<'b>,
    dir: &'a Fd,
}

impl Calls<'_, '_> {
    fn place(&self, name: &Name) -> FileOrEntry {
        FileOrEntry::Entry(self.dir.clone(), name.clone())
    }
}

impl FactCalls for Calls<'_, '_> {
    fn stat(&mut self, name: &Name) -> Result<Stat, Errno> {
        self.answering.next_call();
        self.answering.stat(&self.place(name), (false, false))
    }

    fn text(&mut self, name: &Name) -> Result<Vec<u8>, Errno> {
        self.answering.next_call();
        self.answering.read_link(&self.place(name))
    }

    fn xattrs(&mut self, name: &Name) -> Result<Vec<Xattr>, Errno> {
        let place = self.place(name);
        self.answering.next_call();
        let names = match self.answering.list_xattrs(&place) {
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            names => names?,
        };
        readable(names_in(&names), |name| {
            self.answering.next_call();
            self.answering.get_xattr(&place, name)
        })
    }
}

impl Answering<'_> {
    pub(super) fn examine(&mut self, dir: &Fd, names: &[Name], details: bool) -> Vec<Result<Facts, Errno>> {
        facts::examine(&mut Calls { answering: self, dir }, names, details)
    }
}
