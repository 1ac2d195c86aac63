//! Strategies that make one plain call after another.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::path::Path;

use ferry_io::mapped::Mapped;
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2, retry_on_intr};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

use super::strategy::{Strategy, StrategyOptions};
use crate::error::Failure;

/// `RWF_DONTCACHE` (Linux 6.14): writes back at once and drops the pages.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Copies one file.
pub(super) fn copy(how: &StrategyOptions, source: &Path, target: &Path) -> Result<(), Failure> {
    let input = File::open(source).map_err(|error| Failure::file("open", source, &error))?;
    let output = File::create_new(target).map_err(|error| Failure::file("create", target, &error))?;
    let moved = match how.strategy {
        Strategy::Reflink => rustix::fs::ioctl_ficlone(&output, &input).map_err(Into::into),
        Strategy::Splice => through_pipe(&input, &output, how.block_bytes),
        Strategy::SendFile => until_the_end(how, |size| rustix::fs::sendfile(&output, &input, None, size)),
        Strategy::CopyFileRange => {
            until_the_end(how, |size| rustix::fs::copy_file_range(&input, None, &output, None, size))
        }
        Strategy::Mmap => mapped(&input, &output, how.block_bytes),
        Strategy::DontCache => past_the_cache(&input, &output, how.block_bytes),
        // Ring strategies are in `queued`.
        Strategy::ReadWrite
        | Strategy::RingBuffered
        | Strategy::RingRegistered
        | Strategy::RingDirect
        | Strategy::DirectRead
        | Strategy::OwnCache => by_reading(&input, &output, how.block_bytes),
    };
    moved.map_err(|error| Failure::file("copy", source, &error))
}

fn by_reading(mut input: &File, mut output: &File, block_bytes: usize) -> std::io::Result<()> {
    let mut block = vec![0; block_bytes];
    loop {
        match input.read(&mut block)? {
            0 => return Ok(()),
            count => output.write_all(&block[..count])?,
        }
    }
}

/// Repeats a call that moves bytes until it returns 0.
fn until_the_end(
    how: &StrategyOptions,
    mut call: impl FnMut(usize) -> Result<usize, Errno>,
) -> std::io::Result<()> {
    while retry_on_intr(|| call(how.block_bytes))? > 0 {}
    Ok(())
}

fn through_pipe(input: &File, output: &File, block_bytes: usize) -> std::io::Result<()> {
    let (reader, writer) = pipe()?;
    // The kernel may allow less (fs.pipe-max-size); a block then takes several calls.
    fcntl_setpipe_size(&writer, block_bytes).ok();
    let flags = SpliceFlags::MOVE;
    loop {
        let mut left = retry_on_intr(|| splice(input, None, &writer, None, block_bytes, flags))?;
        if left == 0 {
            return Ok(());
        }
        while left > 0 {
            left -= retry_on_intr(|| splice(&reader, None, output, None, left, flags))?;
        }
    }
}

fn mapped(input: &File, output: &File, block_bytes: usize) -> std::io::Result<()> {
    let size = usize::try_from(input.metadata()?.len()).map_err(|_| Errno::FBIG)?;
    if size == 0 {
        return Ok(());
    }
    let memory = Mapped::of(input, size)?;
    let mut at = 0;
    while at < size {
        at += memory.write_to(output, at, block_bytes)?;
    }
    Ok(())
}

fn past_the_cache(input: &File, output: &File, block_bytes: usize) -> std::io::Result<()> {
    let mut block = vec![0; block_bytes];
    let mut at = 0;
    loop {
        let count = retry_on_intr(|| preadv2(input, &mut [IoSliceMut::new(&mut block)], at, DONTCACHE))?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &block[..count];
        while !rest.is_empty() {
            let written = retry_on_intr(|| pwritev2(output, &[IoSlice::new(rest)], at, DONTCACHE))?;
            rest = &rest[written..];
            at += u64::try_from(written).map_err(|_| Errno::OVERFLOW)?;
        }
    }
}
