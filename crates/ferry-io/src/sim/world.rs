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
use crate::entry::{FileKind, Times};

/// An in-memory filesystem that outlasts the runs against it. Cloning shares it.
///
/// What a test does to it by itself is done as root, at once, and without faults; paths start at the root. A step
/// that is impossible panics: the test is wrong.
///
/// ```
/// use ferry_io::sim::{Settings, World};
/// use ferry_io::{Name, run};
///
/// let world = World::new(Settings::default());
/// world.file("greeting", b"hello");
/// let (size, _) = run(&world.options(7), async |io| {
///     let root = io.open_dir("/".as_ref())?;
///     let name = Name::new(b"greeting").expect("one component");
///     Ok::<_, ferry_io::Error>(root.stat_entry(&name, false).await?.size)
/// })?;
/// assert_eq!(size?, 5);
/// assert!(world.open_descriptors().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct World {
    pub(super) inner: Arc<Inner>,
}

impl Default for World {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl World {
    /// An empty filesystem.
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

    /// Makes a folder with mode 0755; those above it must be there.
    pub fn folder(&self, path: impl AsRef<Path>) -> &Self {
        self.make(path.as_ref(), FileKind::Directory, Vec::new())
    }

    /// Makes a folder that is another filesystem's root.
    pub fn mount(&self, path: impl AsRef<Path>) -> &Self {
        let path = path.as_ref();
        self.folder(path).at(path, Disk::mount)
    }

    /// Makes a file with mode 0644 that holds `bytes`.
    pub fn file(&self, path: impl AsRef<Path>, bytes: &[u8]) -> &Self {
        self.sparse_file(path, Sparse::from(bytes))
    }

    /// Makes a file with mode 0644, holes and all.
    pub fn sparse_file(&self, path: impl AsRef<Path>, content: Sparse) -> &Self {
        let path = path.as_ref();
        self.make(path, FileKind::Regular, Vec::new())
            .at(path, |disk, number| disk.change(number, |old| *old = content))
    }

    /// Makes a symbolic link that says `target`.
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

    /// Gives a file another name.
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

    /// Sets the mode of what is there.
    pub fn mode(&self, path: impl AsRef<Path>, mode: u32) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            disk.inode_mut(number)?.mode = mode;
            Ok(())
        })
    }

    /// Sets the owner of what is there.
    pub fn owner(&self, path: impl AsRef<Path>, uid: u32, gid: u32) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            let inode = disk.inode_mut(number)?;
            (inode.uid, inode.gid) = (uid, gid);
            Ok(())
        })
    }

    /// Sets the times of what is there.
    pub fn times(&self, path: impl AsRef<Path>, times: Times) -> &Self {
        self.at(path.as_ref(), |disk, number| {
            disk.inode_mut(number)?.times = times;
            Ok(())
        })
    }

    /// Sets an extended attribute of what is there.
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

    /// Cuts or enlarges a file.
    pub fn set_size(&self, path: impl AsRef<Path>, size: u64) -> &Self {
        self.at(path.as_ref(), |disk, number| disk.change(number, |content| content.set_size(size)))
    }

    /// Takes a name away; of a folder, with everything in it.
    pub fn remove(&self, path: impl AsRef<Path>) -> &Self {
        let path = path.as_ref();
        self.as_root(path, |disk| {
            let (dir, name) = split(disk, path)?;
            let number = disk.look_up(dir, &name)?;
            disk.remove_tree(dir, &name, number)
        })
    }

    /// Gives what is at a path another one, in one step; what is there is replaced.
    pub fn rename(&self, path: impl AsRef<Path>, new_path: impl AsRef<Path>) -> &Self {
        let (path, new_path) = (path.as_ref(), new_path.as_ref());
        self.as_root(path, |disk| {
            let (dir, name) = split(disk, path)?;
            let (new_dir, new_name) = split(disk, new_path)?;
            disk.rename((dir, &name), (new_dir, &new_name), true)
        })
    }

    /// Calls that failed because of a fault, in order.
    #[must_use]
    pub fn struck(&self) -> Vec<Struck> {
        self.inner.disk().struck.clone()
    }

    /// Has another process do something, before the program's `requests`-th call from now. A request may be made of
    /// several calls.
    pub fn meanwhile(&self, requests: u64, deed: impl FnOnce(&Self) + Send + 'static) -> &Self {
        self.inner.meanwhile.plan(requests, Box::new(deed));
        self
    }

    /// Stops the last run, as SIGINT does.
    pub fn stop(&self) {
        self.inner.meanwhile.stop();
    }

    /// Makes a whole tree beneath a folder that is there; the model's empty path is that folder itself.
    pub fn build(&self, path: impl AsRef<Path>, tree: &Model) -> &Self {
        let path = path.as_ref();
        self.as_root(path, |disk| {
            let top = disk.walk(ROOT, bytes(path), true)?;
            model::build(disk, top, tree)
        })
    }

    /// Everything beneath a folder, and the folder itself by the empty path.
    #[must_use]
    pub fn model(&self, path: impl AsRef<Path>) -> Model {
        let path = path.as_ref();
        let disk = self.inner.disk();
        let tree = disk.walk(ROOT, bytes(path), true).and_then(|top| model::capture(&disk, top));
        tree.unwrap_or_else(|errno| panic!("capturing {}: {errno:?}", path.display()))
    }

    /// What is at a path, if anything; a link is not followed.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Node> {
        let disk = self.inner.disk();
        let number = disk.walk(ROOT, bytes(path.as_ref()), false).ok()?;
        model::node(&disk, number).ok()
    }

    /// The names by which files were opened that are still open: after a run, none should be.
    #[must_use]
    pub fn open_descriptors(&self) -> Vec<String> {
        let names = self.inner.disk().open_names();
        names.iter().map(|name| name.escape_ascii().to_string()).collect()
    }

    /// Blocks of the last run that somebody still holds: after a run, none should be.
    #[must_use]
    pub fn blocks_outstanding(&self) -> usize {
        let blocks = self.inner.blocks.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        blocks.map_or(0, |blocks| blocks.count() - blocks.free())
    }

    /// Bytes that files take.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.inner.disk().used()
    }

    /// What took effect so far, in order, a line each: virtual nanoseconds, operation, name, answer. Kept if the settings
    /// ask for it.
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

    /// Does something with all rights and no umask.
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

/// The folder that holds a path's last component, and that component.
fn split(disk: &Disk, path: &Path) -> Result<(u64, Vec<u8>), Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let above = path.parent().map(bytes).unwrap_or_default();
    Ok((disk.walk(ROOT, above, true)?, name.as_encoded_bytes().to_vec()))
}
