//! Entry point; the code is in the library so that tests and fuzz targets can call it.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ferry::run(&arguments)
}
