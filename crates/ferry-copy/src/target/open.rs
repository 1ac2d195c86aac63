//! The target of a file's bytes, opened or made when the source is at hand.
//!
//! The target was looked at before its source was opened, and other programs may have replaced it since. So it is opened
//! without being emptied, compared by its descriptor with the file that was looked at, and emptied only then (guard:
//! `races::a_target_that_is_replaced_again_and_again_is_copied_each_time`).

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Permit, Stat, protect};

use super::{Ahead, io, look_again, remove_first};
use crate::backup;
use crate::copier::{Copier, Place};
use crate::entry::{names, note_skipped};
use crate::meta;
use crate::mode::New;
use crate::report::{FailureKind, Verb};
use crate::staging::{self, Staged};
use crate::through;

/// An open target.
pub(crate) struct Target<'a> {
    pub(crate) file: File,
    /// Permit to write to this file, whatever names it has: given back once it is closed.
    _turn: Option<Permit<'a>>,
    /// Permit to leave a file unfinished for a while ([`Copier::unfinished`]).
    _unfinished: Option<Permit<'a>>,
    /// The target that was there; a link may have led to another filesystem than its folder's.
    pub(crate) existing: Option<Stat>,
    /// Set if this run made it: then it is removed if it can't be completed.
    pub(crate) is_new: bool,
    /// The kind of the existing target, or of a new one.
    pub(crate) kind: FileKind,
    /// The name under which the replaced target is kept.
    pub(crate) backup: Option<Name>,
    /// The way to its name, if it has none before it is whole.
    pub(crate) staged: Option<Staged>,
}

impl<'a> Target<'a> {
    /// A new file that was made, and perhaps filled, as its source was read.
    pub(crate) fn stored(file: File, making: Option<Permit<'a>>) -> Self {
        Self { _turn: making, ..Self::of(file, true) }
    }

    fn of(file: File, is_new: bool) -> Self {
        Self {
            file,
            _turn: None,
            _unfinished: None,
            existing: None,
            is_new,
            kind: FileKind::Regular,
            backup: None,
            staged: None,
        }
    }

    /// The device that holds it, if it was there.
    pub(crate) fn device(&self) -> Option<u64> {
        self.existing.map(|existing| existing.device)
    }
}

/// The way in which a target is going to be filled.
pub(crate) struct Filling<'a> {
    /// Permit to create it without its turn.
    pub(crate) making: Option<Permit<'a>>,
    /// Set if all bytes are read: nothing is waited for between creating the target and writing them.
    pub(crate) is_read: bool,
}

/// Times that a target is looked at again because another program has replaced, made or removed it meanwhile.
const ATTEMPTS: u32 = 100;

/// An error of opening a target.
enum Refused {
    /// The name leads to something else than it did when it was looked at; reported if that does not end.
    Changed(FailureKind),
    /// The existing target can't be opened: `-f` removes it.
    Unopened(FailureKind),
    Failed(FailureKind),
}

/// The refusal of an open for writing. The target was there: an error that says otherwise, or of another kind of file,
/// tells that it was removed or replaced.
fn unopened(error: Error) -> Refused {
    let is_changed =
        [Errno::NOENT, Errno::NXIO, Errno::ISDIR, Errno::STALE].iter().any(|&errno| error.is(errno));
    let kind = io(Verb::CreateFile)(error);
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
    copier: &'a Copier,
    place: Place<'_>,
    source: &Stat,
    ahead: Ahead,
    filling: Filling<'a>,
) -> Result<Option<Target<'a>>, FailureKind> {
    let (mut ahead, mut filling) = (ahead, filling);
    let mut attempt = 1;
    loop {
        let changed = match open_once(copier, place, source, ahead, &mut filling).await {
            Err(Refused::Changed(kind)) => kind,
            Err(Refused::Failed(kind) | Refused::Unopened(kind)) => return Err(kind),
            Ok(target) => return Ok(target),
        };
        // In a folder that this run has made, a look would not ask.
        if attempt == ATTEMPTS || place.folder.facts().is_some_and(|facts| facts.is_new) {
            return Err(changed);
        }
        attempt += 1;
        let asks = copier.asks() && matches!(ahead, Ahead::Free);
        ahead = Box::pin(look_again(copier, place, source, asks)).await?;
    }
}

async fn open_once<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    source: &Stat,
    ahead: Ahead,
    filling: &mut Filling<'a>,
) -> Result<Option<Target<'a>>, Refused> {
    let failed = io(Verb::CreateFile);
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(&failed)?;
    // Names that are linked to it later are another source's.
    let keeps_names = !copier.options.attributes_only
        && matches!(ahead, Ahead::Overwrite(existing) if copier.links.has_copy(&existing));
    let ahead = if keeps_names { Ahead::Replace(None) } else { ahead };
    match ahead {
        Ahead::Stays | Ahead::IsNewer => {
            note_skipped(copier, &place);
            Ok(None)
        }
        Ahead::Made => Ok(None),
        Ahead::Overwrite(existing) => {
            match Box::pin(overwrite(copier, place, &dir, source, &existing)).await {
                Err(Refused::Unopened(kind)) if copier.options.force && !kind.is_cancelled() => {
                    Box::pin(remove_first(copier, place)).await?;
                    create(copier, place, &dir, source, filling).await.map(Some)
                }
                answer => answer.map(Some),
            }
        }
        Ahead::Replace(_) | Ahead::Occupied | Ahead::BackUp | Ahead::Free if copier.options.atomic => {
            Box::pin(stage(copier, place, &dir, source, ahead)).await.map_err(failed)?.map_or_else(
                || Err(Refused::Changed(io(Verb::CreateFile)(stale()))),
                |target| Ok(Some(target)),
            )
        }
        Ahead::Replace(_) | Ahead::Occupied => {
            Box::pin(remove_first(copier, place)).await?;
            create(copier, place, &dir, source, filling).await.map(Some)
        }
        Ahead::BackUp => {
            let backup = Box::pin(backup::make(copier, place)).await?;
            match create(copier, place, &dir, source, filling).await {
                Ok(target) => Ok(Some(Target { backup, ..target })),
                Err(Refused::Changed(kind) | Refused::Failed(kind) | Refused::Unopened(kind)) => {
                    Box::pin(backup::take_back(copier, place, backup.as_ref())).await;
                    Err(Refused::Failed(kind))
                }
            }
        }
        Ahead::Free => create(copier, place, &dir, source, filling).await.map(Some),
    }
}

/// Opens the existing target, to be overwritten when it is its turn. The file is emptied only once it is known to be the
/// one that was looked at.
async fn overwrite<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    existing: &Stat,
) -> Result<Target<'a>, Refused> {
    let (name, kind) = (names(&place).1, existing.kind);
    let failed = io(Verb::CreateFile);
    if kind != FileKind::Regular {
        // It may keep its writer waiting for a reader, and has nothing to be mixed with.
        let (file, found) =
            through::open(copier, dir, name, OpenHow::write().waiting()).await.map_err(|error| {
                // A socket can't be opened, whoever has made it.
                if error.is(Errno::NXIO) { Refused::Unopened(failed(error)) } else { unopened(error) }
            })?;
        if !found.is_same_file(existing) {
            return Err(Refused::Changed(failed(stale())));
        }
        return Ok(Target { existing: Some(*existing), kind, ..Target::of(file, false) });
    }
    let turn = copier.turns.of(existing).await.map_err(&failed)?;
    let (file, turn) = match dir.open(name, OpenHow::write()).await {
        Ok(file) => {
            let found = file.stat().await.map_err(&failed)?;
            (Some(file).filter(|_| found.is_same_file(existing)), turn)
        }
        Err(error) if error.is(Errno::LOOP) => {
            drop(turn);
            through_link(copier, dir, name, existing).await.map_err(unopened)?
        }
        Err(error) => return Err(unopened(error)),
    };
    let Some(file) = file else { return Err(Refused::Changed(failed(stale()))) };
    let unfinished = copier.unfinished.acquire().await.map_err(&failed)?;
    empty(copier, &file, existing, source).await.map_err(failed)?;
    let target = Target { existing: Some(*existing), kind, ..Target::of(file, false) };
    Ok(Target { _turn: Some(turn), _unfinished: Some(unfinished), ..target })
}

/// Empties a target that is to be overwritten, after it has lost the access that its source does not give. Where it can't
/// be emptied, it gets its access back.
async fn empty(copier: &Copier, file: &File, existing: &Stat, source: &Stat) -> ferry_io::Result<()> {
    protect(async {
        let is_withheld = meta::withhold(copier, file, existing, source).await;
        if copier.options.attributes_only {
            return Ok(());
        }
        let emptied = file.truncate(0).await;
        if emptied.is_err() && is_withheld {
            meta::give_back(copier, file, existing).await;
        }
        emptied
    })
    .await
}

/// Opens what a link leads to, which may be a file that this run is making just now; no file if it is not `existing`.
async fn through_link<'a>(
    copier: &'a Copier,
    dir: &Dir,
    name: &Name,
    existing: &Stat,
) -> ferry_io::Result<(Option<File>, Permit<'a>)> {
    copier.turns.meet_link().await?;
    let turn = copier.turns.of(existing).await?;
    let (file, found) = through::open(copier, dir, name, OpenHow::write()).await?;
    Ok((Some(file).filter(|_| found.is_same_file(existing)), turn))
}

fn stale() -> Error {
    Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) }
}

/// Creates a new file.
async fn create<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    filling: &mut Filling<'a>,
) -> Result<Target<'a>, Refused> {
    let failed = io(Verb::CreateFile);
    let new = New::entry(&place, FileKind::Regular, source.mode);
    let mode = new.first_mode(copier.options.preserve);
    let turn = match filling.making.take() {
        Some(making) => Some(making),
        None => copier.turns.make().await.map_err(&failed)?,
    };
    let mut unfinished = None;
    if !filling.is_read {
        // Without a turn one is taken once the file is there, and the permit after that: never in the other order.
        if turn.is_none() || copier.unfinished.free() == 0 {
            let unnamed = Box::pin(staging::create_unnamed(place, dir, mode)).await.map_err(&failed)?;
            if let Some((file, staged)) = unnamed {
                return Ok(Target { staged: Some(staged), ..Target::of(file, true) });
            }
        }
        if turn.is_some() {
            unfinished = Some(copier.unfinished.acquire().await.map_err(&failed)?);
        }
    }
    if ferry_io::is_cancelled() {
        let error = Error { operation: Operation::Open, cause: Cause::Cancelled };
        return Err(Refused::Failed(failed(error)));
    }
    // Given up while it is in flight, it might be made nevertheless, and nobody would know to remove it.
    let name = names(&place).1;
    let (file, is_new, existing) = match protect(dir.open(name, OpenHow::create(mode))).await {
        Err(error)
            if copier.options.through_dangling && error.is(Errno::EXIST) && is_link(dir, name).await =>
        {
            let file = protect(dir.open(name, OpenHow::create_through(mode))).await.map_err(&failed)?;
            let found = file.stat().await.map_err(&failed)?;
            if found.is_same_file(source) {
                return Err(Refused::Changed(failed(stale())));
            }
            file.truncate(0).await.map_err(&failed)?;
            // Were it removed, the link would be.
            (file, false, Some(found))
        }
        Err(error) if error.is(Errno::EXIST) => return Err(Refused::Changed(failed(error))),
        opened => (opened.map_err(&failed)?, true, None),
    };
    let turn = match turn {
        Some(turn) => turn,
        None => match Box::pin(first_turn(copier, &file, filling.is_read)).await {
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
    Ok(Target { _turn: Some(turn), _unfinished: unfinished, existing, ..Target::of(file, is_new) })
}

/// Creates a new file that nobody sees before it is whole, so that nobody else can write to it; `None` if the file that
/// it replaces is no longer the one that was looked at.
async fn stage<'a>(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    ahead: Ahead,
) -> ferry_io::Result<Option<Target<'a>>> {
    let replaced = if let Ahead::Replace(Some(existing)) = ahead
        && existing.kind == FileKind::Regular
    {
        let Some(replaced) = meta::Replaced::of(dir, names(&place).1, &existing).await? else {
            return Ok(None);
        };
        Some(replaced)
    } else {
        None
    };
    let first_mode = New::entry(&place, FileKind::Regular, source.mode).first_mode(copier.options.preserve);
    let mode = if replaced.is_some() { 0o600 } else { first_mode };
    let (file, mut staged) = staging::create(copier, place, dir.clone(), mode).await?;
    staged.replaces = matches!(ahead, Ahead::Replace(_) | Ahead::Occupied);
    staged.backs_up = matches!(ahead, Ahead::BackUp);
    staged.replaced = replaced;
    Ok(Some(Target { staged: Some(staged), ..Target::of(file, true) }))
}

/// Takes the turn of a file that this run has made, and the permit to leave it unfinished; another fiber may have written to it already through a link.
async fn first_turn<'a>(
    copier: &'a Copier,
    file: &File,
    is_read: bool,
) -> ferry_io::Result<(Permit<'a>, Option<Permit<'a>>)> {
    let turn = copier.turns.of(&file.stat().await?).await?;
    let unfinished = if is_read { None } else { Some(copier.unfinished.acquire().await?) };
    file.truncate(0).await?;
    Ok((turn, unfinished))
}

async fn is_link(dir: &Dir, name: &Name) -> bool {
    dir.stat_entry(name, false).await.is_ok_and(|found| found.kind == FileKind::Symlink)
}
