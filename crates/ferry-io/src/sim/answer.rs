//! Answers requests to the simulated filesystem with the value or the errno that Linux returns.
//!
//! The scheduler calls it when a request is due, with the disk locked. So no descriptor may be dropped here; one opened
//! for a request that then fails is closed by its handle. The disk is unlocked before each call, also within a request
//! of several calls, because other processes may act there ([`Answering::next_call`]).

mod attributes;
mod bytes;
mod examine;
mod names;
mod open;
mod pieces;
mod preload;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use rustix::io::Errno;

use super::chance::Chance;
use super::character::Character;
use super::disk::Disk;
use super::{Inner, SimDescriptor, World};
use crate::descriptor::{Descriptor, Fd};
use crate::error::Operation;
use crate::name::Name;
use crate::op::{FileOrEntry, Op, Outcome};
use crate::sys::{Patience, bytes_to_write};
use crate::vectored;

/// The locked disk; unlocked only while other processes act.
pub(super) struct Locked<'a> {
    world: &'a Arc<Inner>,
    guard: Option<MutexGuard<'a, Disk>>,
}

impl<'a> Locked<'a> {
    pub(super) fn of(world: &'a Arc<Inner>) -> Self {
        Self { world, guard: Some(world.disk()) }
    }

    /// Lets other processes act if they are due before the next call.
    fn let_others(&mut self) {
        let deeds = self.world.meanwhile.due();
        if deeds.is_empty() {
            return;
        }
        self.guard = None;
        for deed in deeds {
            deed(&World { inner: Arc::clone(self.world) });
        }
        self.guard = Some(self.world.disk());
    }
}

impl Deref for Locked<'_> {
    type Target = Disk;

    fn deref(&self) -> &Disk {
        let Some(disk) = &self.guard else { unreachable!("it is locked whenever it is reached") };
        disk
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Disk {
        let Some(disk) = &mut self.guard else { unreachable!("it is locked whenever it is reached") };
        disk
    }
}

/// One request's view of the world.
pub(super) struct Answering<'a> {
    pub(super) world: &'a Arc<Inner>,
    pub(super) disk: Locked<'a>,
    pub(super) chance: &'a mut Chance,
    patience: Patience,
    character: Character,
    /// Set once a call has blocked.
    pub(super) waited: bool,
}

impl<'a> Answering<'a> {
    pub(super) fn new(
        world: &'a Arc<Inner>,
        disk: Locked<'a>,
        chance: &'a mut Chance,
        (patience, character): (Patience, Character),
    ) -> Self {
        Self { world, disk, chance, patience, character, waited: false }
    }

    pub(super) fn answer(&mut self, op: &mut Op) -> Result<Outcome, Errno> {
        let is_compound =
            matches!(op, Op::Load { .. } | Op::Enter { .. } | Op::Examine { .. } | Op::Open { .. });
        if !is_compound {
            self.next_call();
        }
        if let Op::Read { .. } | Op::ReadVectored { .. } = op {
            self.ask()?;
        }
        self.answer_at_once(op)
    }

    /// Begins a call: other processes may act first, and the call may block.
    pub(super) fn next_call(&mut self) {
        self.disk.let_others();
        self.waited |= self.chance.happens(self.character.waits);
    }

    /// Fails with EAGAIN if the request must not block and the data is not cached.
    pub(super) fn ask(&mut self) -> Result<(), Errno> {
        if self.patience == Patience::Wait {
            return Ok(());
        }
        let is_missing = self.chance.happens(self.character.misses);
        if is_missing { Err(Errno::AGAIN) } else { Ok(()) }
    }

    fn answer_at_once(&mut self, op: &mut Op) -> Result<Outcome, Errno> {
        let done = |()| Outcome::Done;
        match op {
            Op::Open { dir, name, flags, mode, follow } => {
                let handle = self.open(dir, name, *flags, mode.bits(), *follow)?;
                Ok(Outcome::Descriptor(self.descriptor(handle)))
            }
            Op::Enter { dir, name, .. } => self.enter(dir, name),
            Op::Examine { dir, names, details } => Ok(Outcome::Examined(self.examine(dir, names, *details))),
            Op::Load { dir, name, xattrs, alone, block, opened, .. } => {
                let loaded = self.load(dir, name, (*xattrs, *alone), block, opened)?;
                Ok(Outcome::Loaded(Box::new(loaded)))
            }
            Op::List { dir, from } => self.list(handle_of(dir), *from).map(Outcome::Entries),
            Op::Stat { place, follow, birth } => self.stat(place, (*follow, *birth)).map(Outcome::Stat),
            Op::Read { file, block, skip, at, size } => {
                self.read(file, block, *skip, *at, *size).map(Outcome::Count)
            }
            Op::Write { file, block, skip, at, .. } => {
                let bytes = block.as_ref().and_then(|block| block.as_slice().get(*skip..));
                self.write(file, bytes.ok_or(Errno::FAULT)?, *at).map(Outcome::Count)
            }
            Op::ReadVectored { file, blocks, skip, at, .. } => {
                self.read_vectored(file, blocks, *skip, *at).map(Outcome::Count)
            }
            Op::WriteVectored { file, blocks, skip, at, .. } => {
                let parts = vectored::to_write(blocks, *skip);
                self.check_parts(file, parts.iter().map(|part| part.len()))?;
                let bytes = parts.iter().map(|part| &**part).collect::<Vec<_>>().concat();
                self.write(file, &bytes, *at).map(Outcome::Count)
            }
            Op::CopyRange { source, source_at, target, target_at, size } => {
                self.copy_range((source, *source_at), (target, *target_at), *size).map(Outcome::Count)
            }
            Op::CopyPieces { source, target, at, size, ways } => {
                self.copy_pieces((source, target), *at, *size, ways).map(Outcome::Count)
            }
            Op::Clone { source, target } => self.clone_file(source, target).map(done),
            Op::Seek { file, at, hole } => self.seek(file, *at, *hole).map(Outcome::Offset),
            Op::Allocate { file, at, size } => self.allocate(file, *at, *size).map(done),
            Op::Truncate { file, size } => self.truncate(file, *size).map(done),
            Op::Sync { file, .. } => self.meet_fault_on(Operation::Sync, &[file]).map(done),
            Op::Close { file, .. } => self.close_file(file.take()).map(done),
            Op::MakeDirectory { dir, name, mode } => self.make_dir(dir, name, mode.bits()).map(done),
            Op::Symlink { dir, name, target } => self.symlink(dir, name, target.to_bytes()).map(done),
            Op::ReadLink { place } => self.read_link(place).map(Outcome::Bytes),
            Op::Link { dir, name, new_dir, new_name, flags } => {
                self.link((dir, name), (new_dir, new_name), *flags).map(done)
            }
            Op::MakeNode { dir, name, kind, mode, device } => {
                self.make_node(dir, name, (*kind, mode.bits(), *device)).map(done)
            }
            Op::Rename { dir, name, new_dir, new_name, mode } => {
                self.rename((dir, name), (new_dir, new_name), *mode).map(done)
            }
            Op::Unlink { dir, name, directory } => self.unlink(dir, name, *directory).map(done),
            Op::SetOwner { file, uid, gid } => self.set_owner(file, *uid, *gid).map(done),
            Op::SetMode { file, mode } => self.set_mode(file, mode.bits()).map(done),
            Op::SetTimes { file, times } => self.set_times(file, *times).map(done),
            Op::ListXattr { place } => self.list_xattrs(place).map(Outcome::Bytes),
            Op::GetXattr { place, name } => self.get_xattr(place, name).map(Outcome::Bytes),
            Op::SetXattr { file, name, value } => self.set_xattr(file, name, value.as_deref()).map(done),
            // As on filesystems without O_TMPFILE: the caller falls back to a name.
            Op::OpenUnnamed { .. } => Err(Errno::OPNOTSUPP),
            Op::LinkOpen { file, new_dir, new_name } => self.link_open(file, new_dir, new_name).map(done),
            // Never reached without a ring: `Dir::read_chain` makes single calls.
            Op::Chain { .. } => Err(Errno::NOSYS),
        }
    }

    /// Performs writes of one file that follow one another as one call.
    pub(super) fn write_joined(&mut self, ops: &[&Op]) -> Result<usize, Errno> {
        let Some(Op::Write { file, at, .. }) = ops.first() else { return Err(Errno::INVAL) };
        self.next_call();
        let bytes: Vec<u8> = ops.iter().filter_map(|op| bytes_to_write(op)).flatten().copied().collect();
        self.write(file, &bytes, *at)
    }

    /// close(2): closes the descriptor whatever the answer is.
    fn close_file(&mut self, file: Option<Fd>) -> Result<(), Errno> {
        let Some(Descriptor::Sim(file)) = file.and_then(Arc::into_inner) else { return Ok(()) };
        let handle = file.give_back();
        let name = self.disk.opened(handle)?.name.clone();
        let answer = self.meet_fault(Operation::Close, &[&name]);
        self.disk.close(handle);
        // close(2) with EINTR has closed the file and reports no write-back error.
        if answer == Err(Errno::INTR) { Ok(()) } else { answer }
    }

    fn meet_fault(&mut self, operation: Operation, names: &[&[u8]]) -> Result<(), Errno> {
        self.disk.meet_fault(operation, names, self.chance)
    }

    /// Returns the number of bytes that a transfer of `size` moves.
    fn shorten(&mut self, size: usize) -> usize {
        let per_million = self.disk.settings.short_transfers;
        if size > 1 && self.chance.happens(per_million) { self.chance.part_of(size) } else { size }
    }

    /// Returns the number of bytes that a transfer of a file moves; whole sectors in direct I/O.
    fn shorten_of(&mut self, file: &Fd, size: usize) -> Result<usize, Errno> {
        let short = self.shorten(size);
        let sector = usize::try_from(self.sector_of(file)?).unwrap_or(1);
        Ok(if short < size { short.next_multiple_of(sector).min(size) } else { size })
    }

    fn descriptor(&self, handle: u64) -> Descriptor {
        let inode = self.disk.opened(handle).and_then(|open| self.disk.inode(open.inode));
        let device = inode.map_or(0, |inode| inode.device);
        Descriptor::Sim(SimDescriptor::new(self.world, handle, device))
    }

    fn dir_inode(&self, dir: &Fd) -> Result<u64, Errno> {
        self.disk.opened(handle_of(dir)).map(|open| open.inode)
    }

    /// Returns the inode of a place without following links.
    fn inode_of(&self, place: &FileOrEntry) -> Result<u64, Errno> {
        match place {
            FileOrEntry::Open(file) => self.dir_inode(file),
            FileOrEntry::Entry(dir, name) => self.disk.look_up(self.dir_inode(dir)?, name.as_bytes()),
        }
    }

    fn meet_fault_on(&mut self, operation: Operation, files: &[&Fd]) -> Result<(), Errno> {
        let name = |file: &&Fd| self.disk.opened(handle_of(file)).map(|open| open.name.clone());
        let names: Vec<_> = files.iter().map(name).collect::<Result<_, _>>()?;
        let names: Vec<_> = names.iter().map(Vec::as_slice).collect();
        self.meet_fault(operation, &names)
    }

    fn meet_fault_at(&mut self, operation: Operation, place: &FileOrEntry) -> Result<(), Errno> {
        match place {
            FileOrEntry::Open(file) => self.meet_fault_on(operation, &[file]),
            FileOrEntry::Entry(_, name) => self.meet_fault(operation, &[name.as_bytes()]),
        }
    }

    /// Returns true if a name is free; fails if the lookup fails otherwise.
    fn is_free(&self, dir: u64, name: &Name) -> Result<bool, Errno> {
        match self.disk.look_up(dir, name.as_bytes()) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(errno) => Err(errno),
        }
    }
}

/// Returns the simulation's number of a descriptor.
///
/// # Panics
/// For a descriptor of the kernel: a run has one backend.
pub(super) fn handle_of(fd: &Fd) -> u64 {
    match &**fd {
        Descriptor::Sim(descriptor) => descriptor.handle,
        Descriptor::Real(_) => unreachable!("a descriptor of the kernel was given to the simulation"),
    }
}
