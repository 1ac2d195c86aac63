//! What every entry of one run shares: the options, the bounds, the counters and where failures go.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ferry_io::{Dir, Errno, Error, FileKind, Io, Name, Paths, Semaphore, Stat, Time};

use crate::abilities::{Abilities, Known};
use crate::counter::Counter;
use crate::durable::Durable;
use crate::folder::{Folder, OpenFolders, Role};
use crate::links::Links;
use crate::options::{Existing, Options, Reflink, Sparse};
use crate::pace::Pace;
use crate::report::{Failure, FailureKind, Method, Observer, Progress, Summary, Verb};
use crate::staging::Locks;
use crate::turns::Turns;
use crate::walk::OpenListings;
use crate::writeback::WriteBack;

/// A file's identity: device and inode.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(stat: &Stat) -> Identity {
    (stat.device, stat.inode)
}

/// What makes two operands the same.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Met {
    /// What it is.
    pub(crate) source: Identity,
    /// What it is in, unless it is a folder: a file may have one name in several. Links there are not followed, as by cp.
    pub(crate) above: Option<Identity>,
    /// Its own name.
    pub(crate) name: OsString,
    /// Its copy's.
    pub(crate) relative: PathBuf,
}

/// One run.
pub(crate) struct Copier {
    pub(crate) io: Io,
    /// Where the operands' paths lead.
    pub(crate) paths: Paths,
    pub(crate) options: Options,
    pub(crate) progress: Arc<Progress>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) tally: Tally,
    pub(crate) links: Links,
    pub(crate) open_folders: OpenFolders,
    pub(crate) open_listings: OpenListings,
    /// Files being copied at a time, each with two descriptors and a block.
    pub(crate) files: Semaphore,
    /// Held by who looks for a backup's name and takes it.
    pub(crate) backing_up: Semaphore,
    /// Who may write to a file that others can reach.
    pub(crate) turns: Turns,
    /// Permits to leave a target unfinished under its name while bytes are waited for, one a worker: a run that is
    /// killed leaves no more of them. A new file without a permit has no name before it is whole.
    pub(crate) unfinished: Semaphore,
    /// How fast bytes may go, if they may not go as fast as they can.
    pub(crate) pace: Option<Pace>,
    /// What bounds the memory that large copies leave dirty.
    pub(crate) write_back: WriteBack,
    /// What `--atomic` knows of locks on folders.
    pub(crate) locks: Locks,
    /// Folders being worked on at a time by each worker.
    pub(crate) folders_at_once: usize,
    /// Entries of one folder being copied at a time by one worker.
    pub(crate) entries_at_once: usize,
    /// The operands so far: none is copied twice.
    met: Mutex<HashSet<Met>>,
    /// What this run has made for the operands, folders aside: a later one must not overwrite it.
    made: Mutex<HashMap<PathBuf, FileKind>>,
    /// Where operands that are folders were copied to: they are not copied a second time.
    folders: Mutex<HashMap<Identity, PathBuf>>,
    /// Operands not begun, and folders whose last entries are not known yet.
    unlisted: AtomicU64,
    /// What the filesystems at hand can do.
    known: Known,
    /// Workers at most, by descriptors.
    most_workers: usize,
    pub(crate) out_of_space: AtomicBool,
    pub(crate) is_root: bool,
    /// With whose rights it copies.
    pub(crate) user: u32,
    /// What is taken from the mode of what is made.
    pub(crate) umask: u32,
    /// Since when this run makes symbolic links.
    links_since: OnceLock<Time>,
    /// What `--fsync` has to make durable at the end.
    pub(crate) durable: Durable,
    /// Whether operands that are files are made durable one by one.
    pub(crate) syncs_each: AtomicBool,
    /// Whether there are several operands, so that one could overwrite another's copy.
    pub(crate) items_are_remembered: AtomicBool,
    /// The filesystem of the operand being copied (`-x`).
    root_device: AtomicU64,
}

/// Counters of the summary, added to from every worker.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) files: Counter,
    pub(crate) directories: Counter,
    pub(crate) symlinks: Counter,
    pub(crate) hard_links: Counter,
    pub(crate) specials: Counter,
    pub(crate) skipped: Counter,
    pub(crate) failed: Counter,
    pub(crate) unfinished: Counter,
    bytes_by_method: [Counter; Method::ALL.len()],
    files_by_method: [Counter; Method::ALL.len()],
}

/// statfs(2).
const BTRFS_SUPER_MAGIC: u64 = 0x9123_683E;

impl Copier {
    pub(crate) fn new(
        io: Io,
        paths: Paths,
        options: Options,
        progress: Arc<Progress>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        // Each worker may hold two descriptors for each of its folders, the cache two for each of its own, an unfinished
        // listing one, and each file two: what is left when the first three have had theirs bounds the last.
        let descriptors = io.descriptors();
        io.limit_workers(descriptors / 8);
        let workers = io.workers();
        let folders_at_once = (descriptors / (8 * workers)).clamp(1, 16);
        // Six are enough to climb out of thousands of levels (`folder::stays_open`).
        let cached = (descriptors / 8).max(6.min(descriptors / 4)).clamp(2, 256);
        // With few descriptors none can be spared: what is left of a listing waits in memory.
        let listings = (descriptors / 16).min(64);
        let left = descriptors.saturating_sub(2 * folders_at_once * workers + 2 * cached + listings);
        let asks = options.existing == Existing::Ask;
        let files = (left / 2).clamp(1, io.blocks().min(128));
        let pace = options.bandwidth.map(Pace::new);
        Self {
            umask: io.umask(),
            links_since: OnceLock::new(),
            io,
            paths,
            options,
            progress,
            observer,
            tally: Tally::default(),
            links: Links::default(),
            open_folders: OpenFolders::new(cached),
            open_listings: OpenListings::new(listings),
            files: Semaphore::new(files),
            backing_up: Semaphore::new(1),
            turns: Turns::new(files),
            unfinished: Semaphore::new(workers),
            pace,
            write_back: WriteBack::default(),
            locks: Locks::default(),
            folders_at_once: if asks { 1 } else { folders_at_once },
            entries_at_once: if asks { 1 } else { files.min(64) },
            met: Mutex::default(),
            made: Mutex::default(),
            folders: Mutex::default(),
            unlisted: AtomicU64::new(0),
            known: Known::default(),
            most_workers: workers,
            out_of_space: AtomicBool::new(false),
            is_root: ferry_io::is_superuser(),
            user: ferry_io::user(),
            durable: Durable::default(),
            syncs_each: AtomicBool::new(false),
            items_are_remembered: AtomicBool::new(false),
            root_device: AtomicU64::new(0),
        }
    }

    /// Reports a failure of one path. Cancelled operations are no failures; a full filesystem ends the run.
    pub(crate) fn fail(&self, place: &Place<'_>, kind: FailureKind) {
        if let FailureKind::Io { error, .. } | FailureKind::LinkToCopy { error, .. } = &kind {
            if error.is_cancelled() {
                return;
            }
            // Room for attributes can be wanting where there is room for files.
            let is_attribute = matches!(kind, FailureKind::Io { verb: Verb::SetXattr | Verb::SetAcl, .. });
            if !is_attribute && (error.is(Errno::NOSPC) || error.is(Errno::DQUOT)) {
                if self.out_of_space.swap(true, Ordering::SeqCst) {
                    return;
                }
                self.io.stop();
            }
        }
        self.fail_at(place.source_path(), place.target_path(), kind);
    }

    /// Reports a failure of paths that are no place of the walk.
    pub(crate) fn fail_at(&self, source: PathBuf, target: PathBuf, kind: FailureKind) {
        self.tally.failed.add(1);
        self.observer.failed(&Failure { source, target, kind });
    }

    /// The same for the kernel's answers.
    pub(crate) fn fail_io(&self, place: &Place<'_>, verb: Verb, error: Error) {
        self.fail(place, FailureKind::Io { verb, error });
    }

    /// Waits until so many bytes may go.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) async fn pay(&self, bytes: u64) -> Result<(), FailureKind> {
        let Some(pace) = &self.pace else { return Ok(()) };
        pace.pay(bytes).await.map_err(|error| FailureKind::Io { verb: Verb::Write, error })
    }

    pub(crate) fn count_bytes(&self, method: Method, bytes: u64) {
        self.tally.bytes_by_method[method as usize].add(bytes);
        self.tally.files_by_method[method as usize].add(1);
    }

    /// Bytes that went this way so far.
    pub(crate) fn bytes_by(&self, method: Method) -> u64 {
        self.tally.bytes_by_method[method as usize].get()
    }

    /// Adapts to the filesystems of an operand, whose folders these are.
    ///
    /// More workers make btrfs slower: its transactions are serialised by locks. It shares extents in less time than
    /// it writes a page; XFS does not, where sharing flushes the source and logs both files.
    pub(crate) async fn adapt_to(&self, folder: &Folder, source: &Dir, target: &Dir) {
        let is_btrfs = target.filesystem_magic() == Some(BTRFS_SUPER_MAGIC);
        let is_alone = is_btrfs || self.asks();
        self.io.limit_workers(if is_alone { 1 } else { self.most_workers });
        let (Ok(source), Ok(found)) = (source.stat().await, target.stat().await) else {
            // Of which filesystem it is can't be told: what is made there is synced by itself.
            return;
        };
        let abilities = self.known.of(source.device, found.device);
        abilities.set_target(target.filesystem_magic());
        abilities.set_clones_small(is_btrfs);
        folder.set_abilities(abilities);
        if self.options.fsync {
            self.durable.meet(found.device, target, || folder.target_path()).await;
        }
    }

    /// What the filesystems of a folder can do, whose source and target are on these devices.
    pub(crate) fn meet(&self, folder: &Folder, (source, target): (u64, u64), target_dir: &Dir) {
        let above = folder.parent().and_then(|parent| parent.abilities());
        let abilities = match above.filter(|above| above.pair == (source, target)) {
            Some(above) => Arc::clone(above),
            None => {
                let abilities = self.known.of(source, target);
                abilities.set_target(target_dir.filesystem_magic());
                // A subvolume has a device number of its own.
                abilities.set_clones_small(above.is_some_and(|above| above.clones_small()));
                abilities
            }
        };
        folder.set_abilities(abilities);
    }

    /// What the filesystems of a file on this device and of its copy can do: that is on its folder's, unless a link has
    /// led elsewhere.
    pub(crate) fn abilities(&self, folder: &Folder, source: u64, target: Option<u64>) -> Arc<Abilities> {
        let Some(of_folder) = folder.abilities() else { return Arc::default() };
        let pair = (source, target.unwrap_or(of_folder.pair.1));
        if of_folder.pair == pair { Arc::clone(of_folder) } else { self.known.of(pair.0, pair.1) }
    }

    /// Whether a file in this folder is opened rather than read, because its extents are likely to be shared.
    pub(crate) fn clones_small_files(&self, folder: &Folder) -> bool {
        let is_wanted = self.options.reflink != Reflink::Never && self.options.sparse == Sparse::Auto;
        is_wanted && folder.abilities().is_some_and(|abilities| abilities.clones_small())
            || self.options.reflink == Reflink::Always
    }

    /// Whether the user is asked (`-i`): then one entry is copied at a time, each folder where it is listed, so that the
    /// questions come in an order that can be relied on.
    pub(crate) fn asks(&self) -> bool {
        self.options.existing == Existing::Ask
    }

    /// Whether the entries of a folder are copied one by one in the order in which GNU cp copies them: so that questions
    /// come in it, or so that a backup does not take the place of a copy that has its name.
    pub(crate) fn keeps_order(&self, folder: &Folder) -> bool {
        let is_backed_up = || folder.facts().is_some_and(|facts| !facts.is_new);
        self.asks() || self.options.backup.is_some() && is_backed_up()
    }

    /// Whether a place is an operand's own, where several could meet.
    fn may_meet(&self, place: &Place<'_>) -> bool {
        matches!(place.folder.role, Role::Root | Role::Way)
            && place.target.is_some()
            && self.items_are_remembered.load(Ordering::Relaxed)
    }

    /// Whether an operand was met before; it is from now on.
    pub(crate) fn has_met(&self, operand: Met) -> bool {
        !lock(&self.met).insert(operand)
    }

    /// Notes what was made at an operand's place.
    pub(crate) fn remember_made(&self, place: &Place<'_>, kind: FileKind) {
        if self.may_meet(place) {
            lock(&self.made).insert(collapsed(&place.target_path()), kind);
        }
    }

    /// Notes that a symbolic link is about to be made. Before the first one it waits for a tick of the clock that
    /// filesystems take their times from, at most some milliseconds: links that others made before are older then.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) async fn makes_symlink(&self) -> ferry_io::Result<()> {
        let since = *self.links_since.get_or_init(|| self.io.real_time());
        while self.io.file_time() < since {
            ferry_io::sleep(std::time::Duration::from_millis(1)).await?;
        }
        Ok(())
    }

    /// Whether this run may have made a symbolic link of the target, which says what a source's owner wants.
    pub(crate) fn may_have_made(&self, link: &Stat) -> bool {
        self.links_since.get().is_some_and(|&since| link.changed >= since)
    }

    /// What an earlier operand of this run has made at a place.
    pub(crate) fn was_made(&self, place: &Place<'_>) -> Option<FileKind> {
        if !self.may_meet(place) {
            return None;
        }
        lock(&self.made).get(&collapsed(&place.target_path())).copied()
    }

    /// Where an earlier operand has copied this source folder to. What is copied as an operand is noted for later ones.
    pub(crate) fn copied_folder(&self, folder: &Folder, source: &Stat) -> Option<PathBuf> {
        let is_operand = folder.role == Role::Operand;
        if !self.items_are_remembered.load(Ordering::Relaxed) || folder.role == Role::Way {
            return None;
        }
        let mut folders = lock(&self.folders);
        let earlier = folders.get(&identity(source)).cloned();
        if is_operand && earlier.is_none() {
            folders.insert(identity(source), folder.target_path());
        }
        earlier
    }

    /// What an operand was to be copied to was not made: later ones may be.
    pub(crate) fn forget_folder(&self, folder: &Folder) {
        if folder.role == Role::Operand && self.items_are_remembered.load(Ordering::Relaxed) {
            let target = folder.target_path();
            lock(&self.folders).retain(|_, made| *made != target);
        }
    }

    /// So many more operands, or entries that may be folders, are to be listed.
    pub(crate) fn walk_grows(&self, count: u64) {
        self.unlisted.fetch_add(count, Ordering::Relaxed);
    }

    /// One of them has been listed, or need not be. After the last, nothing more will be found.
    pub(crate) fn walk_shrinks(&self) {
        if self.unlisted.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.progress.walk_ended.store(true, Ordering::Release);
        }
    }

    pub(crate) fn set_root_device(&self, device: u64) {
        self.root_device.store(device, Ordering::Relaxed);
    }

    pub(crate) fn root_device(&self) -> u64 {
        self.root_device.load(Ordering::Relaxed)
    }

    pub(crate) fn summary(&self) -> Summary {
        let tally = &self.tally;
        let out_of_space = self.out_of_space.load(Ordering::SeqCst);
        Summary {
            files: tally.files.get(),
            directories: tally.directories.get(),
            symlinks: tally.symlinks.get(),
            hard_links: tally.hard_links.get(),
            specials: tally.specials.get(),
            skipped: tally.skipped.get(),
            bytes_by_method: std::array::from_fn(|i| tally.bytes_by_method[i].get()),
            files_by_method: std::array::from_fn(|i| tally.files_by_method[i].get()),
            failed: tally.failed.get(),
            unfinished: tally.unfinished.get(),
            interrupted: self.io.is_stopped() && !out_of_space,
            out_of_space,
            wall: std::time::Duration::ZERO,
            io: ferry_io::Stats::default(),
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One entry: the folder that it is in, and its name on both sides.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Arc<Folder>,
    /// `None` for the folder itself.
    pub(crate) source: Option<&'a Name>,
    pub(crate) target: Option<&'a Name>,
}

impl Place<'_> {
    pub(crate) fn source_path(&self) -> PathBuf {
        join(self.folder.source_path(), self.source)
    }

    pub(crate) fn target_path(&self) -> PathBuf {
        join(self.folder.target_path(), self.target)
    }
}

pub(crate) fn join(folder: PathBuf, name: Option<&Name>) -> PathBuf {
    match name {
        Some(name) => folder.join(name.as_os_str()),
        None => folder,
    }
}

/// A path without the components that `.` and `..` make void.
pub(crate) fn collapsed(path: &Path) -> PathBuf {
    let mut left = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if left.file_name().is_some() => drop(left.pop()),
            Component::ParentDir | Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                left.push(component);
            }
        }
    }
    left
}
