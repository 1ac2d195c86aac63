//! Signals that end a command.

use std::process::ExitCode;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Catches SIGINT and SIGTERM, unless they are ignored, as under nohup(1) or in a background job.
pub(crate) fn catch() -> std::io::Result<Signals> {
    Signals::new([SIGINT, SIGTERM].into_iter().filter(|&signal| !ferry_io::is_ignored(signal)))
}

/// Ends the process by `signal`, so that a shell's loop ends too; returns the exit code in case that fails.
pub(crate) fn end_by(signal: i32) -> ExitCode {
    signal_hook::low_level::emulate_default_handler(signal).ok();
    u8::try_from(128 + signal).map_or(ExitCode::FAILURE, ExitCode::from)
}
