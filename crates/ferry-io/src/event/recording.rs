//! One run's recording: the buffers filled by its threads, the thread that writes them, and the end record that proves
//! the file whole.
//!
//! Buffers are allocated when needed: at most one for each thread of the run and some spare ones. A thread that finds
//! no buffer free drops events and counts them, so a slow disk does not slow the run down. A failed write does not end
//! the run either: its events are counted as lost. If need be, the end record overwrites the last chunk.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::file::{Chunk, ChunkKind, Fields, Writer};
use super::place::{self, RecordingFile};
use super::queue::{Loss, Queue, Written, write_all};
use super::{kernel, label};
use crate::choose::Way;
use crate::error::{Operation, SetupError};
use crate::route::{Reason, Route};
use crate::sampling::{Refusal, Summary, ThreadSelection, most_descriptors};

/// Environment variable with the file to record to, unless the program names another one.
pub const FILE_VARIABLE: &str = "FERRY_TRACE";
/// Environment variable that leaves out the kernel's side of that recording if it is 0, for a program that is recorded
/// by another one (see [`ProgramsRecording`]).
pub const KERNEL_VARIABLE: &str = "FERRY_TRACE_KERNEL";

/// Settings of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracing {
    /// File of the finished recording; until then it has no name in that folder, or a hidden one. An older recording is
    /// replaced if nothing has changed it since the run began. Any other existing file stays, and `.2`, `.3` and so on
    /// is appended to get a free name. Later runs of the same process append such a number from the start. A trailing
    /// `%n` stands for the first number from 1 on that gives a free name, for several processes.
    pub file: PathBuf,
    /// Number of buffers besides one for each thread, for data waiting to be written. 0 to 65,536. Default 16.
    pub spare_buffers: usize,
    /// Size of a buffer in bytes, 1 KiB to 16 MiB. Default 64 KiB.
    pub buffer_bytes: usize,
}

impl Tracing {
    /// Records to this file.
    #[must_use]
    pub fn to(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), spare_buffers: 16, buffer_bytes: 64 * 1024 }
    }

    /// Checks the settings against their limits.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let bad = |name, value, allowed| Err(SetupError::BadOption { name, value, allowed });
        if self.spare_buffers > 65_536 {
            return bad("buffers of the recording", self.spare_buffers, "0 to 65536");
        }
        if !(1024..=16 << 20).contains(&self.buffer_bytes) {
            return bad("size of the recording's buffers", self.buffer_bytes, "1024 to 16777216 bytes");
        }
        Ok(())
    }
}

/// Clock of a simulation.
pub(crate) trait Clock: Send + Sync {
    /// Virtual time in nanoseconds.
    fn now_ns(&self) -> u64;
}

/// Result of a run's recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// File of the recording.
    pub file: PathBuf,
    /// File requested, if its name was no longer available at the end of the run.
    pub instead_of: Option<PathBuf>,
    /// Number of events in the file.
    pub events: u64,
    /// Number of events lost, in memory or in the file.
    pub lost: u64,
    /// Contradictions in a recording without losses, such as an operation without an end.
    pub faults: Vec<String>,
    /// Error that prevented a part from being written.
    pub failure: Option<Errno>,
    /// True if the file has its end and its name; otherwise nothing is kept.
    pub is_whole: bool,
}

/// Totals of one thread's recording.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) queued: u64,
    pub(super) taken: u64,
}

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

pub(crate) struct Recording {
    /// Taken when the file gets its name.
    place: Mutex<Option<RecordingFile>>,
    queue: Arc<Queue>,
    writing: Mutex<Option<JoinHandle<Written>>>,
    most_buffers: usize,
    buffer_bytes: usize,
    threads: Mutex<Vec<Thread>>,
    descriptors: AtomicI64,
    clock: Option<Arc<dyn Clock>>,
    kernel: Mutex<Option<kernel::Side>>,
    /// Reason why there is no kernel's side.
    missing: Option<Refusal>,
}

impl Recording {
    /// Begins the recording of a run of up to `threads` threads, if `tracing` or the environment (`FERRY_TRACE`)
    /// requests one. Omits the kernel's side in a simulation, or if it needs more than `descriptors` descriptors.
    pub(crate) fn begin(
        tracing: Option<&Tracing>,
        threads: usize,
        clock: Option<Arc<dyn Clock>>,
        descriptors: usize,
    ) -> Result<Option<Arc<Self>>, SetupError> {
        let of_environment = std::env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty());
        let tracing = tracing.cloned().or_else(|| of_environment.as_ref().map(Tracing::to));
        let Some(tracing) = tracing else { return Ok(None) };
        let is_of_environment = of_environment.is_some_and(|file| tracing.file == file);
        let is_left_out = is_of_environment && std::env::var_os(KERNEL_VARIABLE).is_some_and(|is| is == "0");
        let whose =
            if is_left_out { Err(Refusal::LeftOut) } else { Ok((ThreadSelection::Recorded, descriptors)) };
        let whose = clock.is_none().then_some(whose);
        let command = std::env::args_os();
        Self::make(&tracing, threads, command, whose, clock).map(|recording| Some(Arc::new(recording)))
    }

    /// Begins a recording. Includes the kernel's side for `whose`, if permitted within that number of descriptors.
    fn make(
        tracing: &Tracing,
        threads: usize,
        command: impl Iterator<Item = OsString>,
        whose: Option<Result<(ThreadSelection, usize), Refusal>>,
        clock: Option<Arc<dyn Clock>>,
    ) -> Result<Self, SetupError> {
        let refused = |error: io::Error| SetupError::Trace {
            file: tracing.file.to_string_lossy().escape_debug().to_string(),
            reason: reason_of(&error),
        };
        let (place, file) = RecordingFile::open(&tracing.file).map_err(refused)?;
        let mut writer = Writer::new(file).map_err(refused)?;
        let began = now(clock.as_deref());
        writer.add_fields(ChunkKind::Header, &header(began, command)).map_err(refused)?;
        let queue = Arc::new(Queue::default());
        let writing = std::thread::Builder::new().name("ferry-trace".to_owned()).spawn({
            let queue = Arc::clone(&queue);
            move || write_all(&queue, writer)
        });
        let writing = Mutex::new(Some(writing.map_err(refused)?));
        let most_buffers =
            threads + tracing.spare_buffers + if whose.is_some() { kernel::BUFFERS } else { 0 };
        let side = |whose: Result<(ThreadSelection, usize), Refusal>| {
            let (whose, descriptors) = whose?;
            if most_descriptors() > descriptors {
                return Err(Refusal::Descriptors);
            }
            kernel::Side::begin(whose, Arc::clone(&queue), most_buffers, tracing.buffer_bytes)
        };
        let (kernel, missing) = match whose.map(side) {
            Some(Ok(side)) => (Some(side), None),
            Some(Err(refusal)) => (None, Some(refusal)),
            None => (None, None),
        };
        Ok(Self {
            queue,
            writing,
            most_buffers,
            buffer_bytes: tracing.buffer_bytes,
            threads: Mutex::default(),
            descriptors: AtomicI64::new(0),
            clock,
            kernel: Mutex::new(kernel),
            missing,
            place: Mutex::new(Some(place)),
        })
    }

    /// Maximum number of descriptors held by the kernel's side.
    pub(crate) fn descriptors_of_kernel(&self) -> usize {
        let kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        kernel.as_ref().map_or(0, |_| most_descriptors())
    }

    /// Returns the current time for events.
    pub(super) fn now(&self) -> u64 {
        now(self.clock.as_deref())
    }

    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Begins to record the calling thread and returns its number.
    pub(crate) fn add_thread(&self, role: Role) -> u32 {
        let began = self.now();
        let tid = if self.clock.is_some() { 0 } else { rustix::thread::gettid().as_raw_pid() };
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

    /// Returns a buffer to fill, if one is free or may be allocated.
    pub(super) fn take_buffer(&self) -> Option<Vec<u8>> {
        self.queue.take_buffer(self.most_buffers, self.buffer_bytes)
    }

    /// Queues a full buffer to be written.
    pub(super) fn hand_over(&self, chunk: Chunk, buffer: Vec<u8>) {
        self.queue.hand_over(chunk, buffer);
    }

    /// Adds the number of descriptors that a thread has opened, less those closed; returns the number open.
    pub(super) fn add_descriptors(&self, more: i64) -> i64 {
        self.descriptors.fetch_add(more, Ordering::Relaxed) + more
    }

    /// Ends the recording after the run's threads have ended.
    pub(crate) fn finish(&self, backend: &str, counters: &[(String, u64)]) -> Recorded {
        let place = self.lock_place().take();
        let mut recorded = Recorded {
            file: place.as_ref().map(|place| place.path().to_owned()).unwrap_or_default(),
            instead_of: None,
            events: 0,
            lost: 0,
            faults: Vec::new(),
            failure: None,
            is_whole: false,
        };
        // Taken first, so that it excludes the recording's own waits.
        let ended = self.now();
        let summary = self.stop_sampling(ended);
        let Some(mut written) = self.stop_writing() else {
            recorded.failure = Some(Errno::IO);
            return recorded;
        };
        recorded.failure = written.failure.as_ref().map(errno_of);
        if let Some(summary) = summary {
            match written.writer.add_fields(ChunkKind::KernelEnd, &kernel::fields(&summary)) {
                Ok(()) => written.last = Loss::default(),
                Err(error) => recorded.failure = Some(errno_of(&error)),
            }
        }
        for once_more in [false, true] {
            if once_more {
                if written.writer.take_back().is_err() {
                    break;
                }
                written.lost.add(written.last);
            }
            self.add_up(written.lost.program, &mut recorded);
            match written.writer.add_fields(
                ChunkKind::End,
                &self.end(ended, &recorded, written.lost.kernel, (backend, counters)),
            ) {
                Ok(()) => {
                    recorded.is_whole = true;
                    break;
                }
                Err(error) => recorded.failure = Some(errno_of(&error)),
            }
        }
        if let Some(place) = place.filter(|_| recorded.is_whole) {
            publish(place, &written.writer.into_file(), &mut recorded);
        }
        recorded
    }

    /// Adds up the totals; counts `not_written` recorded events as lost.
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

    fn end(
        &self,
        ended: u64,
        recorded: &Recorded,
        kernel_lost: u64,
        (backend, counters): (&str, &[(String, u64)]),
    ) -> Fields {
        let threads = self.lock_threads();
        let mut fields = Fields::default();
        fields.add_one("ended", ended);
        fields.add_one("backend", backend);
        let list = |of: fn(&Thread) -> String| threads.iter().map(of).collect::<Vec<_>>();
        fields.add("thread_tids", list(|thread| thread.tid.to_string()));
        fields.add("thread_roles", list(|thread| thread.role.name().to_owned()));
        fields.add("thread_names", list(|thread| thread.name.clone()));
        fields.add("thread_begins", list(|thread| thread.began.to_string()));
        fields.add("thread_ends", list(|thread| thread.ended.map_or(String::new(), |at| at.to_string())));
        fields.add("thread_lost", list(|thread| thread.totals.lost.to_string()));
        fields.add("counter_names", counters.iter().map(|(name, _)| name));
        fields.add("counter_values", counters.iter().map(|(_, value)| value.to_string()));
        fields.add_one("events", recorded.events);
        fields.add_one("lost", recorded.lost);
        fields.add_one("kernel_lost", kernel_lost);
        let missing = self.missing.as_ref().map(|why| format!("nothing of the kernel's side: {why}"));
        fields.add("missing", missing);
        fields.add("faults", &recorded.faults);
        fields
    }

    /// Stops sampling once the kernel's events until `ended` are queued.
    fn stop_sampling(&self, ended: u64) -> Option<Summary> {
        let side = self.kernel.lock().unwrap_or_else(PoisonError::into_inner).take();
        side.map(|side| side.finish(ended))
    }

    fn stop_writing(&self) -> Option<Written> {
        self.queue.close();
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        writing?.join().ok()
    }

    fn lock_place(&self) -> MutexGuard<'_, Option<RecordingFile>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recording {
    /// Ends the threads of a run that panicked; no recording is kept.
    fn drop(&mut self) {
        drop(self.stop_sampling(self.now()));
        drop(self.stop_writing());
    }
}

/// A recording of the kernel's work for programs that the calling thread starts.
pub struct ProgramsRecording(Recording);

impl ProgramsRecording {
    /// Begins the recording. Each program is recorded from its execve(2) on, with its threads and children.
    ///
    /// # Errors
    /// If the file can't be made.
    pub fn begin(tracing: &Tracing, command: &[OsString]) -> Result<Self, SetupError> {
        Recording::make(
            tracing,
            0,
            command.iter().cloned(),
            Some(Ok((ThreadSelection::Programs, usize::MAX))),
            None,
        )
        .map(Self)
    }

    /// Returns the reason why the kernel's side can't be recorded, if there is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.missing.as_ref()
    }

    /// Ends the recording, after the programs have ended.
    #[must_use]
    pub fn finish(self) -> Recorded {
        self.0.finish("", &[])
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, or of the simulation's clock.
fn now(clock: Option<&dyn Clock>) -> u64 {
    if let Some(clock) = clock {
        return clock.now_ns();
    }
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// Gives a complete recording its name.
fn publish(place: RecordingFile, file: &File, recorded: &mut Recorded) {
    match place.publish(file) {
        Ok(path) if path == recorded.file || place::is_counted(&recorded.file) => recorded.file = path,
        Ok(path) => recorded.instead_of = Some(std::mem::replace(&mut recorded.file, path)),
        Err(errno) => {
            recorded.failure = Some(errno);
            recorded.is_whole = false;
        }
    }
}

fn header(began: u64, command: impl Iterator<Item = OsString>) -> Fields {
    let mut fields = Fields::default();
    fields.add("operations", Operation::ALL.map(Operation::name));
    fields.add("routes", Route::ALL.map(Route::name));
    fields.add("reasons", Reason::ALL.map(Reason::name));
    fields.add("ways", Way::ALL.map(Way::name));
    fields.add("command", command.map(OsString::into_encoded_bytes));
    fields.add("run", [label::inherited().into_encoded_bytes()]);
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
