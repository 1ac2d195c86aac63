//! Features of the filesystem, tried or reported by the kernel.

use std::fs::File;
use std::io::Write as _;

use ferry_io::probe::has_dontcache;
use ferry_lab::Failure;

use super::device::alignment;
use super::work::{Work, WorkFile};
use crate::Can;

pub(super) fn probe(work: &Work, file: &WorkFile) -> Result<Can, Failure> {
    let told = alignment(&file.open).filter(|found| found.memory > 0 && found.offset > 0);
    Ok(Can {
        reflink: has_reflink(work)
            .map_err(|error| Failure::file("write a file in", work.folder(), &error))?,
        dontcache: has_dontcache(&file.open),
        direct_memory_alignment: told.map(|found| found.memory),
        direct_offset_alignment: told.map(|found| found.offset),
    })
}

/// Tries FICLONE on a file of several blocks, so that it is not stored in its inode.
fn has_reflink(work: &Work) -> std::io::Result<bool> {
    let mut source = File::create_new(work.path().join("source"))?;
    source.write_all(&[1; 64 << 10])?;
    let clone = File::create_new(work.path().join("clone"))?;
    Ok(rustix::fs::ioctl_ficlone(&clone, &source).is_ok())
}
