//! The works by plain blocking calls, a unit at a time.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::too_large;
use crate::Failure;
use crate::work::{BLOCK, RECORD, SMALL, Sum, fill_record, log_path, offset, record_key};

/// Opens, reads and closes a small file.
pub(super) fn read_small(path: &Path, index: u64, buffer: &mut [u8], sum: &Sum) -> Result<(), Failure> {
    let count = File::open(path)?.read(buffer)?;
    if count == SMALL {
        return Err(too_large(path));
    }
    sum.add(&buffer[..count], index);
    Ok(())
}

/// Reads the blocks from `start` to `end` of a large file.
pub(super) fn read_blocks(file: &File, (start, end): (u64, u64), sum: &Sum) -> Result<(), Failure> {
    let mut buffer = vec![0; BLOCK];
    for block in start..end {
        file.read_exact_at(&mut buffer, offset(block))?;
        sum.add(&buffer, block);
    }
    Ok(())
}

/// Writes a log.
pub(super) fn write_log(folder: &Path, file: u64, records: u64, sum: &Sum) -> Result<(), Failure> {
    let mut log = OpenOptions::new().append(true).create_new(true).open(log_path(folder, file))?;
    let mut bytes = [0; RECORD];
    for record in 0..records {
        fill_record(&mut bytes, file, record);
        log.write_all(&bytes)?;
        log.sync_data()?;
        sum.add(&bytes, record_key(file, record));
    }
    Ok(())
}
