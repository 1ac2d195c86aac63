//! Undoing a run: everything in its trash goes back to the target.
//!
//! The trash is walked as if it were the source of a new target. Each entry is moved to its old name; the entry that has
//! this name by now takes its place in the trash, so that undoing once more takes the step back. Folders are made if they
//! are missing, and get the attributes of their likes in the trash.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{Copier, FailureKind, Settings, Start};
use ferry_io::{Errno, FileKind, Io, Name, Paths};

use crate::perform::{Done, Way};
use crate::plan::{Action, Kind};
use crate::request::{Refused, Surroundings, Totals};
use crate::run::unless_stopped;
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
        unless_stopped(&io, restore(&io, trash, target, surroundings).await)
    })?;
    totals.map(|totals| Totals { io, ..totals })
}

async fn restore(
    io: &Io,
    trash_path: &Path,
    target_path: &Path,
    surroundings: &Surroundings<'_>,
) -> Result<Totals, Refused> {
    let paths = Paths::new();
    let open = |path: &Path| {
        let failed = |error: ferry_io::Error| Refused::Open { path: path.to_owned(), cause: error.cause };
        io.folder(&paths, path).map_err(failed)
    };
    let (trash, target) = (open(trash_path)?, open(target_path)?);
    let Surroundings { progress, observer, tell, .. } = surroundings;
    let copier = Copier::new(io.clone(), Settings::default(), Arc::clone(progress), Arc::clone(observer));
    let choices = Choices::of_everything(trash_path.to_owned(), target_path.to_owned());
    let opened = |kind| Refused::of(trash_path, &kind);
    let mut walk = Walk::new(io, choices, &**observer, (trash.clone(), None)).await.map_err(opened)?;
    let start = Start {
        source: trash,
        target,
        source_path: trash_path.to_owned(),
        target_path: target_path.to_owned(),
        is_new: false,
    };
    let root = copier.start(start).await.map_err(opened)?;
    let way = Way::new(&copier, root, (trash_path.to_owned(), target_path.to_owned()), true);
    let mut sink = Restorer { copier: &copier, way, tell: *tell, done: Done::default() };
    let walked = walk.run(&mut sink).await;
    let (done, failed) = (sink.done, walk.found().failed);
    // The trash's own folder is private; the target's root keeps its attributes.
    sink.way.finish_below().await;
    let summary = copier.end().await;
    walked.map_err(Refused::Aside)?;
    Ok(Totals {
        done,
        failed: failed + summary.failed,
        interrupted: summary.interrupted,
        out_of_space: summary.out_of_space,
        ..Totals::default()
    })
}

/// The sink that moves entries back.
struct Restorer<'a> {
    copier: &'a Copier,
    way: Way<'a>,
    tell: &'a dyn Fn(&Action),
    done: Done,
}

impl Sink for Restorer<'_> {
    async fn take(&mut self, batch: Batch) -> io::Result<()> {
        for Planned { action, .. } in &batch.actions {
            let Some(name) = action.path.0.file_name().and_then(|name| Name::new(name.as_encoded_bytes()))
            else {
                continue;
            };
            let Some(pair) = self.way.go(&batch.folder).await else { continue };
            let outcome = if action.kind == Kind::Directory {
                self.make_way(&pair, &name).await
            } else {
                self.copier.restore(&pair, &name).await
            };
            match outcome {
                Err(kind) => self.copier.fail(&pair, &name, kind),
                Ok(()) if action.kind == Kind::Directory => drop(self.way.make(&name).await),
                Ok(()) => {
                    self.done.count(action.verb);
                    (self.tell)(action);
                }
            }
        }
        Ok(())
    }
}

/// Names tried for an entry in a folder's way.
const ATTEMPTS: u32 = 100;
/// Longest name that every usual filesystem stores (NAME_MAX).
const LONGEST_NAME: usize = 255;

/// Returns the name in the trash of an entry in a folder's way: `name.new`, `name.new.1` and so on.
fn aside(name: &Name, attempt: u32) -> Option<Name> {
    let end = if attempt == 0 { ".new".to_owned() } else { format!(".new.{attempt}") };
    let start = name.as_bytes();
    let start = &start[..start.len().min(LONGEST_NAME - end.len())];
    Name::new(&[start, end.as_bytes()].concat())
}

impl Restorer<'_> {
    /// Moves an entry that is in a folder's way to the trash: `name.new`.
    async fn make_way(&self, pair: &ferry_copy::Pair, name: &Name) -> Result<(), FailureKind> {
        match self.copier.look(pair, name).await? {
            (_, Some(found)) if found.kind != FileKind::Directory => {
                for attempt in 0..ATTEMPTS {
                    let Some(aside) = aside(name, attempt) else { break };
                    match self.copier.set_aside(pair, name, &aside).await {
                        Err(FailureKind::Io { error, .. }) if error.is(Errno::EXIST) => {}
                        moved => return moved,
                    }
                }
                Err(FailureKind::DirectoryOverFile)
            }
            (_, Some(_) | None) => Ok(()),
        }
    }
}
