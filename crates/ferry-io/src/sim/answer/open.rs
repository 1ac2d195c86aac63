//! Opening, listing, and requests that make several calls.

use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Answering, handle_of};
use crate::buffers::Block;
use crate::descriptor::File;
use crate::descriptor::{Descriptor, Fd};
use crate::entry::{Entries, Entry, FileKind, Stat};
use crate::error::Operation;
use crate::loaded::{Content, Loaded, Opened};
use crate::name::Name;
use crate::op::{FileOrEntry, Outcome};
use crate::sim::content::Sparse;
use crate::sim::disk::{Body, READ, WRITE};
use crate::sim::entries::Listed;

/// Maximum number of entries in one listing.
const CHUNK: usize = 1024;

impl Answering<'_> {
    pub(super) fn open(
        &mut self,
        dir: &Fd,
        name: &Name,
        flags: OFlags,
        mode: u32,
        follow: bool,
    ) -> Result<u64, Errno> {
        self.next_call();
        if !flags.intersects(OFlags::CREATE | OFlags::TRUNC) {
            self.ask()?;
        }
        self.open_in_memory(dir, name, flags, mode, follow)
    }

    /// Opens a file without checking that its data is cached.
    fn open_in_memory(
        &mut self,
        dir: &Fd,
        name: &Name,
        flags: OFlags,
        mode: u32,
        follow: bool,
    ) -> Result<u64, Errno> {
        self.meet_fault(Operation::Open, &[name.as_bytes()])?;
        let dir = self.dir_inode(dir)?;
        if self.disk.open_count() >= self.disk.settings.descriptors {
            return Err(Errno::MFILE);
        }
        if flags.contains(OFlags::DIRECT) && !self.disk.settings.opens_direct {
            return Err(Errno::INVAL);
        }
        let follow = follow && !flags.contains(OFlags::EXCL);
        let number = match self.disk.walk(dir, name.as_bytes(), follow) {
            Ok(_) if flags.contains(OFlags::CREATE | OFlags::EXCL) => return Err(Errno::EXIST),
            Ok(number) => {
                self.check_open(number, flags)?;
                number
            }
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                self.disk.make(dir, name.as_bytes(), Body::Regular(Sparse::default()), mode & 0o7777)?
            }
            Err(errno) => return Err(errno),
        };
        let is_file = self.disk.inode(number)?.kind() == FileKind::Regular;
        if flags.contains(OFlags::TRUNC) && is_file {
            self.disk.change(number, |content| content.set_size(0))?;
        }
        self.disk.open(number, flags, name.as_bytes())
    }

    /// Fails unless this inode may be opened with these flags.
    fn check_open(&self, number: u64, flags: OFlags) -> Result<(), Errno> {
        let inode = self.disk.inode(number)?;
        let (reads, writes) = access(flags);
        let kind = inode.kind();
        if flags.contains(OFlags::DIRECTORY) && kind != FileKind::Directory {
            return Err(Errno::NOTDIR);
        }
        match kind {
            _ if flags.contains(OFlags::PATH) => return Ok(()),
            FileKind::Symlink => return Err(Errno::LOOP),
            FileKind::Directory if writes || flags.contains(OFlags::CREATE) => return Err(Errno::ISDIR),
            // A blocking open finds a peer at the other end, which stays silent.
            FileKind::Fifo if flags.contains(OFlags::NONBLOCK) && writes && !reads => {
                return Err(Errno::NXIO);
            }
            // No driver exists.
            FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => return Err(Errno::NXIO),
            FileKind::Regular | FileKind::Directory | FileKind::Fifo => {}
        }
        let want = if reads { READ } else { 0 } | if writes { WRITE } else { 0 };
        self.disk.may(inode, want)
    }

    pub(super) fn stat(&mut self, place: &FileOrEntry, (follow, birth): (bool, bool)) -> Result<Stat, Errno> {
        self.meet_fault_at(Operation::Stat, place)?;
        let number = match place {
            FileOrEntry::Entry(dir, name) if follow => {
                self.disk.walk(self.dir_inode(dir)?, name.as_bytes(), true)?
            }
            FileOrEntry::Entry(..) | FileOrEntry::Open(_) => self.inode_of(place)?,
        };
        let born = self.disk.inode(number)?.born;
        let is_told = birth && self.disk.settings.tells_birth;
        Ok(Stat { born: is_told.then_some(born), ..self.disk.stat(number)? })
    }

    pub(super) fn list(&mut self, handle: u64, from: Option<u64>) -> Result<Entries, Errno> {
        let open = self.disk.opened(handle)?;
        let (number, cookie, name) = (open.inode, from.unwrap_or(open.cookie), open.name.clone());
        self.meet_fault(Operation::List, &[&name])?;
        if self.disk.inode(number)?.links == 0 {
            // The folder was removed.
            return Err(Errno::NOENT);
        }
        let most = self.shorten(CHUNK);
        let mut found = Entries::default();
        let mut last = cookie;
        let lists_kinds = self.disk.settings.lists_kinds;
        for (cookie, Listed { name, inode, kind }) in self.disk.listed(handle, cookie)? {
            if found.entries.len() == most {
                found.next = Some(last);
                break;
            }
            last = cookie;
            let name = Name::new(&name).ok_or(Errno::IO)?;
            found.entries.push(Entry { name, kind: lists_kinds.then_some(kind), inode });
        }
        if found.entries.len() == most {
            // As in the kernel, only the next listing shows that nothing follows.
            found.next = Some(last);
        }
        self.disk.opened_mut(handle)?.cookie = last;
        Ok(found)
    }

    pub(super) fn enter(&mut self, dir: &Fd, name: &Name) -> Result<Outcome, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let handle = self.open(dir, name, flags, 0, false)?;
        let entered = self.stat_open(handle, name).and_then(|stat| {
            self.next_call();
            Ok((stat, self.list(handle, None)?))
        });
        match entered {
            Ok((stat, entries)) => {
                Ok(Outcome::Entered(Box::new((Arc::new(self.descriptor(handle)), stat, entries))))
            }
            Err(errno) => {
                self.disk.close(handle);
                Err(errno)
            }
        }
    }

    /// Loads a file. It stays `opened` if its bytes are not cached or can't be read.
    pub(super) fn load(
        &mut self,
        dir: &Fd,
        name: &Name,
        (xattrs, alone): (bool, bool),
        block: &mut Option<Block>,
        opened: &mut Option<Box<Opened>>,
    ) -> Result<Loaded, Errno> {
        if opened.is_none() {
            *opened = Some(Box::new(self.open_to_load(dir, name, xattrs)?));
        }
        let Some(known) = opened else { return Err(Errno::IO) };
        let is_whole = self.load_bytes(known, name, alone, block)?;
        let Some(known) = opened.take() else { return Err(Errno::IO) };
        let Opened { file, stat, xattrs } = *known;
        let content = match block.take_if(|_| is_whole) {
            Some(block) => {
                self.next_call();
                if let Descriptor::Sim(file) = file {
                    self.disk.close(file.give_back());
                }
                Content::Whole(block)
            }
            None => Content::Open(File::from_descriptor(file)),
        };
        Ok(Loaded { stat, xattrs, content })
    }

    /// Opens a file to be loaded and reads its attributes.
    pub(super) fn open_to_load(&mut self, dir: &Fd, name: &Name, xattrs: bool) -> Result<Opened, Errno> {
        self.next_call();
        self.ask()?;
        self.meet_fault(Operation::Load, &[name.as_bytes()])?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let handle = self.open_in_memory(dir, name, flags, 0, false)?;
        let known = self.stat_open(handle, name).and_then(|stat| {
            let inode = self.disk.opened(handle)?.inode;
            Ok((stat, if xattrs { self.all_xattrs(inode, name)? } else { Vec::new() }))
        });
        match known {
            Ok((stat, xattrs)) => Ok(Opened { file: self.descriptor(handle), stat, xattrs }),
            Err(errno) => {
                self.disk.close(handle);
                Err(errno)
            }
        }
    }

    /// Makes a new file of these bytes; returns true if it contains all of them.
    pub(in crate::sim) fn store(
        &mut self,
        dir: &Fd,
        name: &Name,
        mode: u32,
        bytes: &[u8],
    ) -> Result<(Descriptor, bool), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let handle = self.open(dir, name, flags, mode, false)?;
        let is_whole = self.fill(handle, name, bytes).is_ok();
        Ok((self.descriptor(handle), is_whole))
    }

    fn fill(&mut self, handle: u64, name: &Name, bytes: &[u8]) -> Result<(), Errno> {
        let number = self.disk.opened(handle)?.inode;
        let mut written = 0;
        while written < bytes.len() {
            self.next_call();
            self.meet_fault(Operation::Write, &[name.as_bytes()])?;
            let size = self.shorten(bytes.len() - written);
            written += self.put(number, written as u64, &bytes[written..written + size])?;
        }
        Ok(())
    }

    /// Reads all bytes of a file into the block, if they are wanted and fit. Returns true if the block contains them.
    fn load_bytes(
        &mut self,
        known: &Opened,
        name: &Name,
        alone: bool,
        block: &mut Option<Block>,
    ) -> Result<bool, Errno> {
        let Opened { file: Descriptor::Sim(file), stat, .. } = known else { return Err(Errno::BADF) };
        let Some(block) = block.as_mut() else { return Ok(false) };
        let Ok(size) = usize::try_from(stat.size) else { return Ok(false) };
        if !stat.is_read(alone) || size > block.capacity() {
            return Ok(false);
        }
        let says_empty = size == 0;
        let wanted = if says_empty { block.capacity() } else { size };
        let mut filled = 0;
        while filled < wanted {
            self.next_call();
            if !says_empty {
                self.ask()?;
            }
            self.meet_fault(Operation::Read, &[name.as_bytes()])?;
            let inode = self.disk.opened(file.handle)?.inode;
            let part = self.shorten(wanted - filled);
            let into = block.as_mut_capacity().get_mut(filled..filled + part).ok_or(Errno::FAULT)?;
            match self.disk.inode(inode)?.content()?.read(filled as u64, into) {
                0 => break,
                count => filled += count,
            }
        }
        if says_empty && filled == wanted {
            return Ok(false);
        }
        block.set_filled(filled);
        Ok(true)
    }

    fn stat_open(&mut self, handle: u64, name: &Name) -> Result<Stat, Errno> {
        self.next_call();
        self.meet_fault(Operation::Stat, &[name.as_bytes()])?;
        let inode = self.disk.opened(handle)?.inode;
        self.disk.stat(inode)
    }

    pub(super) fn opened(&self, file: &Fd) -> Result<(u64, OFlags), Errno> {
        let open = self.disk.opened(handle_of(file))?;
        Ok((open.inode, open.flags))
    }
}

/// Returns two flags: opened for reading, opened for writing.
pub(super) fn access(flags: OFlags) -> (bool, bool) {
    if flags.contains(OFlags::RDWR) {
        (true, true)
    } else {
        let writes = flags.contains(OFlags::WRONLY);
        (!writes, writes)
    }
}
