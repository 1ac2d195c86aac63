//! Prints the copier's events: failures to standard error, `-v` and `--explain` to standard output.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ferry_copy::{Copied, Failure, Method, Observer, PartNote, Question, Unfinished};

use super::answer;
use super::failures::Failures;
use super::wording::Wording;
use crate::output::{Output, lock};
use crate::quote::quote;

pub(crate) struct Messages {
    program: &'static str,
    output: Arc<Output>,
    wording: Wording,
    failures: Mutex<Failures>,
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
        Self { program, output, wording, failures: Mutex::new(failures), is_refused: AtomicBool::new(false) }
    }

    pub(crate) fn failures(&self) -> MutexGuard<'_, Failures> {
        lock(&self.failures)
    }

    pub(super) fn wording(&self) -> Wording {
        self.wording
    }

    /// Returns true if the user refused to have a target replaced.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    fn fail(&self, source: &Path, target: &Path, message: String) {
        // Held while printing, so that messages and file have the same order.
        let mut failures = self.failures();
        self.output.error(&format!("{}: {message}", self.program));
        failures.add(source, self.wording.target(target), message);
    }

    fn note(&self, source: &Path, target: &Path, message: String) {
        let mut failures = self.failures();
        self.output.error(&format!("{}: {message}", self.program));
        failures.note(source, self.wording.target(target), message);
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

    fn explained(&self, source: &Path, method: Method, why: &str) {
        self.output.line(&format!("{}: {method}: {why}", quote(source)));
    }

    fn failed(&self, failure: &Failure) {
        self.fail(&failure.source, &failure.target, self.wording.failure(failure));
    }

    fn part(&self, note: &PartNote) {
        self.output.error(&format!("{}: {}", self.program, self.wording.part(note)));
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        let message = self.wording.unfinished(unfinished);
        if unfinished.is_interrupted {
            self.fail(&unfinished.source, &unfinished.target, message);
        } else {
            self.note(&unfinished.source, &unfinished.target, message);
        }
    }
}
