//! State of the simulated filesystem: inodes, open descriptors and permissions.
//!
//! `answer.rs` uses it for the program's operations, `world.rs` for the test's own. Invariants: an inode lives as long
//! as it has a name or a descriptor (guard: `an_unlinked_file_lives_until_it_is_closed`); `used` is the sum of what all
//! contents allocate.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::chance::Chance;
use super::content::Sparse;
use super::entries::Listed;
use super::folder::Folder;
use super::settings::{Settings, Struck, When};
use crate::entry::{FileKind, Stat, Time, Times};
use crate::error::Operation;

/// Inode number of the root, as on ext4.
pub(super) const ROOT: u64 = 2;
/// Start of simulated time: 2023-11-14.
const EPOCH_SECONDS: i64 = 1_700_000_000;
/// Maximum number of links followed in one path (path_resolution(7)).
const MOST_LINKS_FOLLOWED: u32 = 40;
const LONGEST_NAME: usize = 255;

/// Access bits, as in one digit of a mode.
pub(super) const READ: u32 = 4;
pub(super) const WRITE: u32 = 2;
pub(super) const SEARCH: u32 = 1;

#[derive(Debug, Clone)]
pub(super) enum Body {
    Regular(Sparse),
    Folder(Folder),
    Symlink(Vec<u8>),
    /// FIFO, socket or device.
    Special(FileKind),
}

#[derive(Debug, Clone)]
pub(super) struct Inode {
    pub(super) body: Body,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) device: u64,
    pub(super) links: u64,
    pub(super) special: u64,
    pub(super) times: Times,
    pub(super) changed: Time,
    pub(super) born: Time,
    pub(super) xattrs: BTreeMap<CString, Vec<u8>>,
    pub(super) opens: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) inode: u64,
    pub(super) flags: OFlags,
    /// Cookie at which the next listing starts.
    pub(super) cookie: u64,
    /// Name by which the file was opened.
    pub(super) name: Vec<u8>,
    /// The whole listing, taken when it began; only where cookies are positions.
    pub(super) listing: Option<Arc<[Listed]>>,
    /// Its lock (flock(2)), if it has one; true if that is exclusive.
    pub(super) lock: Option<bool>,
}

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) settings: Settings,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    free_inodes: BTreeSet<u64>,
    opened: BTreeMap<u64, Open>,
    next_handle: u64,
    next_device: u64,
    used: u64,
    /// Nanoseconds since the simulated epoch.
    pub(super) clock_ns: u64,
    pub(super) history: Vec<String>,
    pub(super) struck: Vec<Struck>,
    /// Random choices for calls that no worker makes, such as close(2).
    pub(super) chance: Chance,
}

impl Inode {
    pub(super) fn kind(&self) -> FileKind {
        match &self.body {
            Body::Regular(_) => FileKind::Regular,
            Body::Folder(_) => FileKind::Directory,
            Body::Symlink(_) => FileKind::Symlink,
            Body::Special(kind) => *kind,
        }
    }

    /// # Errors
    /// ENOTDIR for anything that is no folder.
    pub(super) fn folder(&self) -> Result<&Folder, Errno> {
        if let Body::Folder(folder) = &self.body { Ok(folder) } else { Err(Errno::NOTDIR) }
    }

    /// # Errors
    /// EISDIR for a folder; EINVAL for other inodes without content.
    pub(super) fn content(&self) -> Result<&Sparse, Errno> {
        match &self.body {
            Body::Regular(content) => Ok(content),
            Body::Folder(_) => Err(Errno::ISDIR),
            Body::Symlink(_) | Body::Special(_) => Err(Errno::INVAL),
        }
    }
}

impl Disk {
    pub(super) fn new(settings: Settings) -> Self {
        let mut disk = Self {
            settings,
            inodes: BTreeMap::new(),
            next_inode: ROOT + 1,
            free_inodes: BTreeSet::new(),
            opened: BTreeMap::new(),
            next_handle: 0,
            next_device: 2,
            used: 0,
            clock_ns: 0,
            history: Vec::new(),
            struck: Vec::new(),
            chance: Chance::new(0),
        };
        let root = disk.blank(Body::Folder(Folder::new(ROOT, disk.settings.ignores_case)), 0o755, 1);
        disk.inodes.insert(ROOT, Inode { links: 2, ..root });
        disk
    }

    /// Returns the timestamp for a change made now: the clock's last tick.
    pub(super) fn now(&self) -> Time {
        let grain_ns = self.settings.clock_grain_ns.max(1);
        time_at(self.clock_ns / grain_ns * grain_ns)
    }

    /// Returns the time to the nanosecond.
    pub(super) fn exact_now(&self) -> Time {
        time_at(self.clock_ns)
    }

    pub(super) fn inode(&self, number: u64) -> Result<&Inode, Errno> {
        self.inodes.get(&number).ok_or(Errno::STALE)
    }

    pub(super) fn inode_mut(&mut self, number: u64) -> Result<&mut Inode, Errno> {
        self.inodes.get_mut(&number).ok_or(Errno::STALE)
    }

    fn blank(&self, body: Body, mode: u32, device: u64) -> Inode {
        let now = self.now();
        Inode {
            body,
            mode,
            uid: self.settings.uid,
            gid: self.settings.gid,
            device,
            links: 1,
            special: 0,
            times: Times { accessed: now, modified: now },
            changed: now,
            born: now,
            xattrs: BTreeMap::new(),
            opens: 0,
        }
    }

    /// Returns the folder if it exists and the user may change its entries.
    pub(super) fn folder_to_change(&self, number: u64) -> Result<&Folder, Errno> {
        let inode = self.inode(number)?;
        let folder = inode.folder()?;
        if inode.links == 0 {
            return Err(Errno::NOENT);
        }
        self.may(inode, WRITE | SEARCH)?;
        Ok(folder)
    }

    /// Makes an inode with its first name, which must be free, and applies the umask to `mode`.
    pub(super) fn make(&mut self, dir: u64, name: &[u8], body: Body, mode: u32) -> Result<u64, Errno> {
        check_name(name)?;
        self.folder_to_change(dir)?;
        if self.inodes.len() as u64 >= self.settings.files {
            return Err(Errno::NOSPC);
        }
        let above = self.inode(dir)?;
        let (device, inherited) = (above.device, (above.mode & 0o2000 != 0).then_some(above.gid));
        let is_symlink = matches!(body, Body::Symlink(_));
        let mode = if is_symlink { 0o777 } else { mode & !self.settings.umask };
        let mut inode = self.blank(body, mode, device);
        let is_folder = inode.kind() == FileKind::Directory;
        if let Some(gid) = inherited {
            inode.gid = gid;
            inode.mode |= if is_folder { 0o2000 } else { 0 };
        }
        inode.links = if is_folder { 2 } else { 1 };
        let number = self.take_number();
        self.inodes.insert(number, inode);
        self.add_entry(dir, name, number)?;
        if is_folder {
            self.inode_mut(dir)?.links += 1;
        }
        Ok(number)
    }

    /// Returns the number of a new inode. Advances the clock, so that with a grain of 1 ns each birth time is unique.
    fn take_number(&mut self) -> u64 {
        self.clock_ns += 1;
        let again = if self.settings.reuses_inodes { self.free_inodes.pop_first() } else { None };
        again.unwrap_or_else(|| {
            self.next_inode += 1;
            self.next_inode - 1
        })
    }

    /// Returns the body of an empty folder beneath `parent`.
    pub(super) fn empty_folder(&self, parent: u64) -> Body {
        Body::Folder(Folder::new(parent, self.settings.ignores_case))
    }

    /// Makes a folder the root of another filesystem.
    pub(super) fn mount(&mut self, number: u64) -> Result<(), Errno> {
        let device = self.next_device;
        self.next_device += 1;
        self.inode_mut(number)?.device = device;
        Ok(())
    }

    pub(super) fn is_mount(&self, number: u64) -> Result<bool, Errno> {
        let inode = self.inode(number)?;
        let above = inode.folder()?.parent;
        Ok(number == ROOT || self.inode(above)?.device != inode.device)
    }

    pub(super) fn add_entry(&mut self, dir: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.inode_mut(dir)?;
        (inode.times.modified, inode.changed) = (now, now);
        let Body::Folder(folder) = &mut inode.body else { return Err(Errno::NOTDIR) };
        folder.add(name, number);
        Ok(())
    }

    pub(super) fn remove_entry(&mut self, dir: u64, name: &[u8]) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.inode_mut(dir)?;
        (inode.times.modified, inode.changed) = (now, now);
        let Body::Folder(folder) = &mut inode.body else { return Err(Errno::NOTDIR) };
        folder.remove(name).map(|_| ()).ok_or(Errno::NOENT)
    }

    pub(super) fn remove_tree(&mut self, dir: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        let mut found = vec![(dir, name.to_vec(), number)];
        let mut looked_at = 0;
        while let Some(&(_, _, number)) = found.get(looked_at) {
            looked_at += 1;
            if let Ok(folder) = self.inode(number)?.folder() {
                let entries = folder.after(0).map(|(_, entry)| (number, entry.name.clone(), entry.inode));
                found.extend(entries.collect::<Vec<_>>());
            }
        }
        // Remove the entries of a folder before the folder.
        for (dir, name, number) in found.into_iter().rev() {
            self.remove_name(dir, &name, number)?;
        }
        Ok(())
    }

    /// Removes an entry that the caller found removable.
    pub(super) fn remove_name(&mut self, dir: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        self.remove_entry(dir, name)?;
        if self.inode(number)?.kind() == FileKind::Directory {
            self.inode_mut(dir)?.links -= 1;
            return self.drop_links(number, 2);
        }
        self.drop_links(number, 1)
    }

    /// Subtracts `links` from an inode's link count; deletes the inode once nothing refers to it.
    pub(super) fn drop_links(&mut self, number: u64, links: u64) -> Result<(), Errno> {
        let inode = self.inode_mut(number)?;
        inode.links = inode.links.saturating_sub(links);
        self.touch(number)?;
        self.reap(number);
        Ok(())
    }

    /// Updates the change time of an inode.
    pub(super) fn touch(&mut self, number: u64) -> Result<(), Errno> {
        let now = self.now();
        self.inode_mut(number)?.changed = now;
        Ok(())
    }

    fn reap(&mut self, number: u64) {
        let is_held = self.inodes.get(&number).is_none_or(|inode| inode.links > 0 || inode.opens > 0);
        if is_held {
            return;
        }
        self.free_inodes.insert(number);
        if let Some(Inode { body: Body::Regular(content), .. }) = self.inodes.remove(&number) {
            self.used -= content.allocated();
        }
    }

    pub(super) fn look_up(&self, dir: u64, name: &[u8]) -> Result<u64, Errno> {
        check_name(name)?;
        let inode = self.inode(dir)?;
        let folder = inode.folder()?;
        self.may(inode, SEARCH)?;
        folder.get(name).ok_or(Errno::NOENT)
    }

    /// Walks a path from `start`. A link in the last component is followed only with `follow`.
    pub(super) fn walk(&self, start: u64, path: &[u8], follow: bool) -> Result<u64, Errno> {
        let mut at = if path.starts_with(b"/") { ROOT } else { start };
        let mut left: Vec<Vec<u8>> = components(path);
        let mut followed = 0;
        while let Some(name) = left.pop() {
            let next = match name.as_slice() {
                b"." => at,
                b".." => self.inode(at)?.folder()?.parent,
                name => self.look_up(at, name)?,
            };
            match &self.inode(next)?.body {
                Body::Symlink(target) if follow || !left.is_empty() => {
                    followed += 1;
                    if followed > MOST_LINKS_FOLLOWED {
                        return Err(Errno::LOOP);
                    }
                    at = if target.starts_with(b"/") { ROOT } else { at };
                    left.extend(components(target));
                }
                Body::Symlink(_) | Body::Regular(_) | Body::Folder(_) | Body::Special(_) => at = next,
            }
        }
        Ok(at)
    }

    /// Fails with EACCES unless the settings' user has this access.
    pub(super) fn may(&self, inode: &Inode, want: u32) -> Result<(), Errno> {
        let Settings { uid, gid, .. } = self.settings;
        let class = match () {
            () if uid == 0 => return Ok(()),
            () if uid == inode.uid => inode.mode >> 6,
            () if gid == inode.gid => inode.mode >> 3,
            () => inode.mode,
        };
        if class & want == want { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// Fails with EPERM unless the user may change the inode's attributes.
    pub(super) fn owns(&self, inode: &Inode) -> Result<(), Errno> {
        let uid = self.settings.uid;
        if uid == 0 || uid == inode.uid { Ok(()) } else { Err(Errno::PERM) }
    }

    pub(super) fn open(&mut self, number: u64, flags: OFlags, name: &[u8]) -> Result<u64, Errno> {
        if self.opened.len() >= self.settings.descriptors {
            return Err(Errno::MFILE);
        }
        self.inode_mut(number)?.opens += 1;
        let handle = self.next_handle;
        self.next_handle += 1;
        let name = name.to_vec();
        self.opened.insert(handle, Open { inode: number, flags, cookie: 0, name, listing: None, lock: None });
        Ok(handle)
    }

    /// Locks an open file, exclusively or shared (flock(2)). Returns false if another descriptor's lock forbids it.
    pub(super) fn try_lock(&mut self, handle: u64, exclusive: bool) -> Result<bool, Errno> {
        if !self.settings.locks {
            return Err(Errno::OPNOTSUPP);
        }
        let number = self.opened(handle)?.inode;
        let forbids = |(&of, open): (&u64, &Open)| {
            of != handle && open.inode == number && open.lock.is_some_and(|other| other || exclusive)
        };
        if self.opened.iter().any(forbids) {
            return Ok(false);
        }
        self.opened_mut(handle)?.lock = Some(exclusive);
        Ok(true)
    }

    /// Returns the disk as the kernel leaves it once every program has been killed: a copy without open descriptors.
    pub(super) fn killed(&self) -> Self {
        let mut disk = self.clone();
        let handles: Vec<_> = disk.opened.keys().copied().collect();
        handles.into_iter().for_each(|handle| disk.close(handle));
        disk
    }

    pub(super) fn close(&mut self, handle: u64) {
        let Some(open) = self.opened.remove(&handle) else { return };
        if let Some(inode) = self.inodes.get_mut(&open.inode) {
            inode.opens -= 1;
        }
        self.reap(open.inode);
    }

    pub(super) fn opened(&self, handle: u64) -> Result<&Open, Errno> {
        self.opened.get(&handle).ok_or(Errno::BADF)
    }

    pub(super) fn opened_mut(&mut self, handle: u64) -> Result<&mut Open, Errno> {
        self.opened.get_mut(&handle).ok_or(Errno::BADF)
    }

    pub(super) fn open_count(&self) -> usize {
        self.opened.len()
    }

    /// Fails if a fault of the settings strikes.
    pub(super) fn meet_fault(
        &mut self,
        operation: Operation,
        names: &[&[u8]],
        chance: &mut Chance,
    ) -> Result<(), Errno> {
        let mut answer = Ok(());
        for fault in &mut self.settings.faults {
            let is_named = fault.name.as_deref().is_none_or(|name| names.contains(&name));
            if fault.operation != operation || !is_named {
                continue;
            }
            fault.met += 1;
            let strikes = match fault.when {
                When::Nth(n) => fault.met == n,
                When::From(n) => fault.met >= n,
                When::Chance(per_million) => chance.happens(per_million),
            };
            if strikes && answer.is_ok() {
                answer = Err(fault.errno);
            }
        }
        if let Err(errno) = answer {
            let name = names.last().copied().unwrap_or_default().to_vec();
            self.struck.push(Struck { operation, name, errno });
        }
        answer
    }

    /// Fails if a fault of close(2) strikes.
    pub(super) fn meet_fault_of_closing(&mut self, name: &[u8]) -> Result<(), Errno> {
        let mut chance = self.chance.clone();
        let answer = self.meet_fault(Operation::Close, &[name], &mut chance);
        self.chance = chance;
        answer
    }

    pub(super) fn open_names(&self) -> Vec<Vec<u8>> {
        self.opened.values().map(|open| open.name.clone()).collect()
    }

    pub(super) fn free(&self) -> u64 {
        self.settings.space.saturating_sub(self.used)
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Changes a file's content and updates the used space.
    pub(super) fn change(&mut self, number: u64, f: impl FnOnce(&mut Sparse)) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.inode_mut(number)?;
        let Body::Regular(content) = &mut inode.body else { return Err(Errno::INVAL) };
        let before = content.allocated();
        f(content);
        let after = content.allocated();
        (inode.times.modified, inode.changed) = (now, now);
        self.used = self.used - before + after;
        Ok(())
    }

    pub(super) fn stat(&self, number: u64) -> Result<Stat, Errno> {
        let inode = self.inode(number)?;
        let (size, allocated) = match &inode.body {
            Body::Regular(content) if self.settings.finds_holes => (content.size(), content.allocated()),
            Body::Regular(content) => (content.size(), content.size().next_multiple_of(4096)),
            Body::Folder(_) => (4096, 4096),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Special(_) => (0, 0),
        };
        Ok(Stat {
            kind: inode.kind(),
            mode: inode.mode,
            uid: inode.uid,
            gid: inode.gid,
            links: inode.links,
            device: inode.device,
            inode: number,
            special: inode.special,
            size,
            blocks: allocated / 512,
            times: inode.times,
            changed: inode.changed,
            born: None,
        })
    }
}

/// Returns the time `ns` nanoseconds after the simulated epoch.
fn time_at(ns: u64) -> Time {
    const SECOND: u64 = 1_000_000_000;
    Time {
        seconds: EPOCH_SECONDS + (ns / SECOND).cast_signed(),
        nanoseconds: u32::try_from(ns % SECOND).unwrap_or_default(),
    }
}

/// Splits a path into its components, last first, without empty ones.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).rev().map(<[u8]>::to_vec).collect()
}

fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.len() > LONGEST_NAME { Err(Errno::NAMETOOLONG) } else { Ok(()) }
}
