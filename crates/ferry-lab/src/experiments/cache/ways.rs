//! One run: the requests of a plan, one after another from one thread, by each method; and the device's own rate.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::IoSliceMut;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use ferry_direct::{DirectFile, DirectOptions};
use ferry_io::{Name, OpenHow, Options, RouteChoice, for_each, probe, run};
use ferry_tree::fill::fill;
use rustix::fs::{Advice, OFlags};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::time::{ClockId, clock_gettime};

use super::access::{Access, Plan, RANDOM};
use crate::error::Failure;
use crate::record::Figures;
use crate::statistics::percentile;
use crate::stop::Stop;
use crate::units::{real, real_count};

/// Largest memory alignment that direct I/O requires, in bytes.
const PAGE: usize = 4096;
/// A block of the cache where the file is gone through in its order.
const STREAMED: u64 = 16 << 10;
/// Largest request of the cache, and largest read-ahead, in bytes.
const REQUEST: u64 = 1 << 20;
const AHEAD: u64 = 4 << 20;

/// Way of making requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Through the page cache.
    PageCache,
    /// With O_DIRECT, into or from the program's own memory.
    OneAtATime,
    /// With `ferry_direct::DirectFile` over a cache of this size in bytes.
    OwnCache(u64),
    /// With O_DIRECT and this many requests in flight: the device's own speed.
    Device(u64),
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PageCache => "page-cache",
            Self::OneAtATime => "one-at-a-time",
            Self::OwnCache(_) => "own-cache",
            Self::Device(_) => "device",
        }
    }
}

/// Cost of the requests, or of their write-back.
#[derive(Debug, Clone, Copy)]
struct Cost {
    time: Duration,
    processor: Duration,
}

/// Runs once the memory for requests is there, so that making it is in no figure. A cache's own memory is part of its
/// way.
struct Clock(Instant, Duration);

impl Clock {
    fn start() -> Self {
        let processor = processor_time();
        Self(Instant::now(), processor)
    }

    fn stop(self) -> Cost {
        Cost { time: self.0.elapsed(), processor: processor_time().saturating_sub(self.1) }
    }
}

/// Results of the requests.
#[derive(Debug)]
struct Done {
    /// Of each request.
    latencies: Vec<Duration>,
    /// Reads that were answered from a cache, of all reads, if there is a cache.
    hits: Option<(u64, u64)>,
    /// Of all requests.
    cost: Cost,
}

/// The options of a cache for this kind of access.
pub(super) fn options(access: Access, cache_bytes: u64) -> DirectOptions {
    let block = if access.is_sequential() { STREAMED } else { RANDOM };
    let count = |bytes: u64| usize::try_from(bytes / block).unwrap_or(usize::MAX);
    let blocks = count(cache_bytes);
    DirectOptions {
        block_bytes: usize::try_from(block).unwrap_or(usize::MAX),
        blocks,
        request_blocks: count(REQUEST).min(128).min(blocks / 4),
        ahead_blocks: count(AHEAD).min(blocks / 4),
        ..DirectOptions::default()
    }
}

/// Makes a round's requests. Nothing of the file is in the page cache before, and what was written is durable in the
/// end.
pub(super) fn take(
    way: Method,
    plan: &Plan,
    path: &Path,
    round: u64,
    stop: &Stop,
) -> Result<Figures, Failure> {
    let failed = |error: std::io::Error| Failure::file("use", path, &error);
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    forget(&file).map_err(failed)?;
    let mut done = match way {
        Method::PageCache => through_page_cache(plan, &file, round, stop).map_err(failed)?,
        Method::OneAtATime => one_at_a_time(plan, path, round, stop).map_err(failed)?,
        Method::OwnCache(bytes) => over_own_cache(plan, path, bytes, round, stop)?,
        Method::Device(depth) => several_at_once(plan, path, depth, round, stop)?,
    };
    if plan.access.writes() {
        let clock = Clock::start();
        file.sync_data().map_err(failed)?;
        let cost = clock.stop();
        done.cost.time += cost.time;
        done.cost.processor += cost.processor;
    }
    stop.check()?;
    let cached = probe::data(&file, 0, 0);
    forget(&file).map_err(failed)?;
    let mut figures = figures(plan, &done);
    figures.extend(cached.ok().map(|found| ("page_cache_b".to_owned(), real(found.bytes))));
    Ok(figures)
}

fn figures(plan: &Plan, done: &Done) -> Figures {
    let mut sorted: Vec<f64> = done.latencies.iter().map(|latency| latency.as_secs_f64() * 1e9).collect();
    sorted.sort_by(f64::total_cmp);
    let rate = real_count(sorted.len()) / done.cost.time.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut figures = Figures::from([
        ("throughput_b_s".to_owned(), rate * real(plan.size)),
        ("requests_1_s".to_owned(), rate),
        ("latency_ns_p99".to_owned(), percentile(&sorted, 990)),
        ("processor_s".to_owned(), done.cost.processor.as_secs_f64()),
    ]);
    if let Some((hits, reads)) = done.hits.filter(|(_, reads)| *reads > 0) {
        figures.insert("hit_ratio".to_owned(), real(hits) / real(reads));
    }
    figures
}

/// Returns this process's processor time, including the kernel's threads that serve it.
pub(super) fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = Duration::from_secs(u64::try_from(used.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(used.tv_nsec).unwrap_or(0))
}

/// Everything is written back, and leaves the page cache.
fn forget(file: &File) -> std::io::Result<()> {
    file.sync_all()?;
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Returns the bytes that a request writes.
fn written(plan: &Plan, round: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(plan.size).unwrap_or(PAGE)];
    fill(round, 0, &mut bytes);
    bytes
}

fn through_page_cache(plan: &Plan, file: &File, round: u64, stop: &Stop) -> std::io::Result<Done> {
    let mut block = vec![0; usize::try_from(plan.size).unwrap_or(PAGE)];
    let written = written(plan, round);
    block.copy_from_slice(&written);
    let (mut latencies, mut hits, mut reads) = (Vec::new(), 0, 0);
    let clock = Clock::start();
    for step in plan.steps(round).take_while(|_| !stop.is_set()) {
        let begun = Instant::now();
        if step.writes {
            file.write_all_at(&written, step.at)?;
        } else {
            reads += 1;
            // The kernel does not report cache hits: read without blocking first, and normally if that fails.
            let found = preadv2(file, &mut [IoSliceMut::new(&mut block)], step.at, ReadWriteFlags::NOWAIT);
            match found {
                Ok(count) if count == block.len() => hits += 1,
                Ok(_) | Err(Errno::AGAIN | Errno::OPNOTSUPP) => file.read_exact_at(&mut block, step.at)?,
                Err(errno) => return Err(errno.into()),
            }
        }
        latencies.push(begun.elapsed());
    }
    Ok(Done { latencies, hits: Some((hits, reads)), cost: clock.stop() })
}

fn one_at_a_time(plan: &Plan, path: &Path, round: u64, stop: &Stop) -> std::io::Result<Done> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let size = usize::try_from(plan.size).unwrap_or(PAGE);
    let mut memory = vec![0; 2 * size + PAGE];
    let start = memory.as_ptr().align_offset(PAGE);
    let (block, to_write) = memory[start..start + 2 * size].split_at_mut(size);
    to_write.copy_from_slice(&written(plan, round));
    block.copy_from_slice(to_write);
    let (mut latencies, clock) = (Vec::new(), Clock::start());
    for step in plan.steps(round).take_while(|_| !stop.is_set()) {
        let begun = Instant::now();
        if step.writes {
            file.write_all_at(to_write, step.at)?;
        } else {
            file.read_exact_at(block, step.at)?;
        }
        latencies.push(begun.elapsed());
    }
    Ok(Done { latencies, hits: None, cost: clock.stop() })
}

/// The folder and the name of a path.
fn parts(path: &Path) -> Result<(&Path, Name), Failure> {
    let name = path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
    path.parent().zip(name).ok_or_else(|| Failure::Run("the path has no last name".to_owned()))
}

fn said(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

fn over_own_cache(
    plan: &Plan,
    path: &Path,
    cache_bytes: u64,
    round: u64,
    stop: &Stop,
) -> Result<Done, Failure> {
    let (folder, name) = parts(path)?;
    let options = Options { workers: NonZeroUsize::MIN, ..Options::default() };
    let ended = run(&options, async |io| {
        let folder = io.open_dir(folder)?;
        let how = if plan.access.writes() { OpenHow::write() } else { OpenHow::read() };
        let written = written(plan, round);
        let clock = Clock::start();
        let file =
            DirectFile::open(&io, &folder, &name, how, self::options(plan.access, cache_bytes)).await?;
        let (latencies, hits) = requests(plan, &file, &written, round, stop).await?;
        let closed = file.close().await;
        Ok::<_, ferry_io::Error>((Done { latencies, hits: Some(hits), cost: clock.stop() }, closed))
    });
    let (ended, _) = ended.map_err(said)?;
    let (done, closed) = ended.map_err(said)?;
    closed.map_err(said)?;
    Ok(done)
}

/// Makes the requests. Returns each one's latency, the number of cache hits, and the number of reads.
async fn requests(
    plan: &Plan,
    file: &DirectFile<'_>,
    written: &[u8],
    round: u64,
    stop: &Stop,
) -> ferry_io::Result<(Vec<Duration>, (u64, u64))> {
    let (mut block, mut latencies) = (written.to_vec(), Vec::new());
    for step in plan.steps(round).take_while(|_| !stop.is_set()) {
        let begun = Instant::now();
        if step.writes {
            file.write_from(written, step.at).await?;
        } else {
            file.read_into(&mut block, step.at).await?;
        }
        latencies.push(begun.elapsed());
    }
    let found = file.cache_stats();
    Ok((latencies, (found.hits, found.hits + found.misses)))
}

fn several_at_once(plan: &Plan, path: &Path, depth: u64, round: u64, stop: &Stop) -> Result<Done, Failure> {
    let (folder, name) = parts(path)?;
    // No more than there are requests: each has its memory before the clock runs.
    let most = plan.steps(round).count().min(usize::try_from(depth).unwrap_or(1)).max(1);
    let options = Options {
        queue_depth: u32::try_from(most.next_power_of_two()).unwrap_or(1),
        blocks: most,
        block_size: usize::try_from(plan.size).unwrap_or(usize::MAX),
        workers: NonZeroUsize::MIN,
        pool_threads: most,
        route: if crate::needs::ring().is_ok() { RouteChoice::Ring } else { RouteChoice::Pool },
        ..Options::default()
    };
    let ended = run(&options, async |io| {
        let how = if plan.access.writes() { OpenHow::write() } else { OpenHow::read() };
        let file = io.open_dir(folder)?.open(&name, how.direct()).await?;
        let latencies = RefCell::new(Vec::new());
        let steps = RefCell::new(plan.steps(round));
        let written = written(plan, round);
        let mut blocks = Vec::with_capacity(most);
        for _ in 0..most {
            let mut block = io.block().await?;
            // For reads, too: no request is to wait for memory.
            block.as_mut_capacity()[..written.len()].copy_from_slice(&written);
            blocks.push(block);
        }
        let clock = Clock::start();
        for_each(most, blocks, async |mut block| {
            let capacity = block.capacity();
            while !stop.is_set() {
                let next = steps.borrow_mut().next();
                let Some(step) = next else { break };
                let begun = Instant::now();
                let (back, result) = if step.writes {
                    block.set_filled(capacity);
                    file.write_all_at(block, step.at).await
                } else {
                    let (back, count) = file.read_at(block, step.at).await;
                    (back, count.map(drop))
                };
                result?;
                block = back;
                latencies.borrow_mut().push(begun.elapsed());
            }
            Ok::<(), ferry_io::Error>(())
        })
        .await?;
        Ok::<_, ferry_io::Error>(Done { latencies: latencies.into_inner(), hits: None, cost: clock.stop() })
    });
    let (ended, _) = ended.map_err(said)?;
    ended.map_err(said)
}
