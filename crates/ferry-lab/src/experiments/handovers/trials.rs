//! One run: requests of one kind, one after another on a ring, while the kernel's tracepoints are counted.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use ferry_io::counting::{Count, Event};
use ferry_io::{Backend, Errno, Io, Name, OpenHow, Options, RouteChoice, run};
use rustix::fs::Advice;

use crate::error::Failure;
use crate::record::Figures;
use crate::stop::Stop;
use crate::units::real;

/// Share of the requests that were handed over, and of those that then waited for an earlier one.
pub(super) const HANDED: &str = "handed_share";
pub(super) const SERIAL: &str = "serial_share";

/// Bytes of a request.
const BYTES: u64 = 4096;
/// Distance of the requests in the file, large enough that readahead of one does not cache another.
pub(super) const STRIDE: u64 = 256 << 10;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    CachedRead,
    UncachedRead,
    DirectRead,
    BufferedWrite,
    DirectWrite,
    GrowingWrite,
    DirectGrowingWrite,
}

/// Every kind, with the operation and how it is done.
pub(super) const TRIALS: [(Trial, &str, &str); 7] = [
    (Trial::CachedRead, "read", "cached"),
    (Trial::UncachedRead, "read", "uncached"),
    (Trial::DirectRead, "read", "direct"),
    (Trial::BufferedWrite, "write", "buffered"),
    (Trial::DirectWrite, "write", "direct"),
    (Trial::GrowingWrite, "write", "growing"),
    (Trial::DirectGrowingWrite, "write", "direct-growing"),
];

/// Hand-overs of the calling thread's rings so far.
pub(super) struct Counts {
    all: Count,
    /// Those that wait for an earlier one.
    serial: Count,
}

impl Counts {
    /// Begins to count.
    pub(super) fn begin() -> Result<Self, Errno> {
        let [all, serial] = [Event::KernelWorkerHandover, Event::SerialHandover].map(Count::of_this_thread);
        Ok(Self { all: all?, serial: serial? })
    }

    fn so_far(&self) -> Result<[u64; 2], Errno> {
        Ok([self.all.so_far()?, self.serial.so_far()?])
    }
}

impl Trial {
    /// Returns true for writes at the end of a new file.
    fn grows(self) -> bool {
        matches!(self, Self::GrowingWrite | Self::DirectGrowingWrite)
    }

    fn how(self) -> OpenHow {
        match self {
            Self::CachedRead | Self::UncachedRead => OpenHow::read(),
            Self::DirectRead => OpenHow::read().direct(),
            Self::BufferedWrite | Self::GrowingWrite => OpenHow::write(),
            Self::DirectWrite | Self::DirectGrowingWrite => OpenHow::write().direct(),
        }
    }

    /// Makes the requests in `folder`, which has the file `old`.
    ///
    /// # Errors
    /// [`Failure::Run`] if a request or counting fails; [`Failure::Interrupted`].
    pub(super) fn take(self, folder: &Path, requests: u64, stop: &Stop) -> Result<Figures, Failure> {
        forget(&folder.join("old"))?;
        let grown = folder.join("grown");
        if self.grows() {
            File::create_new(&grown).map_err(|error| Failure::file("create", &grown, &error))?;
        }
        let counted = self.count(folder, requests, stop);
        if self.grows() {
            ferry_tree::remove::remove(&grown)?;
        }
        stop.check()?;
        let ([all, serial], seconds) = counted?;
        let each = |number: f64| number / real(requests.max(1));
        let figures = [(HANDED, each(real(all))), (SERIAL, each(real(serial))), ("request_s", each(seconds))];
        Ok(figures.map(|(name, figure)| (name.to_owned(), figure)).into())
    }

    /// Returns the hand-overs, and the time of all requests in seconds.
    fn count(self, folder: &Path, requests: u64, stop: &Stop) -> Result<([u64; 2], f64), Failure> {
        let failed = |error: String| Failure::Run(format!("requests could not be counted: {error}"));
        let uncounted = |errno: Errno| failed(ferry_io::Cause::Errno(errno).to_string());
        let counts = Counts::begin().map_err(uncounted)?;
        let options = Options {
            workers: NonZeroUsize::MIN,
            backend: Backend::Uring,
            route: RouteChoice::Ring,
            queue_depth: 16,
            blocks: 2,
            block_size: usize::try_from(BYTES).unwrap_or(usize::MAX),
            ..Options::default()
        };
        let name: &[u8] = if self.grows() { b"grown" } else { b"old" };
        let Some(name) = Name::new(name) else { unreachable!("it is one component") };
        let ran = run(&options, async |io| {
            let file = io.open_dir(folder)?.open(&name, self.how()).await?;
            if self == Self::CachedRead {
                self.request(&io, &file, 0).await?;
            }
            let (before, begun) = (counts.so_far(), Instant::now());
            for index in (0..requests).take_while(|_| !stop.is_set()) {
                self.request(&io, &file, index).await?;
            }
            let seconds = begun.elapsed().as_secs_f64();
            Ok::<_, ferry_io::Error>((before, counts.so_far(), seconds))
        });
        let (ended, _) = ran.map_err(|error| failed(error.to_string()))?;
        let (before, after, seconds) = ended.map_err(|error| failed(error.to_string()))?;
        let (before, after) = (before.map_err(uncounted)?, after.map_err(uncounted)?);
        Ok(([after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1])], seconds))
    }

    async fn request(self, io: &Io, file: &ferry_io::File, index: u64) -> ferry_io::Result<()> {
        let mut block = io.block().await?;
        match self {
            Self::CachedRead => file.read_at(block, 0).await.1.map(drop),
            Self::UncachedRead | Self::DirectRead => file.read_at(block, index * STRIDE).await.1.map(drop),
            Self::BufferedWrite | Self::DirectWrite | Self::GrowingWrite | Self::DirectGrowingWrite => {
                let capacity = block.capacity();
                block.as_mut_capacity().fill(1);
                block.set_filled(capacity);
                let at = if self.grows() { index * BYTES } else { index * STRIDE };
                file.write_all_at(block, at).await.1
            }
        }
    }
}

/// Has the page cache forget a file: cached pages would make direct writes wait.
fn forget(path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("forget", path, &error);
    let file = File::open(path).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).map_err(|errno| failed(errno.into()))
}
