//! State that all entries of one run share: options, limits, counters, and where failures go.

mod filesystems;
mod tally;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ferry_io::{Errno, FileKind, Io, Name, Paths, Semaphore, Stat, Time};

use crate::abilities::Known;
use crate::check::flush::Flushes;
use crate::check::room::Room;
use crate::devices::Devices;
use crate::digest::Digest;
use crate::dirty::Dirty;
use crate::durable::Durable;
use crate::folder::{Dirs, Folder, OpenFolders, Role};
use crate::links::Links;
use crate::listing::OpenListings;
use crate::load::{self, Gate, InFlight};
use crate::locks::Locks;
use crate::operands::Operands;
use crate::options::{Existing, Options};
use crate::pace::Pace;
use crate::place::{Entry, Subject};
use crate::report::{
    Copied, CpMeans, During as _, Failure, FailureKind, Hashed, Observer, PartNote, PartState, Progress,
    Summary, Verb,
};
use crate::turns::Turns;

use tally::Tally;

/// One run.
pub(crate) struct Run {
    pub(crate) io: Io,
    /// Folders that the operands' paths led to.
    pub(crate) paths: Paths,
    pub(crate) options: Options,
    pub(crate) progress: Arc<Progress>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) tally: Tally,
    pub(crate) limits: Limits,
    pub(crate) operands: Operands,
    pub(crate) links: Links,
    pub(crate) open_folders: OpenFolders,
    pub(crate) open_listings: OpenListings,
    /// Held while a backup's name is looked for and taken.
    pub(crate) backing_up: Semaphore,
    /// Memory for reading copies back (`--verify`).
    pub(crate) room: Room,
    /// Flushes before small files are read back.
    pub(crate) flushes: Flushes,
    /// Turns to write to a file that others can reach.
    pub(crate) turns: Turns,
    pub(crate) pace: Option<Pace>,
    /// Holds the run back while others wait for I/O.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Asked after errors of a device: one that fails or is gone ends the run.
    pub(crate) devices: Arc<Devices>,
    pub(crate) dirty: Dirty,
    pub(crate) locks: Locks,
    /// Filesystems that `--fsync` syncs at the end.
    pub(crate) durable: Durable,
    pub(crate) user: User,
    /// Abilities of the filesystems met so far.
    known: Known,
    /// Operands not begun, and folders whose last entries are not known yet.
    unlisted: AtomicU64,
    /// Set once a full filesystem has ended the run.
    out_of_space: AtomicBool,
    /// Time since which this run makes symbolic links.
    links_since: OnceLock<Time>,
}

/// Bounds on work in flight, by descriptors and blocks.
pub(crate) struct Limits {
    /// Files being copied, each with two descriptors and a block.
    pub(crate) files: Semaphore,
    /// Permits to leave a target unfinished under its name while bytes are waited for, one for each worker. A run that is
    /// killed leaves no more of them, besides the small files that are being written at that moment: one for each worker,
    /// or as many as `files` allows if the pool writes them, on a remote filesystem or by a forced route. A new file without
    /// a permit has no name before it is whole.
    pub(crate) unfinished: Semaphore,
    /// Folders being worked on by each worker.
    pub(crate) folders_at_once: usize,
    /// Number of files that are open at once while a folder is listed (`preload.rs` of ferry-io).
    pub(crate) preloaded_at_once: usize,
    /// Entries of one folder being copied by one worker.
    pub(crate) entries_at_once: usize,
    workers: usize,
}

/// The user that the run copies as.
pub(crate) struct User {
    pub(crate) is_root: bool,
    pub(crate) id: u32,
    pub(crate) group: u32,
    /// Supplementary groups.
    other_groups: Vec<u32>,
    /// Bits taken from the mode of new files.
    pub(crate) umask: u32,
}

impl User {
    fn of(io: &Io) -> Self {
        Self {
            is_root: io.user() == 0,
            id: io.user(),
            group: io.group(),
            other_groups: io.other_groups(),
            umask: io.umask(),
        }
    }

    /// Returns true if the user is in a group. For other groups chmod(2) and setting an access ACL clear the set-group-ID bit.
    pub(crate) fn is_in(&self, group: u32) -> bool {
        self.is_root || self.group == group || self.other_groups.contains(&group)
    }
}

/// Details of a copied entry, for the observer.
#[derive(Default)]
pub(crate) struct Details<'a> {
    /// Name under which the replaced target is kept.
    pub(crate) backup: Option<&'a Name>,
    /// Means that GNU cp would have used, with `--debug`.
    pub(crate) means: Option<CpMeans>,
}

impl Run {
    pub(crate) fn new(
        (io, descriptors): (Io, usize),
        paths: Paths,
        options: Options,
        progress: Arc<Progress>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        // Each worker may hold two descriptors for each of its folders, the cache two for each of its own, an
        // unfinished listing one, and each file two. Files get those that the others leave.
        io.limit_workers(descriptors / 8);
        let workers = io.workers();
        let folders_at_once = (descriptors / (8 * workers)).clamp(1, 16);
        // Six are enough to climb out of thousands of levels (`folder::stays_open`).
        let cached = (descriptors / 8).max(6.min(descriptors / 4)).clamp(2, 256);
        // With few descriptors none is spared for a listing: the rest of it waits in memory.
        let listings = (descriptors / 16).min(64);
        // With fewer than 4, the reads of a folder would wait for each other.
        let preloaded_at_once = (descriptors / (8 * folders_at_once * workers)).min(16);
        let preloaded_at_once = if preloaded_at_once < 4 { 0 } else { preloaded_at_once };
        let preloading = preloaded_at_once * folders_at_once * workers;
        let left =
            descriptors.saturating_sub(2 * folders_at_once * workers + 2 * cached + listings + preloading);
        let files = (left / 2).clamp(1, io.blocks().min(128));
        let asks = options.existing == Existing::Ask;
        let limits = Limits {
            files: Semaphore::new(files),
            unfinished: Semaphore::new(workers),
            folders_at_once: if asks { 1 } else { folders_at_once },
            preloaded_at_once,
            entries_at_once: if asks { 1 } else { files.min(64) },
            workers,
        };
        let user = User::of(&io);
        Self {
            devices: Arc::new(Devices::new(io.clone())),
            io,
            paths,
            pace: options.bandwidth.map(Pace::new),
            gate: None,
            options,
            progress,
            observer,
            tally: Tally::default(),
            limits,
            operands: Operands::default(),
            links: Links::default(),
            open_folders: OpenFolders::new(cached),
            open_listings: OpenListings::new(listings),
            backing_up: Semaphore::new(1),
            room: Room::new(workers),
            flushes: Flushes::default(),
            turns: Turns::new(files),
            dirty: Dirty::default(),
            locks: Locks::default(),
            durable: Durable::default(),
            user,
            known: Known::default(),
            unlisted: AtomicU64::new(0),
            out_of_space: AtomicBool::new(false),
            links_since: OnceLock::new(),
        }
    }

    /// Returns a folder's two descriptors, opened again if they were closed.
    ///
    /// # Errors
    /// Those of [`Folder::dirs`].
    pub(crate) fn dirs<'a>(
        &'a self,
        folder: &'a Arc<Folder>,
    ) -> impl Future<Output = ferry_io::Result<Dirs>> + 'a {
        folder.dirs(&self.open_folders)
    }

    /// Returns the attributes of an entry's source, or of the file that its link leads to.
    pub(crate) async fn stat(&self, entry: Entry<'_>, follow: bool) -> Result<Stat, FailureKind> {
        let dir = self.dirs(entry.folder).await.during(Verb::Stat)?.source;
        dir.stat_entry(entry.source, follow).await.during(Verb::Stat)
    }

    /// Reports a failure of one path. Cancelled operations are no failures; a full filesystem ends the run.
    pub(crate) fn fail<'a>(&self, subject: impl Into<Subject<'a>>, kind: FailureKind) {
        let subject = subject.into();
        if let FailureKind::Io { error, .. } | FailureKind::LinkToCopy { error, .. } = &kind {
            if error.is_cancelled() {
                return;
            }
            // A filesystem without space for attributes may have space for files.
            let is_attribute = matches!(kind, FailureKind::Io { verb: Verb::SetXattr | Verb::SetAcl, .. });
            if !is_attribute && (error.is(Errno::NOSPC) || error.is(Errno::DQUOT)) {
                if self.out_of_space.swap(true, Ordering::SeqCst) {
                    return;
                }
                self.io.stop();
            }
        }
        self.fail_at(subject.source_path(), subject.target_path(), kind);
    }

    /// Reports a failure of paths that the walk does not know.
    pub(crate) fn fail_at(&self, source: PathBuf, target: PathBuf, kind: FailureKind) {
        if self.devices.lets_report(&kind) {
            self.report(source, target, kind);
        }
    }

    /// Reports a failure whatever the state of the devices is.
    pub(crate) fn report(&self, source: PathBuf, target: PathBuf, kind: FailureKind) {
        self.tally.failed.add(1);
        self.observer.failed(&Failure { source, target, kind });
    }

    /// Reports an attribute that could not be kept, which costs the copy nothing else. Returns true if it was kept.
    ///
    /// # Errors
    /// If the run has been cancelled: then the copy is not whole.
    pub(crate) fn note_attribute(
        &self,
        subject: Subject<'_>,
        verb: Verb,
        answer: ferry_io::Result<()>,
    ) -> Result<bool, FailureKind> {
        match answer {
            Ok(()) => Ok(true),
            Err(error) if error.is_cancelled() => Err(verb.failed(error)),
            Err(error) => {
                self.fail(subject, verb.failed(error));
                Ok(false)
            }
        }
    }

    /// Counts an entry whose target stays.
    pub(crate) fn note_skipped(&self, entry: Entry<'_>) {
        self.tally.skipped.add(1);
        if self.options.debug {
            self.observer.skipped(&entry.target_path());
        }
    }

    /// Notes a copied entry, which the end of the run makes durable.
    pub(crate) fn note_made(&self, subject: Subject<'_>, kind: FileKind, details: &Details<'_>) {
        if self.options.fsync {
            self.durable.await_end();
        }
        self.note_copied(subject, kind, details);
    }

    /// Reports the hash of a complete file of the target.
    pub(crate) fn note_hashed(&self, entry: Entry<'_>, digest: Digest, stat: &Stat) {
        let (source, target) = (entry.source_path(), entry.target_path());
        self.observer.hashed(&Hashed { source: &source, target: &target, digest, stat });
    }

    /// Reports what becomes of a file's part.
    pub(crate) fn note_part(&self, entry: Entry<'_>, state: PartState) {
        let (source, target) = (entry.source_path(), entry.target_path());
        self.observer.part(&PartNote { source, target, state });
    }

    /// Notes a copied entry that is durable already, or need not be.
    pub(crate) fn note_copied(&self, subject: Subject<'_>, kind: FileKind, details: &Details<'_>) {
        if let Subject::Entry(entry) = &subject {
            self.operands.note_made(entry, kind);
        }
        if !self.options.verbose {
            return;
        }
        let (source, target) = (subject.source_path(), subject.target_path());
        let (backup, is_way) = match &subject {
            Subject::Entry(entry) => (details.backup.map(|name| entry.path_beside(name)), false),
            Subject::Folder(folder) => (None, folder.role == Role::Way),
        };
        self.observer.copied(&Copied {
            source: &source,
            target: &target,
            backup: backup.as_deref(),
            means: details.means,
            is_way,
        });
    }

    /// Waits while the run is held back for others' I/O.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) fn pass(&self) -> impl Future<Output = ferry_io::Result<()>> {
        Gate::pass(self.gate.as_deref())
    }

    /// Waits like [`Self::pass`], for a piece that is in flight until the result is dropped.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) fn begin(&self) -> impl Future<Output = ferry_io::Result<Option<InFlight<'_>>>> {
        Gate::begin(self.gate.as_deref())
    }

    /// Returns what hashing a file needs.
    pub(crate) fn io_and_gate(&self) -> (&Io, Option<&Gate>) {
        (&self.io, self.gate.as_deref())
    }

    /// Returns the bytes of a large file that are moved at once.
    pub(crate) fn piece(&self) -> u64 {
        let paid = self.pace.as_ref().map_or(u64::MAX, Pace::piece);
        if self.gate.is_some() { paid.min(load::PIECE) } else { paid }
    }

    /// Waits until the rate limit and the gate let this many bytes go. They are in flight until the result is dropped.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) async fn pay(&self, bytes: u64) -> Result<Option<InFlight<'_>>, FailureKind> {
        if let Some(pace) = &self.pace {
            pace.pay(bytes).await.during(Verb::Write)?;
        }
        // Last: the wait for the rate may be long.
        self.begin().await.during(Verb::Write)
    }

    /// Returns true if the user is asked (`-i`). Then one entry is copied at a time, and each folder at its place in
    /// the listing, so that questions come in a reliable order.
    pub(crate) fn asks(&self) -> bool {
        self.options.existing == Existing::Ask
    }

    /// Returns true if a folder's entries are copied one by one in GNU cp's order: for the order of questions, or so
    /// that no backup replaces a copy of the same name.
    pub(crate) fn keeps_order(&self, folder: &Folder) -> bool {
        let is_backed_up = || folder.facts().is_some_and(|facts| !facts.is_new);
        self.asks() || self.options.backup.is_some() && is_backed_up()
    }

    /// Notes that a symbolic link is about to be made. The first one waits for a tick of the filesystems' clock, some
    /// milliseconds at most, so that links made by others before are older.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) async fn expect_symlink(&self) -> ferry_io::Result<()> {
        let since = *self.links_since.get_or_init(|| self.io.real_time());
        while self.io.file_time() < since {
            ferry_io::sleep(std::time::Duration::from_millis(1)).await?;
        }
        Ok(())
    }

    /// Returns true if this run may have made a symbolic link of the target: its text is then the source owner's.
    pub(crate) fn may_have_made(&self, link: &Stat) -> bool {
        self.links_since.get().is_some_and(|&since| link.changed >= since)
    }

    /// Notes this many more operands, or entries that may be folders, to be listed.
    pub(crate) fn walk_grows(&self, count: u64) {
        self.unlisted.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes that one of them has been listed, or need not be. After the last, nothing more will be found.
    pub(crate) fn walk_shrinks(&self) {
        if self.unlisted.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.progress.walk_ended.store(true, Ordering::Release);
        }
    }

    /// Returns true if the user has ended the run. A full filesystem or a failing device ends it, too, but then the copies
    /// made so far stay and are made durable.
    pub(crate) fn is_interrupted(&self) -> bool {
        let is_ended = self.out_of_space.load(Ordering::SeqCst) || self.devices.lost().is_some();
        self.io.is_stopped() && !is_ended
    }

    pub(crate) fn summary(&self) -> Summary {
        let out_of_space = self.out_of_space.load(Ordering::SeqCst);
        Summary {
            interrupted: self.is_interrupted(),
            out_of_space,
            lost: self.devices.lost(),
            ended_operands: self.devices.ended_operands(),
            ways: self.known.ways(),
            ..self.tally.summary()
        }
    }
}
