//! The label that assigns a recording to a run of an experiment, set by this process or inherited.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

/// Environment variable that passes the label to child processes.
pub const VARIABLE: &str = "FERRY_TRACE_RUN";

static CURRENT: Mutex<String> = Mutex::new(String::new());

/// Sets the label of recordings that this process begins from now on.
pub fn set(run: &str) {
    run.clone_into(&mut CURRENT.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Returns the label set in this process, or an empty string.
#[must_use]
pub fn current() -> String {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the label for a new recording, or an empty string.
pub(super) fn inherited() -> OsString {
    let current = current();
    if current.is_empty() { std::env::var_os(VARIABLE).unwrap_or_default() } else { current.into() }
}
