//! Whether a file can be read and written past the page cache, how its requests must be aligned, and if not, why not.

use rustix::io::Errno;

use super::options::DirectOptions;
use crate::buffers::Block;
use crate::descriptor::{Descriptor, Fd};
use crate::descriptor::{Dir, File};
use crate::entry::DirectAlignment;
use crate::error::Result;
use crate::file::blocks_of;
use crate::name::Name;
use crate::op::Op;
use crate::open_how::OpenHow;
use crate::sys;
use crate::worker::submit;

/// Direct requests are rounded at least to this: what is less than a page goes to where the page cache is whole pages.
const LEAST_UNIT: u64 = 4096;

/// How the bytes of a [`crate::DirectFile`] go to the device and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Past the page cache (O_DIRECT).
    Direct {
        /// What offsets and sizes are multiples of, in bytes.
        unit: u64,
        /// What they must be multiples of.
        alignment: u64,
        /// Whether the filesystem told its alignment (STATX_DIOALIGN, Linux 6.1), or a read tried it out.
        is_told: bool,
    },
    /// Through the page cache, because the file can't be had otherwise.
    Buffered {
        /// Why.
        why: WhyBuffered,
        /// Whether pages leave the page cache as soon as the device has them (RWF_DONTCACHE, trusted from Linux 6.16 on).
        uncached: bool,
    },
}

/// Why a file is not read and written past the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyBuffered {
    /// Opening it for direct I/O failed, with EINVAL where the filesystem has none.
    Refused(Errno),
    /// The filesystem says that this file has none: it is encrypted, or its bytes are in the journal.
    NotThisFile,
    /// The filesystem is in memory.
    InMemory,
    /// It asks for more than the cache's blocks keep to, in bytes.
    Alignment(u64),
    /// It said nothing about alignment, and a read of a block was answered so.
    Tried(Errno),
    /// The name had come to be another file's when it was opened again.
    Replaced,
}

impl Access {
    /// A sentence for people.
    #[must_use]
    pub fn explain(self) -> String {
        match self {
            Self::Direct { unit, is_told, .. } => {
                let how = if is_told { "as the filesystem asks" } else { "which a read showed to do" };
                format!("past the page cache (O_DIRECT), in multiples of {unit} bytes, {how}")
            }
            Self::Buffered { why, uncached } => {
                let why = match why {
                    WhyBuffered::Refused(errno) => {
                        format!("opening it with O_DIRECT was answered with {errno}")
                    }
                    WhyBuffered::NotThisFile => "the filesystem has no direct I/O for it".to_owned(),
                    WhyBuffered::InMemory => "the filesystem is in memory".to_owned(),
                    WhyBuffered::Alignment(unit) => {
                        format!("direct I/O would be in multiples of {unit} bytes, which the blocks are not")
                    }
                    WhyBuffered::Tried(errno) => {
                        format!("a direct read of a block was answered with {errno}")
                    }
                    WhyBuffered::Replaced => "its name was given to another file meanwhile".to_owned(),
                };
                let pages = if uncached { ", whose pages leave it at once (RWF_DONTCACHE)" } else { "" };
                format!("through the page cache{pages}: {why}")
            }
        }
    }

    /// What requests are rounded to, and must be aligned to.
    pub(super) fn units(self) -> (u64, u64) {
        match self {
            Self::Direct { unit, alignment, .. } => (unit, alignment),
            Self::Buffered { .. } => (1, 1),
        }
    }
}

/// The same file opened for direct I/O, if that can be, and how it is used. A block of `memory` is for trying, and comes back.
pub(super) async fn open(
    dir: &Dir,
    name: &Name,
    (file, how): (&File, OpenHow),
    options: &DirectOptions,
    memory: &mut Vec<Block>,
) -> Result<(Option<File>, Access)> {
    let why = match dir.open(name, how.again().direct()).await {
        Ok(direct) => match check(&direct, file, options, memory).await? {
            Ok(access) => return Ok((Some(direct), access)),
            Err(why) => why,
        },
        Err(error) => match error.as_errno() {
            Some(errno) => WhyBuffered::Refused(errno),
            None => return Err(error),
        },
    };
    let uncached = match &*file.fd() {
        Descriptor::Real(handle) => sys::has_dontcache(handle.fd()),
        Descriptor::Sim(_) => false,
    };
    Ok((None, Access::Buffered { why, uncached }))
}

/// Whether what was opened is the same file, and which alignment it wants.
async fn check(
    direct: &File,
    file: &File,
    options: &DirectOptions,
    memory: &mut Vec<Block>,
) -> Result<std::result::Result<Access, WhyBuffered>> {
    let (one, other) = (direct.stat().await?, file.stat().await?);
    if (one.device, one.inode) != (other.device, other.inode) {
        return Ok(Err(WhyBuffered::Replaced));
    }
    let fd = direct.fd();
    let told = match &*fd {
        Descriptor::Real(handle) if sys::is_in_memory(handle.fd()) => return Ok(Err(WhyBuffered::InMemory)),
        Descriptor::Real(handle) => sys::direct_alignment(handle.fd()),
        Descriptor::Sim(descriptor) => descriptor.direct_alignment(),
    };
    let fits = |unit: u64| unit > 0 && (options.block_bytes as u64).is_multiple_of(unit);
    match told {
        DirectAlignment::Bytes(bytes) => {
            let unit = bytes.max(LEAST_UNIT);
            let access = Access::Direct { unit, alignment: bytes, is_told: true };
            Ok(if fits(unit) { Ok(access) } else { Err(WhyBuffered::Alignment(unit)) })
        }
        DirectAlignment::None => Ok(Err(WhyBuffered::NotThisFile)),
        DirectAlignment::Untold => {
            let unit = options.block_bytes as u64;
            if let Err(errno) = read_at(&fd, 0, memory).await? {
                return Ok(Err(WhyBuffered::Tried(errno)));
            }
            // Beyond the end everything is allowed.
            for alignment in [512, 4096].into_iter().filter(|&alignment| alignment < unit.min(one.size)) {
                if read_at(&fd, alignment, memory).await?.is_ok() {
                    return Ok(Ok(Access::Direct { unit, alignment, is_told: false }));
                }
            }
            Ok(Ok(Access::Direct { unit, alignment: unit, is_told: false }))
        }
    }
}

/// Whether a block may be read at `at`. What else goes wrong is for whoever wants those bytes.
async fn read_at(fd: &Fd, at: u64, memory: &mut Vec<Block>) -> Result<std::result::Result<(), Errno>> {
    let blocks = memory.pop().into_iter().collect();
    let op = Op::ReadVectored { file: Fd::clone(fd), blocks, skip: 0, at, uncached: false };
    let (op, result) = submit(op).await;
    memory.append(&mut blocks_of(op));
    match result {
        Err(error) if error.is_cancelled() => Err(error),
        Err(error) if error.is(Errno::INVAL) => Ok(Err(Errno::INVAL)),
        Err(error) if error.is(Errno::OPNOTSUPP) => Ok(Err(Errno::OPNOTSUPP)),
        Ok(_) | Err(_) => Ok(Ok(())),
    }
}

#[cfg(test)]
mod tests;
