//! Opening or creating the target of a regular file, once the source is open.
//!
//! Other programs may have replaced the target since it was looked at. So it is opened without being emptied, its
//! descriptor is compared with the file that was looked at, and only then it is emptied
//! (guard: `a_target_that_is_replaced_again_and_again_is_copied_each_time`).

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Permit, Stat, protect};

use super::clear::remove_first;
use super::look::{Ahead, look_again};
use crate::backup;
use crate::meta;
use crate::mode::TargetMode;
use crate::place::Entry;
use crate::report::{FailureKind, Verb};
use crate::run::Run;
use crate::staging::{self, Part, Staged, part};
use crate::through;
use crate::trail::Trail;

pub(crate) struct Target<'a> {
    pub(crate) file: File,
    /// Permit to write to this file, whatever names it has.
    _turn: Option<Permit<'a>>,
    /// Permit to leave a file unfinished for a while ([`crate::run::Limits::unfinished`]).
    _unfinished: Option<Permit<'a>>,
    /// Attributes of the existing target, if there is one. If a symbolic link was followed, it may be on another
    /// filesystem than its folder.
    pub(crate) existing: Option<Stat>,
    /// Set if this run made it: it is removed if it can't be completed.
    pub(crate) is_new: bool,
    /// Set if it was created with its final owner and mode.
    pub(crate) is_like_source: bool,
    /// The kind of the existing target, or of a new one.
    pub(crate) kind: FileKind,
    /// The name under which the replaced target is kept.
    pub(crate) backup: Option<Name>,
    /// The way to its name, if it has none before it is complete.
    pub(crate) staged: Option<Staged>,
    /// Its hash, if it is asked for and computed while the target is filled.
    pub(crate) trail: Option<Trail>,
    /// Set if it can be read back, as far as that is needed.
    pub(crate) is_readable: bool,
}

impl<'a> Target<'a> {
    /// Wraps a new file that was created, and perhaps filled, while its source was read.
    pub(crate) fn stored(file: File, filling: Filling<'a>) -> Self {
        Self { _turn: filling.making, is_like_source: filling.is_like_source, ..Self::of(file, true) }
    }

    /// Wraps an open file.
    pub(crate) fn of(file: File, is_new: bool) -> Self {
        Self {
            file,
            _turn: None,
            _unfinished: None,
            existing: None,
            is_new,
            is_like_source: false,
            kind: FileKind::Regular,
            backup: None,
            staged: None,
            trail: None,
            is_readable: true,
        }
    }

    /// Returns the part that the target is, if it is one.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.staged.as_ref().and_then(|staged| staged.part.as_ref())
    }

    pub(crate) fn device(&self) -> Option<u64> {
        self.existing.map(|existing| existing.device)
    }
}

/// Facts about filling a target.
pub(crate) struct Filling<'a> {
    /// Permit to create it without its turn.
    pub(crate) making: Option<Permit<'a>>,
    /// Set if all bytes are read: nothing is waited for between creating the target and writing them.
    pub(crate) is_read: bool,
    /// Set if a new file with the source's mode needs no other owner and no other mode.
    pub(crate) is_like_source: bool,
}

/// Number of looks at a target that another program keeps replacing, making or removing.
const ATTEMPTS: u32 = 100;

/// An error of opening a target.
enum Refused {
    /// The name leads to another file than the one that was looked at; reported after the last attempt.
    Changed(FailureKind),
    /// The existing target can't be opened: `-f` removes it.
    Unopened(FailureKind),
    Failed(FailureKind),
}

/// Classifies the refusal of an open for writing. The target existed: an error that denies it, or is of another kind of
/// file, means that it was removed or replaced.
fn unopened(error: Error) -> Refused {
    let is_changed =
        [Errno::NOENT, Errno::NXIO, Errno::ISDIR, Errno::STALE].iter().any(|&errno| error.is(errno));
    let kind = Verb::CreateFile.failed(error);
    if is_changed { Refused::Changed(kind) } else { Refused::Unopened(kind) }
}

impl From<FailureKind> for Refused {
    fn from(kind: FailureKind) -> Self {
        Self::Failed(kind)
    }
}

/// Opens the target of a regular file's copy; `None` if the existing target stays. A target that changes between the
/// look at it and its opening is looked at again, and judged by what it is then.
pub(crate) async fn open<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    source: &Stat,
    ahead: Ahead,
    filling: Filling<'a>,
) -> Result<Option<Target<'a>>, FailureKind> {
    let (mut ahead, mut filling) = (ahead, filling);
    let mut attempt = 1;
    loop {
        let changed = match open_once(run, entry, source, ahead, &mut filling).await {
            Err(Refused::Changed(kind)) => kind,
            Err(Refused::Failed(kind) | Refused::Unopened(kind)) => return Err(kind),
            Ok(target) => return Ok(target),
        };
        // In a folder that this run has made, a look finds nothing.
        if attempt == ATTEMPTS || entry.is_in_new_folder() {
            return Err(changed);
        }
        attempt += 1;
        let asks = run.asks() && matches!(ahead, Ahead::Free);
        ahead = Box::pin(look_again(run, entry, source, asks)).await?;
    }
}

async fn open_once<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    source: &Stat,
    ahead: Ahead,
    filling: &mut Filling<'a>,
) -> Result<Option<Target<'a>>, Refused> {
    let failed = |error| Verb::CreateFile.failed(error);
    let dir = run.dirs(entry.folder).await.map_err(failed)?.target;
    // Names linked to it later belong to another source.
    let keeps_names = !run.options.attributes_only
        && matches!(ahead, Ahead::Overwrite(existing) if run.links.has_copy(&existing));
    let ahead = if keeps_names { Ahead::Replace(None) } else { ahead };
    if matches!(ahead, Ahead::Free) && run.options.resume.is_some() && source.size >= part::LARGE {
        let opened = Box::pin(staging::open_part(run, entry, &dir, source)).await.map_err(failed)?;
        if let Some((file, staged)) = opened {
            return Ok(Some(Target { staged: Some(staged), ..Target::of(file, true) }));
        }
    }
    match ahead {
        Ahead::Stays | Ahead::IsNewer => {
            run.note_skipped(entry);
            Ok(None)
        }
        Ahead::Made => Ok(None),
        Ahead::Overwrite(existing) => match Box::pin(overwrite(run, entry, &dir, source, &existing)).await {
            Err(Refused::Unopened(kind)) if run.options.force && !kind.is_cancelled() => {
                Box::pin(remove_first(run, entry)).await?;
                create(run, entry, &dir, source, filling).await.map(Some)
            }
            answer => answer.map(Some),
        },
        Ahead::Replace(_) | Ahead::Occupied | Ahead::BackUp | Ahead::Free if run.options.atomic => {
            Box::pin(stage(run, entry, &dir, source, ahead)).await.map_err(failed)?.map_or_else(
                || Err(Refused::Changed(Verb::CreateFile.failed(stale()))),
                |target| Ok(Some(target)),
            )
        }
        Ahead::Replace(_) | Ahead::Occupied => {
            Box::pin(remove_first(run, entry)).await?;
            create(run, entry, &dir, source, filling).await.map(Some)
        }
        Ahead::BackUp => {
            let backup = Box::pin(backup::make(run, entry)).await?;
            match create(run, entry, &dir, source, filling).await {
                Ok(target) => Ok(Some(Target { backup, ..target })),
                Err(Refused::Changed(kind) | Refused::Failed(kind) | Refused::Unopened(kind)) => {
                    Box::pin(backup::take_back(run, entry, backup.as_ref())).await;
                    Err(Refused::Failed(kind))
                }
            }
        }
        Ahead::Free => create(run, entry, &dir, source, filling).await.map(Some),
    }
}

/// Adds reading to a way of opening for writing, if the copy is read back.
fn writing(run: &Run, how: OpenHow) -> OpenHow {
    if run.options.verify || run.options.digest.is_some() { how.also_reading() } else { how }
}

/// Opens an existing file for writing, and for reading if the copy is read back. If only its hash needs that, a file
/// that may not be read is opened for writing alone: then returns false, too.
async fn open_existing<T>(
    run: &Run,
    open: impl AsyncFn(OpenHow) -> ferry_io::Result<T>,
) -> ferry_io::Result<(T, bool)> {
    match open(writing(run, OpenHow::write())).await {
        Err(error) if error.is(Errno::ACCESS) && run.options.digest.is_some() && !run.options.verify => {
            open(OpenHow::write()).await.map(|opened| (opened, false))
        }
        opened => opened.map(|opened| (opened, true)),
    }
}

/// Opens the existing target, to be overwritten when it is its turn. The file is emptied only once it is known to be
/// the one that was looked at.
async fn overwrite<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    dir: &Dir,
    source: &Stat,
    existing: &Stat,
) -> Result<Target<'a>, Refused> {
    let (name, kind) = (entry.target, existing.kind);
    let failed = |error| Verb::CreateFile.failed(error);
    if kind != FileKind::Regular {
        // Opening may wait for a reader. Writers of a stream need no turns.
        let (file, found) =
            through::open(run, dir, name, OpenHow::write().waiting()).await.map_err(|error| {
                // A socket can't be opened at all.
                if error.is(Errno::NXIO) { Refused::Unopened(failed(error)) } else { unopened(error) }
            })?;
        if !found.is_same_file(existing) {
            return Err(Refused::Changed(failed(stale())));
        }
        return Ok(Target { existing: Some(*existing), kind, ..Target::of(file, false) });
    }
    let turn = run.turns.of(existing).await.map_err(failed)?;
    let (file, turn, is_readable) = match open_existing(run, async |how| dir.open(name, how).await).await {
        Ok((file, is_readable)) => {
            let found = file.stat().await.map_err(failed)?;
            (Some(file).filter(|_| found.is_same_file(existing)), turn, is_readable)
        }
        Err(error) if error.is(Errno::LOOP) => {
            drop(turn);
            through_link(run, dir, name, existing).await.map_err(unopened)?
        }
        Err(error) => return Err(unopened(error)),
    };
    let Some(file) = file else { return Err(Refused::Changed(failed(stale()))) };
    let unfinished = run.limits.unfinished.acquire().await.map_err(failed)?;
    empty(run, &file, existing, source).await.map_err(failed)?;
    let target = Target { existing: Some(*existing), kind, is_readable, ..Target::of(file, false) };
    Ok(Target { _turn: Some(turn), _unfinished: Some(unfinished), ..target })
}

/// Withholds the access that the source does not give, and empties the target. If that fails, the access is given back.
async fn empty(run: &Run, file: &File, existing: &Stat, source: &Stat) -> ferry_io::Result<()> {
    protect(async {
        let is_withheld = meta::withhold(run, file, existing, source).await;
        if run.options.attributes_only {
            return Ok(());
        }
        let emptied = file.truncate(0).await;
        if emptied.is_err() && is_withheld {
            meta::give_back(run, file, existing).await;
        }
        emptied
    })
    .await
}

/// Opens the file that a link leads to, which this run may be making just now; `None` if it is not `existing`. Returns
/// true, too, if it can be read back.
async fn through_link<'a>(
    run: &'a Run,
    dir: &Dir,
    name: &Name,
    existing: &Stat,
) -> ferry_io::Result<(Option<File>, Permit<'a>, bool)> {
    run.turns.meet_link().await?;
    let turn = run.turns.of(existing).await?;
    let open = async |how| through::open(run, dir, name, how).await;
    let ((file, found), is_readable) = open_existing(run, open).await?;
    Ok((Some(file).filter(|_| found.is_same_file(existing)), turn, is_readable))
}

fn stale() -> Error {
    Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) }
}

/// Creates a new file.
async fn create<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    dir: &Dir,
    source: &Stat,
    filling: &mut Filling<'a>,
) -> Result<Target<'a>, Refused> {
    let failed = |error| Verb::CreateFile.failed(error);
    let new = TargetMode::entry(entry, FileKind::Regular, source.mode);
    let is_like_source = filling.is_like_source;
    let first_mode = new.first_mode(run.options.preserve);
    let mode = if is_like_source { source.mode } else { first_mode };
    let turn = match filling.making.take() {
        Some(making) => Some(making),
        None => run.turns.make().await.map_err(failed)?,
    };
    let mut unfinished = None;
    if !filling.is_read {
        // Without a turn, one is taken once the file exists, and the permit after that: never in the other order.
        if turn.is_none() || run.limits.unfinished.free() == 0 {
            let unnamed = Box::pin(staging::create_unnamed(entry, dir, mode)).await.map_err(failed)?;
            if let Some((file, staged)) = unnamed {
                return Ok(Target { staged: Some(staged), ..Target::of(file, true) });
            }
        }
        if turn.is_some() {
            unfinished = Some(run.limits.unfinished.acquire().await.map_err(failed)?);
        }
    }
    if ferry_io::is_cancelled() {
        let error = Error { operation: Operation::Open, cause: Cause::Cancelled };
        return Err(Refused::Failed(failed(error)));
    }
    // Not cancellable: a call given up in flight might create the file, and nothing would remove it.
    let name = entry.target;
    let (file, is_new, existing) = match protect(dir.open(name, writing(run, OpenHow::create(mode)))).await {
        Err(error) if run.options.through_dangling && error.is(Errno::EXIST) && is_link(dir, name).await => {
            // The link leads to a folder of which nothing is known.
            let created = protect(dir.open(name, writing(run, OpenHow::create_through(first_mode)))).await;
            let file = created.map_err(failed)?;
            let found = file.stat().await.map_err(failed)?;
            if found.is_same_file(source) {
                return Err(Refused::Changed(failed(stale())));
            }
            file.truncate(0).await.map_err(failed)?;
            // Not new: removing it would remove the link.
            (file, false, Some(found))
        }
        Err(error) if error.is(Errno::EXIST) => return Err(Refused::Changed(failed(error))),
        opened => (opened.map_err(failed)?, true, None),
    };
    let turn = match turn {
        Some(turn) => turn,
        None => match Box::pin(first_turn(run, &file, filling.is_read)).await {
            Ok((turn, permit)) => {
                unfinished = permit;
                turn
            }
            Err(error) => {
                if is_new && let Ok(made) = protect(file.stat()).await {
                    // The first failure is the one that is reported.
                    Box::pin(staging::remove_made(dir, name, &made)).await.ok();
                }
                return Err(Refused::Failed(failed(error)));
            }
        },
    };
    let is_like_source = is_like_source && is_new;
    let target = Target { existing, is_like_source, ..Target::of(file, is_new) };
    Ok(Target { _turn: Some(turn), _unfinished: unfinished, ..target })
}

/// Creates a file that is not visible before it is complete, so that no other program can write to it; `None` if the
/// file that it replaces is no longer the one that was looked at.
async fn stage<'a>(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    source: &Stat,
    ahead: Ahead,
) -> ferry_io::Result<Option<Target<'a>>> {
    let replaced = if let Ahead::Replace(Some(existing)) = ahead
        && existing.kind == FileKind::Regular
    {
        let Some(replaced) = meta::Replaced::of(dir, entry.target, &existing).await? else {
            return Ok(None);
        };
        Some(replaced)
    } else {
        None
    };
    let first_mode =
        TargetMode::entry(entry, FileKind::Regular, source.mode).first_mode(run.options.preserve);
    let mode = if replaced.is_some() { 0o600 } else { first_mode };
    let (file, mut staged) = staging::create(run, entry, dir.clone(), mode).await?;
    staged.replaces = matches!(ahead, Ahead::Replace(_) | Ahead::Occupied);
    staged.backs_up = matches!(ahead, Ahead::BackUp);
    staged.replaced = replaced;
    Ok(Some(Target { staged: Some(staged), ..Target::of(file, true) }))
}

/// Takes the turn of a file that this run has made, and the permit to leave it unfinished. Another fiber may have
/// written to it through a link already.
async fn first_turn<'a>(
    run: &'a Run,
    file: &File,
    is_read: bool,
) -> ferry_io::Result<(Permit<'a>, Option<Permit<'a>>)> {
    let turn = run.turns.of(&file.stat().await?).await?;
    let unfinished = if is_read { None } else { Some(run.limits.unfinished.acquire().await?) };
    file.truncate(0).await?;
    Ok((turn, unfinished))
}

async fn is_link(dir: &Dir, name: &Name) -> bool {
    dir.stat_entry(name, false).await.is_ok_and(|found| found.kind == FileKind::Symlink)
}
