//! `waiting BACKING MOUNTPOINT`: mounts a folder as if a network were between: each call on names and attributes waits,
//! and bytes pass at a limited rate. Calls wait at the same time, as those of a network filesystem do.
//!
//! Each mount is one client. Clients that mount the same folder share its entries. It is for measurements: it has no
//! extended attributes, remembers every name until it is unmounted, and knows a file by the last name that was looked up.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::Error;
use std::os::unix::fs::{
    FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use fuser::{
    FileAttr, FileType, Filesystem, KernelConfig, MountOption, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, consts,
};
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

/// The mount's top folder.
const ROOT: u64 = 1;
/// Time for which a client trusts attributes, as clients of NFS do.
const TRUST: Duration = Duration::from_secs(1);
/// Upper bound of a write, and of a read.
const TRANSFER: u32 = 1 << 20;

#[derive(Debug, Parser)]
struct Options {
    /// Milliseconds that a call on a name or on attributes takes.
    #[arg(long, default_value_t = 10)]
    delay: u64,
    /// Megabytes a second that pass, in both directions together.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// The folder whose entries are shown.
    backing: PathBuf,
    /// The folder on which they are mounted.
    mountpoint: PathBuf,
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let (later, due) = channel();
    std::thread::Builder::new().name("answers".to_owned()).spawn(move || answer(&due))?;
    let backing = fs::canonicalize(options.backing)?;
    let served = Waiting {
        top: fs::metadata(&backing)?.ino(),
        backing,
        names: HashMap::new(),
        files: HashMap::new(),
        listings: HashMap::new(),
        last_handle: 0,
        later,
        delay: Duration::from_millis(options.delay),
        bytes_per_second: f64::from(options.rate) * 1e6,
        free_at: Instant::now(),
    };
    let mount = [MountOption::FSName("waiting".to_owned()), MountOption::DefaultPermissions];
    fuser::mount2(served, options.mountpoint, &mount)
}

type Answer = Box<dyn FnOnce() + Send>;

/// An answer and the time when it is given; the earliest is the greatest.
struct Due(Reverse<(Instant, u64)>, Answer);

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// Gives each answer at its time, until the filesystem is unmounted.
fn answer(due: &Receiver<(Instant, Answer)>) {
    let mut waiting: BinaryHeap<Due> = BinaryHeap::new();
    let mut number = 0;
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|Due(Reverse((at, _)), _)| *at <= now) {
            let Some(Due(_, answer)) = waiting.pop() else { break };
            answer();
        }
        let pause =
            waiting.peek().map_or(TRUST, |Due(Reverse((at, _)), _)| at.saturating_duration_since(now));
        match due.recv_timeout(pause) {
            Ok((at, answer)) => {
                number += 1;
                waiting.push(Due(Reverse((at, number)), answer));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Waiting {
    backing: PathBuf,
    /// Inode of the backing folder, which the mount shows as `ROOT`.
    top: u64,
    /// Parent and name of each entry that was looked up.
    names: HashMap<u64, (u64, OsString)>,
    files: HashMap<u64, File>,
    /// Entries of open folders, as they were when opened.
    listings: HashMap<u64, Vec<(u64, FileType, OsString)>>,
    last_handle: u64,
    later: Sender<(Instant, Answer)>,
    delay: Duration,
    bytes_per_second: f64,
    /// Time at which the bytes that were asked for will have passed.
    free_at: Instant,
}

impl Waiting {
    fn path(&self, mut entry: u64) -> PathBuf {
        let mut names = Vec::new();
        while let Some((parent, name)) = self.names.get(&entry) {
            names.push(name);
            entry = *parent;
        }
        names.iter().rev().fold(self.backing.clone(), |path, name| path.join(name))
    }

    fn attributes(&self, metadata: &Metadata) -> FileAttr {
        let time = |seconds: i64, nanoseconds: i64| {
            let whole = Duration::from_secs(seconds.unsigned_abs());
            let fraction = Duration::from_nanos(nanoseconds.unsigned_abs());
            if seconds < 0 { UNIX_EPOCH - whole + fraction } else { UNIX_EPOCH + whole + fraction }
        };
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        FileAttr {
            ino: if metadata.ino() == self.top { ROOT } else { metadata.ino() },
            size: metadata.size(),
            blocks: metadata.blocks(),
            atime: time(metadata.atime(), metadata.atime_nsec()),
            mtime: time(metadata.mtime(), metadata.mtime_nsec()),
            ctime: time(metadata.ctime(), metadata.ctime_nsec()),
            crtime: UNIX_EPOCH,
            kind: kind(metadata.file_type()),
            perm: u16::try_from(metadata.mode() & 0o7777).unwrap_or(0),
            nlink: short(metadata.nlink()),
            uid: metadata.uid(),
            gid: metadata.gid(),
            rdev: short(metadata.rdev()),
            blksize: TRANSFER,
            flags: 0,
        }
    }

    /// Notes the name of an entry and returns its attributes.
    fn enter(&mut self, parent: u64, name: &OsStr) -> Result<FileAttr, Error> {
        let attributes = self.attributes(&fs::symlink_metadata(self.path(parent).join(name))?);
        self.names.insert(attributes.ino, (parent, name.to_owned()));
        Ok(attributes)
    }

    fn keep(&mut self, file: File) -> u64 {
        self.last_handle += 1;
        self.files.insert(self.last_handle, file);
        self.last_handle
    }

    /// Runs `answer` once a call on names has taken its time.
    fn name_takes(&self, answer: impl FnOnce() + Send + 'static) {
        self.at(Instant::now() + self.delay, answer);
    }

    /// Runs `answer` once `bytes` have passed, behind those that were asked for before.
    fn bytes_take(&mut self, bytes: u32, answer: impl FnOnce() + Send + 'static) {
        self.free_at = self.free_at.max(Instant::now())
            + Duration::from_secs_f64(f64::from(bytes) / self.bytes_per_second);
        self.at(self.free_at, answer);
    }

    fn at(&self, time: Instant, answer: impl FnOnce() + Send + 'static) {
        // The thread that answers ends after this one only.
        self.later.send((time, Box::new(answer))).ok();
    }

    fn entry(&self, made: Result<FileAttr, Error>, reply: ReplyEntry) {
        self.name_takes(move || match made {
            Ok(attributes) => reply.entry(&TRUST, &attributes, 0),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn empty(&self, done: Result<(), Error>, reply: ReplyEmpty) {
        self.name_takes(move || match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn open_file(&mut self, entry: u64, flags: i32) -> Result<u64, Error> {
        let access = flags & 3;
        let mut options = OpenOptions::new();
        options.read(access != 1).write(access != 0).custom_flags(flags & !3);
        let file = options.open(self.path(entry))?;
        Ok(self.keep(file))
    }
}

fn kind(kind: fs::FileType) -> FileType {
    match () {
        () if kind.is_dir() => FileType::Directory,
        () if kind.is_symlink() => FileType::Symlink,
        () if kind.is_fifo() => FileType::NamedPipe,
        () if kind.is_socket() => FileType::Socket,
        () if kind.is_block_device() => FileType::BlockDevice,
        () if kind.is_char_device() => FileType::CharDevice,
        () => FileType::RegularFile,
    }
}

/// Returns an error's number; EIO if it has none.
fn number(error: &Error) -> i32 {
    error.raw_os_error().unwrap_or(5)
}

fn set_times(path: &Path, read: Option<TimeOrNow>, written: Option<TimeOrNow>) -> Result<(), Error> {
    let time = |time: Option<TimeOrNow>| match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => since_epoch(time),
    };
    let times = Timestamps { last_access: time(read), last_modification: time(written) };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn since_epoch(time: SystemTime) -> Timespec {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timespec { tv_sec: seconds(after), tv_nsec: i64::from(after.subsec_nanos()) },
        Err(before) => Timespec { tv_sec: -seconds(before.duration()), tv_nsec: 0 },
    }
}

impl Filesystem for Waiting {
    fn init(&mut self, _: &Request<'_>, config: &mut KernelConfig) -> Result<(), i32> {
        let wanted = consts::FUSE_PARALLEL_DIROPS
            | consts::FUSE_ASYNC_READ
            | consts::FUSE_BIG_WRITES
            | consts::FUSE_MAX_PAGES;
        // A kernel that lacks one of them would measure something else.
        config.add_capabilities(wanted).map_err(|_| 38)?;
        config.set_max_write(TRANSFER).map_err(|_| 22)?;
        // The kernel allows less on some mounts, and says how much.
        config.set_max_readahead(TRANSFER).or_else(|most| config.set_max_readahead(most)).map_err(|_| 22)?;
        config.set_max_background(128).map_err(|_| 22)?;
        Ok(())
    }

    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let entered = self.enter(parent, name);
        self.entry(entered, reply);
    }

    fn getattr(&mut self, _: &Request<'_>, entry: u64, _: Option<u64>, reply: ReplyAttr) {
        let found = fs::symlink_metadata(self.path(entry)).map(|metadata| self.attributes(&metadata));
        self.name_takes(move || match found {
            Ok(attributes) => reply.attr(&TRUST, &attributes),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        entry: u64,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        read: Option<TimeOrNow>,
        written: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<u64>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<u32>,
        reply: ReplyAttr,
    ) {
        let path = self.path(entry);
        let set = || -> Result<Metadata, Error> {
            if user.is_some() || group.is_some() {
                std::os::unix::fs::lchown(&path, user, group)?;
            }
            if let Some(mode) = mode {
                fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777))?;
            }
            if let Some(size) = size {
                OpenOptions::new().write(true).open(&path)?.set_len(size)?;
            }
            if read.is_some() || written.is_some() {
                set_times(&path, read, written)?;
            }
            fs::symlink_metadata(&path)
        };
        let set = set().map(|metadata| self.attributes(&metadata));
        self.name_takes(move || match set {
            Ok(attributes) => reply.attr(&TRUST, &attributes),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn readlink(&mut self, _: &Request<'_>, entry: u64, reply: ReplyData) {
        let link = fs::read_link(self.path(entry));
        self.name_takes(move || match link {
            Ok(text) => reply.data(text.as_os_str().as_encoded_bytes()),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn mknod(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let path = self.path(parent).join(name);
        let (kind, bits) = (rustix::fs::FileType::from_raw_mode(mode), Mode::from_raw_mode(mode & !umask));
        let made = rustix::fs::mknodat(CWD, &path, kind, bits, device.into()).map_err(Error::from);
        let made = made.and_then(|()| self.enter(parent, name));
        self.entry(made, reply);
    }

    fn mkdir(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let path = self.path(parent).join(name);
        let made = fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode & !umask & 0o7777)))
            .and_then(|()| self.enter(parent, name));
        self.entry(made, reply);
    }

    fn unlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.empty(fs::remove_file(self.path(parent).join(name)), reply);
    }

    fn rmdir(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.empty(fs::remove_dir(self.path(parent).join(name)), reply);
    }

    fn symlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, text: &Path, reply: ReplyEntry) {
        let made = std::os::unix::fs::symlink(text, self.path(parent).join(name))
            .and_then(|()| self.enter(parent, name));
        self.entry(made, reply);
    }

    fn link(&mut self, _: &Request<'_>, entry: u64, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let made = fs::hard_link(self.path(entry), self.path(parent).join(name))
            .and_then(|()| self.enter(parent, name));
        self.entry(made, reply);
    }

    fn rename(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (self.path(parent).join(name), self.path(new_parent).join(new_name));
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags);
        let renamed = rustix::fs::renameat_with(CWD, &from, CWD, &to, flags).map_err(Error::from);
        let entered = renamed.and_then(|()| self.enter(new_parent, new_name)).map(|_| ());
        self.empty(entered, reply);
    }

    fn open(&mut self, _: &Request<'_>, entry: u64, flags: i32, reply: ReplyOpen) {
        let opened = self.open_file(entry, flags);
        self.name_takes(move || match opened {
            Ok(handle) => reply.opened(handle, 0),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn create(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).custom_flags(flags & !3).mode(mode & !umask);
        let opened = options.open(self.path(parent).join(name));
        let made = opened.and_then(|file| Ok((self.enter(parent, name)?, self.keep(file))));
        self.name_takes(move || match made {
            Ok((attributes, handle)) => reply.created(&TRUST, &attributes, 0, handle, 0),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        _: u64,
        handle: u64,
        offset: i64,
        size: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyData,
    ) {
        let mut block = vec![0; size as usize];
        let read = match self.files.get(&handle) {
            Some(file) => file.read_at(&mut block, offset.unsigned_abs()),
            None => Err(Error::from_raw_os_error(9)),
        };
        match read {
            Ok(count) => {
                block.truncate(count);
                self.bytes_take(u32::try_from(count).unwrap_or(size), move || reply.data(&block));
            }
            Err(error) => reply.error(number(&error)),
        }
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        _: u64,
        handle: u64,
        offset: i64,
        data: &[u8],
        _: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyWrite,
    ) {
        let written = match self.files.get(&handle) {
            Some(file) => file.write_all_at(data, offset.unsigned_abs()),
            None => Err(Error::from_raw_os_error(9)),
        };
        let size = u32::try_from(data.len()).unwrap_or(TRANSFER);
        match written {
            Ok(()) => self.bytes_take(size, move || reply.written(size)),
            Err(error) => reply.error(number(&error)),
        }
    }

    fn flush(&mut self, _: &Request<'_>, _: u64, _: u64, _: u64, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &mut self,
        _: &Request<'_>,
        _: u64,
        handle: u64,
        _: i32,
        _: Option<u64>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.files.remove(&handle);
        reply.ok();
    }

    fn fsync(&mut self, _: &Request<'_>, _: u64, _: u64, _: bool, reply: ReplyEmpty) {
        self.empty(Ok(()), reply);
    }

    fn opendir(&mut self, _: &Request<'_>, entry: u64, _: i32, reply: ReplyOpen) {
        let list = || -> Result<Vec<_>, Error> {
            let mut entries = Vec::new();
            for found in fs::read_dir(self.path(entry))? {
                let found = found?;
                entries.push((found.metadata()?.ino(), kind(found.file_type()?), found.file_name()));
            }
            Ok(entries)
        };
        let listed = list().map(|entries| {
            self.last_handle += 1;
            self.listings.insert(self.last_handle, entries);
            self.last_handle
        });
        self.name_takes(move || match listed {
            Ok(handle) => reply.opened(handle, 0),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn readdir(&mut self, _: &Request<'_>, _: u64, handle: u64, offset: i64, mut reply: ReplyDirectory) {
        let from = usize::try_from(offset).unwrap_or(0);
        let entries = self.listings.get(&handle).map_or(&[][..], Vec::as_slice);
        for (position, (entry, kind, name)) in entries.iter().enumerate().skip(from) {
            if reply.add(*entry, i64::try_from(position + 1).unwrap_or(i64::MAX), *kind, name) {
                break;
            }
        }
        self.name_takes(move || reply.ok());
    }

    fn releasedir(&mut self, _: &Request<'_>, _: u64, handle: u64, _: i32, reply: ReplyEmpty) {
        self.listings.remove(&handle);
        reply.ok();
    }

    fn statfs(&mut self, _: &Request<'_>, _: u64, reply: ReplyStatfs) {
        match rustix::fs::statvfs(&self.backing) {
            Ok(found) => {
                let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                let (size, longest) = (short(found.f_bsize), short(found.f_namemax));
                let (blocks, free, usable) = (found.f_blocks, found.f_bfree, found.f_bavail);
                reply.statfs(blocks, free, usable, found.f_files, found.f_ffree, size, longest, size);
            }
            Err(error) => reply.error(number(&Error::from(error))),
        }
    }
}
