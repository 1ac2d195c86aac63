//! Listing a simulated folder, and renaming its entries.

use std::sync::Arc;

use rustix::io::Errno;

use super::disk::{Body, Disk, ROOT};
use crate::entry::{FileKind, RenameMode};

#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) inode: u64,
    pub(super) kind: FileKind,
}

impl Disk {
    /// Returns the entries after a cookie, each with its cookie. Where cookies are positions, they come from the
    /// listing that the descriptor began.
    pub(super) fn listed(&mut self, handle: u64, after: u64) -> Result<Vec<(u64, Listed)>, Errno> {
        let number = self.opened(handle)?.inode;
        if let Some(begun) = self.opened(handle)?.listing.clone() {
            return Ok(numbered(&begun).filter(|&(cookie, _)| cookie > after).collect());
        }
        let mut found = Vec::new();
        for (cookie, entry) in self.inode(number)?.folder()?.after(0) {
            let kind = self.inode(entry.inode)?.kind();
            found.push((cookie, Listed { name: entry.name.clone(), inode: entry.inode, kind }));
        }
        if self.settings.ordinal_cookies {
            let listing: Arc<[Listed]> = found.into_iter().map(|(_, listed)| listed).collect();
            self.opened_mut(handle)?.listing = Some(Arc::clone(&listing));
            return Ok(numbered(&listing).filter(|&(cookie, _)| cookie > after).collect());
        }
        found.retain(|&(cookie, _)| cookie > after);
        Ok(found)
    }

    /// rename(2). Fails with EEXIST for an existing target, unless it may be replaced.
    pub(super) fn rename(
        &mut self,
        (dir, name): (u64, &[u8]),
        (new_dir, new_name): (u64, &[u8]),
        mode: RenameMode,
    ) -> Result<(), Errno> {
        if mode != RenameMode::Replace && !self.settings.renames_with_flags {
            return Err(Errno::INVAL);
        }
        let number = self.look_up(dir, name)?;
        let replaced = match self.look_up(new_dir, new_name) {
            Ok(replaced) => Some(replaced),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno),
        };
        if self.inode(dir)?.device != self.inode(new_dir)?.device {
            return Err(Errno::XDEV);
        }
        match (mode, replaced) {
            (RenameMode::Keep, Some(_)) => return Err(Errno::EXIST),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT),
            (RenameMode::Exchange, Some(other)) => {
                return self.exchange((dir, name, number), (new_dir, new_name, other));
            }
            (RenameMode::Keep, None) | (RenameMode::Replace, _) => {}
        }
        self.folder_to_change(dir)?;
        self.folder_to_change(new_dir)?;
        let is_folder = self.inode(number)?.kind() == FileKind::Directory;
        if is_folder {
            self.check_not_beneath(number, new_dir)?;
            if self.is_mount(number)? {
                return Err(Errno::BUSY);
            }
        }
        if let Some(replaced) = replaced {
            if replaced == number {
                return Ok(());
            }
            self.check_replaceable(replaced, is_folder)?;
            self.remove_name(new_dir, new_name, replaced)?;
        }
        self.remove_entry(dir, name)?;
        self.add_entry(new_dir, new_name, number)?;
        // As ext4, XFS and btrfs do.
        self.touch(number)?;
        if let Body::Folder(folder) = &mut self.inode_mut(number)?.body {
            folder.parent = new_dir;
            self.inode_mut(dir)?.links -= 1;
            self.inode_mut(new_dir)?.links += 1;
        }
        Ok(())
    }

    /// Exchanges two entries: folder, name and inode of each.
    fn exchange(&mut self, one: (u64, &[u8], u64), other: (u64, &[u8], u64)) -> Result<(), Errno> {
        for (from, to) in [(one, other), (other, one)] {
            self.folder_to_change(from.0)?;
            if self.inode(from.2)?.kind() == FileKind::Directory {
                self.check_not_beneath(from.2, to.0)?;
                if self.is_mount(from.2)? {
                    return Err(Errno::BUSY);
                }
            }
        }
        if one.2 == other.2 {
            return Ok(());
        }
        for (from, _) in [(one, other), (other, one)] {
            self.remove_entry(from.0, from.1)?;
        }
        for (from, to) in [(one, other), (other, one)] {
            self.add_entry(to.0, to.1, from.2)?;
            self.touch(from.2)?;
            if let Body::Folder(folder) = &mut self.inode_mut(from.2)?.body {
                folder.parent = to.0;
                self.inode_mut(from.0)?.links -= 1;
                self.inode_mut(to.0)?.links += 1;
            }
        }
        Ok(())
    }

    /// Fails unless a rename may replace this inode.
    fn check_replaceable(&self, replaced: u64, by_folder: bool) -> Result<(), Errno> {
        match self.inode(replaced)?.folder() {
            Ok(_) if !by_folder => Err(Errno::ISDIR),
            Ok(folder) if !folder.is_empty() => Err(Errno::NOTEMPTY),
            Err(_) if by_folder => Err(Errno::NOTDIR),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Fails with EINVAL if a folder would be moved into itself.
    fn check_not_beneath(&self, folder: u64, mut at: u64) -> Result<(), Errno> {
        while at != ROOT {
            if at == folder {
                return Err(Errno::INVAL);
            }
            at = self.inode(at)?.folder()?.parent;
        }
        Ok(())
    }
}

/// Numbers the entries of a listing by position, from 1.
fn numbered(listing: &[Listed]) -> impl Iterator<Item = (u64, Listed)> {
    (1..).zip(listing.iter().cloned())
}
