//! An observer that is told the names of entries, not the hidden ones under which their copies are made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::report::{Copied, Explained, Failure, Hashed, Observer, PartNote, Question, Unfinished};

/// Passes everything on. Both sides of an entry have one name, so a hidden target has its source's.
pub(super) struct Shown(pub(super) Arc<dyn Observer>);

fn shown(source: &Path, target: &Path) -> PathBuf {
    let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".ferry-");
    match (source.file_name(), target.file_name()) {
        (Some(name), Some(hidden)) if name != hidden && is_hidden(hidden) => target.with_file_name(name),
        _ => target.to_owned(),
    }
}

impl Observer for Shown {
    fn copied(&self, copied: &Copied<'_>) {
        let target = shown(copied.source, copied.target);
        self.0.copied(&Copied { target: &target, ..*copied });
    }

    fn removed(&self, target: &Path) {
        self.0.removed(target);
    }

    fn taken_back(&self, backup: &Path, target: &Path) {
        self.0.taken_back(backup, target);
    }

    fn agrees(&self, target: &Path, question: Question, is_over: &dyn Fn() -> bool) -> bool {
        self.0.agrees(target, question, is_over)
    }

    fn explained(&self, explained: &Explained<'_>) {
        self.0.explained(explained);
    }

    fn failed(&self, failure: &Failure) {
        let target = shown(&failure.source, &failure.target);
        self.0.failed(&Failure { target, ..failure.clone() });
    }

    fn hashed(&self, hashed: &Hashed<'_>) {
        let target = shown(hashed.source, hashed.target);
        self.0.hashed(&Hashed { target: &target, ..*hashed });
    }

    fn part(&self, note: &PartNote) {
        let target = shown(&note.source, &note.target);
        self.0.part(&PartNote { target, ..note.clone() });
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        let target = shown(&unfinished.source, &unfinished.target);
        self.0.unfinished(&Unfinished { target, ..unfinished.clone() });
    }
}
