//! A reader whose latency is measured while something else runs.
//!
//! Reads are due at fixed times, and a latency counts from the due time. A reader that waited for the previous read
//! would hide delays that its user notices.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ferry_tree::fill::SplitMix64;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::Failure;
use crate::record::Figures;
use crate::statistics::percentile;
use crate::units::real_count;

const BLOCK: usize = 4096;
const PERIOD: Duration = Duration::from_millis(1);

/// A file that is read with O_DIRECT.
#[derive(Debug)]
pub(super) struct Reader {
    file: OwnedFd,
    blocks: usize,
    /// Chooses blocks; the order never repeats.
    numbers: Mutex<SplitMix64>,
}

impl Reader {
    /// Opens the file.
    ///
    /// # Errors
    /// The reason why it cannot be read with O_DIRECT.
    pub(super) fn open(path: &Path, seed: u64) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let told = |errno: Errno| {
            format!("the reader can't read past the cache here: {}", ferry_io::Cause::Errno(errno))
        };
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(told)?;
        let size = rustix::fs::fstat(&file).map_err(told)?.st_size;
        let blocks = usize::try_from(size).unwrap_or(0) / BLOCK;
        let reader = Self { file, blocks, numbers: Mutex::new(SplitMix64::new(seed)) };
        reader.read(&mut Buffer::new(), 0).map_err(told)?;
        Ok(reader)
    }

    /// Reads while `work` runs, and returns its result and all latencies in seconds.
    ///
    /// # Errors
    /// If a read fails.
    pub(super) fn read_during<T>(&self, work: impl FnOnce() -> T) -> Result<(T, Vec<f64>), Failure> {
        let (begin, end) = (Instant::now(), OnceLock::new());
        let (value, latencies) = std::thread::scope(|threads| {
            let reading = threads.spawn(|| self.read_between(begin, &end));
            let value = work();
            end.get_or_init(Instant::now);
            (value, reading.join())
        });
        let latencies = latencies.map_err(|_| Failure::Run("the reader panicked".to_owned()))?;
        let told = |errno| Failure::Run(format!("a read failed: {}", ferry_io::Cause::Errno(errno)));
        Ok((value, latencies.map_err(told)?))
    }

    /// Makes all reads that are due before the end, including late ones.
    fn read_between(&self, begin: Instant, end: &OnceLock<Instant>) -> Result<Vec<f64>, Errno> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = Buffer::new();
        let mut latencies = Vec::new();
        let mut due = begin + PERIOD;
        loop {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if end.get().is_some_and(|end| due > *end) {
                return Ok(latencies);
            }
            self.read(&mut buffer, numbers.index(self.blocks.max(1)))?;
            latencies.push(due.elapsed().as_secs_f64());
            due += PERIOD;
        }
    }

    fn read(&self, buffer: &mut Buffer, block: usize) -> Result<(), Errno> {
        let offset = u64::try_from(block * BLOCK).unwrap_or(0);
        rustix::io::pread(&self.file, buffer.block(), offset).map(drop)
    }
}

/// Computes the figures by the measures' names.
pub(super) fn figures(mut latencies: Vec<f64>) -> Figures {
    latencies.sort_by(f64::total_cmp);
    let figures = [
        ("read_p50_s", percentile(&latencies, 500)),
        ("read_p99_s", percentile(&latencies, 990)),
        ("reads", real_count(latencies.len())),
    ];
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A block aligned for direct I/O.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new() -> Self {
        Self(vec![0; 2 * BLOCK])
    }

    fn block(&mut self) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(BLOCK).min(BLOCK);
        &mut self.0[start..start + BLOCK]
    }
}
