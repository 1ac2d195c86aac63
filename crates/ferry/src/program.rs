//! The program itself: its path, which `ferry lab` and `ferry tune --check` start, and its arguments.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Program and arguments of a command that runs within another program.
static GIVEN: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// Sets the program that starts this command, once for the process; the arguments begin with the program's name.
pub(crate) fn set(program: PathBuf, arguments: &[OsString]) {
    GIVEN.get_or_init(|| (program, arguments.to_vec()));
}

/// Returns the path of the program.
///
/// # Errors
/// Those of readlink(2) on `/proc/self/exe`.
pub(crate) fn path() -> io::Result<PathBuf> {
    GIVEN.get().map_or_else(std::env::current_exe, |(program, _)| Ok(program.clone()))
}

/// Returns the arguments after the program's name.
pub(crate) fn arguments() -> Vec<OsString> {
    match GIVEN.get() {
        Some((_, arguments)) => arguments.iter().skip(1).cloned().collect(),
        None => std::env::args_os().skip(1).collect(),
    }
}
