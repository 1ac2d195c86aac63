//! Undoing a run: everything in its trash goes back to the target.
//!
//! The trash is walked as if it were the source of a new target. Each entry is moved to its old name. The entry that has
//! this name by now is moved to a new trash first, from which it can be moved back in turn. Folders are made if they are
//! missing, and get the attributes of their likes in the trash; those that exist keep theirs. What was moved is no longer
//! in the trash, so an interrupted run can be repeated. An empty trash is removed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{Copier, Devices, FailureKind, Pair, Settings, Start};
use ferry_io::{FileKind, Io, Name, Paths};

use crate::perform::{Done, Missing, Trash, Way, is_trash, remove_if_empty};
use crate::plan::{Action, Kind};
use crate::request::{Refused, Surroundings, Totals};
use crate::run::{place_of_trash, refuse_trash, unless_stopped};
use crate::sink::{Batch, Planned, Sink};
use crate::walk::{Choices, TRASH, Walk};

/// Returns the target of a trash in its usual place; `None` for one elsewhere.
#[must_use]
pub fn target_of(trash: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(trash).ok()?;
    let all = whole.parent()?;
    let is_usual = all.file_name().is_some_and(|name| name.as_encoded_bytes() == TRASH);
    is_usual.then(|| all.parent().map(Path::to_path_buf)).flatten()
}

/// Moves everything in `trash` back to `target`.
///
/// # Errors
/// [`Refused`]; a failure of one path is reported to the observer instead.
pub fn undo(trash: &Path, target: &Path, surroundings: &Surroundings<'_>) -> Result<Totals, Refused> {
    let (totals, io) = ferry_io::run(surroundings.io, async |io: Io| {
        io.stop_on_signals().ok();
        let devices = Arc::new(Devices::new(io.clone()));
        let restored = restore(&io, trash, target, (surroundings, &devices)).await;
        unless_stopped(&io, &devices, restored)
    })?;
    totals.map(|totals| Totals { io, ..totals })
}

async fn restore(
    io: &Io,
    trash_path: &Path,
    target_path: &Path,
    (surroundings, devices): (&Surroundings<'_>, &Arc<Devices>),
) -> Result<Totals, Refused> {
    let paths = Paths::new();
    let open = |path: &Path| {
        let failed = |error: ferry_io::Error| Refused::Open { path: path.to_owned(), cause: error.cause };
        io.folder(&paths, path).map_err(failed)
    };
    let (trash, target) = (open(trash_path)?, open(target_path)?);
    match is_trash(&trash).await {
        Ok(true) => {}
        Ok(false) => return Err(Refused::NoTrash(trash_path.to_owned())),
        Err(error) => return Err(Refused::Open { path: trash_path.to_owned(), cause: error.cause }),
    }
    refuse_trash(&target, target_path).await?;
    let whole = std::path::absolute(trash_path).map_err(Refused::Aside)?;
    let all =
        trash.parent().await.map_err(|error| Refused::Open { path: whole.clone(), cause: error.cause })?;
    let place = place_of_trash(io, &target, target_path, whole.parent()).await?;
    let Surroundings { progress, observer, tell, gate, .. } = surroundings;
    devices.watch(&trash, Some(&target));
    let settings = Settings { gate: gate.clone(), devices: Some(Arc::clone(devices)), ..Settings::default() };
    let copier = Copier::new(io.clone(), settings, Arc::clone(progress), Arc::clone(observer));
    let everything = Choices::of_everything(io, trash_path.to_owned(), target_path.to_owned());
    let choices = Choices { gate: gate.clone(), devices: Arc::clone(devices), ..everything };
    let opened = |kind| Refused::of(trash_path, &kind);
    let mut walk = Walk::new(io, choices, &**observer, (trash.clone(), None)).await.map_err(opened)?;
    let start = Start {
        source: trash.clone(),
        target: target.clone(),
        source_path: trash_path.to_owned(),
        target_path: target_path.to_owned(),
        is_new: false,
    };
    let root = copier.start(start).await.map_err(opened)?;
    let way = Way::new(&copier, root, (trash_path.to_owned(), target_path.to_owned()), Missing::Restore);
    let displaced = Trash::new(&copier, (target, target_path.to_owned()), place, io.real_time());
    let mut sink = Restorer { copier: &copier, way, displaced, tell: *tell, done: Done::default() };
    let walked = walk.run(&mut sink).await;
    let (done, failed) = (sink.done, walk.found().failed);
    // The trash's own folder is private; the target's root keeps its attributes.
    sink.way.finish_below().await;
    let displaced = sink.displaced.finish().await;
    if let Some(name) = whole.file_name().and_then(|name| Name::new(name.as_encoded_bytes())) {
        remove_if_empty(&trash, &all, &name).await;
    }
    let summary = copier.end().await;
    walked.map_err(Refused::Aside)?;
    Ok(Totals {
        done,
        failed: failed + summary.failed,
        interrupted: summary.interrupted,
        out_of_space: summary.out_of_space,
        lost: summary.lost,
        trash: displaced,
        ..Totals::default()
    })
}

/// The sink that moves entries back.
struct Restorer<'a> {
    copier: &'a Copier,
    way: Way<'a>,
    /// Where entries go whose names are needed.
    displaced: Trash<'a>,
    tell: &'a dyn Fn(&Action),
    done: Done,
}

impl Sink for Restorer<'_> {
    async fn take(&mut self, batch: Batch) -> io::Result<()> {
        for Planned { action, .. } in &batch.actions {
            if self.copier.is_stopped() {
                break;
            }
            let Some(name) = action.path.0.file_name().and_then(|name| Name::new(name.as_encoded_bytes()))
            else {
                continue;
            };
            let Some(pair) = self.way.go(&batch.folder).await else { continue };
            self.copier.lend(&pair, true).await;
            match self.restore_one(&pair, &name, action, &batch.folder).await {
                Err(kind) => self.copier.fail(&pair, &name, kind),
                Ok(false) => {}
                Ok(true) => {
                    self.done.count(action.verb);
                    (self.tell)(action);
                }
            }
        }
        Ok(())
    }
}

impl Restorer<'_> {
    /// Moves an entry back, or makes its folder. Returns false if no entry was moved; a failure may have been reported.
    async fn restore_one(
        &mut self,
        pair: &Pair,
        name: &Name,
        action: &Action,
        folder: &Path,
    ) -> Result<bool, FailureKind> {
        let is_folder = action.kind == Kind::Directory;
        let (_, existing) = self.copier.look(pair, name).await?;
        let in_the_way = existing.filter(|existing| !is_folder || existing.kind != FileKind::Directory);
        let lifted = match in_the_way {
            Some(existing) => {
                let Ok(displaced) = self.displaced.folder(folder).await else { return Ok(false) };
                pair.set_trash(Some(displaced));
                let lifted = self.copier.lift(pair, name, &existing).await;
                pair.set_trash(None);
                Some(lifted?)
            }
            None => None,
        };
        let restored = match is_folder {
            true => Ok(self.way.go(&action.path.0).await.is_some()),
            false => self.copier.restore(pair, name).await.map(|()| true),
        };
        match lifted {
            Some(lifted) if !matches!(restored, Ok(true)) => {
                self.copier.give_back(pair, name, lifted).await?;
            }
            // It stays in the new trash.
            Some(_) | None => {}
        }
        restored.map(|is_there| is_there && !is_folder)
    }
}
