//! Opening the part of a large file, perhaps that of an interrupted run.
//!
//! A part is used if it is this user's, no other run fills it, and its journal names this source and this part, both as
//! they are now. The run goes on behind the last range in order whose bytes still have their hash, and behind further
//! bytes that are those of the source. With `--checksum` hashes do not count: all bytes are compared.
//!
//! A part that belongs to another user or has several names is foreign, and left alone. Anything that is not used is
//! reported with the reason. So is a journal of which a part is not used.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use blake3::Hash;
use ferry_io::{Block, Dir, Errno, File, FileKind, Name, OpenHow, Result, Stat, for_each, give_way, protect};

use super::journal::{DAMAGED, Noted, Useless};
use super::names::part_names;
use super::part::{PRIVATE, Part, Place, hash};
use super::undo::remove_own_hidden;
use crate::check::room::DEPTH;
use crate::options::Resume;
use crate::place::Entry;
use crate::report::PartState;
use crate::run::Run;

/// Reasons for which a part is not used, or not all of it.
const FOREIGN: &str = "its temporary file is not a regular file of this user alone";
const IN_USE: &str = "another run is copying it";
const UNLOCKED: &str = "its filesystem has no locks";
const UNWRITABLE: &str = "its journal can't be written";
const CHANGED: &str = "its bytes are not those of the source";
const OTHERS_CHANGED: &str = "other bytes are not those of the source";

/// A part that this run fills, or the reason why it does not.
type Reopened = std::result::Result<(File, Part), &'static str>;

/// Opens a file's part, or creates it; `None` if it can't be used.
pub(super) async fn open(
    run: &Run,
    entry: Entry<'_>,
    (dir, folder): (&Dir, u64),
    source: &Stat,
) -> Result<Option<(File, Name, Part)>> {
    // Both sides have one name; the target's may be a hidden one.
    let (name, journal) = part_names(folder, entry.source);
    let place = Place { dir, part: &name, journal: &journal };
    let opened = match open_existing(run, dir, &name).await {
        Ok(file) => reopen(run, entry, &place, file, source).await?,
        Err(error) if error.is(Errno::NOENT) => match create(run, &place, source).await? {
            Some(created) => created,
            None => return Ok(None),
        },
        Err(error) if error.is_cancelled() => return Err(error),
        Err(_) => Err(FOREIGN),
    };
    match opened {
        Ok((file, part)) => Ok(Some((file, name, part))),
        Err(why) => {
            run.note_part(entry, PartState::Ignored(why));
            Ok(None)
        }
    }
}

/// Opens a part to fill it. A complete part of this user may have a mode that forbids it.
async fn open_existing(run: &Run, dir: &Dir, name: &Name) -> Result<File> {
    let write = OpenHow::write().also_reading();
    let refused = match dir.open(name, write).await {
        Err(error) if error.is(Errno::ACCESS) => error,
        opened => return opened,
    };
    let Ok(file) = dir.open(name, OpenHow::read()).await else { return Err(refused) };
    let found = file.stat().await?;
    let is_own = found.kind == FileKind::Regular && found.links == 1 && found.uid == run.user.id;
    if !is_own || file.try_lock() != Ok(true) {
        return Err(refused);
    }
    file.set_mode(PRIVATE).await?;
    drop(file);
    dir.open(name, write).await
}

/// Creates a part and its journal; `None` if that is impossible.
async fn create(run: &Run, place: &Place<'_>, source: &Stat) -> Result<Option<Reopened>> {
    // Not cancellable: a call given up in flight might create the part, and nothing would remove it.
    protect(async {
        let file = match place.dir.open(place.part, OpenHow::create(PRIVATE).also_reading()).await {
            Ok(file) => file,
            // Another run has just created it.
            Err(error) if error.is(Errno::EXIST) => return Ok(None),
            Err(error) => return Err(error),
        };
        let made = file.stat().await?;
        let part = Part::new(place, source, &made);
        let mut refused = None;
        if made.uid == run.user.id && file.try_lock() == Ok(true) {
            match part.begin_journal(run).await {
                Ok(()) => return Ok(Some(Ok((file, part)))),
                // The name is another user's file.
                Err(error) if error.is(Errno::EXIST) => refused = Some(Err(UNWRITABLE)),
                Err(_) => {}
            }
        }
        remove_own_hidden(place.dir, place.part, &made).await;
        Ok(refused)
    })
    .await
}

/// Goes on with a part, if it is this user's and no other run fills it.
async fn reopen(
    run: &Run,
    entry: Entry<'_>,
    place: &Place<'_>,
    file: File,
    source: &Stat,
) -> Result<Reopened> {
    let found = file.stat().await?;
    // A complete part may have its source's owner already.
    let is_users = found.uid == run.user.id;
    let may_be_users = is_users || run.user.is_root && found.uid == source.uid;
    if found.kind != FileKind::Regular || found.links != 1 || !may_be_users {
        return Ok(Err(FOREIGN));
    }
    match file.try_lock() {
        Ok(true) => {}
        Ok(false) => return Ok(Err(IN_USE)),
        Err(_) => return Ok(Err(UNLOCKED)),
    }
    // The run that had the lock may have given the file its name.
    match place.dir.stat_entry(place.part, false).await {
        Ok(named) if named.is_same_file(&found) => {}
        Ok(_) | Err(_) => return Ok(Err(IN_USE)),
    }
    let part = Part::new(place, source, &found);
    let noted = part.read_journal(run).await?;
    if !is_users && noted.is_err() {
        return Ok(Err(FOREIGN));
    }
    let (sound, from) = match &noted {
        Ok(noted) => count_sound(run, entry, (&part, &file), (source, &found), &noted.hashes).await?,
        Err(_) => (0, 0),
    };
    make_private(run, &file, &found).await?;
    file.truncate(from).await?;
    if noted.is_err() {
        match part.begin_journal(run).await {
            Ok(()) => {}
            Err(error) if error.is_cancelled() => return Err(error),
            Err(_) => return Ok(Err(UNWRITABLE)),
        }
    }
    if let Some(state) = state(&noted, (sound, from), (source, &found), run.io.block_size() as u64) {
        run.note_part(entry, state);
    }
    Ok(Ok((file, part.filled(sound, from))))
}

/// Returns the report about a part that was reopened; `None` if it has nothing that could be used.
fn state(
    noted: &std::result::Result<Noted, Useless>,
    (sound, from): (u64, u64),
    (source, found): (&Stat, &Stat),
    block_bytes: u64,
) -> Option<PartState> {
    let noted = match noted {
        // The run was killed before it had copied anything.
        Err(_) if found.size == 0 => return None,
        Err(why) => return Some(PartState::Ignored(why.reason())),
        Ok(noted) => noted,
    };
    // A run writes some blocks at once, so the last ones may lack bytes.
    let is_changed = sound < noted.hashes.len() as u64 && from < source.size;
    match (from, noted.is_damaged) {
        (0, true) => Some(PartState::Ignored(DAMAGED)),
        (0, false) if is_changed || found.size >= block_bytes => Some(PartState::Ignored(CHANGED)),
        (0, false) => None,
        (from, true) => Some(PartState::Continued(from, Some(DAMAGED))),
        (from, false) => Some(PartState::Continued(from, is_changed.then_some(OTHERS_CHANGED))),
    }
}

/// Takes from a complete part the owner and the mode that it was given for its name.
async fn make_private(run: &Run, file: &File, found: &Stat) -> Result<()> {
    if found.uid != run.user.id {
        file.set_owner(Some(run.user.id), None).await?;
    }
    if found.mode != PRIVATE {
        file.set_mode(PRIVATE).await?;
    }
    Ok(())
}

/// Returns the number of ranges, from the first on, whose bytes have their hash, and the offset up to which the part's
/// bytes count.
async fn count_sound(
    run: &Run,
    entry: Entry<'_>,
    (part, file): (&Part, &File),
    (source, found): (&Stat, &Stat),
    hashes: &[Hash],
) -> Result<(u64, u64)> {
    let mut sound = 0;
    let counts = run.options.resume == Some(Resume::Identity);
    for (index, noted) in (0..source.size.min(found.size) / part.range_size()).zip(hashes) {
        if !counts || hash(run, file, part.range_of(index)).await? != *noted {
            break;
        }
        sound = index + 1;
    }
    let from = part.range_of(sound).start;
    let dir = run.dirs(entry.folder).await?.source;
    let original = match dir.open(entry.source, OpenHow::read()).await {
        Ok(original) => original,
        Err(error) if error.is_cancelled() => return Err(error),
        Err(_) => return Ok((sound, from)),
    };
    let now = original.stat().await?;
    let is_source = now.is_same_file(source)
        && (now.size, now.times.modified, now.changed)
            == (source.size, source.times.modified, source.changed);
    if !is_source {
        return Ok((sound, from));
    }
    let compared = Compared { run, source: &original, part: file, has_holes: source.may_have_holes() };
    let from = compared.same_up_to(from..found.size, source.size).await?;
    Ok((sound, from))
}

/// The two files of a comparison.
struct Compared<'a> {
    run: &'a Run,
    source: &'a File,
    part: &'a File,
    has_holes: bool,
}

impl Compared<'_> {
    /// Returns the offset up to which the part has the source's bytes, in whole blocks or to the source's end.
    async fn same_up_to(&self, range: Range<u64>, size: u64) -> Result<u64> {
        let step = self.run.io.block_size() as u64;
        let whole = range.end.saturating_sub(range.start) / step * step;
        let end = if range.end >= size { size } else { range.start + whole };
        if range.start >= end {
            return Ok(range.start.min(size));
        }
        let _permit = self.run.room.permits.acquire().await?;
        let blocks = RefCell::new(self.run.room.take(self.run.io.block_size())?);
        let (same, empty) = (Cell::new(end), Cell::new(range.start));
        let offsets = (0..(end - range.start).div_ceil(step)).map(|index| range.start + index * step);
        let offsets = offsets.take_while(|at| *at < same.get());
        let compared = for_each(DEPTH, offsets, async |at: u64| {
            if at + step <= empty.get() {
                return Ok(());
            }
            let _in_flight = self.run.begin().await?;
            if self.has_holes {
                empty.set(empty.get().max(self.end_of_holes(at).await?));
            }
            let one = blocks.borrow_mut().pop();
            let other = blocks.borrow_mut().pop();
            let (Some(one), Some(other)) = (one, other) else { unreachable!("each range has two blocks") };
            let (one, other, is_same) = self.is_same((one, other), at..end.min(at + step)).await?;
            blocks.borrow_mut().extend([one, other]);
            if !is_same {
                same.set(same.get().min(at));
            }
            give_way().await;
            Ok(())
        })
        .await;
        self.run.room.give_back(blocks.into_inner());
        compared.map(|()| same.get())
    }

    /// Returns the offset up to which both files have no data behind `at`.
    async fn end_of_holes(&self, at: u64) -> Result<u64> {
        let next = async |file: &File| match file.seek_data(at).await {
            Ok(data) => Ok(data.unwrap_or(u64::MAX)),
            Err(error) if error.is_cancelled() => Err(error),
            // The filesystem reports no holes.
            Err(_) => Ok(at),
        };
        Ok(next(self.source).await?.min(next(self.part).await?))
    }

    /// Compares one range, at most a block. Returns the blocks, and true if it is the same. What can't be read is not.
    async fn is_same(&self, (one, other): (Block, Block), range: Range<u64>) -> Result<(Block, Block, bool)> {
        let (mut one, mut other, mut at) = (one, other, range.start);
        while at < range.end {
            let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let copied;
            let original;
            (one, copied) = self.part.read_some_at(one, left, at).await;
            (other, original) = self.source.read_some_at(other, left, at).await;
            let count = match (copied, original) {
                (Ok(copied), Ok(original)) => copied.min(original),
                (Err(error), _) | (_, Err(error)) if error.is_cancelled() => return Err(error),
                (Err(_), _) | (_, Err(_)) => 0,
            };
            if count == 0 || one.as_slice()[..count] != other.as_slice()[..count] {
                return Ok((one, other, false));
            }
            at += count as u64;
        }
        Ok((one, other, true))
    }
}
