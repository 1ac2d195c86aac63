//! Strategies with several requests in flight on the ring.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::Path;

use ferry_direct::{DirectFile, DirectOptions};
use ferry_io::flow::{self, Flow};
use ferry_io::{Backend, Dir, Errno, Io, Name, OpenHow, Options, RouteChoice, for_each, run};

use super::strategy::{Strategy, StrategyOptions};
use crate::error::Failure;

const ENTRIES: usize = 64;
/// Blocks of a direct file's cache for each request in flight, up to the default size.
const CACHED: usize = 256;

/// Copies a file, or the named files of a folder.
pub(super) fn copy(
    how: &StrategyOptions,
    source: &Path,
    target: &Path,
    names: Option<Vec<OsString>>,
) -> Result<(), Failure> {
    let entries = how.depth.next_power_of_two().max(ENTRIES);
    let options = Options {
        queue_depth: u32::try_from(entries).unwrap_or(u32::MAX),
        blocks: how.depth,
        block_size: how.block_bytes,
        workers: NonZeroUsize::MIN,
        backend: Backend::Uring,
        route: RouteChoice::Ring,
        registered_buffers: how.strategy == Strategy::RingRegistered,
        ..Options::default()
    };
    let one = (name(source.file_name())?, name(target.file_name())?);
    let names = names.map(|names| names.iter().map(|entry| name(Some(entry))).collect::<Result<Vec<_>, _>>());
    let names = names.transpose()?;
    let copied = run(&options, async |io| match names {
        None => {
            let folder = |path: &Path| io.open_dir(path.parent().unwrap_or(path));
            let (source, target) = (folder(source)?, folder(target)?);
            file(&io, how, (&source, &one.0), (&target, &one.1), how.depth).await
        }
        Some(names) => {
            let (source, target) = (io.open_dir(source)?, io.open_dir(target)?);
            for_each(how.depth, names, async |name: Name| {
                file(&io, how, (&source, &name), (&target, &name), 1).await
            })
            .await
        }
    });
    let (copied, stats) = copied.map_err(|error| Failure::Run(error.to_string()))?;
    copied.map_err(|error| Failure::Run(error.to_string()))?;
    // The runtime goes on without them, but then another strategy would have been timed.
    if options.registered_buffers && stats.backend_reason.contains("without registered buffers") {
        return Err(Failure::Run(stats.backend_reason));
    }
    Ok(())
}

fn name(name: Option<&OsStr>) -> Result<Name, Failure> {
    let known = name.and_then(|name| Name::new(name.as_encoded_bytes()));
    known.ok_or_else(|| Failure::Run("the path has no last name".to_owned()))
}

/// Copies one file with `depth` blocks in flight.
async fn file(
    io: &Io,
    how: &StrategyOptions,
    (source_dir, source): (&Dir, &Name),
    (target_dir, target): (&Dir, &Name),
    depth: usize,
) -> ferry_io::Result<()> {
    if how.strategy == Strategy::OwnCache {
        return over_own_caches(io, (source_dir, source), (target_dir, target), depth).await;
    }
    let (mut read, mut create) = (OpenHow::read(), OpenHow::create(0o666));
    if !matches!(how.strategy, Strategy::RingBuffered | Strategy::RingRegistered) {
        read = read.direct();
    }
    let writes_direct = how.strategy == Strategy::RingDirect;
    if writes_direct {
        create = create.direct();
    }
    let source = source_dir.open(source, read).await?;
    let target = target_dir.open(target, create).await?;
    let size = source.stat().await?.size;
    if writes_direct && size > 0 {
        // Direct writes that extend a file run one at a time, so size and space are set first.
        target.truncate(size).await?;
        match target.allocate(0, size).await {
            Err(error) if !error.is(Errno::OPNOTSUPP) => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    flow::copy(io, &source, &target, (0, size), Flow::buffered(depth, how.block_bytes), |_| ()).await?;
    Ok(())
}

/// Copies one file through direct files with up to `depth` requests in flight each; durable when it returns.
async fn over_own_caches(
    io: &Io,
    (source_dir, source): (&Dir, &Name),
    (target_dir, target): (&Dir, &Name),
    depth: usize,
) -> ferry_io::Result<()> {
    let usual = DirectOptions::default();
    let blocks = (CACHED * depth).min(usual.blocks);
    let options = DirectOptions { blocks, ahead_blocks: blocks / 8, in_flight: depth.min(64), ..usual };
    let source = DirectFile::open(io, source_dir, source, OpenHow::read(), options).await?;
    let target = DirectFile::open(io, target_dir, target, OpenHow::create(0o666), options).await?;
    let mut at = 0;
    loop {
        let (block, count) = source.read_at(io.block().await?, at).await;
        let count = count?;
        if count == 0 {
            break;
        }
        target.write_all_at(block, at).await.1?;
        at += count as u64;
    }
    let closed = target.close().await;
    closed.map_err(|failures| failures.failures[0].error)
}
