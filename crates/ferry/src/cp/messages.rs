//! Tells what the copier tells: failures on standard error, `-v` and `--explain` on standard output.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use ferry_copy::{Failure, Method, Observer};

use super::failures::Failures;
use super::wording::Wording;
use crate::output::{Output, lock};
use crate::quote::quote;

/// The command's side of the copier's events.
pub(crate) struct Messages {
    program: &'static str,
    output: Arc<Output>,
    wording: Wording,
    failures: Mutex<Failures>,
}

impl Messages {
    /// Nothing told yet.
    pub(crate) fn new(
        program: &'static str,
        output: Arc<Output>,
        wording: Wording,
        failures: Failures,
    ) -> Self {
        Self { program, output, wording, failures: Mutex::new(failures) }
    }

    /// What went wrong so far.
    pub(crate) fn failures(&self) -> MutexGuard<'_, Failures> {
        lock(&self.failures)
    }

    fn fail(&self, source: &Path, target: &Path, message: String) {
        // Held while printing, so that the record has the order of the messages.
        let mut failures = self.failures();
        self.output.error(&format!("{}: {message}", self.program));
        failures.add(source, self.wording.target(target), message);
    }
}

impl Observer for Messages {
    fn copied(&self, source: &Path, target: &Path) {
        self.output.line(&format!("{} -> {}", quote(source), quote(self.wording.target(target))));
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
}
