//! Opening, listing, and the requests that do several things at once.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Answering, handle_of};
use crate::buffers::Block;
use crate::entry::{Content, Entries, Entry, FileKind, Loaded, Stat, Xattr};
use crate::error::Operation;
use crate::file::File;
use crate::name::Name;
use crate::op::{Fd, Into, Outcome, Place};
use crate::sim::content::Sparse;
use crate::sim::disk::{Body, READ, WRITE};

/// Entries of a listing at most.
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

    /// Whether what is there may be opened so.
    fn check_open(&self, number: u64, flags: OFlags) -> Result<(), Errno> {
        let inode = self.disk.inode(number)?;
        let (reads, writes) = access(flags);
        let kind = inode.kind();
        if flags.contains(OFlags::DIRECTORY) && kind != FileKind::Directory {
            return Err(Errno::NOTDIR);
        }
        match kind {
            FileKind::Symlink if flags.contains(OFlags::PATH) => {}
            FileKind::Symlink => return Err(Errno::LOOP),
            FileKind::Directory if writes || flags.contains(OFlags::CREATE) => return Err(Errno::ISDIR),
            // Who waits finds somebody at the other end, who says nothing.
            FileKind::Fifo if flags.contains(OFlags::NONBLOCK) && writes && !reads => {
                return Err(Errno::NXIO);
            }
            // No driver is there.
            FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => return Err(Errno::NXIO),
            FileKind::Regular | FileKind::Directory | FileKind::Fifo => {}
        }
        if flags.contains(OFlags::PATH) {
            return Ok(());
        }
        let want = if reads { READ } else { 0 } | if writes { WRITE } else { 0 };
        self.disk.may(inode, want)
    }

    pub(super) fn stat(&mut self, place: &Place, follow: bool) -> Result<Stat, Errno> {
        self.meet_fault_at(Operation::Stat, place)?;
        let number = match place {
            Place::Entry(dir, name) if follow => {
                self.disk.walk(self.dir_inode(dir)?, name.as_bytes(), true)?
            }
            Place::Entry(..) | Place::Open(_) => self.inode_of(place)?,
        };
        self.disk.stat(number)
    }

    pub(super) fn list(&mut self, handle: u64, from: Option<u64>) -> Result<Entries, Errno> {
        let open = self.disk.opened(handle)?;
        let (number, cookie, name) = (open.inode, from.unwrap_or(open.cookie), open.name.clone());
        self.meet_fault(Operation::List, &[&name])?;
        if self.disk.inode(number)?.links == 0 {
            // It was removed.
            return Err(Errno::NOENT);
        }
        let most = self.shorten(CHUNK);
        let mut found = Entries::default();
        let mut last = cookie;
        let lists_kinds = self.disk.settings.lists_kinds;
        for (cookie, entry) in self.disk.inode(number)?.folder()?.after(cookie) {
            if found.entries.len() == most {
                found.next = Some(last);
                break;
            }
            last = cookie;
            let kind = self.disk.inode(entry.inode)?.kind();
            let name = Name::new(&entry.name).ok_or(Errno::IO)?;
            found.entries.push(Entry { name, kind: lists_kinds.then_some(kind), inode: entry.inode });
        }
        if found.entries.len() == most {
            // As the kernel does: that nothing follows shows only when more is asked for.
            found.next = Some(last);
        }
        self.disk.opened_mut(handle)?.cookie = last;
        Ok(found)
    }

    pub(super) fn enter(&mut self, dir: &Fd, name: &Name) -> Result<Outcome, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let handle = self.open(dir, name, flags, 0, false)?;
        let entered = self.stat_open(handle, name).and_then(|stat| Ok((stat, self.list(handle, None)?)));
        match entered {
            Ok((stat, entries)) => Ok(Outcome::Entered(Box::new((self.descriptor(handle), stat, entries)))),
            Err(errno) => {
                self.disk.close(handle);
                Err(errno)
            }
        }
    }

    pub(super) fn load(
        &mut self,
        dir: &Fd,
        name: &Name,
        (xattrs, alone): (bool, bool),
        block: &mut Option<Block>,
    ) -> Result<Loaded, Errno> {
        self.meet_fault(Operation::Load, &[name.as_bytes()])?;
        let handle = self.open(dir, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, 0, false)?;
        let (stat, xattrs, is_whole) = match self.load_open(handle, name, (xattrs, alone), block) {
            Ok(loaded) => loaded,
            Err(errno) => {
                self.disk.close(handle);
                return Err(errno);
            }
        };
        let content = match block.take_if(|_| is_whole) {
            Some(block) => {
                self.disk.close(handle);
                Content::Whole(block)
            }
            None => Content::Open(File::from_descriptor(self.descriptor(handle))),
        };
        Ok(Loaded { stat, xattrs, content })
    }

    /// Makes the file that what was loaded is for; where that can't be done, it stays as it was loaded.
    pub(super) fn store(&mut self, name: &Name, into: &Into, mode: u32, content: Content) -> Content {
        let Content::Whole(block) = content else { return content };
        let mode = into.mode.fixed | mode & into.mode.of_source;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let Ok(handle) = self.open(&into.dir, name, flags, mode, false) else { return Content::Whole(block) };
        let written = self.fill(handle, name, block.as_slice());
        let file = File::from_descriptor(self.descriptor(handle));
        match written {
            Ok(size) => Content::Stored(file, size),
            Err(_) => Content::Begun(file, block),
        }
    }

    /// Writes a new file; its size then.
    fn fill(&mut self, handle: u64, name: &Name, bytes: &[u8]) -> Result<u64, Errno> {
        let number = self.disk.opened(handle)?.inode;
        let mut written = 0;
        while written < bytes.len() {
            self.meet_fault(Operation::Write, &[name.as_bytes()])?;
            let size = self.shorten(bytes.len() - written);
            written += self.put(number, written as u64, &bytes[written..written + size])?;
        }
        Ok(written as u64)
    }

    /// Attributes of a file to be loaded, and whether all its bytes are now in the block.
    fn load_open(
        &mut self,
        handle: u64,
        name: &Name,
        (xattrs, alone): (bool, bool),
        block: &mut Option<Block>,
    ) -> Result<(Stat, Vec<Xattr>, bool), Errno> {
        let stat = self.stat_open(handle, name)?;
        let inode = self.disk.opened(handle)?.inode;
        let xattrs = if xattrs { self.all_xattrs(inode, name)? } else { Vec::new() };
        let Some(block) = block.as_mut() else { return Ok((stat, xattrs, false)) };
        let fits = usize::try_from(stat.size).is_ok_and(|size| size <= block.capacity());
        if stat.kind != FileKind::Regular || stat.may_have_holes() || !fits || alone && stat.links > 1 {
            return Ok((stat, xattrs, false));
        }
        self.meet_fault(Operation::Read, &[name.as_bytes()])?;
        let count = self.disk.inode(inode)?.content()?.read(0, block.as_mut_capacity());
        block.set_filled(count);
        Ok((stat, xattrs, true))
    }

    fn stat_open(&mut self, handle: u64, name: &Name) -> Result<Stat, Errno> {
        self.meet_fault(Operation::Stat, &[name.as_bytes()])?;
        let inode = self.disk.opened(handle)?.inode;
        self.disk.stat(inode)
    }

    /// The inode and the flags of an open file.
    pub(super) fn opened(&self, file: &Fd) -> Result<(u64, OFlags), Errno> {
        let open = self.disk.opened(handle_of(file))?;
        Ok((open.inode, open.flags))
    }
}

/// Whether a file opened so may be read, and written.
pub(super) fn access(flags: OFlags) -> (bool, bool) {
    if flags.contains(OFlags::RDWR) {
        (true, true)
    } else {
        let writes = flags.contains(OFlags::WRONLY);
        (!writes, writes)
    }
}
