//! Parts: what an interrupted `ferry sync` has copied of a large file, for the next run to go on with.
//!
//! A file of [`LARGE`] bytes or more is filled under a hidden name that follows from its own. Once that has taken
//! [`BEGIN`], the hash of each complete range is noted in a journal beside it (`journal.rs`). Both are synced every
//! [`SYNC`], first the part.
//!
//! The next run finds both by their names. The journal counts if it names this source and this part, both as they are
//! now. The run goes on behind the last range in order whose bytes in the part still have their hash; with `--checksum`
//! the source's bytes must have it, too.
//!
//! A run holds a lock (flock(2)) on a part, so that two never fill the same one. A part that belongs to another user or
//! has several names is foreign, and left alone. Where there are no locks, there are no parts. A part that was not
//! written to for a week ([`KEPT`]) is cleared away like other hidden names.
//!
//! Limits: hashes are computed beside the copy, so that a file that is copied quickly costs nothing. A killed run loses
//! what it has copied in the first second, or what could not be hashed yet (docs/decisions/0018). A power failure may cost
//! what was copied since the last sync.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use blake3::{Hash, Hasher};
use ferry_io::{Dir, Errno, Error, File, FileKind, Name, OpenHow, Result, Stat, protect};

use super::journal::{self, Useless};
use super::names::part_names;
use super::undo::remove_own_hidden;
use crate::options::Resume;
use crate::place::Entry;
use crate::report::PartState;
use crate::run::Run;

/// Smaller files are copied anew.
pub(crate) const LARGE: u64 = 64 << 20;
/// Time after which a copy has taken long enough for a journal.
const BEGIN: Duration = Duration::from_secs(1);
/// Time between two looks at how far the copy is.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum number of ranges that are noted at once.
const BATCH: u64 = 4;
/// Time between two syncs of a part and its journal.
const SYNC: Duration = Duration::from_secs(5);
/// Time after which a part is cleared away.
const KEPT: Duration = Duration::from_hours(7 * 24);
/// Mode of parts and journals.
const PRIVATE: u32 = 0o600;

/// A part that is being filled.
pub(crate) struct Part {
    dir: Dir,
    journal: Name,
    /// First line of the journal.
    header: String,
    /// Size of a range in bytes.
    range: u64,
    /// Offset that this run has gone on from.
    from: u64,
    /// Offset up to which the part is filled.
    reached: Cell<u64>,
    /// Number of ranges in the journal.
    noted: Cell<u64>,
}

/// Returns true if a part was not written to for [`KEPT`].
pub(super) async fn is_old(dir: &Dir, name: &Name) -> bool {
    let Ok(found) = dir.stat_entry(name, false).await else { return false };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    found.times.modified.seconds.saturating_add_unsigned(KEPT.as_secs()) < now.as_secs().cast_signed()
}

/// Returns true if no run has locked a part or journal. Journals never are.
pub(super) async fn is_unused(dir: &Dir, name: &Name) -> bool {
    match dir.open(name, OpenHow::read()).await {
        Ok(file) => file.try_lock() == Ok(true),
        Err(_) => false,
    }
}

/// Opens a file's part, or creates it; `None` if it can't be used.
pub(super) async fn open(
    run: &Run,
    entry: Entry<'_>,
    (dir, folder): (&Dir, u64),
    source: &Stat,
) -> Result<Option<(File, Name, Part)>> {
    // Both sides have one name; the target's may be a hidden one.
    let (name, journal) = part_names(folder, entry.source);
    let opened = match dir.open(&name, OpenHow::write().also_reading()).await {
        Ok(file) => reopen(run, entry, (dir, &journal), (file, &name), source).await?,
        Err(error) if error.is(Errno::NOENT) => create(run, (dir, &journal), &name, source).await?,
        // Not a file of this user.
        Err(error) if error.is_cancelled() => return Err(error),
        Err(_) => None,
    };
    Ok(opened.map(|(file, part)| (file, name, part)))
}

async fn create(
    run: &Run,
    (dir, journal): (&Dir, &Name),
    name: &Name,
    source: &Stat,
) -> Result<Option<(File, Part)>> {
    // Not cancellable: a call given up in flight might create the part, and nothing would remove it.
    protect(async {
        let file = match dir.open(name, OpenHow::create(PRIVATE).also_reading()).await {
            Ok(file) => file,
            // Another run has just created it.
            Err(error) if error.is(Errno::EXIST) => return Ok(None),
            Err(error) => return Err(error),
        };
        let made = file.stat().await?;
        if made.uid != run.user.id || file.try_lock() != Ok(true) {
            remove_own_hidden(dir, name, &made).await;
            return Ok(None);
        }
        let part = Part::new(dir, journal, source, &made);
        // A run may have been killed before it had removed it.
        part.remove_journal(dir).await;
        Ok(Some((file, part)))
    })
    .await
}

/// Goes on with a part, if it is this user's and no other run fills it.
async fn reopen(
    run: &Run,
    entry: Entry<'_>,
    (dir, journal): (&Dir, &Name),
    (file, name): (File, &Name),
    source: &Stat,
) -> Result<Option<(File, Part)>> {
    let found = file.stat().await?;
    let is_own = found.kind == FileKind::Regular && found.links == 1 && found.uid == run.user.id;
    if !is_own || file.try_lock() != Ok(true) {
        return Ok(None);
    }
    // The run that had the lock may have given the file its name.
    match dir.stat_entry(name, false).await {
        Ok(named) if named.is_same_file(&found) => {}
        Ok(_) | Err(_) => return Ok(None),
    }
    let part = Part::new(dir, journal, source, &found);
    let noted = match part.read_journal(run).await? {
        None => 0,
        Some(Ok(hashes)) => part.count_sound(run, entry, &file, source, &hashes).await?,
        Some(Err(why)) => {
            run.note_part(entry, PartState::Ignored(reason(why)));
            0
        }
    };
    let from = noted * part.range;
    file.truncate(from).await?;
    if noted == 0 {
        part.remove_journal(dir).await;
    } else {
        run.note_part(entry, PartState::Continued(from));
    }
    part.noted.set(noted);
    part.reached.set(from);
    Ok(Some((file, Part { from, ..part })))
}

fn reason(why: Useless) -> &'static str {
    match why {
        Useless::Damaged => "its journal is damaged",
        Useless::OtherSource => "the source is another file, or has changed",
        Useless::OtherPart => "its journal belongs to another file",
    }
}

impl Part {
    fn new(dir: &Dir, journal: &Name, source: &Stat, part: &Stat) -> Self {
        Self {
            dir: dir.clone(),
            journal: journal.clone(),
            header: journal::header(source, part),
            range: journal::range_size(source.size),
            from: 0,
            reached: Cell::new(0),
            noted: Cell::new(0),
        }
    }

    /// Returns the offset that the copy goes on from.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Returns the maximum number of bytes that are moved before [`Self::reach`] is called.
    pub(crate) fn piece(&self) -> u64 {
        self.range
    }

    /// Notes that the part is filled up to an offset.
    pub(crate) fn reach(&self, at: u64) {
        self.reached.set(at);
    }

    /// Returns true if a later run can go on with the part, and reports it.
    pub(super) fn is_kept(&self, run: &Run, entry: Entry<'_>) -> bool {
        let noted = self.noted.get();
        if noted > 0 {
            run.note_part(entry, PartState::Kept(noted * self.range));
        }
        noted > 0
    }

    pub(super) async fn remove_journal(&self, dir: &Dir) {
        dir.unlink(&self.journal).await.ok();
    }

    /// Notes complete ranges in the journal, until it is cancelled.
    ///
    /// Returns the cancellation. Other errors end the journal only: the copy goes on without.
    pub(crate) async fn follow(&self, run: &Run, part: &File) -> Error {
        let mut pause = BEGIN;
        let mut synced = ferry_io::now();
        let mut is_ended = false;
        loop {
            if let Err(cancelled) = ferry_io::sleep(pause).await {
                return cancelled;
            }
            pause = PAUSE;
            if is_ended {
                continue;
            }
            let is_due = ferry_io::now().duration_since(synced) >= SYNC;
            let noted = async {
                self.note(run, part).await?;
                if is_due { self.sync(part).await } else { Ok(()) }
            };
            match noted.await {
                Err(error) if error.is_cancelled() => return error,
                noted => is_ended = noted.is_err(),
            }
            if is_due {
                synced = ferry_io::now();
            }
        }
    }

    /// Notes the ranges that are complete by now.
    async fn note(&self, run: &Run, part: &File) -> Result<()> {
        while self.noted.get() < self.reached.get() / self.range {
            self.note_batch(run, part).await?;
        }
        Ok(())
    }

    /// Notes up to [`BATCH`] ranges.
    async fn note_batch(&self, run: &Run, part: &File) -> Result<()> {
        let noted = self.noted.get();
        let complete = (self.reached.get() / self.range).min(noted + BATCH);
        let mut lines = if noted == 0 { self.header.clone() } else { String::new() };
        for index in noted..complete {
            lines += &journal::line(index, &hash(run, part, self.range_of(index)).await?);
        }
        // Not cancellable: a journal without its header would be damaged.
        protect(self.append(run, noted, lines.as_bytes())).await?;
        self.noted.set(complete);
        Ok(())
    }

    async fn append(&self, run: &Run, noted: u64, lines: &[u8]) -> Result<()> {
        let (how, at) = match noted {
            0 => (OpenHow::create(PRIVATE), 0),
            noted => (OpenHow::write(), journal::size(&self.header, noted)),
        };
        let file = self.dir.open(&self.journal, how).await?;
        // A line that a killed run began does not count.
        file.truncate(at).await?;
        let mut block = run.io.block().await?;
        block.as_mut_capacity()[..lines.len()].copy_from_slice(lines);
        block.set_filled(lines.len());
        file.write_all_at(block, at).await.1
    }

    /// Makes what is noted durable, first the bytes.
    async fn sync(&self, part: &File) -> Result<()> {
        if self.noted.get() == 0 {
            return Ok(());
        }
        part.sync_data().await?;
        self.dir.open(&self.journal, OpenHow::write()).await?.sync().await?;
        self.dir.as_file().sync().await
    }

    fn range_of(&self, index: u64) -> Range<u64> {
        index * self.range..(index + 1) * self.range
    }

    /// Reads the journal; `None` if there is none.
    async fn read_journal(&self, run: &Run) -> Result<Option<std::result::Result<Vec<Hash>, Useless>>> {
        let file = match self.dir.open(&self.journal, OpenHow::read()).await {
            Ok(file) => file,
            Err(error) if error.is(Errno::NOENT) => return Ok(None),
            Err(error) if error.is_cancelled() => return Err(error),
            Err(_) => return Ok(Some(Err(Useless::Damaged))),
        };
        let found = file.stat().await?;
        let is_own = found.kind == FileKind::Regular && found.links == 1 && found.uid == run.user.id;
        if !is_own || found.size > journal::most_bytes(&self.header) {
            return Ok(Some(Err(Useless::Damaged)));
        }
        let mut bytes = Vec::new();
        let mut block = run.io.block().await?;
        while (bytes.len() as u64) < found.size {
            let (back, count) = file.read_at(block, bytes.len() as u64).await;
            match count {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&back.as_slice()[..count]),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(_) => return Ok(Some(Err(Useless::Damaged))),
            }
            block = back;
        }
        Ok(Some(journal::parse(&bytes, &self.header)))
    }

    /// Returns the number of ranges, from the first on, whose bytes have their hash.
    async fn count_sound(
        &self,
        run: &Run,
        entry: Entry<'_>,
        part: &File,
        source: &Stat,
        hashes: &[Hash],
    ) -> Result<u64> {
        let original = match run.options.resume {
            Some(Resume::Content) => {
                let dir = run.dirs(entry.folder).await?.source;
                Some(dir.open(entry.source, OpenHow::read()).await?)
            }
            Some(Resume::Identity) | None => None,
        };
        let mut sound = 0;
        for (index, noted) in (0..source.size / self.range).zip(hashes) {
            let range = self.range_of(index);
            let is_sound = hash(run, part, range.clone()).await? == *noted
                && match &original {
                    Some(original) => hash(run, original, range).await? == *noted,
                    None => true,
                };
            if !is_sound {
                break;
            }
            sound = index + 1;
        }
        Ok(sound)
    }
}

/// Returns the hash of a range, or of what a shorter file has of it.
async fn hash(run: &Run, file: &File, range: Range<u64>) -> Result<Hash> {
    let mut hasher = Hasher::new();
    let mut block = run.io.block().await?;
    let mut at = range.start;
    while at < range.end {
        let (back, count) = file.read_at(block, at).await;
        let count = count?.min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
        if count == 0 {
            break;
        }
        hasher.update(&back.as_slice()[..count]);
        block = back;
        at += count as u64;
    }
    Ok(hasher.finalize())
}
