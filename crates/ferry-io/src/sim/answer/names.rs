//! Making, linking, moving and removing entries.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Answering;
use crate::descriptor::Fd;
use crate::entry::{FileKind, RenameMode};
use crate::error::Operation;
use crate::name::Name;
use crate::op::FileOrEntry;
use crate::sim::content::Sparse;
use crate::sim::disk::Body;

/// Maximum size of a link's target in bytes: PATH_MAX without its NUL.
const LONGEST_TARGET: usize = 4095;

impl Answering<'_> {
    pub(super) fn make_dir(&mut self, dir: &Fd, name: &Name, mode: u32) -> Result<(), Errno> {
        let dir = self.free_place(Operation::MakeDirectory, dir, name)?;
        let body = self.disk.empty_folder(dir);
        self.disk.make(dir, name.as_bytes(), body, mode & 0o1777).map(|_| ())
    }

    pub(super) fn symlink(&mut self, dir: &Fd, name: &Name, target: &[u8]) -> Result<(), Errno> {
        let dir = self.free_place(Operation::Symlink, dir, name)?;
        match target.len() {
            0 => Err(Errno::NOENT),
            1..=LONGEST_TARGET => {
                let body = Body::Symlink(target.to_vec());
                self.disk.make(dir, name.as_bytes(), body, 0o777).map(|_| ())
            }
            _ => Err(Errno::NAMETOOLONG),
        }
    }

    pub(super) fn make_node(
        &mut self,
        dir: &Fd,
        name: &Name,
        (kind, mode, device): (FileKind, u32, u64),
    ) -> Result<(), Errno> {
        let dir = self.free_place(Operation::MakeNode, dir, name)?;
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        let body = match kind {
            FileKind::Directory => return Err(Errno::PERM),
            FileKind::Symlink => return Err(Errno::INVAL),
            FileKind::Regular => Body::Regular(Sparse::default()),
            FileKind::CharDevice | FileKind::BlockDevice if self.disk.settings.uid != 0 => {
                return Err(Errno::PERM);
            }
            FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => {
                Body::Special(kind)
            }
        };
        let number = self.disk.make(dir, name.as_bytes(), body, mode & 0o7777)?;
        if is_device {
            self.disk.inode_mut(number)?.special = device;
        }
        Ok(())
    }

    pub(super) fn read_link(&mut self, place: &FileOrEntry) -> Result<Vec<u8>, Errno> {
        self.meet_fault_at(Operation::ReadLink, place)?;
        let number = self.inode_of(place)?;
        match &self.disk.inode(number)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            Body::Regular(_) | Body::Folder(_) | Body::Special(_) => Err(Errno::INVAL),
        }
    }

    pub(super) fn link(
        &mut self,
        (dir, name): (&Fd, &Name),
        (new_dir, new_name): (&Fd, &Name),
        flags: AtFlags,
    ) -> Result<(), Errno> {
        self.meet_fault(Operation::Link, &[name.as_bytes(), new_name.as_bytes()])?;
        let (dir, new_dir) = (self.dir_inode(dir)?, self.dir_inode(new_dir)?);
        let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
        let number = self.disk.walk(dir, name.as_bytes(), follow)?;
        self.add_name(number, new_dir, new_name)
    }

    pub(super) fn link_open(&mut self, file: &Fd, new_dir: &Fd, new_name: &Name) -> Result<(), Errno> {
        self.meet_fault(Operation::Link, &[new_name.as_bytes()])?;
        let (number, new_dir) = (self.dir_inode(file)?, self.dir_inode(new_dir)?);
        if self.disk.inode(number)?.links == 0 {
            return Err(Errno::NOENT);
        }
        self.add_name(number, new_dir, new_name)
    }

    /// Adds a hard link to an inode that is no folder.
    fn add_name(&mut self, number: u64, new_dir: u64, new_name: &Name) -> Result<(), Errno> {
        if !self.is_free(new_dir, new_name)? {
            return Err(Errno::EXIST);
        }
        let inode = self.disk.inode(number)?;
        if inode.device != self.disk.inode(new_dir)?.device {
            return Err(Errno::XDEV);
        }
        if inode.kind() == FileKind::Directory {
            return Err(Errno::PERM);
        }
        if inode.links >= self.disk.settings.links {
            return Err(Errno::MLINK);
        }
        self.disk.folder_to_change(new_dir)?;
        self.disk.inode_mut(number)?.links += 1;
        self.disk.touch(number)?;
        self.disk.add_entry(new_dir, new_name.as_bytes(), number)
    }

    pub(super) fn rename(
        &mut self,
        (dir, name): (&Fd, &Name),
        (new_dir, new_name): (&Fd, &Name),
        mode: RenameMode,
    ) -> Result<(), Errno> {
        self.meet_fault(Operation::Rename, &[name.as_bytes(), new_name.as_bytes()])?;
        let (dir, new_dir) = (self.dir_inode(dir)?, self.dir_inode(new_dir)?);
        self.disk.rename((dir, name.as_bytes()), (new_dir, new_name.as_bytes()), mode)
    }

    pub(super) fn unlink(&mut self, dir: &Fd, name: &Name, directory: bool) -> Result<(), Errno> {
        self.meet_fault(Operation::Unlink, &[name.as_bytes()])?;
        let dir = self.dir_inode(dir)?;
        let number = self.disk.look_up(dir, name.as_bytes())?;
        self.disk.folder_to_change(dir)?;
        match self.disk.inode(number)?.folder() {
            Ok(_) if !directory => return Err(Errno::ISDIR),
            Ok(_) if self.disk.is_mount(number)? => return Err(Errno::BUSY),
            Ok(folder) if !folder.is_empty() => return Err(Errno::NOTEMPTY),
            Err(_) if directory => return Err(Errno::NOTDIR),
            Ok(_) | Err(_) => {}
        }
        self.disk.remove_name(dir, name.as_bytes(), number)
    }

    /// Returns the folder for a new entry; fails if the name is taken.
    fn free_place(&mut self, operation: Operation, dir: &Fd, name: &Name) -> Result<u64, Errno> {
        self.meet_fault(operation, &[name.as_bytes()])?;
        let dir = self.dir_inode(dir)?;
        if self.is_free(dir, name)? { Ok(dir) } else { Err(Errno::EXIST) }
    }
}
