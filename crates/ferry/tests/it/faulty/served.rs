//! A filesystem in memory, served by the test over FUSE, that fails on demand.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, FileAttr, FileType, Filesystem, MountOption, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, ReplyXattr, Request, TimeOrNow,
};
use rustix::io::Errno;

const ROOT: u64 = 1;
/// Disables the kernel's caching of attributes.
const FORGET: Duration = Duration::ZERO;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Lookup,
    Open,
    Read,
    Write,
    Flush,
    Sync,
    List,
    Make,
    Remove,
    Rename,
    SetOwner,
    ListXattr,
    SetXattr,
}

/// Runs before a call on a name is answered; an error becomes the answer.
pub(crate) type Mischief = Box<dyn FnMut(&mut Files, Call, &str) -> Result<(), Errno> + Send>;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    name: String,
    pub(crate) bytes: Vec<u8>,
    /// `None` for a file.
    entries: Option<BTreeMap<String, u64>>,
    attr: FileAttr,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub(crate) struct Files {
    nodes: BTreeMap<u64, Node>,
    next: u64,
    /// File type reported by listings; otherwise the real one.
    pub(crate) listed_as: Option<FileType>,
    /// If true, listings return the entries at the time of opening; otherwise the current ones.
    pub(crate) lists_as_opened: bool,
    /// If true, names that differ in case alone lead to one entry.
    pub(crate) folds_names: bool,
    /// If true, modification times are stored in whole seconds.
    pub(crate) stores_seconds: bool,
    /// Time until a read is answered. Other calls are answered meanwhile.
    pub(crate) read_takes: Duration,
    /// Entries at the time of opening, by the listing's handle.
    listings: BTreeMap<u64, Vec<(String, u64)>>,
}

impl Files {
    fn new() -> Self {
        let mut files = Self {
            nodes: BTreeMap::new(),
            next: ROOT,
            listed_as: None,
            lists_as_opened: false,
            folds_names: false,
            stores_seconds: false,
            read_takes: Duration::ZERO,
            listings: BTreeMap::new(),
        };
        files.insert("", Some(BTreeMap::new()), 0o755);
        files
    }

    fn insert(&mut self, name: &str, entries: Option<BTreeMap<String, u64>>, mode: u32) -> u64 {
        let ino = self.next;
        self.next += 1;
        let now = SystemTime::now();
        let kind = if entries.is_some() { FileType::Directory } else { FileType::RegularFile };
        let (atime, mtime, ctime, crtime) = (now, now, now, now);
        let perm = u16::try_from(mode & 0o7777).unwrap();
        let (nlink, uid, gid, rdev, blksize, flags) = (1, 0, 0, 0, 4096, 0);
        let attr = FileAttr {
            ino,
            size: 0,
            blocks: 0,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize,
            flags,
        };
        let node = Node { name: name.to_owned(), bytes: Vec::new(), entries, attr, xattrs: BTreeMap::new() };
        self.nodes.insert(ino, node);
        ino
    }

    fn make(&mut self, parent: u64, name: &str, is_folder: bool, mode: u32) -> u64 {
        let ino = self.insert(name, is_folder.then(BTreeMap::new), mode);
        self.nodes.get_mut(&parent).unwrap().entries.as_mut().unwrap().insert(name.to_owned(), ino);
        ino
    }

    /// Returns the name that a folder lists for the entry that `name` leads to, and its number.
    fn listed(&self, parent: u64, name: &str) -> Option<(String, u64)> {
        let entries = self.nodes[&parent].entries.as_ref().unwrap();
        let is_it = |listed: &str| listed == name || self.folds_names && listed.eq_ignore_ascii_case(name);
        let found = entries.iter().find(|(listed, _)| is_it(listed));
        found.map(|(listed, number)| (listed.clone(), *number))
    }

    fn find(&self, path: &str) -> Option<u64> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |at, name| {
            self.nodes[&at].entries.as_ref().and_then(|entries| entries.get(name).copied())
        })
    }

    /// Makes a directory; its parents must exist.
    pub(crate) fn folder(&mut self, path: &str) {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.find(above).unwrap();
        self.make(parent, name, true, 0o755);
    }

    pub(crate) fn file(&mut self, path: &str, bytes: &[u8]) {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.find(above).unwrap();
        let ino = self.make(parent, name, false, 0o644);
        self.nodes.get_mut(&ino).unwrap().bytes = bytes.to_vec();
    }

    pub(crate) fn at(&mut self, path: &str) -> Option<&mut Node> {
        let ino = self.find(path)?;
        self.nodes.get_mut(&ino)
    }

    /// Removes a name; open descriptors stay valid.
    pub(crate) fn remove(&mut self, path: &str) {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.find(above).unwrap();
        self.nodes.get_mut(&parent).unwrap().entries.as_mut().unwrap().remove(name);
    }

    fn entries(&self, ino: u64) -> Vec<(String, u64)> {
        let entries = self.nodes[&ino].entries.as_ref().unwrap();
        entries.iter().map(|(name, number)| (name.clone(), *number)).collect()
    }

    fn attr(&self, ino: u64) -> FileAttr {
        let node = &self.nodes[&ino];
        let size = node.bytes.len() as u64;
        FileAttr { size, blocks: size.div_ceil(512), ..node.attr }
    }
}

struct State {
    files: Files,
    mischief: Mischief,
}

/// The mounted filesystem; unmounted on drop.
pub(crate) struct Served {
    path: PathBuf,
    session: Option<BackgroundSession>,
}

impl Served {
    /// Mounts a filesystem filled by `fill`, or returns the reason why it can't.
    pub(crate) fn at(path: &Path, fill: impl FnOnce(&mut Files), mischief: Mischief) -> Result<Self, String> {
        std::fs::create_dir(path).unwrap();
        let mut files = Files::new();
        fill(&mut files);
        let server = Server { state: Mutex::new(State { files, mischief }) };
        let session = fuser::spawn_mount2(server, path, &[MountOption::FSName("ferry".to_owned())]);
        let session = session.map_err(|error| format!("FUSE: {error}"))?;
        Ok(Self { path: path.to_owned(), session: Some(session) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.session.take());
        // A process that has just ended may have kept the mount busy.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            Command::new("umount").arg(&self.path).stderr(Stdio::null()).status().ok();
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap()
}

struct Server {
    state: Mutex<State>,
}

impl Server {
    /// Runs the mischief before a call on a name.
    fn before(&self, call: Call, name: &str) -> Result<MutexGuard<'_, State>, i32> {
        let mut state = lock(&self.state);
        let State { files, mischief } = &mut *state;
        mischief(files, call, name).map_err(Errno::raw_os_error)?;
        Ok(state)
    }

    /// Runs the mischief before a call on an inode number.
    fn before_on(&self, call: Call, ino: u64) -> Result<MutexGuard<'_, State>, i32> {
        let name = lock(&self.state).files.nodes[&ino].name.clone();
        self.before(call, &name)
    }

    fn made(&self, parent: u64, name: &OsStr, is_folder: bool, mode: u32) -> Result<FileAttr, i32> {
        let name = name.to_str().unwrap();
        let mut state = self.before(Call::Make, name)?;
        let ino = state.files.make(parent, name, is_folder, mode);
        Ok(state.files.attr(ino))
    }

    fn removed(&self, parent: u64, name: &OsStr) -> Result<(), i32> {
        let name = name.to_str().unwrap();
        let mut state = self.before(Call::Remove, name)?;
        let (name, removed) = state.files.listed(parent, name).ok_or(Errno::NOENT.raw_os_error())?;
        let nodes = &mut state.files.nodes;
        nodes.get_mut(&parent).unwrap().entries.as_mut().unwrap().remove(&name);
        // Open descriptors see that the file has no name.
        nodes.get_mut(&removed).unwrap().attr.nlink = 0;
        Ok(())
    }
}

/// Replies with the result or the error.
macro_rules! answer {
    ($reply:ident, $result:expr, $value:pat => $done:expr) => {
        match $result {
            Ok($value) => $done,
            Err(errno) => $reply.error(errno),
        }
    };
}

impl Filesystem for Server {
    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_str().unwrap();
        let found = self.before(Call::Lookup, name).and_then(|state| {
            let found = state.files.listed(parent, name);
            found.map(|(_, ino)| state.files.attr(ino)).ok_or(Errno::NOENT.raw_os_error())
        });
        answer!(reply, found, attr => reply.entry(&FORGET, &attr, 0));
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        reply.attr(&FORGET, &lock(&self.state).files.attr(ino));
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<u64>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<u32>,
        reply: ReplyAttr,
    ) {
        let is_owner = uid.is_some() || gid.is_some();
        let state = if is_owner { self.before_on(Call::SetOwner, ino) } else { Ok(lock(&self.state)) };
        answer!(reply, state, mut state => {
            let stores_seconds = state.files.stores_seconds;
            let node = state.files.nodes.get_mut(&ino).unwrap();
            node.attr.uid = uid.unwrap_or(node.attr.uid);
            node.attr.gid = gid.unwrap_or(node.attr.gid);
            node.attr.perm = mode.map_or(node.attr.perm, |mode| u16::try_from(mode & 0o7777).unwrap());
            if let Some(size) = size {
                node.bytes.resize(usize::try_from(size).unwrap(), 0);
            }
            node.attr.mtime = match mtime {
                Some(TimeOrNow::SpecificTime(time)) if stores_seconds => {
                    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
                    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
                }
                Some(TimeOrNow::SpecificTime(time)) => time,
                Some(TimeOrNow::Now) => SystemTime::now(),
                None => node.attr.mtime,
            };
            reply.attr(&FORGET, &state.files.attr(ino));
        });
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
        answer!(reply, self.made(parent, name, true, mode & !umask), attr => reply.entry(&FORGET, &attr, 0));
    }

    fn create(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.made(parent, name, false, mode & !umask);
        answer!(reply, made, attr => reply.created(&FORGET, &attr, 0, 0, 0));
    }

    fn unlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.removed(parent, name), () => reply.ok());
    }

    fn rmdir(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.removed(parent, name), () => reply.ok());
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
        let (name, new_name) = (name.to_str().unwrap(), new_name.to_str().unwrap());
        answer!(reply, self.before(Call::Rename, name), mut state => {
            if state.files.folds_names && flags > 0 {
                // As vfat exchanges no names.
                return reply.error(Errno::INVAL.raw_os_error());
            }
            let (name, ino) = state.files.listed(parent, name).unwrap();
            let taken = state.files.listed(new_parent, new_name).map(|(taken, _)| taken);
            let nodes = &mut state.files.nodes;
            nodes.get_mut(&parent).unwrap().entries.as_mut().unwrap().remove(&name);
            if let Some(taken) = taken {
                nodes.get_mut(&new_parent).unwrap().entries.as_mut().unwrap().remove(&taken);
            }
            nodes.get_mut(&new_parent).unwrap().entries.as_mut().unwrap().insert(new_name.to_owned(), ino);
            nodes.get_mut(&ino).unwrap().name = new_name.to_owned();
            reply.ok();
        });
    }

    fn open(&mut self, _: &Request<'_>, ino: u64, _: i32, reply: ReplyOpen) {
        answer!(reply, self.before_on(Call::Open, ino), _ => reply.opened(0, 0));
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: u64,
        offset: i64,
        size: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyData,
    ) {
        answer!(reply, self.before_on(Call::Read, ino), state => {
            let bytes = &state.files.nodes[&ino].bytes;
            let start = usize::try_from(offset).unwrap().min(bytes.len());
            let end = (start + usize::try_from(size).unwrap()).min(bytes.len());
            let (part, takes) = (bytes[start..end].to_vec(), state.files.read_takes);
            if takes.is_zero() {
                return reply.data(&part);
            }
            std::thread::spawn(move || {
                std::thread::sleep(takes);
                reply.data(&part);
            });
        });
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: u64,
        offset: i64,
        data: &[u8],
        _: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyWrite,
    ) {
        answer!(reply, self.before_on(Call::Write, ino), mut state => {
            let bytes = &mut state.files.nodes.get_mut(&ino).unwrap().bytes;
            let start = usize::try_from(offset).unwrap();
            bytes.resize(bytes.len().max(start + data.len()), 0);
            bytes[start..start + data.len()].copy_from_slice(data);
            reply.written(u32::try_from(data.len()).unwrap());
        });
    }

    fn flush(&mut self, _: &Request<'_>, ino: u64, _: u64, _: u64, reply: ReplyEmpty) {
        answer!(reply, self.before_on(Call::Flush, ino), _ => reply.ok());
    }

    fn fsync(&mut self, _: &Request<'_>, ino: u64, _: u64, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.before_on(Call::Sync, ino), _ => reply.ok());
    }

    fn fsyncdir(&mut self, _: &Request<'_>, ino: u64, _: u64, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.before_on(Call::Sync, ino), _ => reply.ok());
    }

    fn opendir(&mut self, _: &Request<'_>, ino: u64, _: i32, reply: ReplyOpen) {
        let files = &mut lock(&self.state).files;
        let mut handle = 0;
        if files.lists_as_opened {
            handle = files.next;
            files.next += 1;
            let entries = files.entries(ino);
            files.listings.insert(handle, entries);
        }
        reply.opened(handle, 0);
    }

    fn releasedir(&mut self, _: &Request<'_>, _: u64, handle: u64, _: i32, reply: ReplyEmpty) {
        lock(&self.state).files.listings.remove(&handle);
        reply.ok();
    }

    fn readdir(&mut self, _: &Request<'_>, ino: u64, handle: u64, offset: i64, mut reply: ReplyDirectory) {
        answer!(reply, self.before_on(Call::List, ino), state => {
            let files = &state.files;
            let entries = files.listings.get(&handle).cloned().unwrap_or_else(|| files.entries(ino));
            let from = usize::try_from(offset).unwrap();
            for (at, (name, number)) in (1_i64..).zip(&entries).skip(from) {
                let kind = files.nodes[number].attr.kind;
                let kind = files.listed_as.unwrap_or(kind);
                if reply.add(*number, at, kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn setxattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        name: &OsStr,
        value: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        answer!(reply, self.before_on(Call::SetXattr, ino), mut state => {
            let xattrs = &mut state.files.nodes.get_mut(&ino).unwrap().xattrs;
            xattrs.insert(name.as_encoded_bytes().to_vec(), value.to_vec());
            reply.ok();
        });
    }

    fn getxattr(&mut self, _: &Request<'_>, ino: u64, name: &OsStr, size: u32, reply: ReplyXattr) {
        let state = lock(&self.state);
        match state.files.nodes[&ino].xattrs.get(name.as_encoded_bytes()) {
            Some(value) => give(value, size, reply),
            None => reply.error(Errno::NODATA.raw_os_error()),
        }
    }

    fn listxattr(&mut self, _: &Request<'_>, ino: u64, size: u32, reply: ReplyXattr) {
        answer!(reply, self.before_on(Call::ListXattr, ino), state => {
            let names: Vec<u8> = state.files.nodes[&ino].xattrs.keys().flat_map(|name| [name, &b"\0"[..]].concat()).collect();
            give(&names, size, reply);
        });
    }
}

fn give(value: &[u8], size: u32, reply: ReplyXattr) {
    if size == 0 { reply.size(u32::try_from(value.len()).unwrap()) } else { reply.data(value) }
}
