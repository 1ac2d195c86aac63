//! Failures as messages, collected until the next report.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ferry_copy::{Copied, Explained, Failure, FailureKind, Observer, Question, Unfinished, Verb};

/// Messages since the last report.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Vec<String>>);

impl Failures {
    /// Takes the messages.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, message: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}

/// Receiver of the copier's reports.
pub(crate) struct Collecting(pub(crate) Arc<Failures>);

impl Observer for Collecting {
    fn copied(&self, _: &Copied<'_>) {}

    fn removed(&self, _: &Path) {}

    fn taken_back(&self, _: &Path, _: &Path) {}

    fn agrees(&self, _: &Path, _: Question, _: &dyn Fn() -> bool) -> bool {
        false
    }

    fn explained(&self, _: &Explained<'_>) {}

    fn failed(&self, failure: &Failure) {
        self.0.add(message(failure));
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.0.add(format!("'{}' is incomplete", unfinished.target.display()));
    }
}

/// Returns a failure in words.
fn message(failure: &Failure) -> String {
    let (source, target) = (failure.source.display(), failure.target.display());
    match &failure.kind {
        FailureKind::Io { verb, error } => {
            let (what, is_of_target) = step(*verb);
            match is_of_target {
                true => format!("cannot {what} '{target}': {}", error.cause),
                false => format!("cannot {what} '{source}': {}", error.cause),
            }
        }
        FailureKind::DirectoryOverFile => {
            format!("cannot overwrite non-directory '{target}' with directory '{source}'")
        }
        FailureKind::FileOverDirectory => {
            format!("cannot overwrite directory '{target}' with non-directory '{source}'")
        }
        FailureKind::Changed => format!("skipping '{target}': it or its source was changed meanwhile"),
        FailureKind::Replaced => format!("skipping '{source}', as it was replaced while being copied"),
        FailureKind::NotReplaced | FailureKind::Unlisted => {
            format!("skipping '{target}': it was made meanwhile")
        }
        FailureKind::LinkToCopy { first, error } => {
            format!("cannot create hard link '{target}' to '{}': {}", first.display(), error.cause)
        }
        FailureKind::KeptAside { error, .. } => {
            format!("cannot give an entry its name '{target}' back: {}", error.cause)
        }
        FailureKind::SameFile => format!("'{source}' and '{target}' are the same file"),
        // Only other options of cp lead to these.
        other @ (FailureKind::OmittingDirectory
        | FailureKind::IntoItself
        | FailureKind::WayIsFile
        | FailureKind::JustCreated
        | FailureKind::ThroughJustCreated
        | FailureKind::DanglingTarget
        | FailureKind::CyclicLink
        | FailureKind::BackupDestroysSource
        | FailureKind::CopiedBefore { .. }
        | FailureKind::Unverified
        | FailureKind::ReadOnce
        | FailureKind::RelativeSymlink
        | FailureKind::SpecialSource
        | FailureKind::SpecialTarget) => format!("cannot copy '{source}' to '{target}': {other:?}"),
    }
}

/// Returns a step in words, and true if it is one on the target.
fn step(verb: Verb) -> (&'static str, bool) {
    match verb {
        Verb::Stat | Verb::StatWay => ("stat", false),
        Verb::StatTarget => ("stat", true),
        Verb::Open => ("open", false),
        Verb::OpenDirectory => ("open directory", false),
        Verb::Read => ("read", false),
        Verb::ReadDirectory => ("read directory", false),
        Verb::CreateFile => ("create", true),
        Verb::CreateDirectory | Verb::CreateWay => ("create directory", true),
        Verb::CreateSymlink => ("create symbolic link", true),
        Verb::CreateLink => ("create hard link", true),
        Verb::CreateFifo => ("create fifo", true),
        Verb::CreateSpecial => ("create special file", true),
        Verb::ReadLink => ("read symbolic link", false),
        Verb::Write => ("write", true),
        Verb::Close => ("close", true),
        Verb::Clone => ("clone to", true),
        Verb::SetOwner => ("keep the ownership of", true),
        Verb::SetMode => ("keep the mode of", true),
        Verb::SetAcl => ("keep the permissions of", true),
        Verb::SetTimes => ("keep the times of", true),
        Verb::ListXattr => ("list the extended attributes of", false),
        Verb::SetXattr => ("keep the extended attributes of", true),
        Verb::Remove => ("remove", true),
        Verb::BackUp | Verb::TakeBack => ("back up", true),
        Verb::Restore => ("restore", true),
        Verb::Sync => ("sync", true),
        Verb::ReadTarget | Verb::Hash => ("read", true),
        Verb::ReadTargetDirectory => ("read directory", true),
    }
}

/// Returns a closure for `map_err` that says what could not be done.
pub(crate) fn cannot(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> String {
    let (verb, path) = (verb.to_owned(), path.to_owned());
    move |error| format!("cannot {verb} '{}': {error}", path.display())
}

/// Prints a message of rank 0.
pub(crate) fn complain(why: &str) {
    // Without a standard error there is nobody to tell.
    writeln!(io::stderr(), "ferry-mpi: {why}").ok();
}
