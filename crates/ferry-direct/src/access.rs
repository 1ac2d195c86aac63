//! Opens a file for direct I/O if possible, finds its alignment, and keeps the reason if not.

use ferry_io::{Block, Dir, DirectSupport, Errno, File, Name, OpenHow, Result, WhyBuffered};

use crate::options::DirectOptions;

/// Smallest unit of direct requests, in bytes: the page cache holds whole pages.
const SMALLEST_UNIT: u64 = 4096;

/// Path of a [`crate::DirectFile`]'s bytes to the device and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Past the page cache (O_DIRECT).
    Direct {
        /// Requests are made in multiples of this number of bytes.
        unit: u64,
        /// Requests must be multiples of this number of bytes.
        alignment: u64,
        /// True if the filesystem reported the alignment (STATX_DIOALIGN, Linux 6.1), false if a trial read found it.
        is_reported: bool,
    },
    /// Through the page cache, because the file has no direct I/O.
    Buffered {
        /// Reason.
        why: WhyBuffered,
        /// True if pages leave the page cache once they are on the device (RWF_DONTCACHE, trusted from Linux 6.16 on).
        uncached: bool,
    },
}

impl Access {
    /// Describes the access in words, without a full stop.
    #[must_use]
    pub fn explain(self) -> String {
        match self {
            Self::Direct { unit, is_reported, .. } => {
                let source = if is_reported { "as the filesystem reports" } else { "as a trial read showed" };
                format!("past the page cache (O_DIRECT), in multiples of {unit} bytes, {source}")
            }
            Self::Buffered { why, uncached } => {
                let pages = if uncached { ", whose pages leave it at once (RWF_DONTCACHE)" } else { "" };
                format!("through the page cache{pages}: {}", explain_buffered(why))
            }
        }
    }

    /// Unit and alignment of requests, in bytes.
    pub(crate) fn units(self) -> (u64, u64) {
        match self {
            Self::Direct { unit, alignment, .. } => (unit, alignment),
            Self::Buffered { .. } => (1, 1),
        }
    }
}

fn explain_buffered(why: WhyBuffered) -> String {
    match why {
        WhyBuffered::Refused(errno) => format!("opening the file with O_DIRECT failed ({errno})"),
        WhyBuffered::NotThisFile => "the filesystem has no direct I/O for this file".to_owned(),
        WhyBuffered::InMemory => "the filesystem is in memory".to_owned(),
        WhyBuffered::Alignment(unit) => {
            format!("direct I/O needs multiples of {unit} bytes, which the cache's blocks are not")
        }
        WhyBuffered::Tried(errno) => format!("a direct read of one block failed ({errno})"),
        WhyBuffered::Replaced => "its name was given to another file meanwhile".to_owned(),
    }
}

/// A file that was opened through the page cache, and the means to open it again.
pub(crate) struct Opened<'a> {
    pub(crate) dir: &'a Dir,
    pub(crate) name: &'a Name,
    pub(crate) how: OpenHow,
    pub(crate) file: &'a File,
}

impl Opened<'_> {
    /// Opens the file again for direct I/O, if possible. Trial reads borrow a block of `memory`.
    pub(crate) async fn open_direct(
        &self,
        options: &DirectOptions,
        memory: &mut Vec<Block>,
    ) -> Result<(Option<File>, Access)> {
        let why = match self.dir.open(self.name, self.how.again().direct()).await {
            Ok(direct) => match self.check(&direct, options, memory).await? {
                Ok(access) => return Ok((Some(direct), access)),
                Err(why) => why,
            },
            Err(error) => match error.as_errno() {
                Some(errno) => WhyBuffered::Refused(errno),
                None => return Err(error),
            },
        };
        Ok((None, Access::Buffered { why, uncached: self.file.has_uncached() }))
    }

    /// Checks that `direct` is the same file, and finds its alignment.
    async fn check(
        &self,
        direct: &File,
        options: &DirectOptions,
        memory: &mut Vec<Block>,
    ) -> Result<std::result::Result<Access, WhyBuffered>> {
        let (one, other) = (direct.stat().await?, self.file.stat().await?);
        if (one.device, one.inode) != (other.device, other.inode) {
            return Ok(Err(WhyBuffered::Replaced));
        }
        let block_bytes = options.block_bytes as u64;
        match direct.direct_support() {
            DirectSupport::InMemory => Ok(Err(WhyBuffered::InMemory)),
            DirectSupport::Unsupported => Ok(Err(WhyBuffered::NotThisFile)),
            DirectSupport::Unit(alignment) => {
                let unit = alignment.max(SMALLEST_UNIT);
                let access = Access::Direct { unit, alignment, is_reported: true };
                Ok(if block_bytes.is_multiple_of(unit) {
                    Ok(access)
                } else {
                    Err(WhyBuffered::Alignment(unit))
                })
            }
            DirectSupport::Unreported => {
                if let Err(errno) = try_read(direct, 0, memory).await? {
                    return Ok(Err(WhyBuffered::Tried(errno)));
                }
                // Beyond the file's end any alignment is accepted, so a read there would prove nothing.
                let within = block_bytes.min(one.size);
                let mut alignment = block_bytes;
                for smaller in [512, 4096].into_iter().filter(|&smaller| smaller < within) {
                    if try_read(direct, smaller, memory).await?.is_ok() {
                        alignment = smaller;
                        break;
                    }
                }
                Ok(Ok(Access::Direct { unit: block_bytes, alignment, is_reported: false }))
            }
        }
    }
}

/// Tries a read of one block at `at`. Reports only errors that mean a wrong alignment; later reads report the others.
async fn try_read(file: &File, at: u64, memory: &mut Vec<Block>) -> Result<std::result::Result<(), Errno>> {
    let blocks = memory.pop().into_iter().collect();
    let (mut blocks, result) = file.read_blocks_at(blocks, 0, at, false).await;
    memory.append(&mut blocks);
    match result {
        Err(error) if error.is_cancelled() => Err(error),
        Err(error) if error.is(Errno::INVAL) => Ok(Err(Errno::INVAL)),
        Err(error) if error.is(Errno::OPNOTSUPP) => Ok(Err(Errno::OPNOTSUPP)),
        Ok(_) | Err(_) => Ok(Ok(())),
    }
}

#[cfg(test)]
mod tests;
