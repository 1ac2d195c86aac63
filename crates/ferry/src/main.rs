//! The program: everything is in the library, where tests and fuzz targets reach it.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ferry::run(&arguments)
}
