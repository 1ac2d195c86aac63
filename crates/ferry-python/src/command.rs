//! The command, as the wheel's script runs it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use pyo3::prelude::*;

/// Runs the command with arguments that begin with its name, and returns its exit code. `program` is the path that
/// starts it anew.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, program: PathBuf, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| {
        let code = ferry::run_as(program, &arguments);
        // Python ends the process without the end of Rust's own main function, which would do so.
        std::io::stdout().flush().ok();
        code
    });
    // The number can only be compared with.
    (0..=u8::MAX).find(|&number| ExitCode::from(number) == code).unwrap_or(1)
}
