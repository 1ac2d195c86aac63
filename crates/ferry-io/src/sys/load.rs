//! A small file in one request: open, stat, extended attributes, read, close.

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Patience, bytes, call, open, xattr};
use crate::buffers::Block;
use crate::entry::{Content, FileKind, Loaded, Stat};
use crate::file::File;
use crate::name::Name;
use crate::op::Descriptor;

/// Loads `name`. On EAGAIN, `opened` keeps the descriptor for the next try.
pub(super) fn load(
    dir: BorrowedFd<'_>,
    name: &Name,
    xattrs: bool,
    block: &mut Option<Block>,
    opened: &mut Option<OwnedFd>,
    patience: Patience,
) -> Result<Loaded, Errno> {
    if opened.is_none() {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        *opened = Some(open(dir, name, flags, Mode::empty(), patience)?);
    }
    let file = opened.as_ref().ok_or(Errno::BADF)?.as_fd();
    let stat = Stat::from_kernel(&call(|| rustix::fs::fstat(file))?);
    let xattrs = if xattrs { xattr::all(file)? } else { Vec::new() };
    let whole = match block.as_mut() {
        Some(block) if stat.kind == FileKind::Regular && !stat.may_have_holes() => {
            read_whole(file, &stat, block, patience)?
        }
        Some(_) | None => false,
    };
    let content = match (whole, block.take(), opened.take()) {
        (true, Some(block), fd) => {
            drop(fd.map(Descriptor::from));
            Content::Whole(block)
        }
        (_, _, Some(fd)) => Content::Open(File::from_descriptor(Descriptor::from(fd))),
        (_, _, None) => return Err(Errno::BADF),
    };
    Ok(Loaded { stat, xattrs, content })
}

/// Opens `name`, reads once and closes: what a chain does, one call after another.
pub(super) fn chain(dir: BorrowedFd<'_>, name: &Name, block: &mut Option<Block>) -> Result<usize, Errno> {
    let block = block.as_mut().ok_or(Errno::FAULT)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = open(dir, name, flags, Mode::empty(), Patience::Wait)?;
    let file = Descriptor::from(file);
    let size = block.capacity();
    let count = bytes::read_into(file.fd(), block, 0, size, 0, Patience::Wait)?;
    block.set_filled(count);
    Ok(count)
}

/// Fills the block with the file; `false` if it does not fit. Files that say they are empty but are not (/proc) are
/// read to their end.
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
    // Nothing of it is on a device; and an end that was asked for is not believed, but asked for again.
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
