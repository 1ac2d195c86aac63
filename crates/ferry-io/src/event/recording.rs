//! One run's recording: the buffers that its threads fill, the thread that writes them, and the end that proves that it
//! is whole.
//!
//! Buffers are bounded: one for each thread that the run may have, and some more. They are made when they are needed. A
//! thread that finds none free loses events, and counts them; so a disk that is slower than the run slows nothing down.
//! Where writing fails the run goes on: what could not be written is counted as lost, and the end is written in the place
//! of the last chunk if need be.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::file::{Chunk, Fields, Kind, Writer};
use crate::error::{Operation, SetupError};
use crate::options::{Options, Tracing};
use crate::route::Reason;
use crate::sim::Sim;
use crate::stats::{Route, Stats};

/// What became of a run's recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The file.
    pub file: PathBuf,
    /// Events in it.
    pub events: u64,
    /// Events that there was no room for, in memory or in the file.
    pub lost: u64,
    /// What should not be, though nothing was lost: such as an operation without an end.
    pub faults: Vec<String>,
    /// Why not all of it could be written.
    pub failure: Option<Errno>,
    /// Whether it has its end, without which it can't be read.
    pub is_whole: bool,
}

/// What one thread recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) queued: u64,
    pub(super) taken: u64,
}

/// Whose thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Worker,
    Pool,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Pool => "pool",
        }
    }
}

struct Thread {
    tid: i32,
    role: Role,
    name: String,
    began: u64,
    ended: Option<u64>,
    totals: Totals,
}

/// What the threads of the run and the one that writes share.
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    free: Vec<Vec<u8>>,
    made: usize,
    full: VecDeque<(Chunk, Vec<u8>)>,
    closing: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next full buffer; `None` when there will be none.
    fn next(&self) -> Option<(Chunk, Vec<u8>)> {
        let mut state = self.lock();
        loop {
            if let Some(full) = state.full.pop_front() {
                return Some(full);
            }
            if state.closing {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().closing = true;
        self.filled.notify_all();
    }
}

/// What the thread that writes has come to.
struct Written {
    writer: Writer,
    failure: Option<io::Error>,
    /// Events of chunks that could not be written.
    lost: u64,
    /// Events of the last chunk that could.
    last: u64,
}

/// One run's recording.
pub(crate) struct Recording {
    file: PathBuf,
    queue: Arc<Queue>,
    writing: Mutex<Option<JoinHandle<Written>>>,
    most_buffers: usize,
    buffer_bytes: usize,
    threads: Mutex<Vec<Thread>>,
    descriptors: AtomicI64,
    sim: Option<Arc<Sim>>,
}

/// How often this process has recorded to a path.
static TAKEN: Mutex<Vec<(PathBuf, u32)>> = Mutex::new(Vec::new());

impl Recording {
    /// Begins one, if the options or the environment (`FERRY_TRACE`) say so.
    pub(crate) fn begin(options: &Options, sim: Option<&Arc<Sim>>) -> Result<Option<Arc<Self>>, SetupError> {
        let of_environment = || std::env::var_os("FERRY_TRACE").filter(|file| !file.is_empty());
        let tracing = options.trace.clone().or_else(|| of_environment().map(Tracing::to));
        let Some(tracing) = tracing else { return Ok(None) };
        let refused = |error: io::Error| SetupError::Trace {
            file: tracing.file.to_string_lossy().escape_debug().to_string(),
            reason: reason_of(&error),
        };
        let (file, mut writer) = create(&tracing.file).map_err(refused)?;
        let began = now(sim);
        writer.add_fields(Kind::Header, &header(began)).map_err(refused)?;
        let queue = Arc::new(Queue { state: Mutex::default(), filled: Condvar::new() });
        let writing = std::thread::Builder::new().name("ferry-trace".to_owned()).spawn({
            let queue = Arc::clone(&queue);
            move || write_all(&queue, writer)
        });
        let threads = options.workers.get() + options.pool_threads;
        Ok(Some(Arc::new(Self {
            queue,
            writing: Mutex::new(Some(writing.map_err(refused)?)),
            most_buffers: threads + tracing.spare_buffers,
            buffer_bytes: tracing.buffer_bytes,
            threads: Mutex::default(),
            descriptors: AtomicI64::new(0),
            sim: sim.cloned(),
            file,
        })))
    }

    /// The time that events are told with.
    pub(super) fn now(&self) -> u64 {
        now(self.sim.as_ref())
    }

    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// The calling thread's number, which begins to record.
    pub(crate) fn add_thread(&self, role: Role) -> u32 {
        let began = self.now();
        let tid = if self.sim.is_some() { 0 } else { rustix::thread::gettid().as_raw_pid() };
        let mut threads = self.lock_threads();
        let others = threads.iter().filter(|thread| thread.role == role).count();
        let name = format!("{} {others}", role.name());
        threads.push(Thread { tid, role, name, began, ended: None, totals: Totals::default() });
        u32::try_from(threads.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn end_thread(&self, number: u32, ended: u64, totals: &Totals) {
        if let Some(thread) = self.lock_threads().get_mut(number as usize) {
            thread.ended = Some(ended);
            thread.totals = *totals;
        }
    }

    /// A buffer to fill, if one is free or may be made.
    pub(super) fn take_buffer(&self) -> Option<Vec<u8>> {
        let mut state = self.queue.lock();
        if let Some(buffer) = state.free.pop() {
            return Some(buffer);
        }
        if state.made >= self.most_buffers {
            return None;
        }
        state.made += 1;
        drop(state);
        Some(Vec::with_capacity(self.buffer_bytes))
    }

    /// A full buffer, to be written.
    pub(super) fn hand_over(&self, chunk: Chunk, buffer: Vec<u8>) {
        self.queue.lock().full.push_back((chunk, buffer));
        self.queue.filled.notify_one();
    }

    /// Adds what a thread has opened, less what it has closed; gives back what is open.
    pub(super) fn add_descriptors(&self, more: i64) -> i64 {
        self.descriptors.fetch_add(more, Ordering::Relaxed) + more
    }

    /// Ends it, when the run's threads have ended.
    pub(crate) fn finish(&self, stats: &Stats) -> Recorded {
        let mut recorded = Recorded {
            file: self.file.clone(),
            events: 0,
            lost: 0,
            faults: Vec::new(),
            failure: None,
            is_whole: false,
        };
        let Some(mut written) = self.stop_writing() else {
            recorded.failure = Some(Errno::IO);
            return recorded;
        };
        recorded.failure = written.failure.as_ref().map(errno_of);
        for spare in [0, written.last] {
            if spare > 0 && written.writer.take_back().is_err() {
                break;
            }
            written.lost += spare;
            self.add_up(written.lost, &mut recorded);
            match written.writer.add_fields(Kind::End, &self.end(&recorded, stats)) {
                Ok(()) => {
                    recorded.is_whole = true;
                    break;
                }
                Err(error) => recorded.failure = Some(errno_of(&error)),
            }
        }
        recorded
    }

    /// Totals, with so many events that were recorded and not written.
    fn add_up(&self, not_written: u64, recorded: &mut Recorded) {
        let threads = self.lock_threads();
        let sum = |of: fn(&Totals) -> u64| threads.iter().map(|thread| of(&thread.totals)).sum::<u64>();
        recorded.events = sum(|totals| totals.events) - not_written;
        recorded.lost = sum(|totals| totals.lost) + not_written;
        let (queued, taken) = (sum(|totals| totals.queued), sum(|totals| totals.taken));
        recorded.faults.clear();
        if queued != taken {
            recorded.faults.push(format!("{queued} operations were queued, and {taken} taken"));
        }
    }

    fn end(&self, recorded: &Recorded, stats: &Stats) -> Fields {
        let threads = self.lock_threads();
        let mut fields = Fields::default();
        fields.add_one("ended", self.now());
        fields.add_one("backend", stats.backend);
        let list = |of: fn(&Thread) -> String| threads.iter().map(of).collect::<Vec<_>>();
        fields.add("thread_tids", list(|thread| thread.tid.to_string()));
        fields.add("thread_roles", list(|thread| thread.role.name().to_owned()));
        fields.add("thread_names", list(|thread| thread.name.clone()));
        fields.add("thread_begins", list(|thread| thread.began.to_string()));
        fields.add("thread_ends", list(|thread| thread.ended.map_or(String::new(), |at| at.to_string())));
        fields.add("thread_lost", list(|thread| thread.totals.lost.to_string()));
        let counters = stats.named();
        fields.add("counter_names", counters.iter().map(|(name, _)| name));
        fields.add("counter_values", counters.iter().map(|(_, value)| value.to_string()));
        fields.add_one("events", recorded.events);
        fields.add_one("lost", recorded.lost);
        fields.add("faults", &recorded.faults);
        fields
    }

    /// Waits until everything is written.
    fn stop_writing(&self) -> Option<Written> {
        self.queue.close();
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        writing?.join().ok()
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recording {
    /// A run that panicked leaves no thread behind; its recording has no end, and is truncated.
    fn drop(&mut self) {
        drop(self.stop_writing());
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, or of the simulation's clock.
fn now(sim: Option<&Arc<Sim>>) -> u64 {
    if let Some(sim) = sim {
        return sim.clock_ns();
    }
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// The writing thread: writes what was handed over, and gives the buffers back.
fn write_all(queue: &Queue, writer: Writer) -> Written {
    let mut written = Written { writer, failure: None, lost: 0, last: 0 };
    while let Some((chunk, mut buffer)) = queue.next() {
        let events = u64::from(chunk.events);
        if written.failure.is_none() {
            match written.writer.add(chunk, &mut buffer) {
                Ok(()) => written.last = events,
                Err(error) => written.failure = Some(error),
            }
        }
        if written.failure.is_some() {
            written.lost += events;
        }
        queue.lock().free.push(buffer);
    }
    written
}

/// The most files that are told apart by a number.
const MOST_FILES: u32 = 99_999;

/// Makes the file of a recording to `path`.
fn create(path: &Path) -> io::Result<(PathBuf, Writer)> {
    let Some(beginning) = path.as_os_str().as_bytes().strip_suffix(b"%n") else {
        let file = numbered(path);
        return Writer::create(&file).map(|writer| (file, writer));
    };
    for number in 1..MOST_FILES {
        let mut name = OsStr::from_bytes(beginning).to_owned();
        name.push(number.to_string());
        match Writer::create_new(Path::new(&name)) {
            Ok(writer) => return Ok((name.into(), writer)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Where this process records to when it is told of `path` once more: the path itself, then with `.2` behind it, and so on.
fn numbered(path: &Path) -> PathBuf {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((_, times)) = taken.iter_mut().find(|(known, _)| known == path) else {
        taken.push((path.to_owned(), 1));
        return path.to_owned();
    };
    *times += 1;
    let mut name = OsString::from(path);
    name.push(format!(".{times}"));
    name.into()
}

fn header(began: u64) -> Fields {
    let mut fields = Fields::default();
    fields.add("operations", Operation::ALL.map(Operation::name));
    fields.add("routes", Route::ALL.map(Route::name));
    fields.add("reasons", Reason::ALL.map(Reason::name));
    let words = std::env::args_os().map(OsString::into_encoded_bytes);
    fields.add("command", words);
    fields.add_one("recorder", env!("CARGO_PKG_VERSION"));
    let kernel = rustix::system::uname();
    fields.add_one("kernel", kernel.release().to_string_lossy());
    fields.add_one("processors", std::thread::available_parallelism().map_or(0, std::num::NonZero::get));
    fields.add_one("began", began);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    fields.add_one("began_since_1970", since_1970.map_or(0, |time| time.as_nanos()));
    fields
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn reason_of(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return "it exists and is no recording".to_owned();
    }
    crate::Cause::Errno(errno_of(error)).to_string()
}
