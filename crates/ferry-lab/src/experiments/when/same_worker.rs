//! Latency within one worker: a fiber that ticks and makes small cached reads, beside a fiber of the same worker whose
//! operation takes long.
//!
//! A tick is due every millisecond, and its delay counts from then, also if the tick before was late. After a tick the
//! fiber reads 4 KiB from the page cache. Only ticks that are due during a long operation count. What happens between two
//! long operations is done by another thread: it makes the file cold again, or writes what the next fsync(2) has to
//! make durable.

use std::cell::Cell as Flag;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ferry_io::{Io, Name, OpenHow, Options, RouteChoice, both, give_way, run, sleep};
use rustix::fs::Advice;

use super::cases::{ALONE, BESIDE_READ, routes};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::load;
use crate::record::{Cell, Figures};
use crate::session::{Session, Subject};
use crate::statistics::percentile;
use crate::stop::Stop;
use crate::units::{real, real_count};

const PERIOD: Duration = Duration::from_millis(1);
/// Interval at which the fiber asks if the other thread is done.
const ASKING: Duration = Duration::from_micros(500);
/// Size of the file of the long operations, and of the one for small reads, in bytes.
pub(super) const LONG_BYTES: u64 = 64 << 20;
const SMALL_BYTES: u64 = 1 << 20;
/// Bytes of a long read.
const BLOCK: usize = 4 << 20;
/// Bytes of a small read.
const LITTLE: usize = 4096;
/// Bytes that are written before each fsync(2).
const DIRTY_BYTES: u64 = 32 << 20;
/// Number of preparations after which the long operations must have taken a period for each.
const ENOUGH: u64 = 16;

/// The operation that takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Long {
    /// None: the fiber ticks alone.
    None,
    /// A read of a block that is not cached.
    Read,
    /// fsync(2) of a file with dirty pages.
    Sync,
}

impl Long {
    /// Error of a run in whose long operations no tick is due.
    fn too_short(self) -> Failure {
        let which = match self {
            Self::None => "the wait of the other fiber",
            Self::Read => "a read of 4 MiB",
            Self::Sync => "fsync(2)",
        };
        Failure::Run(format!("{which} is too short here to delay anything"))
    }
}

/// Measures a case.
pub(super) fn take(session: &mut Session<'_>, case: &str) -> Result<(), Failure> {
    let routes = routes(session, case, State::AsItIs);
    let alone = Cell::new(&[("case", case.into()), ("route", ALONE.into())], State::AsItIs);
    if session.has_taken(routes.iter().map(|(cell, _)| cell).chain([&alone])) {
        return Ok(());
    }
    session.step("making the files");
    let folder = session.work().join(case);
    std::fs::create_dir(&folder).map_err(|error| Failure::file("create", &folder, &error))?;
    load::lay_out(&folder.join("long"), LONG_BYTES, session.seed(), session.stop())?;
    load::lay_out(&folder.join("small"), SMALL_BYTES, !session.seed(), session.stop())?;
    let least = PERIOD * u32::try_from(session.settings().number("ticks")).unwrap_or(u32::MAX);
    let long = if case == BESIDE_READ { Long::Read } else { Long::Sync };
    let scene = |route, long| Scene { folder: &folder, route, long, least };
    let beside = |(cell, _): (Cell, String)| {
        let scene = scene(route_of(&cell.text("route")), long);
        Subject::new(cell, move |turn| scene.measure(turn.stop()))
    };
    let mut subjects: Vec<Subject<'_>> = routes.into_iter().map(beside).collect();
    let by_itself = scene(RouteChoice::Inline, Long::None);
    subjects.push(Subject::new(alone, move |turn| by_itself.measure(turn.stop())));
    session.interleave(&mut subjects, &Sample::none())?;
    drop(subjects);
    Ok(ferry_tree::remove::remove(&folder)?)
}

fn route_of(name: &str) -> RouteChoice {
    match name {
        "inline" => RouteChoice::Inline,
        "ring" => RouteChoice::Ring,
        "pool" => RouteChoice::Pool,
        _ => RouteChoice::Auto,
    }
}

/// Inputs of one run.
#[derive(Debug, Clone, Copy)]
struct Scene<'a> {
    folder: &'a Path,
    route: RouteChoice,
    long: Long,
    /// Least time of all long operations together.
    least: Duration,
}

/// One tick.
#[derive(Debug, Clone, Copy)]
struct Tick {
    due: Instant,
    /// Time when the fiber ran.
    ran: Instant,
    /// Time when it had the bytes of its small read.
    had_read: Instant,
}

/// What a run recorded.
#[derive(Debug, Default)]
struct Observed {
    ticks: Vec<Tick>,
    spans: Spans,
}

/// Beginning and end of each long operation, and the sum of their times.
#[derive(Debug, Default)]
struct Spans {
    all: Vec<(Instant, Instant)>,
    took: Duration,
}

impl Spans {
    fn add(&mut self, begun: Instant) {
        let end = Instant::now();
        self.all.push((begun, end));
        self.took += end - begun;
    }

    /// Returns true if the operations that followed these preparations took less than a period each. The preparations
    /// of such a run would take very long.
    fn are_too_short(&self, preparations: u64) -> bool {
        let periods = PERIOD.saturating_mul(u32::try_from(preparations).unwrap_or(u32::MAX));
        preparations >= ENOUGH && self.took < periods
    }
}

/// The other thread, as the fiber with the long operations sees it.
struct Helper<'a> {
    ask: Sender<()>,
    prepared: &'a Prepared,
    has_ended: &'a dyn Fn() -> bool,
}

/// The other thread's work.
#[derive(Debug, Default)]
struct Prepared {
    count: AtomicU64,
    /// Largest number of bytes of the file that stayed cached, if the kernel tells.
    cached_bytes: Mutex<Option<u64>>,
}

impl Prepared {
    fn cached_bytes(&self) -> MutexGuard<'_, Option<u64>> {
        self.cached_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scene<'_> {
    fn measure(&self, stop: &Stop) -> Result<Figures, Failure> {
        let prepared = Prepared::default();
        let (scene, prepared) = (*self, &prepared);
        let (ask, asked) = mpsc::channel();
        let (observed, helped) = std::thread::scope(|threads| {
            let thread = threads.spawn(move || scene.prepare(prepared, &asked));
            let observed =
                scene.observe(&Helper { ask, prepared, has_ended: &|| thread.is_finished() }, stop);
            match thread.join() {
                Ok(helped) => (observed, helped),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        stop.check()?;
        helped?;
        let observed = observed?;
        let found = figures(&observed).filter(|_| observed.spans.took >= self.least);
        let mut figures = found.ok_or_else(|| self.long.too_short())?;
        if let Some(cached) = *prepared.cached_bytes() {
            figures.insert("cached_share".to_owned(), real(cached) / real(LONG_BYTES));
        }
        Ok(figures)
    }

    /// Body of the other thread: prepares a long operation each time that it is asked to.
    fn prepare(&self, prepared: &Prepared, asked: &Receiver<()>) -> Result<(), Failure> {
        let path = self.folder.join("long");
        let failed = |error: std::io::Error| Failure::file("prepare", &path, &error);
        let file = File::options().read(true).write(true).open(&path).map_err(failed)?;
        let mut piece = vec![0; BLOCK];
        let size = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        while asked.recv().is_ok() {
            if self.long == Long::Read {
                let forgotten = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
                forgotten.map_err(|errno| failed(errno.into()))?;
                let cached = ferry_io::probe::data(&file, 0, 0).ok().map(|found| found.bytes);
                let mut most = prepared.cached_bytes();
                *most = cached.max(*most);
            } else {
                load::fill(prepared.count.load(Ordering::Acquire), 0, &mut piece);
                for at in (0..DIRTY_BYTES / size).map(|index| index * size) {
                    file.write_all_at(&piece, at).map_err(failed)?;
                }
            }
            prepared.count.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Runs both fibers in one worker.
    fn observe(&self, helper: &Helper<'_>, stop: &Stop) -> Result<Observed, Failure> {
        let options = Options {
            workers: NonZeroUsize::MIN,
            route: self.route,
            queue_depth: 16,
            blocks: 2,
            block_size: BLOCK,
            pool_threads: 4,
            ..Options::default()
        };
        let failed = |error: String| Failure::Run(format!("a worker could not be observed: {error}"));
        let end = Flag::new(None);
        let ran = run(&options, async |io| {
            let working = async {
                let spans = self.work(&io, helper, stop).await;
                end.set(Some(Instant::now()));
                spans
            };
            both(self.tick(&io, &end), working).await
        });
        let (ended, _) = ran.map_err(|error| failed(error.to_string()))?;
        let (ticks, spans) = ended.map_err(|error| failed(error.to_string()))?;
        Ok(Observed { ticks, spans })
    }

    /// The fiber whose latency matters. Late ticks are made up for, also after the end of the work.
    async fn tick(&self, io: &Io, end: &Flag<Option<Instant>>) -> ferry_io::Result<Vec<Tick>> {
        let small = open(io, self.folder, "small").await?;
        let mut block = io.block().await?;
        let mut ticks = Vec::new();
        let mut due = Instant::now() + PERIOD;
        let size = u64::try_from(LITTLE).unwrap_or(1);
        for place in (0..SMALL_BYTES / size).cycle() {
            sleep(due.saturating_duration_since(Instant::now())).await?;
            if end.get().is_some_and(|end| due > end) {
                break;
            }
            let ran = Instant::now();
            let (back, read) = small.read_some_at(block, LITTLE, place * size).await;
            block = back;
            read?;
            ticks.push(Tick { due, ran, had_read: Instant::now() });
            due += PERIOD;
        }
        Ok(ticks)
    }

    /// The fiber with the long operations, until they took long enough or prove to be too short.
    async fn work(&self, io: &Io, helper: &Helper<'_>, stop: &Stop) -> ferry_io::Result<Spans> {
        let file = open(io, self.folder, "long").await?;
        let mut spans = Spans::default();
        let mut block = io.block().await?;
        let size = u64::try_from(BLOCK).unwrap_or(u64::MAX);
        for asked in 1_u64.. {
            if spans.took >= self.least || spans.are_too_short(asked - 1) || stop.is_set() {
                break;
            }
            if self.long == Long::None {
                let begun = Instant::now();
                // A tick is due in it even if one is enough.
                sleep(self.least + PERIOD).await?;
                spans.add(begun);
                continue;
            }
            if !helper.has_prepared(asked).await? {
                break;
            }
            if self.long == Long::Sync {
                let begun = Instant::now();
                file.sync().await?;
                spans.add(begun);
                continue;
            }
            for at in (0..LONG_BYTES / size).map(|index| index * size) {
                let begun = Instant::now();
                let (back, read) = file.read_at(block, at).await;
                block = back;
                read?;
                spans.add(begun);
                // Only the operation itself may hold up the other fiber.
                give_way().await;
            }
        }
        Ok(spans)
    }
}

impl Helper<'_> {
    /// Asks for the next preparation and waits for it. Returns false if the other thread has failed, which reports
    /// why.
    async fn has_prepared(&self, asked: u64) -> ferry_io::Result<bool> {
        // It waits for this, unless it has failed.
        let is_asked = self.ask.send(()).is_ok();
        while is_asked && self.prepared.count.load(Ordering::Acquire) < asked {
            if (self.has_ended)() {
                return Ok(false);
            }
            sleep(ASKING).await?;
        }
        Ok(is_asked)
    }
}

/// Opens a file of the scene for reading.
async fn open(io: &Io, folder: &Path, name: &str) -> ferry_io::Result<ferry_io::File> {
    let Some(name) = Name::new(name.as_bytes()) else { unreachable!("it is one component") };
    io.open_dir(folder)?.open(&name, OpenHow::read()).await
}

/// Returns the figures of the ticks that were due during a long operation, if there was one.
fn figures(observed: &Observed) -> Option<Figures> {
    let Observed { ticks, spans: Spans { all: spans, .. } } = observed;
    let is_beside = |tick: &&Tick| spans.iter().any(|(begun, end)| (*begun..=*end).contains(&tick.due));
    let beside: Vec<&Tick> = ticks.iter().filter(is_beside).collect();
    if beside.is_empty() {
        return None;
    }
    let sorted = |times: &mut dyn Iterator<Item = Duration>| {
        let mut seconds: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        seconds
    };
    let delays = sorted(&mut beside.iter().map(|tick| tick.ran.saturating_duration_since(tick.due)));
    let reads = sorted(&mut beside.iter().map(|tick| tick.had_read.saturating_duration_since(tick.due)));
    let long = sorted(&mut spans.iter().map(|(begun, end)| *end - *begun));
    let figures = [
        ("tick_p50_s", percentile(&delays, 500)),
        ("tick_p99_s", percentile(&delays, 990)),
        ("small_p99_s", percentile(&reads, 990)),
        ("long_s", percentile(&long, 500)),
        ("ticks", real_count(beside.len())),
    ];
    Some(figures.map(|(name, figure)| (name.to_owned(), figure)).into())
}

#[cfg(test)]
mod tests;
