//! Standard output, or the file of `--output`, for the report.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::options::{MANUAL, Request, Task};
use crate::output::{Output, describe};
use crate::quote::quote;

/// Exit code for a file that would replace what is compared.
const WRONG_USE: u8 = 2;

/// Opens the output of the report. Says why if that fails or the file is compared, and returns the exit code.
pub(super) fn opened(request: &Request) -> Result<Output, ExitCode> {
    let Some(path) = &request.output else { return Ok(Output::new()) };
    let refuse = |why: &str, code: u8| {
        Output::new().error(&format!("{}: cannot write {}: {why}", MANUAL.name, quote(path)));
        Err(ExitCode::from(code))
    };
    let compared = match &request.task {
        Task::Trees(source, target) => [source, target],
        Task::Manifest(listed) => [&listed.manifest, &listed.tree],
    };
    // A link is followed, and a file that is missing yet is in its folder.
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = path.canonicalize().or_else(|_| above.canonicalize());
    let holds_it = |other: &PathBuf| {
        other.canonicalize().is_ok_and(|other| place.as_ref().is_ok_and(|place| place.starts_with(other)))
    };
    if compared.into_iter().any(holds_it) {
        return refuse("it is compared, or in a tree that is", WRONG_USE);
    }
    File::create(path).map(Output::of_file).or_else(|error| refuse(&describe(&error), 1))
}
