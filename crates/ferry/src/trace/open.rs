//! Opens a recording, with an error message for the user.

use std::path::Path;

use crate::quote::quote;

pub(super) fn open(file: &Path) -> Result<ferry_trace::Trace, String> {
    ferry_trace::read::open(file).map_err(|broken| format!("cannot read {}: {broken}", quote(file)))
}
