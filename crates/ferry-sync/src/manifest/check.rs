//! Compares a tree with a manifest, without its source.
//!
//! First the regular files of the tree are listed and sorted by path, as those of the manifest are. Then both are merged:
//! what only the tree has is an extra file, and each file of the manifest is opened, compared and hashed, by all workers.
//! If extra files are no difference, the tree is not listed.
//! No symbolic link is followed beneath the tree's root. Memory is bounded: sorting spills to a temporary file, and a
//! worker takes [`BATCH`] files at a time.
//!
//! A line of b3sum looks like one of sha256sum. Where the manifest does not tell, files are hashed by both functions until
//! one file is right; then that function is the manifest's.

mod finding;
mod walk;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ferry_copy::{Algorithm, Hasher, Progress, hash_range};
use ferry_io::{Dir, Errno, FileKind, Io, Name, OpenHow, Paths, Stat, for_each};

use super::note::{Content, Facts, Found, Note};
use super::read::Listing;
use crate::request::Refused;
use crate::sorted::Sorted;

pub use finding::{Finding, What};

/// Files that a worker takes at once.
const BATCH: usize = 64;
/// Files that a worker reads at once.
const AT_ONCE: usize = 8;

/// A tree, and the manifest that it is compared with.
pub struct Check {
    /// Root of the tree.
    pub tree: PathBuf,
    /// Files of the manifest.
    pub listing: Listing,
    /// Set if files that the manifest does not have are no difference.
    pub allows_extra: bool,
    /// Path below the root of a file that is never extra: the manifest itself.
    pub ignored: Option<PathBuf>,
    /// Parts that are compared.
    pub parts: Parts,
}

/// Parts of a file that are compared, as far as the manifest has them.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "they are named as in the option")]
pub struct Parts {
    pub content: bool,
    pub mode: bool,
    pub times: bool,
}

/// Receiver of differences, called from any worker's thread.
pub type Tell = Arc<dyn Fn(Finding) + Send + Sync>;

/// Totals of a check.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Files that were checked.
    pub files: u64,
    /// Bytes that were hashed.
    pub bytes: u64,
    /// Differences that were told.
    pub differences: u64,
    /// Trashes in the tree that were passed over.
    pub trashes: u64,
    /// Set if a signal ended the check.
    pub interrupted: bool,
    /// The runtime's counters.
    pub io: ferry_io::Stats,
}

/// Compares a tree with a manifest. Files and bytes are counted in `progress`.
///
/// # Errors
/// [`Refused`] if the tree can't be opened, or the temporary file not be used.
pub fn check(
    options: &ferry_io::Options,
    check: Check,
    progress: Arc<Progress>,
    tell: Tell,
) -> Result<Checked, Refused> {
    let (checked, stats) = ferry_io::run(options, async |io: Io| {
        // Without handlers a signal kills the process.
        io.stop_on_signals().ok();
        let checked = checked(&io, check, progress, tell).await;
        match checked {
            Err(_) if io.is_stopped() => Ok(Checked { interrupted: true, ..Checked::default() }),
            checked => checked,
        }
    })?;
    checked.map(|checked| Checked { io: stats, ..checked })
}

async fn checked(io: &Io, check: Check, progress: Arc<Progress>, tell: Tell) -> Result<Checked, Refused> {
    let Check { tree, listing, allows_extra, ignored, parts } = check;
    let opened = io.folder(&Paths::new(), &tree);
    let root = opened.map_err(|error| Refused::Open { path: tree.clone(), cause: error.cause })?;
    let state = Arc::new(State {
        io: io.clone(),
        root: root.clone(),
        parts,
        tell,
        differences: AtomicU64::new(0),
        progress,
        algorithm: OnceLock::new(),
        feed: Mutex::new(Feed { listed: listing.files, found: None, next: None, ignored, error: None }),
    });
    let mut trashes = 0;
    if !allows_extra {
        let report = |path: &Path, what| state.report(path, what);
        let (found, passed_over) = walk::files(io, &root, &report).await.map_err(Refused::Aside)?;
        state.feed().found = Some(found);
        trashes = passed_over;
    }
    let jobs = vec![(); io.workers()];
    let work = {
        let state = Arc::clone(&state);
        async move |_: &ferry_io::Jobs<()>, ()| state.work().await
    };
    io.share(jobs, 1, work).await;
    if let Some(error) = state.feed().error.take() {
        return Err(Refused::Aside(error));
    }
    Ok(Checked {
        files: state.progress.entries_done.get(),
        bytes: state.progress.bytes_done.get(),
        differences: state.differences.load(Ordering::Relaxed),
        trashes,
        interrupted: io.is_stopped(),
        io: ferry_io::Stats::default(),
    })
}

/// State that all workers share.
struct State {
    io: Io,
    root: Dir,
    parts: Parts,
    tell: Tell,
    differences: AtomicU64,
    progress: Arc<Progress>,
    /// The function by which a file was right, where the manifest does not tell.
    algorithm: OnceLock<Algorithm>,
    feed: Mutex<Feed>,
}

/// Files that are left to check.
struct Feed {
    listed: Sorted<Note>,
    /// Files of the tree; `None` if extra files are no difference.
    found: Option<Sorted<Found>>,
    /// The first of these that was not compared with the manifest's.
    next: Option<Found>,
    ignored: Option<PathBuf>,
    error: Option<io::Error>,
}

impl Feed {
    /// Returns some files of the manifest, and tells the extra files before and among them.
    fn next_batch(&mut self, tell: &impl Fn(&Path)) -> io::Result<Vec<Note>> {
        let mut notes = Vec::new();
        while notes.len() < BATCH {
            let Some(note) = self.listed.next()? else {
                self.pass(None, tell)?;
                break;
            };
            self.pass(Some(&note.path), tell)?;
            notes.push(note);
        }
        Ok(notes)
    }

    /// Passes over the tree's files up to a path of the manifest, or all.
    fn pass(&mut self, path: Option<&[u8]>, tell: &impl Fn(&Path)) -> io::Result<()> {
        let Some(files) = &mut self.found else { return Ok(()) };
        loop {
            let next = match self.next.take() {
                Some(next) => Some(next),
                None => files.next()?,
            };
            let Some(found) = next else { return Ok(()) };
            match path.map(|path| found.0[..].cmp(path)) {
                None | Some(std::cmp::Ordering::Less) => {
                    let extra = path_of(&found.0);
                    if self.ignored.as_deref() != Some(extra) {
                        tell(extra);
                    }
                }
                Some(std::cmp::Ordering::Equal) => return Ok(()),
                Some(std::cmp::Ordering::Greater) => {
                    self.next = Some(found);
                    return Ok(());
                }
            }
        }
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

impl State {
    fn feed(&self) -> std::sync::MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, path: &Path, what: What) {
        self.differences.fetch_add(1, Ordering::Relaxed);
        (self.tell)(Finding { path: path.to_owned(), what });
    }

    /// Checks files until none is left.
    async fn work(&self) {
        let last = Last::default();
        loop {
            let batch = self.feed().next_batch(&|extra| self.report(extra, What::Extra));
            let notes = match batch {
                Ok(notes) if notes.is_empty() => return,
                Ok(notes) => notes,
                Err(error) => {
                    self.feed().error.get_or_insert(error);
                    return;
                }
            };
            let ended = for_each(AT_ONCE, &notes, async |note| {
                self.check_one(&last, note).await;
                if ferry_io::is_cancelled() { Err(()) } else { Ok(()) }
            });
            if ended.await.is_err() {
                return;
            }
        }
    }

    async fn check_one(&self, last: &Last, note: &Note) {
        let path = path_of(&note.path);
        let Some(content) = &note.content else { return };
        match self.look(last, path, content).await {
            Ok(differences) => differences.into_iter().for_each(|what| self.report(path, what)),
            Err(error) if error.is_cancelled() => return,
            Err(error) => self.report(path, of_error(&error)),
        }
        self.progress.entries_done.add(1);
    }

    /// Returns the differences of a file.
    async fn look(&self, last: &Last, path: &Path, content: &Content) -> ferry_io::Result<Vec<What>> {
        let (Some(name), parent) = (path.file_name().and_then(name_of), path.parent().unwrap_or(path)) else {
            return Ok(vec![What::Missing]);
        };
        let dir = last.open(&self.root, parent).await?;
        let stat = dir.stat_entry(&name, false).await?;
        // Opening others than regular files may have effects.
        if stat.kind != FileKind::Regular {
            return Ok(vec![What::Kind]);
        }
        let mut differences = Vec::new();
        let facts = content.facts;
        if let Some(listed) = facts {
            self.compare_facts(listed, &stat, &mut differences);
        }
        let has_its_size = facts.is_none_or(|listed| listed.size == stat.size);
        if self.parts.content && has_its_size {
            let file = dir.open(&name, OpenHow::read()).await?;
            if !file.stat().await?.is_same_file(&stat) || !self.is_right(&file, content).await? {
                differences.push(What::Content);
            }
        }
        Ok(differences)
    }

    fn compare_facts(&self, listed: Facts, stat: &Stat, differences: &mut Vec<What>) {
        let found = Facts::of(stat);
        if self.parts.content && listed.size != found.size {
            differences.push(What::Size { listed: listed.size, found: found.size });
        }
        if self.parts.mode && listed.mode != found.mode {
            differences.push(What::Mode { listed: listed.mode, found: found.mode });
        }
        if self.parts.times && listed.modified != found.modified {
            differences.push(What::Modified { listed: listed.modified, found: found.modified });
        }
    }

    /// Returns true if a file has the hash of the manifest.
    async fn is_right(&self, file: &ferry_io::File, content: &Content) -> ferry_io::Result<bool> {
        let known = content.algorithm.or_else(|| self.algorithm.get().copied());
        let algorithms: Vec<Algorithm> = known.map_or(Algorithm::ALL.to_vec(), |one| vec![one]);
        let hashers = RefCell::new(algorithms.iter().map(|algorithm| Hasher::new(*algorithm)).collect());
        let bytes = hash_range((&self.io, None), file, 0..u64::MAX, &hashers).await?;
        self.progress.bytes_done.add(bytes);
        let hashes = hashers.into_inner().into_iter().map(Hasher::finish);
        let right = algorithms.iter().zip(hashes).find(|(_, digest)| *digest == content.digest);
        if let Some((algorithm, _)) = right
            && known.is_none()
        {
            // Another worker may have set it.
            self.algorithm.set(*algorithm).ok();
        }
        Ok(right.is_some())
    }
}

fn name_of(name: &OsStr) -> Option<Name> {
    Name::new(name.as_bytes())
}

/// Returns the difference that an error of opening or reading shows.
fn of_error(error: &ferry_io::Error) -> What {
    if error.is(Errno::NOENT) || error.is(Errno::NOTDIR) || error.is(Errno::LOOP) {
        // A link or a file in the place of a folder: nothing of the tree is beneath it.
        What::Missing
    } else {
        What::Unreadable(error.cause)
    }
}

/// The folder that a worker has opened last.
#[derive(Default)]
struct Last(RefCell<Option<(PathBuf, Dir)>>);

impl Last {
    /// Opens a folder below the root.
    async fn open(&self, root: &Dir, path: &Path) -> ferry_io::Result<Dir> {
        if let Some((_, dir)) = self.0.borrow().as_ref().filter(|(last, _)| last == path) {
            return Ok(dir.clone());
        }
        let dir = walk::open(root, path).await?;
        self.0.replace(Some((path.to_owned(), dir.clone())));
        Ok(dir)
    }
}
