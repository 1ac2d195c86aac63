//! `-i`: asking the user before a target is replaced.

use ferry_io::{FileKind, Stat};

use crate::place::Entry;
use crate::report::{FailureKind, Question, Verb};
use crate::run::Run;

/// Asks the user, and returns the answer. Nothing else is done meanwhile.
pub(crate) async fn agrees(run: &Run, entry: Entry<'_>, existing: &Stat) -> Result<bool, FailureKind> {
    let io = |error| FailureKind::Io { verb: Verb::StatTarget, error };
    let dir = run.dirs(entry.folder).await.map_err(io)?.target;
    let mode = existing.mode & 0o7777;
    let question = if existing.kind == FileKind::Symlink || dir.may_write(entry.target) {
        Question::Overwrite
    } else if run.options.force || run.options.remove_destination {
        Question::Override { mode }
    } else {
        Question::TryAnyway { mode }
    };
    Ok(run.observer.agrees(&entry.target_path(), question, &|| run.io.is_stopped()))
}
