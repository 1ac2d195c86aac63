//! Asking whether a target is to be replaced (`-i`).

use ferry_io::{FileKind, Stat};

use crate::copier::{Copier, Place};
use crate::entry::names;
use crate::report::{FailureKind, Question, Verb};

/// Whether the user wants it. While the answer is waited for nothing else is done.
pub(crate) async fn agrees(copier: &Copier, place: Place<'_>, existing: &Stat) -> Result<bool, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::StatTarget, error };
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let mode = existing.mode & 0o7777;
    let question = if existing.kind == FileKind::Symlink || dir.may_write(names(&place).1) {
        Question::Overwrite
    } else if copier.options.force || copier.options.remove_destination {
        Question::Override { mode }
    } else {
        Question::TryAnyway { mode }
    };
    Ok(copier.observer.agrees(&place.target_path(), question, &|| copier.io.is_stopped()))
}
