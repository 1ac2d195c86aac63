//! Parts: what an interrupted `ferry sync` has copied of a large file, for the next run to go on with (`reopen.rs`).
//!
//! A file of [`LARGE`] bytes or more is filled under a hidden name that follows from its own. The journal beside it
//! (`journal.rs`) names the source and the part before any bytes are copied. Once copying has taken [`BEGIN`], it also
//! gets the hash of each complete range. Both are synced every [`SYNC`], first the part.
//!
//! A complete part gets its attributes and then the file's name. Only after that its journal is removed, so at any
//! moment a killed run leaves either a part with its journal or the finished file (`complete.rs`).
//!
//! A run holds a lock (flock(2)) on a part, so that two never fill the same one. Where there are no locks, there are no
//! parts. A part whose journal was not written to for a week ([`KEPT`]) is cleared away like other hidden names.
//!
//! Hashes are computed beside the copy, so that a file that is copied quickly costs nothing. Bytes without a hash are
//! compared with the source's when the part is reopened, so a killed run loses none of them (docs/decisions/0018). A
//! power failure may cost what the kernel had not written back.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use blake3::{Hash, Hasher};
use ferry_io::{Dir, Errno, Error, File, FileKind, Name, OpenHow, Result, Stat, protect};

use super::journal::{self, Noted, Useless};
use super::names::journal_of;
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
/// Maximum number of bytes that are moved before the part is known to be filled with them.
const PIECE: u64 = 32 << 20;
/// Mode of parts and journals.
pub(super) const PRIVATE: u32 = 0o600;

/// Names of a part and of its journal.
pub(super) struct Place<'a> {
    pub(super) dir: &'a Dir,
    pub(super) part: &'a Name,
    pub(super) journal: &'a Name,
}

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

/// Returns true if a part or journal was not written to for [`KEPT`]. A complete part has its source's time, so its
/// journal tells.
pub(super) async fn is_old(run: &Run, dir: &Dir, name: &Name) -> bool {
    let of_journal = match journal_of(name) {
        Some(journal) => dir.stat_entry(&journal, false).await.ok(),
        None => None,
    };
    let found = match of_journal {
        Some(found) => found,
        None => match dir.stat_entry(name, false).await {
            Ok(found) => found,
            Err(_) => return false,
        },
    };
    found.times.modified.seconds.saturating_add_unsigned(KEPT.as_secs()) < run.io.real_time().seconds
}

/// Returns true if no run has locked a part or journal. Journals never are.
pub(super) async fn is_unused(dir: &Dir, name: &Name) -> bool {
    match dir.open(name, OpenHow::read()).await {
        Ok(file) => file.try_lock() == Ok(true),
        Err(_) => false,
    }
}

impl Part {
    pub(super) fn new(place: &Place<'_>, source: &Stat, part: &Stat) -> Self {
        Self {
            dir: place.dir.clone(),
            journal: place.journal.clone(),
            header: journal::header(source, part),
            range: journal::range_size(source.size),
            from: 0,
            reached: Cell::new(0),
            noted: Cell::new(0),
        }
    }

    /// Returns the part with so many ranges in its journal, whose bytes count up to an offset.
    pub(super) fn filled(self, noted: u64, from: u64) -> Self {
        Self { from, reached: Cell::new(from), noted: Cell::new(noted), ..self }
    }

    /// Returns the offset that the copy goes on from.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Returns the maximum number of bytes that are moved before [`Self::reach`] is called.
    pub(crate) fn piece(&self) -> u64 {
        self.range.min(PIECE)
    }

    /// Notes that the part is filled up to an offset.
    pub(crate) fn reach(&self, at: u64) {
        self.reached.set(at);
    }

    /// Returns true if a later run can go on with the part, and reports it.
    pub(super) fn is_kept(&self, run: &Run, entry: Entry<'_>) -> bool {
        let reached = self.reached.get();
        if reached > 0 {
            run.note_part(entry, PartState::Kept(reached));
        }
        reached > 0
    }

    pub(super) async fn remove_journal(&self, dir: &Dir) {
        dir.unlink(&self.journal).await.ok();
    }

    /// Begins the journal anew: it names the source and the part, and has no ranges.
    pub(super) async fn begin_journal(&self, run: &Run) -> Result<()> {
        // Not cancellable: a journal without its first line would be damaged.
        protect(async {
            self.remove_journal(&self.dir).await;
            let journal = self.dir.open(&self.journal, OpenHow::create(PRIVATE)).await?;
            write(run, &journal, self.header.as_bytes(), 0).await
        })
        .await
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
        let mut lines = String::new();
        for index in noted..complete {
            lines += &journal::line(index, &hash(run, part, self.range_of(index)).await?);
        }
        let at = journal::size(&self.header, noted);
        let append = async {
            let journal = self.dir.open(&self.journal, OpenHow::write()).await?;
            // A line that a killed run began does not count.
            journal.truncate(at).await?;
            write(run, &journal, lines.as_bytes(), at).await
        };
        // Not cancellable: half a line would be left.
        protect(append).await?;
        self.noted.set(complete);
        Ok(())
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

    pub(super) fn range_size(&self) -> u64 {
        self.range
    }

    pub(super) fn range_of(&self, index: u64) -> Range<u64> {
        index * self.range..(index + 1) * self.range
    }

    /// Reads the journal.
    pub(super) async fn read_journal(&self, run: &Run) -> Result<std::result::Result<Noted, Useless>> {
        match read_journal(run, &self.dir, &self.journal).await? {
            Ok(bytes) => Ok(journal::parse(&bytes, &self.header)),
            Err(why) => Ok(Err(why)),
        }
    }
}

/// Returns the inode number of the part that a journal of this user names, if it is not too old.
pub(super) async fn part_inode(run: &Run, dir: &Dir, journal: &Name) -> Option<u64> {
    if is_old(run, dir, journal).await {
        return None;
    }
    let bytes = read_journal(run, dir, journal).await.ok()?.ok()?;
    journal::part_inode(&bytes)
}

/// Reads a journal of this user.
async fn read_journal(run: &Run, dir: &Dir, name: &Name) -> Result<std::result::Result<Vec<u8>, Useless>> {
    let file = match dir.open(name, OpenHow::read()).await {
        Ok(file) => file,
        Err(error) if error.is(Errno::NOENT) => return Ok(Err(Useless::Missing)),
        Err(error) if error.is_cancelled() => return Err(error),
        Err(_) => return Ok(Err(Useless::Damaged)),
    };
    let found = file.stat().await?;
    let is_own = found.kind == FileKind::Regular && found.links == 1 && found.uid == run.user.id;
    if !is_own || found.size > journal::LARGEST {
        return Ok(Err(Useless::Damaged));
    }
    let mut bytes = Vec::new();
    let mut block = run.io.block().await?;
    while (bytes.len() as u64) < found.size {
        let (back, count) = file.read_at(block, bytes.len() as u64).await;
        match count {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&back.as_slice()[..count]),
            Err(error) if error.is_cancelled() => return Err(error),
            Err(_) => return Ok(Err(Useless::Damaged)),
        }
        block = back;
    }
    Ok(Ok(bytes))
}

/// Writes bytes that fit into a block.
async fn write(run: &Run, file: &File, bytes: &[u8], at: u64) -> Result<()> {
    let mut block = run.io.block().await?;
    block.as_mut_capacity()[..bytes.len()].copy_from_slice(bytes);
    block.set_filled(bytes.len());
    file.write_all_at(block, at).await.1
}

/// Returns the hash of a range, or of what a shorter file has of it.
pub(super) async fn hash(run: &Run, file: &File, range: Range<u64>) -> Result<Hash> {
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
