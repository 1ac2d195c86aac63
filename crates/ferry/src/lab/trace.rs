//! `--trace`: records all runs of ferry in an experiment, in this process and in its children.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ferry_lab::Failure;

use crate::quote::quote;

/// Environment variable with the file to record to.
const VARIABLE: &str = "FERRY_TRACE";

/// Executes this program again with the variable set, so that its children inherit it. Returns if it is set
/// already.
pub(super) fn record(own: &Path, file: &Path) -> Result<(), Failure> {
    let place = std::path::absolute(file);
    let place = place.map_err(|error| Failure::Run(format!("cannot record to {}: {error}", quote(file))))?;
    let mut wanted = OsString::from(place);
    wanted.push(".%n");
    if std::env::var_os(VARIABLE).is_some_and(|said| said == wanted) {
        return Ok(());
    }
    let error = Command::new(own).args(crate::program::arguments()).env(VARIABLE, wanted).exec();
    Err(Failure::Run(format!("cannot restart ferry to record: {error}")))
}
