//! Requests that tell a device that fails as a whole, or is gone, from one with a bad sector.
//!
//! The call that fails first returns EIO in both cases, so the device itself is asked. The page cache must not answer for it:
//! reads go past the cache, and a written block is synced. These are plain calls on the caller's thread, as long as the device
//! takes for them.

use std::ffi::{CStr, CString};

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::buffers::Block;
use crate::confine::open_flags;
use crate::descriptor::{Descriptor, Dir};
use crate::direct::map_blocks;
use crate::name::Name;
use crate::sys::call;

/// Bytes that are read of a file, or written. Smaller files may be stored with their metadata.
const BYTES: usize = 4096;
/// Filesystems that store smaller files in blocks of their own (statfs(2)): ext2 to ext4, and XFS.
const STORE_SMALL: [u64; 2] = [0xef53, 0x5846_5342];
/// Most folders that are listed to find files, and most entries of each.
const FOLDERS: usize = 16;
const ENTRIES: usize = 256;
/// Most files that are opened: most of a tree's files may be too small to tell anything.
const TRIED: usize = 256;
/// Most files that can't be read, then the search ends.
const FILES: usize = 8;
/// Fewest failures that prove something if everything fails: a single one may be a bad sector.
const FEWEST: usize = 2;

/// Errors of a device that is gone or fails, and of a filesystem that has shut down because of it.
const FAILURES: [Errno; 6] =
    [Errno::IO, Errno::NXIO, Errno::NODEV, Errno::NOTCONN, Errno::SHUTDOWN, Errno::NOMEDIUM];

/// Health of a filesystem's device, as trial requests have found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// A request has succeeded.
    Works,
    /// Requests have failed, the last one with this error, and none has succeeded.
    Fails(Errno),
    /// There was nothing to request: no file to read, or no permission.
    Unknown,
}

impl Health {
    /// Returns true for errors that are a reason to ask the device.
    ///
    /// ```
    /// use ferry_io::{Errno, Health};
    ///
    /// assert!(Health::is_in_doubt(Errno::IO) && !Health::is_in_doubt(Errno::NOENT));
    /// ```
    #[must_use]
    pub fn is_in_doubt(errno: Errno) -> bool {
        FAILURES.contains(&errno)
    }
}

impl Dir {
    /// Reads up to 256 files in this folder and beneath it past the page cache (O_DIRECT), until one can be read or 8 can't, and
    /// finds out if the device still works. It fails if 8 files can't be read, or all of at least 2. In a simulation each device
    /// works.
    ///
    /// ```
    /// use ferry_io::{Dir, Health, Options, Paths, run};
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("file"), [1; 8192])?;
    /// let (health, _) = run(&Options::default(), async |io| {
    ///     let folder: Dir = io.folder(&Paths::new(), folder.path())?;
    ///     Ok::<_, ferry_io::Error>(folder.read_health())
    /// })?;
    /// assert!(!matches!(health?, Health::Fails(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read_health(&self) -> Health {
        match &*self.fd {
            Descriptor::Real(handle) => read(handle.fd()),
            Descriptor::Sim(_) => Health::Works,
        }
    }

    /// Writes a file without a name (O_TMPFILE) on this folder's filesystem, syncs it, and finds out if the device still works.
    /// On filesystems without such files, the file has the name that `hidden` returns for the folder's inode number, until it is
    /// removed. With `is_writable`, EROFS counts as a failure: the filesystem has become read-only. In a simulation each device
    /// works.
    ///
    /// ```
    /// use ferry_io::{Dir, Health, Name, Options, Paths, run};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let hidden = |inode| Name::new(format!(".hidden-{inode}").as_bytes()).expect("a name");
    /// let (health, _) = run(&Options::default(), async |io| {
    ///     let folder: Dir = io.folder(&Paths::new(), folder.path())?;
    ///     Ok::<_, ferry_io::Error>(folder.write_health(hidden, !folder.is_read_only()))
    /// })?;
    /// assert_eq!(health?, Health::Works);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn write_health(&self, hidden: impl FnOnce(u64) -> Name, is_writable: bool) -> Health {
        let Descriptor::Real(handle) = &*self.fd else { return Health::Works };
        match write(handle.fd(), hidden) {
            Ok(()) => Health::Works,
            Err(errno) if Health::is_in_doubt(errno) => Health::Fails(errno),
            Err(Errno::ROFS) if is_writable => Health::Fails(Errno::ROFS),
            Err(_) => Health::Unknown,
        }
    }

    /// Returns true if its filesystem is mounted read-only, or has become read-only (statfs(2)).
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match &*self.fd {
            Descriptor::Real(handle) => {
                let found = call(|| rustix::fs::fstatvfs(handle.fd()));
                found.is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
            }
            Descriptor::Sim(_) => false,
        }
    }
}

/// A search for files that can be read, the upper folders first.
struct Search {
    /// Device of the root: nothing on another one is read.
    device: u64,
    block: Block,
    /// Folders that were listed, and those that are to be.
    folders: Vec<OwnedFd>,
    /// Files found: the folder's position, and the name.
    files: Vec<(usize, CString)>,
    /// Number of files that could not be read, and of folders that could not be opened or listed.
    failed_files: usize,
    failed_folders: usize,
    /// Set if something was passed over, or a file told nothing: it is too small, for example.
    is_partial: bool,
    /// Set if files of less than [`BYTES`] can be read past the page cache.
    reads_small: bool,
    /// Set once a folder beneath the root was listed.
    has_listed: bool,
    last: Option<Errno>,
}

/// Reads files beneath a folder.
fn read(root: BorrowedFd<'_>) -> Health {
    match Search::at(root).map(|mut search| search.perform()) {
        Ok(health) => health,
        Err(errno) if Health::is_in_doubt(errno) => Health::Fails(errno),
        Err(_) => Health::Unknown,
    }
}

impl Search {
    /// Fails if the root can't be opened.
    fn at(root: BorrowedFd<'_>) -> Result<Self, Errno> {
        let block = map_blocks(1, BYTES).ok().and_then(|mut blocks| blocks.pop()).ok_or(Errno::NOMEM)?;
        let device = call(|| rustix::fs::fstat(root))?.st_dev;
        let kind = call(|| rustix::fs::fstatfs(root)).map(|found| found.f_type.cast_unsigned());
        Ok(Self {
            device,
            block,
            folders: vec![open_folder(root, c".")?],
            files: Vec::new(),
            failed_files: 0,
            failed_folders: 0,
            is_partial: false,
            reads_small: kind.is_ok_and(|kind| STORE_SMALL.contains(&kind)),
            has_listed: false,
            last: None,
        })
    }

    fn perform(&mut self) -> Health {
        let mut at = 0;
        while at < self.folders.len() {
            match self.list(at) {
                Ok(()) => self.has_listed |= at > 0,
                // Nothing of the tree can be reached.
                Err(errno) if at == 0 && self.files.is_empty() && Health::is_in_doubt(errno) => {
                    return Health::Fails(errno);
                }
                Err(errno) => self.fail_folder(errno),
            }
            at += 1;
        }
        self.decide(Self::read_file)
    }

    /// Reads the files that were found, and decides.
    fn decide(&mut self, read: impl Fn(&mut Self, usize, &CStr) -> Result<bool, Errno>) -> Health {
        if self.one_is_read(read) {
            return Health::Works;
        }
        // Bad blocks may hold some folders: if another one was listed, files alone decide.
        let failed_folders = if self.has_listed { 0 } else { self.failed_folders };
        // Files that told nothing, or were not tried, may be in good parts of the device.
        let enough = if self.is_partial { FILES } else { FEWEST };
        match self.last {
            Some(errno) if self.failed_files + failed_folders >= enough => Health::Fails(errno),
            Some(_) | None => Health::Unknown,
        }
    }

    /// Lists a folder, and notes its files and folders.
    fn list(&mut self, at: usize) -> Result<(), Errno> {
        for (nth, entry) in rustix::fs::Dir::read_from(&self.folders[at])?.enumerate() {
            if nth == ENTRIES {
                self.is_partial = true;
                break;
            }
            let entry = entry?;
            let name = entry.file_name();
            match entry.file_type() {
                FileType::RegularFile => self.files.push((at, name.to_owned())),
                FileType::Directory if name == c"." || name == c".." => {}
                FileType::Directory if self.folders.len() < FOLDERS => {
                    match open_folder(self.folders[at].as_fd(), name) {
                        Ok(below) if self.is_here(&below) => self.folders.push(below),
                        Ok(_) => {}
                        Err(errno) => self.fail_folder(errno),
                    }
                }
                FileType::Directory | FileType::Unknown => self.is_partial = true,
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => {}
            }
        }
        Ok(())
    }

    /// Reads files until one can be read, which returns true, or too many can't.
    fn one_is_read(&mut self, read: impl Fn(&mut Self, usize, &CStr) -> Result<bool, Errno>) -> bool {
        let files = std::mem::take(&mut self.files);
        self.is_partial |= files.len() > TRIED;
        for (at, name) in spread(files.len()).map(|at| &files[at]) {
            if self.failed_files >= FILES {
                break;
            }
            match read(self, *at, name) {
                // A bad sector is an answer of the device, too.
                Ok(true) | Err(Errno::NODATA) => return true,
                Ok(false) => self.is_partial = true,
                Err(errno) => self.fail_file(errno),
            }
        }
        false
    }

    /// Reads the beginning of a file from the device. Returns false if it is not there, but in metadata or a hole.
    fn read_file(&mut self, at: usize, name: &CStr) -> Result<bool, Errno> {
        let folder = self.folders[at].as_fd();
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = |flags| call(|| rustix::fs::openat(folder, name, open_flags(flags, false), Mode::empty()));
        // Another user's file can't be opened so.
        let file = open(flags | OFlags::NOATIME).or_else(|errno| match errno {
            Errno::PERM => open(flags),
            errno => Err(errno),
        })?;
        let stat = call(|| rustix::fs::fstat(&file))?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let stored = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let fewest = if self.reads_small { 1 } else { BYTES as u64 };
        if !is_file || stat.st_dev != self.device || size < fewest || stored < size {
            return Ok(false);
        }
        call(|| rustix::io::pread(&file, self.block.as_mut_capacity(), 0)).map(|_| true)
    }

    fn is_here(&self, folder: &OwnedFd) -> bool {
        call(|| rustix::fs::fstat(folder)).is_ok_and(|stat| stat.st_dev == self.device)
    }

    fn fail_file(&mut self, errno: Errno) {
        if Health::is_in_doubt(errno) {
            self.failed_files += 1;
            self.last = Some(errno);
        } else {
            self.is_partial = true;
        }
    }

    fn fail_folder(&mut self, errno: Errno) {
        if Health::is_in_doubt(errno) {
            self.failed_folders += 1;
            self.last = Some(errno);
        } else {
            self.is_partial = true;
        }
    }
}

/// Returns positions of at most [`TRIED`] of `count` files. Neighbours share bad blocks of inodes or data, so the first 8 positions
/// already are spread evenly over all files: the order is a bit-reversal permutation.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let tried = count.min(TRIED);
    let places = tried.next_power_of_two();
    let reversed = move |at: usize| at.reverse_bits() >> 1 >> (usize::BITS - 1 - places.trailing_zeros());
    (0..places).map(reversed).filter(move |at| *at < tried).map(move |at| at * count / tried)
}

fn open_folder(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    call(|| rustix::fs::openat(folder, name, open_flags(flags, false), Mode::empty()))
}

/// Writes a file that is removed again, and syncs it.
fn write(folder: BorrowedFd<'_>, hidden: impl FnOnce(u64) -> Name) -> Result<(), Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let unnamed = call(|| rustix::fs::openat(folder, c".", flags | OFlags::TMPFILE, mode));
    match unnamed {
        Ok(file) => return write_file(&file),
        // Errors where unnamed files are unsupported (open(2)).
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
        Err(errno) => return Err(errno),
    }
    let hidden = hidden(call(|| rustix::fs::fstat(folder))?.st_ino);
    let flags = open_flags(flags | OFlags::CREATE | OFlags::EXCL, false);
    let file = call(|| rustix::fs::openat(folder, hidden.as_c_str(), flags, mode))?;
    let written = write_file(&file);
    // A file that can't be removed is cleared away by the next run.
    call(|| rustix::fs::unlinkat(folder, hidden.as_c_str(), AtFlags::empty())).ok();
    written
}

fn write_file(file: &OwnedFd) -> Result<(), Errno> {
    call(|| rustix::io::pwrite(file, &[1; BYTES], 0))?;
    call(|| rustix::fs::fsync(file))
}

#[cfg(test)]
mod tests;
