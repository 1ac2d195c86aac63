//! The target of a file's bytes, opened or made when the source is at hand.

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Permit, Stat, protect};

use super::{Ahead, io, remove, remove_first};
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
    /// Nobody else writes to it meanwhile, whatever names it has: given back once it is closed.
    _turn: Option<Permit<'a>>,
    /// Where it is, if it was there: a link may have led to another filesystem than its folder's.
    pub(crate) device: Option<u64>,
    /// Whether this run made it: then it is removed if it can't be completed.
    pub(crate) is_new: bool,
    /// What it was before, if it was there.
    pub(crate) kind: FileKind,
    /// What was there is kept by this name.
    pub(crate) backup: Option<Name>,
    /// How it gets its name, if it has none before it is whole.
    pub(crate) staged: Option<Staged>,
}

impl<'a> Target<'a> {
    /// A new file that was made, and perhaps filled, as its source was read.
    pub(crate) fn stored(file: File, making: Option<Permit<'a>>) -> Self {
        Self {
            file,
            _turn: making,
            device: None,
            is_new: true,
            kind: FileKind::Regular,
            backup: None,
            staged: None,
        }
    }
}

/// Opens the target of a regular file's copy; `None` if what is there stays.
pub(crate) async fn open<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    source: &Stat,
    ahead: Ahead,
    making: Option<Permit<'a>>,
) -> Result<Option<Target<'a>>, FailureKind> {
    let failed = io(Verb::CreateFile);
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(&failed)?;
    match ahead {
        Ahead::Stays | Ahead::IsNewer => {
            note_skipped(copier, &place);
            Ok(None)
        }
        Ahead::Made => Ok(None),
        Ahead::Overwrite(existing) => match Box::pin(overwrite(copier, place, &dir, &existing)).await {
            Ok(target) => {
                if target.kind == FileKind::Regular {
                    Box::pin(meta::withhold(copier, &target.file, &existing, source)).await;
                }
                Ok(Some(target))
            }
            Err(error) if copier.options.force && !error.is_cancelled() => {
                Box::pin(remove_first(copier, place)).await?;
                create(copier, place, &dir, source, making).await.map_err(failed).map(Some)
            }
            Err(error) => Err(failed(error)),
        },
        Ahead::Replace | Ahead::Occupied | Ahead::BackUp | Ahead::Free if copier.options.atomic => {
            Box::pin(stage(copier, place, &dir, source, ahead)).await.map_err(failed).map(Some)
        }
        Ahead::Replace | Ahead::Occupied => {
            Box::pin(remove_first(copier, place)).await?;
            create(copier, place, &dir, source, making).await.map_err(failed).map(Some)
        }
        Ahead::BackUp => {
            let backup = Box::pin(backup::make(copier, place)).await?;
            match create(copier, place, &dir, source, making).await {
                Ok(target) => Ok(Some(Target { backup, ..target })),
                Err(error) => {
                    Box::pin(backup::take_back(copier, place, backup.as_ref())).await;
                    Err(failed(error))
                }
            }
        }
        Ahead::Free => create(copier, place, &dir, source, making).await.map_err(failed).map(Some),
    }
}

/// Opens what is there, to be overwritten when it is its turn.
async fn overwrite<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    dir: &Dir,
    existing: &Stat,
) -> ferry_io::Result<Target<'a>> {
    let (name, kind) = (names(&place).1, existing.kind);
    if kind != FileKind::Regular {
        // It may keep its writer waiting for a reader, and has nothing to be mixed with.
        let (file, _) = through::open(copier, dir, name, OpenHow::write().waiting()).await?;
        let device = Some(existing.device);
        return Ok(Target { file, _turn: None, device, is_new: false, kind, backup: None, staged: None });
    }
    let turn = copier.turns.of(existing).await?;
    let keeps = copier.options.attributes_only;
    let how = if keeps { OpenHow::write() } else { OpenHow::write().truncated() };
    let (file, turn, device) = match dir.open(name, how).await {
        Ok(file) if file.stat().await?.is_same_file(existing) => (file, turn, existing.device),
        // Another has its name since it was looked at.
        Ok(_) => return Err(stale()),
        Err(error) if error.is(Errno::LOOP) => {
            drop(turn);
            through_link(copier, dir, name).await?
        }
        Err(error) => return Err(error),
    };
    if copier.options.fsync && !copier.durable.has_met(device) {
        // By a descriptor of its own: this one is to be closed as soon as it is written, and may fail to be.
        match through::open(copier, dir, name, OpenHow::write()).await {
            Ok((other, _)) => copier.durable.meet(device, || other, || place.target_path()),
            Err(_) => copier.durable.meet_unknown(),
        }
    }
    Ok(Target {
        file,
        _turn: Some(turn),
        device: Some(device),
        is_new: false,
        kind,
        backup: None,
        staged: None,
    })
}

/// Opens what a link leads to; it may be what this run is making just now.
async fn through_link<'a>(
    copier: &'a Copier,
    dir: &Dir,
    name: &Name,
) -> ferry_io::Result<(File, Permit<'a>, u64)> {
    /// Files that it may lead to one after another before giving up.
    const ATTEMPTS: u32 = 100;
    copier.turns.meet_link().await?;
    for _ in 0..ATTEMPTS {
        let expected = dir.stat_entry(name, true).await?;
        let turn = copier.turns.of(&expected).await?;
        let (file, found) = through::open(copier, dir, name, OpenHow::write()).await?;
        if found.is_same_file(&expected) {
            if !copier.options.attributes_only {
                file.truncate(0).await?;
            }
            return Ok((file, turn, found.device));
        }
    }
    Err(stale())
}

fn stale() -> Error {
    Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) }
}

/// A new file.
async fn create<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    making: Option<Permit<'a>>,
) -> ferry_io::Result<Target<'a>> {
    let new = New::entry(&place, FileKind::Regular, source.mode);
    let mode = new.first_mode(copier.options.preserve);
    let turn = match making {
        Some(making) => Some(making),
        None => copier.turns.make().await?,
    };
    if ferry_io::is_cancelled() {
        return Err(Error { operation: Operation::Open, cause: Cause::Cancelled });
    }
    // Given up while it is on its way, it might be made nevertheless, and nobody would know to remove it.
    let name = names(&place).1;
    let (file, is_new) = match protect(dir.open(name, OpenHow::create(mode))).await {
        Err(error) if copier.options.through_dangling && error.is(Errno::EXIST) => {
            let file = protect(dir.open(name, OpenHow::create_through(mode))).await?;
            file.truncate(0).await?;
            // Were it removed, the link would be.
            (file, false)
        }
        opened => (opened?, true),
    };
    let turn = match turn {
        Some(turn) => turn,
        None => match Box::pin(first_turn(copier, &file)).await {
            Ok(turn) => turn,
            Err(error) => {
                if is_new {
                    Box::pin(protect(remove(copier, place))).await.ok();
                }
                return Err(error);
            }
        },
    };
    Ok(Target { is_new, ..Target::stored(file, Some(turn)) })
}

/// A new file that nobody sees before it is whole, so that nobody else can write to it.
async fn stage<'a>(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    ahead: Ahead,
) -> ferry_io::Result<Target<'a>> {
    let mode = New::entry(&place, FileKind::Regular, source.mode).first_mode(copier.options.preserve);
    let (file, mut staged) = staging::create(copier, place, dir.clone(), mode).await?;
    staged.replaces = matches!(ahead, Ahead::Replace | Ahead::Occupied);
    staged.backs_up = matches!(ahead, Ahead::BackUp);
    Ok(Target { staged: Some(staged), ..Target::stored(file, None) })
}

/// The turn of a file that this run has made; somebody may have written to it already through a link.
async fn first_turn<'a>(copier: &'a Copier, file: &File) -> ferry_io::Result<Permit<'a>> {
    let turn = copier.turns.of(&file.stat().await?).await?;
    file.truncate(0).await?;
    Ok(turn)
}
