//! Files that the request which lists a folder reads.

use rustix::io::Errno;

use super::Answering;
use crate::descriptor::{Descriptor, Fd};
use crate::entry::{Entries, FileKind};
use crate::error::Operation;
use crate::loaded::Opened;
use crate::name::Name;
use crate::preload::{BYTES, FILES, IN_VAIN, Preload, Preloaded};

impl Answering<'_> {
    /// Reads small files of a folder that was just listed, one after another. Those that fail are left out.
    pub(in crate::sim) fn preload(&mut self, dir: &Fd, entries: &Entries, plan: &Preload) -> Vec<Preloaded> {
        let files = entries.entries.iter().filter(|entry| entry.kind == Some(FileKind::Regular)).take(FILES);
        let (mut room, mut in_vain, mut read) = (BYTES, 0, Vec::new());
        for entry in files {
            if room == 0 || in_vain >= IN_VAIN {
                break;
            }
            in_vain += 1;
            if let Ok(Some(file)) = self.preload_one(dir, &entry.name, plan, room) {
                room = room.saturating_sub(file.bytes());
                in_vain = 0;
                read.push(file);
            }
        }
        read
    }

    fn preload_one(
        &mut self,
        dir: &Fd,
        name: &Name,
        plan: &Preload,
        room: u64,
    ) -> Result<Option<Preloaded>, Errno> {
        let Opened { file: Descriptor::Sim(file), stat, xattrs } =
            self.open_to_load(dir, name, plan.xattrs)?
        else {
            return Err(Errno::BADF);
        };
        let handle = file.give_back();
        let read = plan.size_of(&stat, room).map(|size| self.read_to_end(handle, name, size));
        self.next_call();
        self.disk.close(handle);
        let Some(bytes) = read.transpose()? else { return Ok(None) };
        let xattrs = plan.xattrs.then_some(xattrs);
        Ok(Some(Preloaded { name: name.clone(), stat, xattrs, bytes }))
    }

    /// Reads a file up to `size`, or to its end if it has become shorter.
    fn read_to_end(&mut self, handle: u64, name: &Name, size: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < size {
            self.next_call();
            self.meet_fault(Operation::Read, &[name.as_bytes()])?;
            let part = self.shorten(size - filled);
            let inode = self.disk.opened(handle)?.inode;
            let into = bytes.get_mut(filled..filled + part).ok_or(Errno::FAULT)?;
            match self.disk.inode(inode)?.content()?.read(filled as u64, into) {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}
