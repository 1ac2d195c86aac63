//! Operations that the kernel hands to its own workers (io-wq) on this filesystem. Each is queued in a ring a few
//! times, one request after another, while tracepoints are counted. That requires permission to trace.

use std::collections::BTreeMap;
use std::fs::File;

use ferry_io::counting::{Count, Event};
use ferry_io::{Dir, Io, Name, OpenHow, RouteChoice};
use ferry_lab::Failure;

use super::calls::{finished, name_of, options};
use super::steps::Steps;
use super::work::{Work, WorkFile};

/// Number of requests of each operation.
const TIMES: u32 = 16;
/// Size of a read or write in bytes.
const BYTES: u64 = 4096;

/// Operations in the order in which they are tried: some need what others created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    ColdRead,
    WarmRead,
    DirectRead,
    DirectWrite,
    DirectExtend,
    Open,
    Stat,
    Create,
    Write,
    Allocate,
    Truncate,
    SetXattr,
    Sync,
    Link,
    Rename,
    Unlink,
    MakeDir,
    Symlink,
}

const TRIALS: [(&str, Trial); 18] = [
    ("buffered_cold_read", Trial::ColdRead),
    ("buffered_warm_read", Trial::WarmRead),
    ("direct_read", Trial::DirectRead),
    ("direct_write", Trial::DirectWrite),
    ("direct_write_extending", Trial::DirectExtend),
    ("open", Trial::Open),
    ("statx", Trial::Stat),
    ("create", Trial::Create),
    ("buffered_write", Trial::Write),
    ("fallocate", Trial::Allocate),
    ("ftruncate", Trial::Truncate),
    ("setxattr", Trial::SetXattr),
    ("fsync", Trial::Sync),
    ("link", Trial::Link),
    ("rename", Trial::Rename),
    ("unlink", Trial::Unlink),
    ("mkdir", Trial::MakeDir),
    ("symlink", Trial::Symlink),
];

/// Returns how the kernel executed each operation: `inline` (the ring has no such operation), `ring`, `worker`, or
/// `worker, one at a time`. Empty without a ring or without permission to count. Operations that the filesystem
/// refuses are left out.
pub(super) fn probe(
    work: &Work,
    file: &WorkFile,
    with_ring: bool,
    is_direct: bool,
    steps: &Steps<'_>,
) -> Result<BTreeMap<String, String>, Failure> {
    steps.begin("trying each operation on the ring")?;
    let Some(counts) = with_ring.then(Counts::begin).flatten() else { return Ok(BTreeMap::new()) };
    let failed = |error: std::io::Error| Failure::file("create a file in", work.folder(), &error);
    let (data, extended) = ("data", "extended");
    for name in [data, extended] {
        File::create_new(work.path().join(name)).map_err(failed)?;
    }
    let (data, extended) = (name_of(data)?, name_of(extended)?);
    // Before anything is written through the page cache, because dirty pages would stay.
    rustix::fs::fadvise(&file.open, 0, None, rustix::fs::Advice::DontNeed).ok();
    finished(&options(RouteChoice::Ring), async |io| {
        let folder = io.open_dir(work.path())?;
        let past_the_cache = |how: OpenHow| if is_direct { how.direct() } else { how };
        let files = TrialFiles {
            file: file.open(&io, OpenHow::read()).await?,
            data: folder.open(&data, OpenHow::write()).await?,
            direct: file.open(&io, past_the_cache(OpenHow::read())).await?,
            direct_writer: file.open(&io, past_the_cache(OpenHow::write())).await?,
            extended: folder.open(&extended, past_the_cache(OpenHow::write())).await?,
            stride: file.bytes / u64::from(TIMES) / BYTES * BYTES,
            io: &io,
            folder,
            data_name: &data,
        };
        let mut found = BTreeMap::new();
        for (name, trial) in TRIALS.into_iter().filter(|(_, trial)| is_direct || !trial.is_direct()) {
            let before = counts.so_far();
            let mut outcome = Ok(());
            for index in 0..TIMES {
                outcome = outcome.and(files.perform(trial, index).await);
            }
            if steps.check().is_err() {
                break;
            }
            if let (Ok(()), Some(before), Some(after)) = (outcome, before, counts.so_far()) {
                found.insert(name.to_owned(), how(before, after).to_owned());
            }
        }
        Ok(found)
    })
}

/// Returns the way in which an operation was executed, from the counts before and after it.
pub(super) fn how(before: [u64; 3], after: [u64; 3]) -> &'static str {
    let [requests, handovers, serial] = [0, 1, 2].map(|index| after[index].saturating_sub(before[index]));
    let most = u64::from(TIMES) / 2;
    match () {
        () if requests < most => "inline",
        () if serial > most => "worker, one at a time",
        () if handovers > most => "worker",
        () => "ring",
    }
}

/// Requests of this thread's rings, those handed to workers, and those handed over one at a time.
struct Counts([Count; 3]);

impl Counts {
    fn begin() -> Option<Self> {
        let begin = |event| Count::of_this_thread(event).ok();
        let [requests, handovers, serial] =
            [Event::RingRequest, Event::KernelWorkerHandover, Event::SerialHandover].map(begin);
        Some(Self([requests?, handovers?, serial?]))
    }

    fn so_far(&self) -> Option<[u64; 3]> {
        let [requests, handovers, serial] = &self.0;
        Some([requests.so_far().ok()?, handovers.so_far().ok()?, serial.so_far().ok()?])
    }
}

struct TrialFiles<'a> {
    io: &'a Io,
    folder: Dir,
    file: ferry_io::File,
    direct: ferry_io::File,
    direct_writer: ferry_io::File,
    data: ferry_io::File,
    data_name: &'a Name,
    extended: ferry_io::File,
    /// Distance between reads, large enough that readahead of one does not cache another.
    stride: u64,
}

impl TrialFiles<'_> {
    async fn perform(&self, trial: Trial, index: u32) -> ferry_io::Result<()> {
        let at = u64::from(index);
        let (folder, data) = (&self.folder, &self.data);
        let numbered = |kind: &str| {
            Name::new(format!("{kind}{index}").as_bytes()).unwrap_or_else(|| self.data_name.clone())
        };
        match trial {
            Trial::ColdRead => self.read(&self.file, at * self.stride).await,
            Trial::WarmRead => self.read(&self.file, 0).await,
            Trial::DirectRead => self.read(&self.direct, at * self.stride).await,
            Trial::DirectWrite => self.write(&self.direct_writer, at * self.stride).await,
            Trial::DirectExtend => self.write(&self.extended, at * BYTES).await,
            Trial::Write => self.write(data, at * BYTES).await,
            Trial::Open => folder.open(self.data_name, OpenHow::read()).await.map(drop),
            Trial::Stat => folder.stat_entry(self.data_name, false).await.map(drop),
            Trial::Create => folder.open(&numbered("made"), OpenHow::create(0o600)).await.map(drop),
            Trial::Allocate => data.allocate(at * BYTES, BYTES).await,
            Trial::Truncate => data.truncate((u64::from(TIMES) - at) * BYTES).await,
            Trial::SetXattr => data.set_xattr(c"user.ferry", format!("{index}").as_bytes()).await,
            Trial::Sync => data.sync().await,
            Trial::Link => folder.link(&numbered("made"), folder, &numbered("linked"), false).await,
            Trial::Rename => folder.rename(&numbered("made"), folder, &numbered("moved"), true).await,
            Trial::Unlink => folder.unlink(&numbered("moved")).await,
            Trial::MakeDir => folder.make_dir(&numbered("folder"), 0o700).await,
            Trial::Symlink => folder.symlink(&numbered("symbolic"), c"data".to_owned()).await,
        }
    }

    async fn read(&self, file: &ferry_io::File, at: u64) -> ferry_io::Result<()> {
        file.read_at(self.io.block().await?, at).await.1.map(drop)
    }

    async fn write(&self, file: &ferry_io::File, at: u64) -> ferry_io::Result<()> {
        let mut block = self.io.block().await?;
        let capacity = block.capacity();
        block.as_mut_capacity().fill(1);
        block.set_filled(capacity);
        file.write_all_at(block, at).await.1
    }
}

impl Trial {
    fn is_direct(self) -> bool {
        matches!(self, Self::DirectRead | Self::DirectWrite | Self::DirectExtend)
    }
}
