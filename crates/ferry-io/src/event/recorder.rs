//! The recording of one thread. A thread that does not record reads one flag of its own memory and does nothing else.
//!
//! A thread fills a buffer of its own and hands it over when it is full. While no other buffer is free, events are
//! counted as lost. Fibers and scopes get numbers while a thread records; otherwise they have 0, which no event
//! mentions.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::code::LONGEST_EVENT;
use super::file::{CHUNK_HEADER, Chunk, ChunkKind};
use super::recording::{Recording, Totals};
use super::{Encoder, Event, Gauge, Opener};

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static FIBER: Cell<u32> = const { Cell::new(0) };
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
    /// Descriptors that this thread opened less those that it closed since its last report.
    static DESCRIPTORS: Cell<i64> = const { Cell::new(0) };
}

/// One thread's part of a recording.
struct Recorder {
    recording: Arc<Recording>,
    thread: u32,
    /// The buffer being filled; `None` if no buffer was free.
    encoder: Option<Encoder>,
    chunk: Chunk,
    totals: Totals,
    fibers: u32,
    scopes: u32,
    /// The last sampled values.
    samples: [u64; 3],
}

impl Recorder {
    fn record(&mut self, time: u64, event: &Event<'_>) {
        self.totals.queued += u64::from(matches!(event, Event::Queued { .. }));
        self.totals.taken += u64::from(matches!(event, Event::Taken { .. }));
        let has_room = |encoder: &Encoder| encoder.size() + LONGEST_EVENT <= self.recording.buffer_bytes();
        if !self.encoder.as_ref().is_some_and(has_room) {
            self.hand_over();
            self.begin(time);
        }
        let Some(encoder) = &mut self.encoder else {
            self.chunk.lost += 1;
            self.totals.lost += 1;
            return;
        };
        encoder.add(time, event);
        self.chunk.events += 1;
        self.totals.events += 1;
    }

    /// Begins a buffer if one is free.
    fn begin(&mut self, base: u64) {
        if let Some(mut buffer) = self.recording.take_buffer() {
            buffer.clear();
            buffer.resize(CHUNK_HEADER, 0);
            self.encoder = Some(Encoder::after(buffer, base));
            self.chunk.base = base;
        }
    }

    /// Hands the buffer over to be written.
    fn hand_over(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            let empty = Chunk { thread: self.thread, ..Chunk::plain(ChunkKind::Events) };
            let chunk = std::mem::replace(&mut self.chunk, empty);
            self.recording.hand_over(chunk, encoder.into_bytes());
        }
    }
}

/// Guard during which a thread records, or pauses the recording of a run around it.
pub(crate) struct Traced {
    outer: Option<Recorder>,
    fiber: u32,
    descriptors: i64,
}

/// Begins to record on this thread under the given number. Without a recording, the thread records nothing until the
/// guard is dropped.
pub(crate) fn enter(recording: Option<(&Arc<Recording>, u32)>) -> Traced {
    let recorder = recording.map(|(recording, thread)| Recorder {
        recording: Arc::clone(recording),
        thread,
        encoder: None,
        chunk: Chunk { thread, ..Chunk::plain(ChunkKind::Events) },
        totals: Totals::default(),
        fibers: 0,
        scopes: 0,
        samples: [0; 3],
    });
    IS_ON.set(recorder.is_some());
    Traced { outer: RECORDER.replace(recorder), fiber: FIBER.replace(0), descriptors: DESCRIPTORS.replace(0) }
}

impl Drop for Traced {
    fn drop(&mut self) {
        FIBER.set(self.fiber);
        DESCRIPTORS.set(self.descriptors);
        let outer = self.outer.take();
        IS_ON.set(outer.is_some());
        if let Some(mut ended) = RECORDER.replace(outer) {
            let time = ended.recording.now();
            ended.hand_over();
            ended.recording.end_thread(ended.thread, time, &ended.totals);
        }
    }
}

/// Returns true if this thread records.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// Returns the time for events; 0 if nothing is recorded.
#[inline]
pub(crate) fn clock() -> u64 {
    if is_on() { read_clock() } else { 0 }
}

fn read_clock() -> u64 {
    RECORDER.with_borrow(|recorder| recorder.as_ref().map_or(0, |recorder| recorder.recording.now()))
}

/// Records an event at `time`.
#[inline]
pub(crate) fn record_at(time: u64, event: &Event<'_>) {
    if is_on() {
        write(time, event);
    }
}

/// Records an event now.
#[inline]
pub(crate) fn record(event: &Event<'_>) {
    if is_on() {
        write(read_clock(), event);
    }
}

fn write(time: u64, event: &Event<'_>) {
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            recorder.record(time, event);
        }
    });
}

/// Number of the fiber that this thread polls, or 0.
pub(crate) fn running_fiber() -> u32 {
    FIBER.get()
}

/// Guard during which a fiber is polled.
pub(crate) struct Running {
    outer: Option<u32>,
}

/// Sets the polled fiber until the guard is dropped.
#[inline]
pub(crate) fn run_fiber(fiber: u32) -> Running {
    Running { outer: (fiber != 0).then(|| FIBER.replace(fiber)) }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        if let Some(outer) = self.outer {
            FIBER.set(outer);
        }
    }
}

/// Records a new fiber and returns its number, or 0.
#[inline]
pub(crate) fn begin_fiber(scope: u32) -> u32 {
    if !is_on() {
        return 0;
    }
    let fiber = number(|recorder| &mut recorder.fibers);
    record(&Event::FiberBegan { fiber, scope });
    fiber
}

/// Records the end of a fiber.
#[inline]
pub(crate) fn end_fiber(fiber: u32) {
    if fiber != 0 {
        record(&Event::FiberEnded { fiber });
    }
}

/// A future recorded as a fiber, from creation until it ends or is dropped.
pub(crate) struct Branch {
    fiber: u32,
}

impl Branch {
    /// Records a fiber of this scope.
    pub(crate) fn of(scope: u32) -> Self {
        Self { fiber: begin_fiber(scope) }
    }

    /// Records nothing.
    pub(crate) fn untold() -> Self {
        Self { fiber: 0 }
    }

    /// Marks the fiber as polled.
    #[inline]
    pub(crate) fn run(&self) -> Running {
        run_fiber(self.fiber)
    }

    /// Records the end of the fiber.
    pub(crate) fn end(&mut self) {
        end_fiber(std::mem::take(&mut self.fiber));
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Names the running fiber in the recording, for example after the entry that it copies. Does nothing and allocates
/// nothing without a recording.
pub fn name_fiber(name: impl AsRef<[u8]>) {
    let fiber = if is_on() { running_fiber() } else { 0 };
    if fiber != 0 {
        record(&Event::FiberNamed { fiber, name: name.as_ref() });
    }
}

/// Guard of a recorded scope, dropped after everything in the scope.
pub(crate) struct Span {
    scope: u32,
}

/// Opens a scope.
#[inline]
pub(crate) fn open_scope(opener: Opener) -> Span {
    if !is_on() {
        return Span { scope: 0 };
    }
    let scope = number(|recorder| &mut recorder.scopes);
    record(&Event::ScopeOpened { scope, opener, fiber: running_fiber() });
    Span { scope }
}

impl Span {
    /// Number of the scope, or 0.
    pub(crate) fn scope(&self) -> u32 {
        self.scope
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if self.scope != 0 {
            record(&Event::ScopeEnded { scope: self.scope });
        }
    }
}

/// Records the cancellation of a scope.
pub(crate) fn cancel_scope(scope: u32) {
    if scope != 0 {
        record(&Event::ScopeCancelled { scope });
    }
}

/// Returns the next number, never 0.
fn number(of: fn(&mut Recorder) -> &mut u32) -> u32 {
    RECORDER.with_borrow_mut(|recorder| {
        recorder.as_mut().map_or(0, |recorder| {
            let last = of(recorder);
            *last = last.wrapping_add(1).max(1);
            *last
        })
    })
}

/// Samples the quantities that have changed.
pub(crate) fn sample(in_flight: usize, blocks: usize) {
    let descriptors = tell_descriptors();
    let values = [in_flight as u64, blocks as u64, descriptors];
    let time = read_clock();
    RECORDER.with_borrow_mut(|recorder| {
        let Some(recorder) = recorder else { return };
        let gauges = [Gauge::InFlight, Gauge::Blocks, Gauge::Descriptors];
        for (at, (gauge, value)) in gauges.into_iter().zip(values).enumerate() {
            if recorder.samples[at] != value {
                recorder.samples[at] = value;
                recorder.record(time, &Event::Sampled { gauge, value });
            }
        }
    });
}

/// Adds this thread's descriptors to the run's, and returns the number of open ones.
pub(crate) fn tell_descriptors() -> u64 {
    let more = DESCRIPTORS.take();
    let open = RECORDER.with_borrow(|recorder| {
        recorder.as_ref().map_or(0, |recorder| recorder.recording.add_descriptors(more))
    });
    u64::try_from(open).unwrap_or_default()
}

/// Counts an opened descriptor; returns true if it was counted.
#[inline]
pub(crate) fn descriptor_opened() -> bool {
    let is_told = is_on();
    if is_told {
        DESCRIPTORS.set(DESCRIPTORS.get() + 1);
    }
    is_told
}

/// Counts a closed descriptor.
#[inline]
pub(crate) fn descriptor_closed() {
    if is_on() {
        DESCRIPTORS.set(DESCRIPTORS.get() - 1);
    }
}
