//! Generates direct I/O for a while, at a given depth, and measures rate and latency.
//!
//! Used by `lab disk` and `ferry tune`. At depth 1 requests are plain calls. At larger depths they go to the ring, or
//! to the pool where no ring is available.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use ferry_io::{Block, File, Io, Name, OpenHow, Options, RouteChoice, for_each, run};
pub use ferry_tree::fill::fill;
use ferry_tree::fill::{SplitMix64, derive};

use crate::error::Failure;
use crate::statistics::percentile;
use crate::stop::Stop;
use crate::units::{real, real_count};

/// Direction of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Reads and writes with equal probability.
    Mixed,
}

impl RequestKind {
    /// Name in records and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mixed => "mixed",
        }
    }
}

/// A load on one file.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Direction of the requests.
    pub kind: RequestKind,
    /// True for random offsets, false for sequential ones.
    pub is_random: bool,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
    /// Bytes of the file that requests cover.
    pub file_bytes: u64,
    /// Duration of the load.
    pub lasts: Duration,
    /// True if a ring is available.
    pub with_ring: bool,
}

/// Result of one run.
#[derive(Debug)]
pub struct Found {
    /// Throughput.
    pub bytes_per_second: f64,
    /// Rate of requests.
    pub requests_per_second: f64,
    /// Median latency.
    pub latency_ns_p50: f64,
    /// 99th percentile of the latency.
    pub latency_ns_p99: f64,
    /// Seconds that fsync(2) took afterwards, if anything was written.
    pub flush_seconds: Option<f64>,
}

/// Writes a file of incompressible bytes and makes it durable.
///
/// # Errors
/// The first call that failed; [`Failure::Interrupted`].
pub fn lay_out(path: &Path, bytes: u64, seed: u64, stop: &Stop) -> Result<(), Failure> {
    const PIECE: u64 = 1 << 20;
    let failed = |error: std::io::Error| Failure::file("write", path, &error);
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    let mut piece = vec![0; usize::try_from(PIECE).unwrap_or(1)];
    let mut at = 0;
    while at < bytes {
        stop.check()?;
        let size = usize::try_from(PIECE.min(bytes - at)).unwrap_or(piece.len());
        fill(seed, at, &mut piece[..size]);
        file.write_all(&piece[..size]).map_err(failed)?;
        at += PIECE;
    }
    file.sync_all().map_err(failed)
}

/// Generator of offsets and directions. The same seed gives the same sequence.
struct Next<'l> {
    load: &'l Load,
    numbers: SplitMix64,
    index: u64,
}

impl Next<'_> {
    fn take(&mut self) -> (u64, bool) {
        let places = (self.load.file_bytes / self.load.block_bytes).max(1);
        let place = if self.load.is_random { self.numbers.below(places) } else { self.index % places };
        self.index += 1;
        let writes = match self.load.kind {
            RequestKind::Read => false,
            RequestKind::Write => true,
            RequestKind::Mixed => self.numbers.percent(50),
        };
        (place * self.load.block_bytes, writes)
    }
}

impl Load {
    /// Returns the route: `inline`, `ring` or `pool`.
    #[must_use]
    pub fn route_name(&self) -> &'static str {
        match self.route() {
            RouteChoice::Ring => "ring",
            RouteChoice::Pool => "pool",
            RouteChoice::Inline | RouteChoice::Auto => "inline",
        }
    }

    fn route(&self) -> RouteChoice {
        match (self.depth, self.with_ring) {
            (1, _) => RouteChoice::Inline,
            (_, true) => RouteChoice::Ring,
            (_, false) => RouteChoice::Pool,
        }
    }

    /// Issues requests for the load's duration. The last component of `path` may be a link, such as one of
    /// /proc/self/fd.
    ///
    /// # Errors
    /// The first request that failed.
    pub fn run(&self, path: &Path, serial: u64, stop: &Stop) -> Result<Found, Failure> {
        let depth = usize::try_from(self.depth).unwrap_or(1);
        let options = Options {
            queue_depth: u32::try_from(depth.next_power_of_two()).unwrap_or(1),
            blocks: depth,
            block_size: usize::try_from(self.block_bytes).unwrap_or(usize::MAX),
            workers: NonZeroUsize::MIN,
            pool_threads: depth,
            route: self.route(),
            ..Options::default()
        };
        let name = path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
        let (Some(folder), Some(name)) = (path.parent(), name) else {
            return Err(Failure::Run("the path has no last name".to_owned()));
        };
        let ended = run(&options, async |io| {
            let folder = io.open_dir(folder)?;
            let reader = folder.open(&name, OpenHow::read().direct().following()).await?;
            let writer = folder.open(&name, OpenHow::write().direct().following()).await?;
            self.requests(&io, &reader, &writer, serial, stop).await
        });
        let (found, _) = ended.map_err(|error| Failure::Run(error.to_string()))?;
        found.map_err(|error| Failure::Run(error.to_string()))
    }

    async fn requests(
        &self,
        io: &Io,
        reader: &File,
        writer: &File,
        serial: u64,
        stop: &Stop,
    ) -> ferry_io::Result<Found> {
        let next =
            RefCell::new(Next { load: self, numbers: SplitMix64::new(derive(serial, self.depth)), index: 0 });
        let (latencies, written) = (RefCell::new(Vec::new()), Cell::new(false));
        // Filled before the clock starts: filling a large block takes longer than its first request.
        let mut blocks = Vec::new();
        for fiber in 0..self.depth {
            let mut block = io.block().await?;
            fill(fiber, serial, block.as_mut_capacity());
            blocks.push(block);
        }
        let start = Instant::now();
        for_each(blocks.len(), blocks, async |mut block: Block| {
            let capacity = block.capacity();
            while start.elapsed() < self.lasts && !stop.is_set() {
                let (at, writes) = next.borrow_mut().take();
                let begun = Instant::now();
                let (back, done) = if writes {
                    block.set_filled(capacity);
                    written.set(true);
                    writer.write_all_at(block, at).await
                } else {
                    let (back, count) = reader.read_at(block, at).await;
                    (back, count.map(drop))
                };
                done?;
                block = back;
                latencies.borrow_mut().push(begun.elapsed());
            }
            Ok::<(), ferry_io::Error>(())
        })
        .await?;
        let took = start.elapsed().as_secs_f64();
        let flushed = Instant::now();
        let flush_seconds = if written.get() {
            writer.sync().await?;
            Some(flushed.elapsed().as_secs_f64())
        } else {
            None
        };
        Ok(self.found(&latencies.into_inner(), took, flush_seconds))
    }

    fn found(&self, latencies: &[Duration], seconds: f64, flush_seconds: Option<f64>) -> Found {
        let mut sorted: Vec<f64> = latencies.iter().map(|latency| latency.as_secs_f64() * 1e9).collect();
        sorted.sort_by(f64::total_cmp);
        let requests_per_second = if seconds > 0.0 { real_count(sorted.len()) / seconds } else { 0.0 };
        Found {
            bytes_per_second: requests_per_second * real(self.block_bytes),
            requests_per_second,
            latency_ns_p50: percentile(&sorted, 500),
            latency_ns_p99: percentile(&sorted, 990),
            flush_seconds,
        }
    }
}
