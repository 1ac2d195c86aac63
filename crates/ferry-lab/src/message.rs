//! Parts of messages: names in quotes, and the reasons of failed calls.

use std::ffi::OsStr;

use ferry_tree::quote::Quoted;
use rustix::io::Errno;

/// The C library's words, as other programs print them.
pub(crate) fn reason(error: &std::io::Error) -> String {
    Errno::from_io_error(error)
        .map_or_else(|| error.to_string(), |errno| ferry_io::Cause::Errno(errno).to_string())
}

/// A name in quotes, in one line.
pub(crate) fn quoted(name: &OsStr) -> Quoted<'_> {
    Quoted(name.as_encoded_bytes())
}
