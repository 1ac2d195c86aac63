//! Operations of an open folder, through which everything beneath it is reached.
//!
//! Names are single components of this folder; links are followed only on request. Errors carry the kernel's errno.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fd::AsFd as _;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::buffers::Block;
use crate::descriptor::{Descriptor, Dir, Fd, File};
use crate::entry::{Entries, FileKind, NewMode, RenameMode, Stat};
use crate::error::{Error, Operation, Result};
use crate::file::mode_bits;
use crate::loaded::{Content, Loaded};
use crate::name::Name;
use crate::op::{FileOrEntry, Into, Op, Outcome, Sync, expect_outcome};
use crate::open_how::OpenHow;
use crate::preload::Preload;
use crate::worker::{self, submit};

async fn done(op: Op) -> Result<()> {
    expect_outcome!(submit(op).await.1, Outcome::Done => ())
}

impl Dir {
    /// Opens a folder by a path that a user gave; links in it are followed.
    ///
    /// # Errors
    /// Those of open(2).
    pub(crate) fn open_path(path: &Path) -> Result<Self> {
        Self::open_path_how(path, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    /// Opens a folder by its path with O_PATH: its entries can be reached, but not listed.
    ///
    /// # Errors
    /// Those of open(2) with O_PATH.
    pub(crate) fn reach_path(path: &Path) -> Result<Self> {
        Self::open_path_how(path, OFlags::PATH)
    }

    fn open_path_how(path: &Path, flags: OFlags) -> Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        crate::sys::count_call();
        let fd = rustix::io::retry_on_intr(|| {
            rustix::fs::openat(CWD, path.as_os_str().as_bytes(), flags, Mode::empty())
        });
        let fd = fd.map_err(|errno| Error::errno(Operation::Open, errno))?;
        let device = crate::sys::device_of(fd.as_fd());
        Ok(Self::from_descriptor(Descriptor::from(fd).on(device)))
    }

    /// The UUID of its filesystem ([`crate::probe::filesystem_uuid`]), by a plain call.
    ///
    /// # Errors
    /// ENOTTY if the filesystem or the kernel reports none; EBADF if the folder may not be listed.
    pub fn filesystem_uuid(&self) -> std::result::Result<String, rustix::io::Errno> {
        crate::probe::filesystem_uuid(self.fd())
    }

    /// Device number of its filesystem, as known when it was opened.
    ///
    /// ```
    /// use ferry_io::{Dir, Options, Paths, run};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let (is_equal, _) = run(&Options::default(), async |io| {
    ///     let open = || io.folder(&Paths::new(), folder.path());
    ///     let (first, second): (Dir, Dir) = (open()?, open()?);
    ///     Ok::<_, ferry_io::Error>(first.device() == second.device())
    /// })?;
    /// assert!(is_equal?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> u64 {
        self.fd.device()
    }

    fn place(&self, name: &Name) -> FileOrEntry {
        FileOrEntry::Entry(Arc::clone(&self.fd), name.clone())
    }

    fn dir(&self) -> Fd {
        Arc::clone(&self.fd)
    }

    /// Opens a file of this folder.
    ///
    /// # Errors
    /// Those of openat(2); ELOOP for a symbolic link.
    pub async fn open(&self, name: &Name, how: OpenHow) -> Result<File> {
        let op = Op::Open {
            dir: self.dir(),
            name: name.clone(),
            flags: how.flags,
            mode: mode_bits(how.mode),
            follow: how.follow,
        };
        expect_outcome!(submit(op).await.1, Outcome::Descriptor(fd) => File::from_descriptor(fd.on(self.fd.device())))
    }

    /// Creates a file without a name on this folder's filesystem, for writing, with `mode` less the umask (O_TMPFILE).
    /// Closing it removes it, unless [`Self::link_open`] has named it.
    ///
    /// # Errors
    /// Those of open(2); EOPNOTSUPP where unsupported, EISDIR or ENOENT before Linux 3.11.
    pub async fn open_unnamed(&self, mode: u32) -> Result<File> {
        let op = Op::OpenUnnamed { dir: self.dir(), mode: mode_bits(mode) };
        expect_outcome!(submit(op).await.1, Outcome::Descriptor(fd) => File::from_descriptor(fd.on(self.fd.device())))
    }

    /// Opens a folder in this folder.
    ///
    /// # Errors
    /// Those of openat(2); ENOTDIR or ELOOP for a symbolic link.
    pub async fn open_dir(&self, name: &Name) -> Result<Self> {
        self.open_dir_how(name, OFlags::RDONLY | OFlags::NONBLOCK, false).await
    }

    /// Opens the folder that a name or a symbolic link leads to.
    ///
    /// # Errors
    /// Those of openat(2).
    pub async fn open_dir_following(&self, name: &Name) -> Result<Self> {
        self.open_dir_how(name, OFlags::RDONLY | OFlags::NONBLOCK, true).await
    }

    /// Opens a folder in this folder with O_PATH: its entries can be reached, but it can be neither listed nor synced.
    ///
    /// # Errors
    /// Those of openat(2); ENOTDIR for a symbolic link, unless `follow` is set.
    pub async fn reach_dir(&self, name: &Name, follow: bool) -> Result<Self> {
        self.open_dir_how(name, OFlags::PATH, follow).await
    }

    async fn open_dir_how(&self, name: &Name, flags: OFlags, follow: bool) -> Result<Self> {
        let flags = flags | OFlags::DIRECTORY;
        let op = Op::Open { dir: self.dir(), name: name.clone(), flags, mode: Mode::empty(), follow };
        expect_outcome!(submit(op).await.1, Outcome::Descriptor(fd) => Self::from_descriptor(fd.on(self.fd.device())))
    }

    /// Opens a folder in this folder, with its attributes and first entries, in one request. If the request has to wait, it
    /// also reads small files of the folder, which are then loaded from memory.
    ///
    /// # Errors
    /// Those of [`Self::open_dir`] and of getdents64(2).
    pub async fn enter(&self, name: &Name, preload: Option<Preload>) -> Result<(Self, Stat, Entries)> {
        let worker = worker::current();
        if worker.splits_requests() {
            let folder = self.open_dir(name).await?;
            let stat = folder.stat().await?;
            let entries = folder.list(None).await?;
            return Ok((folder, stat, entries));
        }
        let preload = preload.filter(|_| worker.may_preload());
        let op = Op::Enter { dir: self.dir(), name: name.clone(), preload };
        expect_outcome!(submit(op).await.1, Outcome::Entered(entered) => {
            let (fd, stat, entries) = *entered;
            (Self { fd }, stat, entries)
        })
    }

    /// Lists some more entries: from the end of the last call, or from a cookie of an earlier listing by this
    /// descriptor. Another descriptor may read a cookie differently, because some filesystems number the entries and
    /// each removal shifts them.
    ///
    /// # Errors
    /// Those of getdents64(2).
    pub async fn list(&self, from: Option<u64>) -> Result<Entries> {
        let op = Op::List { dir: self.dir(), from };
        expect_outcome!(submit(op).await.1, Outcome::Entries(entries) => entries)
    }

    /// Opens a file and reads it whole into `block` if it fits and has no holes, in one request where possible. Other
    /// kinds of files are only opened.
    ///
    /// # Errors
    /// Those of openat(2), fstat(2), flistxattr(2) and pread(2).
    pub async fn load(&self, name: &Name, block: Block, xattrs: bool) -> Result<Loaded> {
        self.load_how(name, block, (xattrs, false), None).await
    }

    /// Like [`Self::load`], but only opens a file with several names: its bytes may not be needed.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub async fn load_alone(&self, name: &Name, block: Block, xattrs: bool) -> Result<Loaded> {
        self.load_how(name, block, (xattrs, true), None).await
    }

    /// Like [`Self::load`], or with `alone` like [`Self::load_alone`]. Bytes that are in memory are stored at once in a
    /// new file of the same name in `target`, with `mode` less the umask ([`Content::Stored`]). Otherwise the file is
    /// only loaded, so that the caller makes the target and gets the error of that. A new file that could not be filled
    /// is returned too ([`Content::Begun`]).
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub async fn transfer(
        &self,
        name: &Name,
        block: Block,
        (xattrs, alone): (bool, bool),
        target: &Self,
        mode: NewMode,
    ) -> Result<Loaded> {
        let into = Into { dir: target.dir(), mode };
        self.load_how(name, block, (xattrs, alone), Some(into)).await
    }

    async fn load_how(
        &self,
        name: &Name,
        block: Block,
        (xattrs, alone): (bool, bool),
        into: Option<Into>,
    ) -> Result<Loaded> {
        if worker::current().splits_requests() {
            return Box::pin(self.load_step_by_step(name, block, xattrs, alone)).await;
        }
        let (dir, name) = (self.dir(), name.clone());
        let op = Op::Load { dir, name, xattrs, alone, block: Some(block), opened: None, into };
        expect_outcome!(submit(op).await.1, Outcome::Loaded(loaded) => *loaded)
    }

    /// Opens a file, reads once from its start into the block, and closes it. In a ring this is one linked chain on a
    /// direct descriptor; otherwise the calls follow one another. Returns neither attributes nor a descriptor.
    pub async fn read_chain(&self, name: &Name, block: Block) -> (Block, Result<usize>) {
        if worker::current().may_chain() {
            let op = Op::Chain { dir: self.dir(), name: name.clone(), block: Some(block) };
            let (op, result) = submit(op).await;
            let count = expect_outcome!(result, Outcome::Count(count) => count);
            return match op {
                Some(Op::Chain { block: Some(block), .. }) => (block, count),
                other => unreachable!("a backend gave back {other:?}"),
            };
        }
        match self.open(name, OpenHow::read()).await {
            Ok(file) => file.read_at(block, 0).await,
            Err(error) => (block, Err(error)),
        }
    }

    async fn load_step_by_step(
        &self,
        name: &Name,
        block: Block,
        xattrs: bool,
        alone: bool,
    ) -> Result<Loaded> {
        let file = self.open(name, OpenHow::read()).await?;
        let stat = file.stat().await?;
        let xattrs = if xattrs { file.xattrs().await? } else { Vec::new() };
        let fits = stat.kind == FileKind::Regular
            && stat.size > 0
            && stat.size < block.capacity() as u64
            && !stat.may_have_holes()
            && !(alone && stat.links > 1);
        if !fits {
            return Ok(Loaded { stat, xattrs, content: Content::Open(file) });
        }
        let (block, count) = file.read_at(block, 0).await;
        let content = match count? {
            count if count as u64 == stat.size => Content::Whole(block),
            // A short read: the copier starts again.
            _ => Content::Open(file),
        };
        Ok(Loaded { stat, xattrs, content })
    }

    /// Its own attributes.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub async fn stat(&self) -> Result<Stat> {
        let op = Op::Stat { place: FileOrEntry::Open(self.dir()), follow: false, birth: false };
        expect_outcome!(submit(op).await.1, Outcome::Stat(stat) => stat)
    }

    /// The attributes of an entry; with `follow`, of the file that a link leads to.
    ///
    /// # Errors
    /// Those of fstatat(2).
    pub async fn stat_entry(&self, name: &Name, follow: bool) -> Result<Stat> {
        let op = Op::Stat { place: self.place(name), follow, birth: false };
        expect_outcome!(submit(op).await.1, Outcome::Stat(stat) => stat)
    }

    /// The attributes of an entry with the birth time ([`Stat::born`]), which tells it from a removed file with the
    /// same inode number.
    ///
    /// # Errors
    /// Those of statx(2).
    pub async fn identify_entry(&self, name: &Name, follow: bool) -> Result<Stat> {
        let op = Op::Stat { place: self.place(name), follow, birth: true };
        expect_outcome!(submit(op).await.1, Outcome::Stat(stat) => stat)
    }

    /// Makes a folder with `mode` less the umask.
    ///
    /// # Errors
    /// Those of mkdirat(2).
    pub async fn make_dir(&self, name: &Name, mode: u32) -> Result<()> {
        done(Op::MakeDirectory { dir: self.dir(), name: name.clone(), mode: mode_bits(mode) }).await
    }

    /// Creates a symbolic link to `target`.
    ///
    /// # Errors
    /// Those of symlinkat(2).
    pub async fn symlink(&self, name: &Name, target: CString) -> Result<()> {
        done(Op::Symlink { dir: self.dir(), name: name.clone(), target }).await
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Those of readlinkat(2).
    pub async fn read_link(&self, name: &Name) -> Result<Vec<u8>> {
        let op = Op::ReadLink { place: self.place(name) };
        expect_outcome!(submit(op).await.1, Outcome::Bytes(target) => target)
    }

    /// Opens an entry of any kind with O_PATH, a symbolic link itself included.
    ///
    /// # Errors
    /// Those of openat(2).
    pub async fn reach(&self, name: &Name) -> Result<File> {
        let how = OpenHow { flags: OFlags::PATH, mode: 0, follow: false };
        self.open(name, how).await
    }

    /// The parent of this folder, opened with O_PATH; a root is its own parent.
    ///
    /// # Errors
    /// Those of openat(2).
    pub async fn parent(&self) -> Result<Self> {
        self.open_dir_how(&Name::parent(), OFlags::PATH, false).await
    }

    /// Makes a hard link `new_name` in `new_dir` to an entry; with `follow`, to the file that a link leads to.
    ///
    /// # Errors
    /// Those of linkat(2).
    pub async fn link(&self, name: &Name, new_dir: &Self, new_name: &Name, follow: bool) -> Result<()> {
        let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
        let (name, new_name) = (name.clone(), new_name.clone());
        done(Op::Link { dir: self.dir(), name, new_dir: new_dir.dir(), new_name, flags }).await
    }

    /// Gives an open file, or one opened by [`Self::reach`], the name `new_name` in this folder.
    ///
    /// # Errors
    /// Those of linkat(2); EEXIST if the name is taken. ENOENT if the file has lost its last name, unless it was made
    /// by [`Self::open_unnamed`]; before Linux 6.10 also if /proc is missing and the process may not read every file.
    pub async fn link_open(&self, file: &File, new_name: &Name) -> Result<()> {
        done(Op::LinkOpen { file: file.fd(), new_dir: self.dir(), new_name: new_name.clone() }).await
    }

    /// Makes a FIFO, socket, device or empty file with `mode` less the umask.
    ///
    /// # Errors
    /// Those of mknodat(2).
    pub async fn make_node(&self, name: &Name, kind: FileKind, mode: u32, device: u64) -> Result<()> {
        done(Op::MakeNode { dir: self.dir(), name: name.clone(), kind, mode: mode_bits(mode), device }).await
    }

    /// Renames an entry. Replaces an existing target, or with `replace` unset returns EEXIST.
    ///
    /// # Errors
    /// Those of renameat2(2).
    pub async fn rename(&self, name: &Name, new_dir: &Self, new_name: &Name, replace: bool) -> Result<()> {
        self.rename_as(name, new_dir, new_name, if replace { RenameMode::Replace } else { RenameMode::Keep })
            .await
    }

    /// Exchanges two entries in one step: each gets the other's name.
    ///
    /// # Errors
    /// Those of renameat2(2) with RENAME_EXCHANGE; EINVAL if the filesystem can't.
    pub async fn exchange(&self, name: &Name, new_dir: &Self, new_name: &Name) -> Result<()> {
        self.rename_as(name, new_dir, new_name, RenameMode::Exchange).await
    }

    async fn rename_as(&self, name: &Name, new_dir: &Self, new_name: &Name, mode: RenameMode) -> Result<()> {
        let (name, new_name) = (name.clone(), new_name.clone());
        done(Op::Rename { dir: self.dir(), name, new_dir: new_dir.dir(), new_name, mode }).await
    }

    /// Removes an entry that is not a folder.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub async fn unlink(&self, name: &Name) -> Result<()> {
        done(Op::Unlink { dir: self.dir(), name: name.clone(), directory: false }).await
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of unlinkat(2) with AT_REMOVEDIR.
    pub async fn remove_dir(&self, name: &Name) -> Result<()> {
        done(Op::Unlink { dir: self.dir(), name: name.clone(), directory: true }).await
    }

    /// An entry's extended attributes. Links are not followed.
    ///
    /// # Errors
    /// Those of listxattrat(2) and getxattrat(2).
    pub async fn entry_xattrs(&self, name: &Name) -> Result<Vec<crate::Xattr>> {
        crate::file::xattrs_of(self.place(name)).await
    }

    /// Returns true if the folder is the root of a mount, as far as the kernel tells (STATX_ATTR_MOUNT_ROOT, Linux 5.8),
    /// by a plain call unless [`Self::enter`] has opened it. In a simulation no folder is.
    #[must_use]
    pub fn is_mount_root(&self) -> bool {
        match &*self.fd {
            Descriptor::Real(handle) => {
                handle.is_mount_root().unwrap_or_else(|| crate::sys::is_mount_root(handle.fd()))
            }
            Descriptor::Sim(_) => false,
        }
    }

    /// The folder as a file, for its owner, mode, times and extended attributes.
    #[must_use]
    pub fn as_file(&self) -> File {
        File::from_shared(Arc::clone(&self.fd))
    }

    /// Returns true if the folder was opened with O_PATH: it can be neither listed nor synced.
    #[must_use]
    pub fn is_only_reached(&self) -> bool {
        match &*self.fd {
            Descriptor::Real(_) => crate::sys::call(|| rustix::fs::fcntl_getfl(self.fd.fd()))
                .is_ok_and(|flags| flags.contains(OFlags::PATH)),
            Descriptor::Sim(_) => false,
        }
    }

    /// The magic number of its filesystem (statfs(2)); `None` on failure.
    #[must_use]
    pub fn filesystem_magic(&self) -> Option<u64> {
        self.fd.filesystem_magic()
    }

    /// Returns true if this process may write to the file that an entry leads to (faccessat2(2) with AT_EACCESS), by a
    /// plain call.
    #[must_use]
    pub fn may_write(&self, name: &Name) -> bool {
        match &*self.fd {
            Descriptor::Real(_) => {
                crate::sys::count_call();
                let wanted = rustix::fs::Access::WRITE_OK;
                rustix::fs::accessat(self.fd.fd(), name.as_c_str(), wanted, AtFlags::EACCESS).is_ok()
            }
            Descriptor::Sim(_) => true,
        }
    }

    /// Locks the folder (flock(2)): with `exclusive` alone (LOCK_EX), otherwise shared. Returns false if another lock
    /// forbids it. A later call changes the lock; closing the last clone releases it.
    ///
    /// # Errors
    /// Those of flock(2): EBADF for a folder opened with O_PATH, others where locks are unsupported.
    pub fn try_lock(&self, exclusive: bool) -> Result<bool> {
        self.fd.try_lock(exclusive)
    }

    /// Makes the whole filesystem that holds this folder durable (syncfs(2)).
    ///
    /// # Errors
    /// Those of syncfs(2).
    pub async fn sync_filesystem(&self) -> Result<()> {
        done(Op::Sync { file: self.dir(), how: Sync::Filesystem }).await
    }
}
