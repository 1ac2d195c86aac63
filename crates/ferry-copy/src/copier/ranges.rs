//! One large file, copied in ranges by several processes.
//!
//! Each range is written to the file's *part*: a file with a hidden name that the caller chooses, so that all processes
//! choose the same. If modes are kept, the part has mode 0600 until its end. After the last range one process gives it the source's size,
//! attributes and name.

use std::ops::Range;

use ferry_io::{Dir, Errno, File, FileKind, Name, OpenHow, Stat, protect};

use super::{Copier, Pair, Sides};
use crate::folder::Dirs;
use crate::meta;
use crate::mode::TargetMode;
use crate::mover::Mover;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Details;
use crate::sparse;
use crate::staging;
use crate::target::Target;

/// Mode of a file that only its owner may use.
const PRIVATE: u32 = 0o600;

impl Copier {
    /// Makes a file's part, unless it is there. Only one process does this, before others know of the file or before any other
    /// range is copied: a part that is missing later has lost its ranges.
    ///
    /// # Errors
    /// Those of openat(2).
    pub async fn begin_ranges(&self, pair: &Pair, part: &Name) -> Result<(), FailureKind> {
        self.begin_part(pair, part, PRIVATE).await
    }

    /// As [`Self::begin_ranges`], but the part is made like any new file if its source's mode is not kept.
    ///
    /// # Errors
    /// Those of openat(2).
    pub async fn begin_ranges_of(&self, pair: &Pair, part: &Name, source: &Stat) -> Result<(), FailureKind> {
        let entry = Entry { folder: &pair.0, source: part, target: part };
        let mode = TargetMode::entry(entry, source.kind, source.mode);
        // The owner has to write to it, as to any file that cp has open.
        self.begin_part(pair, part, mode.first_mode(self.run.options.preserve) | PRIVATE).await
    }

    async fn begin_part(&self, pair: &Pair, part: &Name, mode: u32) -> Result<(), FailureKind> {
        self.run.pass().await.during(Verb::Open)?;
        pair.touch();
        let _permit = self.run.limits.files.acquire().await.during(Verb::Open)?;
        let target = self.run.dirs(&pair.0).await.during(Verb::Open)?.target;
        let made = open_part(&target, part, mode).await.during(Verb::CreateFile)?;
        made.close_in(&target).await.during(Verb::Close)
    }

    /// Copies a range to a file's part. Holes are left out.
    ///
    /// # Errors
    /// [`FailureKind::Changed`] if the source is not the file that the caller saw, or was written to since, or if the part
    /// has lost its name; others as with cp.
    pub async fn copy_range(
        &self,
        pair: &Pair,
        (name, part): (&Name, &Name),
        seen: &Stat,
        range: Range<u64>,
    ) -> Result<(), FailureKind> {
        let run = &self.run;
        run.pass().await.during(Verb::Open)?;
        pair.touch();
        let _permit = run.limits.files.acquire().await.during(Verb::Open)?;
        let Dirs { source: from, target: to } = run.dirs(&pair.0).await.during(Verb::Open)?;
        let source = open_source(&from, name, seen).await?;
        let target = Target::of(to.open(part, OpenHow::write()).await.during(Verb::CreateFile)?, true);
        let abilities = run.abilities(&pair.0, seen.device, target.device());
        let mut mover = Mover::of(run, &abilities, seen, &source, &target);
        let (bytes, method) = if seen.may_have_holes() {
            sparse::copy_data_of(&mut mover, range).await?
        } else {
            let moved = mover.move_range(range.clone()).await?;
            mover.end(moved.end).await?;
            if moved.end < range.end {
                return Err(FailureKind::Changed);
            }
            (range.end - range.start, moved.method)
        };
        drop(mover);
        if run.options.fsync {
            target.file.sync_data().await.during(Verb::Sync)?;
        }
        // If the file has been completed meanwhile, these bytes have come too late, and changed its time.
        let written = target.file.stat().await.during(Verb::Stat)?;
        match to.stat_entry(part, false).await {
            Ok(found) if found.is_same_file(&written) => {}
            Ok(_) => return Err(FailureKind::Changed),
            Err(error) if error.is(Errno::NOENT) => return Err(FailureKind::Changed),
            Err(error) => return Err(error).during(Verb::StatTarget),
        }
        run.tally.count_part(method, bytes);
        target.file.close_in(&to).await.during(Verb::Close)
    }

    /// Completes a part of which all ranges are copied, and gives it its name.
    ///
    /// # Errors
    /// As with [`Self::copy_range`]; [`FailureKind::FileOverDirectory`].
    pub async fn end_ranges(
        &self,
        pair: &Pair,
        (name, part): (&Name, &Name),
        sides: Sides<'_>,
    ) -> Result<(), FailureKind> {
        let run = &self.run;
        let entry = Entry { folder: &pair.0, source: name, target: name };
        pair.touch();
        if sides.target.is_some_and(|target| target.kind == FileKind::Directory) {
            return Err(FailureKind::FileOverDirectory);
        }
        let Dirs { source: from, target: to } = run.dirs(&pair.0).await.during(Verb::Open)?;
        let source = open_source(&from, name, sides.source).await?;
        let xattrs = meta::found(run, entry.into(), source.xattrs().await)?;
        let is_new = !run.options.preserve.mode;
        let mode = is_new.then(|| TargetMode::entry(entry, FileKind::Regular, sides.source.mode));
        // Not cancellable: a mode that is set without its owner could give access.
        protect(async {
            let target = to.open(part, OpenHow::write()).await.during(Verb::CreateFile)?;
            target.truncate(sides.source.size).await.during(Verb::Write)?;
            meta::keep(run, entry.into(), &target, sides.source, &xattrs, mode).await?;
            if let Some(mode) = mode {
                let lent = PRIVATE & !mode.first_mode(run.options.preserve);
                let made = target.stat().await.during(Verb::Stat)?.mode;
                if made & lent != 0 {
                    run.note_attribute(
                        entry.into(),
                        Verb::SetMode,
                        target.set_mode(made & 0o7777 & !lent).await,
                    )?;
                }
            }
            if run.options.fsync {
                target.sync().await.during(Verb::Sync)?;
            }
            target.close_in(&to).await.during(Verb::Close)?;
            // The last look at the source: it was not written to while it was copied.
            open_source(&from, name, sides.source).await?;
            staging::rename(&to, part, name, sides.target.is_some()).await.during(Verb::CreateFile)
        })
        .await?;
        run.tally.files.add(1);
        run.note_made(entry.into(), FileKind::Regular, &Details::default());
        Ok(())
    }

    /// Removes a part, if it is there.
    ///
    /// # Errors
    /// Those of unlinkat(2), except ENOENT.
    pub async fn drop_ranges(&self, pair: &Pair, part: &Name) -> Result<(), FailureKind> {
        pair.touch();
        let target = self.run.dirs(&pair.0).await.during(Verb::Remove)?.target;
        match protect(target.unlink(part)).await {
            Err(error) if error.is(Errno::NOENT) => Ok(()),
            removed => removed.during(Verb::Remove),
        }
    }
}

/// Opens a source that must be the file that was seen, and not written to since.
async fn open_source(dir: &Dir, name: &Name, seen: &Stat) -> Result<File, FailureKind> {
    let file = dir.open(name, OpenHow::read()).await.during(Verb::Open)?;
    let found = file.stat().await.during(Verb::Stat)?;
    let is_it = found.is_same_file(seen)
        && found.kind == FileKind::Regular
        && found.size == seen.size
        && found.times.modified == seen.times.modified;
    if is_it { Ok(file) } else { Err(FailureKind::Changed) }
}

/// Opens a part, which another process may be making at this moment.
async fn open_part(dir: &Dir, part: &Name, mode: u32) -> ferry_io::Result<File> {
    match dir.open(part, OpenHow::write()).await {
        Err(error) if error.is(Errno::NOENT) => {}
        opened => return opened,
    }
    match protect(dir.open(part, OpenHow::create(mode))).await {
        Err(error) if error.is(Errno::EXIST) => dir.open(part, OpenHow::write()).await,
        opened => opened,
    }
}
