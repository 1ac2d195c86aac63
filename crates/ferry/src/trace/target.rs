//! The file of `--output`, which a result replaces in one step; or standard output.

use std::path::{Path, PathBuf};

use ferry_lab::record::store::{place_of, write_atomically};

use crate::output::Output;
use crate::quote::quote;

/// Message and exit code.
pub(super) type Refusal = (String, u8);

/// Resolves the file to replace, and refuses a recording that is read.
pub(super) fn place(output: &Path, recordings: &[PathBuf]) -> Result<PathBuf, Refusal> {
    let place = place_of(output).map_err(|failure| (failure.to_string(), failure.exit_code()))?;
    let is_it = |recording: &PathBuf| {
        let recording = recording.canonicalize();
        recording.is_ok_and(|recording| place.canonicalize().is_ok_and(|place| place == recording))
    };
    if recordings.iter().any(is_it) {
        let which = if recordings.len() == 1 { "the recording" } else { "one of the recordings" };
        return Err((format!("cannot write {}: it is {which}", quote(output)), 2));
    }
    Ok(place)
}

/// Replaces the file at `place`.
pub(super) fn write(place: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    write_atomically(place, bytes, false).map_err(|failure| (failure.to_string(), failure.exit_code()))
}

/// Writes a text to the file at `place`, or prints it.
pub(super) fn tell(text: &str, place: Option<&Path>, output: &Output) -> Result<(), Refusal> {
    match place {
        Some(place) => write(place, format!("{text}\n").as_bytes()),
        None => {
            output.line(text);
            output.finish().map_err(|error| (format!("write error: {error}"), 1))
        }
    }
}
