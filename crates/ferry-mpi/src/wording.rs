//! Messages for calls that fail.

use std::io;
use std::path::Path;

/// Returns a closure for `map_err` that says what could not be done.
pub(crate) fn cannot(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> String {
    let (verb, path) = (verb.to_owned(), path.to_owned());
    move |error| format!("cannot {verb} '{}': {error}", path.display())
}
