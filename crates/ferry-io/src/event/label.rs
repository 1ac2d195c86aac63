//! Which run of an experiment a recording is of: as this process says, or who started it.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

/// The environment variable that tells it to programs that are started.
pub const VARIABLE: &str = "FERRY_TRACE_RUN";

static CURRENT: Mutex<String> = Mutex::new(String::new());

/// Says what those recordings are of that this process begins from now on.
pub fn set(run: &str) {
    run.clone_into(&mut CURRENT.lock().unwrap_or_else(PoisonError::into_inner));
}

/// What was said in this process; empty if nothing was.
#[must_use]
pub fn current() -> String {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What a recording that begins now is of; empty if nobody says.
pub(super) fn inherited() -> OsString {
    let current = current();
    if current.is_empty() { std::env::var_os(VARIABLE).unwrap_or_default() } else { current.into() }
}
