//! What each thread does to record: whether it does at all is one plain look at its own memory, and nothing else is done
//! where it does not.
//!
//! A thread fills a buffer of its own and hands it over when it is full; where no other is free, what happens is counted
//! as lost until one is. Numbers of fibers and scopes are given out while a thread records, else they are 0, and what has
//! the number 0 is not told of.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::code::LONGEST_EVENT;
use super::file::{CHUNK_HEADER, Chunk, Kind};
use super::recording::{Recording, Totals};
use super::{Encoder, Event, Gauge, Opener};

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static FIBER: Cell<u32> = const { Cell::new(0) };
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
    /// Descriptors that this thread opened, less those that it closed, since it told of them last.
    static DESCRIPTORS: Cell<i64> = const { Cell::new(0) };
}

/// One thread's part of a recording.
struct Recorder {
    recording: Arc<Recording>,
    thread: u32,
    /// What is being filled; none where none was free.
    encoder: Option<Encoder>,
    chunk: Chunk,
    totals: Totals,
    fibers: u32,
    scopes: u32,
    /// What was sampled last.
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

    /// Begins a buffer, if there is one.
    fn begin(&mut self, base: u64) {
        if let Some(mut buffer) = self.recording.take_buffer() {
            buffer.clear();
            buffer.resize(CHUNK_HEADER, 0);
            self.encoder = Some(Encoder::after(buffer, base));
            self.chunk.base = base;
        }
    }

    /// Gives the buffer to be written.
    fn hand_over(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            let empty = Chunk { thread: self.thread, ..Chunk::plain(Kind::Events) };
            let chunk = std::mem::replace(&mut self.chunk, empty);
            self.recording.hand_over(chunk, encoder.into_bytes());
        }
    }
}

/// While a thread records; or, within a run that does, while it does not.
pub(crate) struct Traced {
    outer: Option<Recorder>,
    fiber: u32,
    descriptors: i64,
}

/// Begins to record on this thread, which has this number there; without a recording, it does not until the end of this.
pub(crate) fn enter(recording: Option<(&Arc<Recording>, u32)>) -> Traced {
    let recorder = recording.map(|(recording, thread)| Recorder {
        recording: Arc::clone(recording),
        thread,
        encoder: None,
        chunk: Chunk { thread, ..Chunk::plain(Kind::Events) },
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

/// Whether this thread records.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// The time that events are told with; 0 where nothing is recorded.
#[inline]
pub(crate) fn clock() -> u64 {
    if is_on() { read_clock() } else { 0 }
}

fn read_clock() -> u64 {
    RECORDER.with_borrow(|recorder| recorder.as_ref().map_or(0, |recorder| recorder.recording.now()))
}

/// Records what happened then.
#[inline]
pub(crate) fn record_at(time: u64, event: &Event<'_>) {
    if is_on() {
        write(time, event);
    }
}

/// Records what happens now.
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

/// The fiber that this thread polls; 0 if it is none, or has no number.
pub(crate) fn running_fiber() -> u32 {
    FIBER.get()
}

/// While a fiber is polled.
pub(crate) struct Running {
    outer: Option<u32>,
}

/// Says which fiber is polled until the end of this.
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

/// A new fiber's number, or 0.
#[inline]
pub(crate) fn begin_fiber(scope: u32) -> u32 {
    if !is_on() {
        return 0;
    }
    let fiber = number(|recorder| &mut recorder.fibers);
    record(&Event::FiberBegan { fiber, scope });
    fiber
}

/// A fiber has ended.
#[inline]
pub(crate) fn end_fiber(fiber: u32) {
    if fiber != 0 {
        record(&Event::FiberEnded { fiber });
    }
}

/// A future that is told of as a fiber, from the making of this until it ends, or is dropped before this.
pub(crate) struct Branch {
    fiber: u32,
}

impl Branch {
    /// Of this scope.
    pub(crate) fn of(scope: u32) -> Self {
        Self { fiber: begin_fiber(scope) }
    }

    /// Not told of.
    pub(crate) fn untold() -> Self {
        Self { fiber: 0 }
    }

    /// While it is polled.
    #[inline]
    pub(crate) fn run(&self) -> Running {
        run_fiber(self.fiber)
    }

    /// It has ended.
    pub(crate) fn end(&mut self) {
        end_fiber(std::mem::take(&mut self.fiber));
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Names the running fiber in a recording, as with the entry that it copies. Nothing is done, and nothing allocated, where
/// none is made.
pub fn name_fiber(name: impl AsRef<[u8]>) {
    let fiber = if is_on() { running_fiber() } else { 0 };
    if fiber != 0 {
        record(&Event::FiberNamed { fiber, name: name.as_ref() });
    }
}

/// A scope that is told of, until the end of this. It is dropped after everything in it.
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
    /// Its number, or 0.
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

/// A scope was cancelled.
pub(crate) fn cancel_scope(scope: u32) {
    if scope != 0 {
        record(&Event::ScopeCancelled { scope });
    }
}

/// The next number of a kind; never 0.
fn number(of: fn(&mut Recorder) -> &mut u32) -> u32 {
    RECORDER.with_borrow_mut(|recorder| {
        recorder.as_mut().map_or(0, |recorder| {
            let last = of(recorder);
            *last = last.wrapping_add(1).max(1);
            *last
        })
    })
}

/// Samples what is in use, if it has changed; `descriptors` is told below.
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

/// Adds what this thread opened and closed to the run's; gives back what is open.
pub(crate) fn tell_descriptors() -> u64 {
    let more = DESCRIPTORS.take();
    let open = RECORDER.with_borrow(|recorder| {
        recorder.as_ref().map_or(0, |recorder| recorder.recording.add_descriptors(more))
    });
    u64::try_from(open).unwrap_or_default()
}

/// A descriptor was opened; says whether it is told of.
#[inline]
pub(crate) fn descriptor_opened() -> bool {
    let is_told = is_on();
    if is_told {
        DESCRIPTORS.set(DESCRIPTORS.get() + 1);
    }
    is_told
}

/// A descriptor was closed.
#[inline]
pub(crate) fn descriptor_closed() {
    if is_on() {
        DESCRIPTORS.set(DESCRIPTORS.get() - 1);
    }
}
