//! A small file in one request: open, stat, extended attributes, read, close.

use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Patience, bytes, call, open, xattr};
use crate::buffers::Block;
use crate::confine::open_flags;
use crate::descriptor::{Descriptor, File};
use crate::entry::Stat;
use crate::loaded::{Content, Loaded, Opened};
use crate::name::Name;

/// Parts of a file to load besides its attributes.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) xattrs: bool,
    /// Leaves out the bytes of a file with several names.
    pub(super) alone: bool,
}

/// Loads `name`. On EAGAIN, `opened` keeps the progress for the next try.
pub(super) fn load(
    dir: BorrowedFd<'_>,
    name: &Name,
    wanted: Wanted,
    block: &mut Option<Block>,
    opened: &mut Option<Box<Opened>>,
    patience: Patience,
) -> Result<Loaded, Errno> {
    let known = match opened.take() {
        Some(known) => *known,
        None => {
            let flags = open_flags(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, false);
            let file = Descriptor::from(open(dir, name, flags, Mode::empty(), patience)?);
            let stat = Stat::from_kernel(&call(|| rustix::fs::fstat(file.fd()))?);
            let xattrs = if wanted.xattrs { xattr::all(file.fd())? } else { Vec::new() };
            Opened { file, stat, xattrs }
        }
    };
    let whole = match block.as_mut() {
        Some(block) if known.stat.is_read(wanted.alone) => {
            read_whole(known.file.fd(), &known.stat, block, patience)
        }
        Some(_) | None => Ok(false),
    };
    if whole == Err(Errno::AGAIN) {
        *opened = Some(Box::new(known));
        return Err(Errno::AGAIN);
    }
    let whole = whole?;
    let Opened { file, stat, xattrs } = known;
    let content = match block.take() {
        Some(block) if whole => Content::Whole(block),
        Some(_) | None => Content::Open(File::from_descriptor(file.on(stat.device))),
    };
    Ok(Loaded { stat, xattrs, content })
}

/// Makes a new file of these bytes; returns true if all of them were written.
pub(crate) fn store(
    dir: BorrowedFd<'_>,
    name: &Name,
    mode: Mode,
    block: &Block,
) -> Result<(Descriptor, bool), Errno> {
    let flags = open_flags(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, false);
    let file = Descriptor::from(open(dir, name, flags, mode, Patience::Wait)?);
    let size = block.as_slice().len();
    let mut written = 0;
    while written < size {
        match bytes::write(file.fd(), Some(block), written, written as u64) {
            Ok(count) if count > 0 => written += count,
            // The caller starts over, gets the error again, and removes the file.
            Ok(_) | Err(_) => return Ok((file, false)),
        }
    }
    Ok((file, true))
}

/// Opens `name`, reads once and closes: a chain as separate calls.
pub(super) fn chain(dir: BorrowedFd<'_>, name: &Name, block: &mut Option<Block>) -> Result<usize, Errno> {
    let block = block.as_mut().ok_or(Errno::FAULT)?;
    let flags = open_flags(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, false);
    let file = open(dir, name, flags, Mode::empty(), Patience::Wait)?;
    let file = Descriptor::from(file);
    let size = block.capacity();
    let count = bytes::read_into(file.fd(), block, 0, size, 0, Patience::Wait)?;
    block.set_filled(count);
    Ok(count)
}

/// Fills the block with the file; false if it does not fit. Files of size 0 are read to their end, because those in
/// /proc are not empty.
fn read_whole(
    file: BorrowedFd<'_>,
    stat: &Stat,
    block: &mut Block,
    patience: Patience,
) -> Result<bool, Errno> {
    let says_empty = stat.size == 0;
    let Ok(size) = usize::try_from(stat.size) else { return Ok(false) };
    if size > block.capacity() {
        return Ok(false);
    }
    // Such a file is on no device. RWF_NOWAIT may report an end too early, so it is read without it.
    let patience = if says_empty { Patience::Wait } else { patience };
    let wanted = if says_empty { block.capacity() } else { size };
    let mut filled = 0;
    while filled < wanted {
        match bytes::read_into(file, block, filled, wanted - filled, filled as u64, patience)? {
            0 => break,
            count => filled += count,
        }
    }
    if says_empty && filled == wanted {
        return Ok(false);
    }
    block.set_filled(filled);
    Ok(true)
}
