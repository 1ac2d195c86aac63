//! Recordings of the runtime's events, requested by FERRY_TRACE.

/// Returns true if this process and its children record the runtime's events.
pub(crate) fn is_recorded() -> bool {
    std::env::var_os("FERRY_TRACE").is_some_and(|file| !file.is_empty())
}

/// Labels the recordings that are made from now on.
pub(crate) fn tell_recordings(experiment: &str, part: &str) {
    if is_recorded() {
        ferry_io::event::label::set(&format!("{experiment}: {part}"));
    }
}
