//! `--trace`: the experiment's runs of ferry, in this process and in others, record what they do.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ferry_lab::Failure;

use crate::quote::quote;

/// What tells a program on the runtime where to record.
const VARIABLE: &str = "FERRY_TRACE";

/// Begins this process anew with its environment saying so, as those that it starts inherit it; returns if it does.
pub(super) fn record(own: &Path, file: &Path) -> Result<(), Failure> {
    let place = std::path::absolute(file);
    let place = place.map_err(|error| Failure::Run(format!("cannot record to {}: {error}", quote(file))))?;
    let mut wanted = OsString::from(place);
    wanted.push(".%n");
    if std::env::var_os(VARIABLE).is_some_and(|said| said == wanted) {
        return Ok(());
    }
    let error = Command::new(own).args(std::env::args_os().skip(1)).env(VARIABLE, wanted).exec();
    Err(Failure::Run(format!("cannot begin anew to record: {error}")))
}
