//! Requests past the page cache for a while: how many are in flight, where each goes, and how long it took.
//!
//! `lab disk` has its figures from here, and so has `ferry tune`. At depth 1 requests are plain calls, deeper they go
//! to the ring, or to the pool where there is no ring.

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

/// What requests do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All read.
    Read,
    /// All write.
    Write,
    /// Each reads or writes, equally likely.
    Mixed,
}

impl Kind {
    /// Its word in records and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mixed => "mixed",
        }
    }
}

/// What one cell does.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// What requests do.
    pub kind: Kind,
    /// Whether requests go anywhere in the file, or each to where the one before ended.
    pub is_random: bool,
    /// Bytes a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
    /// How much of the file is read or written.
    pub file_bytes: u64,
    /// How long requests are made.
    pub lasts: Duration,
    /// Whether there is a ring.
    pub with_ring: bool,
}

/// What one run came to.
#[derive(Debug)]
pub struct Found {
    /// Bytes that were read and written.
    pub bytes_per_second: f64,
    /// Requests that did that.
    pub requests_per_second: f64,
    /// Half of them took at most so long.
    pub latency_ns_p50: f64,
    /// 99 % of them did.
    pub latency_ns_p99: f64,
    /// How long fsync(2) took afterwards, if anything was written.
    pub flush_seconds: Option<f64>,
}

/// Writes a file of bytes that can't be compressed, and brings it to the device.
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

/// Where the next request goes, and whether it writes: the same for the same seed.
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
            Kind::Read => false,
            Kind::Write => true,
            Kind::Mixed => self.numbers.percent(50),
        };
        (place * self.load.block_bytes, writes)
    }
}

impl Load {
    /// Where requests run: `inline`, `ring` or `pool`.
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

    /// Makes requests for a while. The last name of `path` may be a link, such as one of /proc/self/fd.
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
        // Filled before the clock starts: large ones take longer than their first request.
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
