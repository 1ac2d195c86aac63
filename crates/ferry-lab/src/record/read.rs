//! Reads records from files.

use std::path::Path;

use super::{Record, SCHEMA};
use crate::error::Failure;
use crate::message::quoted;

/// Reads a record. Version 1 is the first published one, so there are no older ones.
///
/// # Errors
/// If the file cannot be read, is not a record, or has an unknown version.
pub fn read(path: &Path) -> Result<Record, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable(path, "it is not text"))?;
    parse(&text).map_err(|why| unusable(path, &why))
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::Run(format!("cannot use {}: {why}", quoted(path.as_os_str())))
}

/// Parses a record.
///
/// # Errors
/// A message without the file's name.
pub fn parse(text: &str) -> Result<Record, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    let version = value.get("schema").and_then(serde_json::Value::as_u64);
    let version = version.ok_or("it is not a record of ferry lab: it has no schema version")?;
    let known = u64::from(SCHEMA);
    if version > known {
        return Err(format!(
            "it is a record of version {version}; this program knows versions up to {known}"
        ));
    }
    if version < known {
        return Err(format!(
            "it is a record of version {version}, older than the first published one, {known}"
        ));
    }
    serde_json::from_value(value)
        .map_err(|error| format!("it is not a record of version {version} ({})", in_a_line(&error)))
}

/// Formats the error in one line; it quotes arbitrary input.
fn in_a_line(error: &serde_json::Error) -> String {
    let mut line = String::new();
    for char in error.to_string().chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line
}
