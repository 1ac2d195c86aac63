//! Ways to copy a file's bytes on Linux, as compared in the appendix of document 003.
//!
//! Each runs in its own process (the hidden command `ferry lab strategy`), because strategies are timed as commands.
//! Only bytes are copied, of one file or of a folder of files. Plain calls copy one file after another, a block a
//! call. On the ring, several blocks of one file or several files with a block each are in flight.

mod plain;
mod queued;
mod strategy;

use std::path::Path;

pub use self::strategy::{Strategy, StrategyOptions};
use crate::error::Failure;

#[cfg(test)]
mod tests;

/// Copies the bytes of `source`, a file or a folder of files, to `target`, which must not exist. Direct I/O needs file
/// sizes that are multiples of 4,096 bytes.
///
/// # Errors
/// The first call that failed.
pub fn copy(how: &StrategyOptions, source: &Path, target: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("open", source, &error);
    let is_folder = source.metadata().map_err(failed)?.is_dir();
    let names = if is_folder { Some(names(source)?) } else { None };
    if is_folder {
        std::fs::create_dir(target).map_err(|error| Failure::file("create", target, &error))?;
    }
    if how.strategy.has_depth() {
        return queued::copy(how, source, target, names);
    }
    let Some(names) = names else { return plain::copy(how, source, target) };
    names.iter().try_for_each(|name| plain::copy(how, &source.join(name), &target.join(name)))
}

fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, Failure> {
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>()
    });
    entries.map_err(|error| Failure::file("list", folder, &error))
}
