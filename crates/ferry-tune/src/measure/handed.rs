//! Which operations the kernel hands to its own workers (io-wq) on this filesystem: each is asked of a ring a few times,
//! one request after another, while the kernel's tracepoints are counted. That needs the right to trace.

use std::collections::BTreeMap;
use std::fs::File;

use ferry_io::counting::{Count, Event};
use ferry_io::{Dir, Io, Name, OpenHow, RouteChoice};
use ferry_lab::Failure;

use super::calls::{finished, name_of, options};
use super::steps::Steps;
use super::work::{Work, WorkFile};

/// How often each operation is asked for.
const TIMES: u32 = 16;
/// Bytes of a read or write.
const BYTES: u64 = 4096;

/// What is asked, in this order: some leave what others take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
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

const ASKED: [(&str, Ask); 18] = [
    ("buffered_cold_read", Ask::ColdRead),
    ("buffered_warm_read", Ask::WarmRead),
    ("direct_read", Ask::DirectRead),
    ("direct_write", Ask::DirectWrite),
    ("direct_write_extending", Ask::DirectExtend),
    ("open", Ask::Open),
    ("statx", Ask::Stat),
    ("create", Ask::Create),
    ("buffered_write", Ask::Write),
    ("fallocate", Ask::Allocate),
    ("ftruncate", Ask::Truncate),
    ("setxattr", Ask::SetXattr),
    ("fsync", Ask::Sync),
    ("link", Ask::Link),
    ("rename", Ask::Rename),
    ("unlink", Ask::Unlink),
    ("mkdir", Ask::MakeDir),
    ("symlink", Ask::Symlink),
];

/// How each ran: `inline` (a ring has no such operation), `ring`, `worker`, or `worker, one at a time`. Nothing where
/// there is no ring, or its requests may not be counted; what the filesystem refuses is left out.
pub(super) fn probe(
    work: &Work,
    file: &WorkFile,
    with_ring: bool,
    is_direct: bool,
    steps: &Steps<'_>,
) -> Result<BTreeMap<String, String>, Failure> {
    steps.begin("asking the ring for each operation")?;
    let Some(counts) = with_ring.then(Counts::begin).flatten() else { return Ok(BTreeMap::new()) };
    let failed = |error: std::io::Error| Failure::file("create a file in", work.folder(), &error);
    let (data, extended) = ("data", "extended");
    for name in [data, extended] {
        File::create_new(work.path().join(name)).map_err(failed)?;
    }
    let (data, extended) = (name_of(data)?, name_of(extended)?);
    // Before anything is written through the page cache: dirty pages would stay.
    rustix::fs::fadvise(&file.open, 0, None, rustix::fs::Advice::DontNeed).ok();
    finished(&options(RouteChoice::Ring), async |io| {
        let folder = io.open_dir(work.path())?;
        let past_the_cache = |how: OpenHow| if is_direct { how.direct() } else { how };
        let scene = Scene {
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
        for (name, ask) in ASKED.into_iter().filter(|(_, ask)| is_direct || !ask.is_direct()) {
            let before = counts.so_far();
            let mut asked = Ok(());
            for index in 0..TIMES {
                asked = asked.and(scene.ask(ask, index).await);
            }
            if steps.check().is_err() {
                break;
            }
            if let (Ok(()), Some(before), Some(after)) = (asked, before, counts.so_far()) {
                found.insert(name.to_owned(), how(before, after).to_owned());
            }
        }
        Ok(found)
    })
}

/// How it ran, if these were counted before and after.
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

/// Requests of this thread's rings, those handed to workers, and those of them that wait for one another.
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

/// What is asked about.
struct Scene<'a> {
    io: &'a Io,
    folder: Dir,
    file: ferry_io::File,
    direct: ferry_io::File,
    direct_writer: ferry_io::File,
    data: ferry_io::File,
    data_name: &'a Name,
    extended: ferry_io::File,
    /// Reads are so far from each other that none brings another's bytes into memory.
    stride: u64,
}

impl Scene<'_> {
    async fn ask(&self, ask: Ask, index: u32) -> ferry_io::Result<()> {
        let at = u64::from(index);
        let (folder, data) = (&self.folder, &self.data);
        let numbered = |kind: &str| {
            Name::new(format!("{kind}{index}").as_bytes()).unwrap_or_else(|| self.data_name.clone())
        };
        match ask {
            Ask::ColdRead => self.read(&self.file, at * self.stride).await,
            Ask::WarmRead => self.read(&self.file, 0).await,
            Ask::DirectRead => self.read(&self.direct, at * self.stride).await,
            Ask::DirectWrite => self.write(&self.direct_writer, at * self.stride).await,
            Ask::DirectExtend => self.write(&self.extended, at * BYTES).await,
            Ask::Write => self.write(data, at * BYTES).await,
            Ask::Open => folder.open(self.data_name, OpenHow::read()).await.map(drop),
            Ask::Stat => folder.stat_entry(self.data_name, false).await.map(drop),
            Ask::Create => folder.open(&numbered("made"), OpenHow::create(0o600)).await.map(drop),
            Ask::Allocate => data.allocate(at * BYTES, BYTES).await,
            Ask::Truncate => data.truncate((u64::from(TIMES) - at) * BYTES).await,
            Ask::SetXattr => data.set_xattr(c"user.ferry", format!("{index}").as_bytes()).await,
            Ask::Sync => data.sync().await,
            Ask::Link => folder.link(&numbered("made"), folder, &numbered("linked"), false).await,
            Ask::Rename => folder.rename(&numbered("made"), folder, &numbered("moved"), true).await,
            Ask::Unlink => folder.unlink(&numbered("moved")).await,
            Ask::MakeDir => folder.make_dir(&numbered("folder"), 0o700).await,
            Ask::Symlink => folder.symlink(&numbered("symbolic"), c"data".to_owned()).await,
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

impl Ask {
    fn is_direct(self) -> bool {
        matches!(self, Self::DirectRead | Self::DirectWrite | Self::DirectExtend)
    }
}
