//! Prints the copier's events: failures to standard error, `-v` and `--explain` to standard output.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ferry_copy::{Copied, Explained, Failure, Observer, PartNote, Question, Unfinished};

use super::answer;
use super::explained::Ways;
use super::failures::{Failures, Message};
use super::wording::Wording;
use crate::output::{Output, lock};
use crate::quote::quote;

pub(crate) struct Messages {
    program: &'static str,
    output: Arc<Output>,
    wording: Wording,
    failures: Mutex<Failures>,
    ways: Mutex<Ways>,
    /// Set if the explanation of each file is printed, too.
    explains_each: bool,
    /// Set after the user refused a question.
    is_refused: AtomicBool,
}

impl Messages {
    pub(crate) fn new(
        program: &'static str,
        output: Arc<Output>,
        wording: Wording,
        failures: Failures,
    ) -> Self {
        Self {
            program,
            output,
            wording,
            failures: Mutex::new(failures),
            ways: Mutex::default(),
            explains_each: false,
            is_refused: AtomicBool::new(false),
        }
    }

    /// Sets whether the explanation of each file is printed, too.
    pub(super) fn explaining_each(self, explains_each: bool) -> Self {
        Self { explains_each, ..self }
    }

    pub(crate) fn failures(&self) -> MutexGuard<'_, Failures> {
        lock(&self.failures)
    }

    /// Returns the table of `--explain`, if the bytes of any file were copied.
    pub(super) fn ways(&self, columns: usize) -> Option<String> {
        lock(&self.ways).table(columns)
    }

    /// Returns true if the user refused to have a target replaced.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Prints the message of a failure, or another one about a failed path.
    fn fail(&self, is_another: bool, message: Message<'_>) {
        // Held while printing, so that messages and file have the same order.
        let mut failures = self.failures();
        failures.begin_at(self.output.rows());
        self.output.error(&format!("{}: {}", self.program, message.text));
        let message = Message { target: self.wording.target(message.target), ..message };
        if is_another { failures.note(message) } else { failures.add(message) }
    }
}

impl Observer for Messages {
    fn copied(&self, copied: &Copied<'_>) {
        let Copied { source, target, backup, means, is_way } = *copied;
        if is_way {
            // GNU cp does not quote these names.
            let names = [source, self.wording.target(target)].map(|path| path.as_os_str().as_bytes());
            return self.output.line(&names.join(&b" -> "[..]));
        }
        let mut line = format!("{} -> {}", quote(source), quote(self.wording.target(target)));
        if let Some(backup) = backup {
            line += &format!(" (backup: {})", quote(self.wording.target(backup)));
        }
        if let Some(means) = means {
            line += &format!("\n{means}");
        }
        self.output.line(&line);
    }

    fn skipped(&self, target: &Path) {
        self.output.line(&format!("skipped {}", quote(self.wording.target(target))));
    }

    fn removed(&self, target: &Path) {
        self.output.line(&format!("removed {}", quote(self.wording.target(target))));
    }

    fn taken_back(&self, backup: &Path, target: &Path) {
        let (backup, target) = (quote(self.wording.target(backup)), quote(self.wording.target(target)));
        self.output.line(&format!("{backup} -> {target} (unbackup)"));
    }

    fn agrees(&self, target: &Path, question: Question, is_over: &dyn Fn() -> bool) -> bool {
        let question = self.wording.question(target, question);
        let agrees = self.output.ask(&format!("{}: {question} ", self.program), || answer::is_yes(is_over));
        self.is_refused.fetch_or(!agrees, Ordering::Relaxed);
        agrees
    }

    fn repeated(&self, source: &Path, is_folder: bool) {
        self.output.error(&format!("{}: {}", self.program, Wording::repeated(source, is_folder)));
    }

    fn explained(&self, explained: &Explained<'_>) {
        lock(&self.ways).add(explained);
        if self.explains_each {
            let Explained { source, method, why, .. } = *explained;
            self.output.line(&format!("{}: {method}: {why}", quote(source)));
        }
    }

    fn failed(&self, failure: &Failure) {
        let errno = failure.kind.error().and_then(ferry_io::Error::as_errno);
        let text = self.wording.failure(failure);
        self.fail(false, Message { source: &failure.source, target: &failure.target, text, errno });
    }

    fn part(&self, note: &PartNote) {
        self.output.error(&format!("{}: {}", self.program, self.wording.part(note)));
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        let errno = unfinished.error.as_ref().and_then(ferry_io::Error::as_errno);
        let text = self.wording.unfinished(unfinished);
        let message = Message { source: &unfinished.source, target: &unfinished.target, text, errno };
        self.fail(!unfinished.is_interrupted, message);
    }
}
