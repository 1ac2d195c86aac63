//! A simulated filesystem as a test sees it: made, filled, run against, inspected.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use super::Inner;
use super::content::Sparse;
use super::disk::{Body, Disk, ROOT};
use super::meanwhile::Meanwhile;
use super::model::{self, Model, Node};
use super::settings::{Settings, Struck};
use crate::entry::{FileKind, RenameMode, Times};

/// An in-memory filesystem that outlasts the runs against it. Clones share it.
///
/// The test's own changes are made as root, at once and without faults; paths start at the root. An impossible change
/// panics, because the test is wrong.
#[doc = ""]
#[doc = include_str!("../../docs/world.md")]
#[derive(Debug, Clone)]
pub struct World {
    pub(super) inner: Arc<Inner>,
}

/// A world and the seed of a run against it; [`World::options`] makes it.
#[derive(Debug, Clone)]
pub struct Simulation {
    pub(crate) world: World,
    pub(crate) seed: u64,
}

impl Default for World {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl World {
    /// Creates an empty filesystem.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let disk = Mutex::new(Disk::new(settings));
        Self { inner: Arc::new(Inner { disk, blocks: Mutex::default(), meanwhile: Meanwhile::default() }) }
    }

    /// Changes the settings, from the next operation on.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) -> &Self {
        change(&mut self.inner.disk().settings);
        self
    }

    /// Makes a folder with mode 0755; its parent must exist.
    pub fn folder(&self, path: impl AsRef<Path>) -> &Self {
        self.make(path.as_ref(), FileKind::Directory, Vec::new())
    }

    /// Makes a folder that is the root of another filesystem.
    pub fn mount(&self, path: impl AsRef<Path>) -> &Self {
        let path = path.as_ref();
        self.folder(path).at(path, Disk::mount)
    }

    /// Makes a file with mode 0644 that contains `bytes`.
    pub fn file(&self, path: impl AsRef<Path>, bytes: &[u8]) -> &Self {
        self.sparse_file(path, Sparse::from(bytes))
    }

    /// Makes a file with mode 0644 that may have holes.
    pub fn sparse_file(&self, path: impl AsRef<Path>, content: Sparse) -> &Self {
        let path = path.as_ref();
        self.make(path, FileKind::Regular, Vec::new())
            .at(path, |disk, number| disk.change(number, |old| *old = content))
    }

    /// Makes a symbolic link to `target`.
    pub fn symlink(&self, path: impl AsRef<Path>, target: impl AsRef<[u8]>) -> &Self {
        self.make(path.as_ref(), FileKind::Symlink, target.as_ref().to_vec())
    }

    /// Makes a FIFO, a socket or a device with mode 0644.
    pub fn node(&self, path: impl AsRef<Path>, kind: FileKind, device: u64) -> &Self {
        let path = path.as_ref();
        self.make(path, kind, Vec::new()).at(path, |disk, number| {
            disk.inode_mut(number)?.special = device;
            Ok(())
        })
    }

    /// Makes a hard link to a file.
    pub fn hard_link(&self, path: impl AsRef<Path>, new_path: impl AsRef<Path>) -> &Self {
        let (path, new_path) = (path.as_ref(), new_path.as_ref());
        self.as_root(path, |disk| {
            let number = disk.walk(ROOT, bytes(path), false)?;
            let (dir, name) = split(disk, new_path)?;
            disk.inode_mut(number)?.links += 1;
            disk.touch(number)?;
            disk.add_entry(dir, &name, number)
        })
    }

    /// Sets the mode of an entry.
    pub fn mode(&self, path: impl AsRef<Path>, mode: u32) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            disk.inode_mut(number)?.mode = mode;
            Ok(())
        })
    }

    /// Sets the owner and the group of an entry.
    pub fn owner(&self, path: impl AsRef<Path>, uid: u32, gid: u32) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            let inode = disk.inode_mut(number)?;
            (inode.uid, inode.gid) = (uid, gid);
            Ok(())
        })
    }

    /// Sets the times of an entry.
    pub fn times(&self, path: impl AsRef<Path>, times: Times) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            disk.inode_mut(number)?.times = times;
            Ok(())
        })
    }

    /// Sets an extended attribute of an entry.
    pub fn xattr(&self, path: impl AsRef<Path>, name: &std::ffi::CStr, value: &[u8]) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            disk.inode_mut(number)?.xattrs.insert(name.to_owned(), value.to_vec());
            Ok(())
        })
    }

    /// Writes into a file.
    pub fn write(&self, path: impl AsRef<Path>, at: u64, bytes: &[u8]) -> &Self {
        self.at(path.as_ref(), |disk, number| disk.change(number, |content| content.write(at, bytes)))
    }

    /// Truncates or extends a file.
    pub fn set_size(&self, path: impl AsRef<Path>, size: u64) -> &Self {
        self.at(path.as_ref(), |disk, number| disk.change(number, |content| content.set_size(size)))
    }

    /// Removes an entry; of a folder, with everything in it.
    pub fn remove(&self, path: impl AsRef<Path>) -> &Self {
        let path = path.as_ref();
        self.as_root(path, |disk| {
            let (dir, name) = split(disk, path)?;
            let number = disk.look_up(dir, &name)?;
            disk.remove_tree(dir, &name, number)
        })
    }

    /// Renames an entry in one step and replaces an existing target.
    pub fn rename(&self, path: impl AsRef<Path>, new_path: impl AsRef<Path>) -> &Self {
        let (path, new_path) = (path.as_ref(), new_path.as_ref());
        self.as_root(path, |disk| {
            let (dir, name) = split(disk, path)?;
            let (new_dir, new_name) = split(disk, new_path)?;
            disk.rename((dir, &name), (new_dir, &new_name), RenameMode::Replace)
        })
    }

    /// Returns the calls that failed because of a fault, in order.
    #[must_use]
    pub fn struck(&self) -> Vec<Struck> {
        self.inner.disk().struck.clone()
    }

    /// Lets another process act before the program's `requests`-th call from now. A request may make several calls.
    pub fn meanwhile(&self, requests: u64, deed: impl FnOnce(&Self) + Send + 'static) -> &Self {
        self.inner.meanwhile.plan(requests, Box::new(deed));
        self
    }

    /// Returns the number of calls that programs have made in this world.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.inner.meanwhile.calls()
    }

    /// Stops the last run, as SIGINT does.
    pub fn stop(&self) {
        self.inner.meanwhile.stop();
    }

    /// Returns a copy of the filesystem as it would be if its programs were killed now (SIGKILL): without their
    /// descriptors, and without what only these kept.
    #[must_use]
    pub fn killed(&self) -> Self {
        let disk = Mutex::new(self.inner.disk().killed());
        Self { inner: Arc::new(Inner { disk, blocks: Mutex::default(), meanwhile: Meanwhile::default() }) }
    }

    /// Makes a whole tree in an existing folder; the empty path of the model is that folder.
    pub fn build(&self, path: impl AsRef<Path>, tree: &Model) -> &Self {
        let path = path.as_ref();
        self.as_root(path, |disk| {
            let top = disk.walk(ROOT, bytes(path), true)?;
            model::build(disk, top, tree)
        })
    }

    /// Returns everything beneath a folder, and the folder itself as the empty path.
    #[must_use]
    pub fn model(&self, path: impl AsRef<Path>) -> Model {
        let path = path.as_ref();
        let disk = self.inner.disk();
        let tree = disk.walk(ROOT, bytes(path), true).and_then(|top| model::capture(&disk, top));
        tree.unwrap_or_else(|errno| panic!("capturing {}: {errno:?}", path.display()))
    }

    /// Returns the entry at a path, if it exists; does not follow a link.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Node> {
        let disk = self.inner.disk();
        let number = disk.walk(ROOT, bytes(path.as_ref()), false).ok()?;
        model::node(&disk, number).ok()
    }

    /// Returns the bytes of a regular file, if there is one at the path.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let Node { kind: FileKind::Regular, content, .. } = self.get(path)? else { return None };
        let mut bytes = vec![0; usize::try_from(content.size()).ok()?];
        content.read(0, &mut bytes);
        Some(bytes)
    }

    /// Returns the names by which the open descriptors were opened. After a run there should be none.
    #[must_use]
    pub fn open_descriptors(&self) -> Vec<String> {
        let names = self.inner.disk().open_names();
        names.iter().map(|name| name.escape_ascii().to_string()).collect()
    }

    /// Number of blocks of the last run that are still held. After a run it should be 0.
    #[must_use]
    pub fn blocks_outstanding(&self) -> usize {
        let blocks = self.inner.blocks.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        blocks.map_or(0, |blocks| blocks.count() - blocks.free())
    }

    /// Number of bytes that files occupy.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.inner.disk().used()
    }

    /// Returns the calls that took effect so far, one a line: virtual nanoseconds, operation, name, answer. Empty
    /// unless [`Settings::keeps_history`] is set.
    #[must_use]
    pub fn history(&self) -> Vec<String> {
        self.inner.disk().history.clone()
    }

    fn make(&self, path: &Path, kind: FileKind, target: Vec<u8>) -> &Self {
        self.as_root(path, |disk| {
            let (dir, name) = split(disk, path)?;
            let (body, mode) = match kind {
                FileKind::Directory => (disk.empty_folder(dir), 0o755),
                FileKind::Regular => (Body::Regular(Sparse::default()), 0o644),
                FileKind::Symlink => (Body::Symlink(target), 0o777),
                FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => {
                    (Body::Special(kind), 0o644)
                }
            };
            match disk.look_up(dir, &name) {
                Err(Errno::NOENT) => disk.make(dir, &name, body, mode).map(|_| ()),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            }
        })
    }

    fn at(&self, path: &Path, f: impl FnOnce(&mut Disk, u64) -> Result<(), Errno>) -> &Self {
        self.as_root(path, |disk| {
            let number = disk.walk(ROOT, bytes(path), false)?;
            f(disk, number)
        })
    }

    /// Changes the disk with all permissions and no umask.
    fn as_root(&self, path: &Path, f: impl FnOnce(&mut Disk) -> Result<(), Errno>) -> &Self {
        let mut disk = self.inner.disk();
        let Settings { uid, gid, umask, .. } = disk.settings;
        (disk.settings.uid, disk.settings.gid, disk.settings.umask) = (0, 0, 0);
        let outcome = f(&mut disk);
        (disk.settings.uid, disk.settings.gid, disk.settings.umask) = (uid, gid, umask);
        drop(disk);
        if let Err(errno) = outcome {
            panic!("making {} in a simulated world: {errno:?}", path.display());
        }
        self
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Splits a path into its parent folder and its last component.
fn split(disk: &Disk, path: &Path) -> Result<(u64, Vec<u8>), Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let above = path.parent().map(bytes).unwrap_or_default();
    Ok((disk.walk(ROOT, above, true)?, name.as_encoded_bytes().to_vec()))
}
