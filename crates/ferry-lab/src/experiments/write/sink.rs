//! Sinks: ways to write a file.
//!
//! All read blocks from the same source one after another, and differ only in writing a block. Sinks with several
//! blocks in flight read the next one while others are written.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use ferry_io::{Backend, File, Io, Name, OpenHow, Options, RouteChoice, give_way, scope};

use super::http::Download;
use crate::error::Failure;
use crate::stop::Stop;

/// Unit of direct writes.
const PAGE: usize = 4096;
/// Most blocks in flight: entries of a ring.
const MOST_BLOCKS: usize = 32_768;
/// Most threads of the pool.
const MOST_THREADS: usize = 1024;

/// A way to write a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sink {
    /// write(2), the control of document 001.
    Control,
    /// dd(1), which can only overwrite.
    Dd,
    /// O_DIRECT, one block at a time, by plain calls.
    Direct,
    /// O_DIRECT, several blocks in flight, by threads.
    DirectPipelined,
    /// The ring, through the page cache.
    Ring,
    /// The ring, through the page cache, with all blocks in flight. A download does not have them all at once, so this
    /// only overwrites.
    RingAll,
    /// The ring, O_DIRECT.
    RingDirect,
}

impl Sink {
    /// All sinks with their names.
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("control", Self::Control),
        ("dd", Self::Dd),
        ("direct", Self::Direct),
        ("direct-pipelined", Self::DirectPipelined),
        ("ring", Self::Ring),
        ("ring-all", Self::RingAll),
        ("ring-direct", Self::RingDirect),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, sink)| sink)
    }

    pub(super) fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectPipelined | Self::RingDirect)
    }

    pub(super) fn needs_ring(self) -> bool {
        matches!(self, Self::Ring | Self::RingAll | Self::RingDirect)
    }

    /// Returns true if it can't download.
    pub(super) fn only_overwrites(self) -> bool {
        matches!(self, Self::Dd | Self::RingAll)
    }

    /// Returns true if the option for the number of blocks in flight applies.
    pub(super) fn has_depth(self) -> bool {
        matches!(self, Self::DirectPipelined | Self::Ring | Self::RingDirect)
    }
}

/// A source of bytes.
pub(super) enum Source {
    /// A number of zeros. They are not generated, because new memory is zero.
    Zeros(u64, Stop),
    /// A server.
    Http(Download),
}

impl Source {
    /// Fills `memory` with the next bytes; fewer only at the end.
    fn fill(&mut self, memory: &mut [u8]) -> Result<usize, Failure> {
        match self {
            Self::Zeros(left, stop) => {
                stop.check()?;
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(memory.len());
                *left -= u64::try_from(count).unwrap_or(0);
                Ok(count)
            }
            Self::Http(download) => download.fill(memory),
        }
    }
}

/// Options of a sink.
#[derive(Debug, Clone, Copy)]
pub(super) struct SinkOptions {
    pub(super) sink: Sink,
    pub(super) block_bytes: usize,
    /// Blocks in flight.
    pub(super) depth: usize,
}

impl SinkOptions {
    /// Returns the reason why no ring holds that many blocks.
    pub(super) fn too_many_blocks(&self) -> Option<String> {
        let is_too_many = self.depth > MOST_BLOCKS;
        is_too_many.then(|| format!("a ring has at most {MOST_BLOCKS} entries; take larger blocks"))
    }
}

/// Writes the whole source over the file, which exists. Returns, after the last write, the time at which it was queued.
///
/// # Errors
/// The first failure of the source or of a write.
pub(super) fn pour(how: &SinkOptions, source: Source, folder: &Path, name: &str) -> Result<Instant, Failure> {
    let (backend, route) = match how.sink {
        // dd runs as a command of its own.
        Sink::Control | Sink::Dd => return plainly(how, source, &folder.join(name)),
        Sink::Direct => (Backend::Posix, RouteChoice::Inline),
        Sink::DirectPipelined => (Backend::Posix, RouteChoice::Pool),
        Sink::Ring | Sink::RingAll | Sink::RingDirect => (Backend::Uring, RouteChoice::Ring),
    };
    let entries = u32::try_from(how.depth).unwrap_or(u32::MAX).next_power_of_two();
    let options = Options {
        queue_depth: entries,
        blocks: how.depth,
        block_size: how.block_bytes,
        workers: NonZeroUsize::MIN,
        pool_threads: how.depth.min(MOST_THREADS),
        backend,
        route,
        ..Options::default()
    };
    let Some(name) = Name::new(name.as_bytes()) else { unreachable!("the lab's names are components") };
    let ran = ferry_io::run(&options, async |io| {
        let open = OpenHow::write();
        let open = if how.sink.is_direct() { open.direct() } else { open };
        let file = io.open_dir(folder).map_err(failed)?.open(&name, open).await.map_err(failed)?;
        in_blocks(&io, &file, source, how.sink.is_direct()).await
    });
    ran.map_err(|error| Failure::Run(error.to_string()))?.0
}

fn failed(error: ferry_io::Error) -> Failure {
    Failure::Run(format!("writing failed: {error}"))
}

fn plainly(how: &SinkOptions, mut source: Source, path: &Path) -> Result<Instant, Failure> {
    let failed = |error: std::io::Error| Failure::file("write", path, &error);
    let mut file = std::fs::File::options().write(true).open(path).map_err(failed)?;
    let mut block = vec![0; how.block_bytes];
    let mut queued = Instant::now();
    loop {
        let count = source.fill(&mut block)?;
        if count == 0 {
            return Ok(queued);
        }
        queued = Instant::now();
        file.write_all(&block[..count]).map_err(failed)?;
    }
}

/// Writes with as many blocks in flight as the pool holds.
async fn in_blocks(io: &Io, file: &File, mut source: Source, is_direct: bool) -> Result<Instant, Failure> {
    let (size, queued) = scope(async |scope| {
        let (mut at, mut queued) = (0, Instant::now());
        loop {
            let mut block = io.block().await.map_err(failed)?;
            let count = source.fill(block.as_mut_capacity())?;
            if count == 0 {
                return Ok((at, queued));
            }
            // The last block of a direct file is padded to a page and truncated afterwards.
            let filled = if is_direct { count.next_multiple_of(PAGE) } else { count };
            block.as_mut_capacity()[count..filled].fill(0);
            block.set_filled(filled);
            let file = file.clone();
            scope.spawn(async move { file.write_all_at(block, at).await.1.map_err(failed) });
            at += u64::try_from(count).unwrap_or(0);
            queued = Instant::now();
            // Reading the source may block on the network, so queued writes are submitted first.
            give_way().await;
        }
    })
    .await?;
    let page = u64::try_from(PAGE).unwrap_or(1);
    if is_direct && !size.is_multiple_of(page) {
        file.truncate(size).await.map_err(failed)?;
    }
    Ok(queued)
}
