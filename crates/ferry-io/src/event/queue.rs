//! Buffers between the recording threads and the writing thread: free ones, and full ones in order.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::file::{Chunk, ChunkKind, Writer};

/// Buffers that the run's threads and the writing thread share.
#[derive(Default)]
pub(super) struct Queue {
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

    /// Returns an empty buffer, if one is free or may be made.
    pub(super) fn take_buffer(&self, most: usize, bytes: usize) -> Option<Vec<u8>> {
        let mut state = self.lock();
        if let Some(buffer) = state.free.pop() {
            return Some(buffer);
        }
        if state.made >= most {
            return None;
        }
        state.made += 1;
        drop(state);
        Some(Vec::with_capacity(bytes))
    }

    /// Hands over a full buffer.
    pub(super) fn hand_over(&self, chunk: Chunk, buffer: Vec<u8>) {
        self.lock().full.push_back((chunk, buffer));
        self.filled.notify_one();
    }

    /// Returns the next full buffer, or `None` after the last.
    pub(super) fn next(&self) -> Option<(Chunk, Vec<u8>)> {
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

    /// Ends the queue: no buffer follows.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.filled.notify_all();
    }
}

/// Outcome of the writing thread.
pub(super) struct Written {
    pub(super) writer: Writer,
    pub(super) failure: Option<io::Error>,
    /// Events of chunks that could not be written.
    pub(super) lost: Loss,
    /// Events of the last chunk that was written.
    pub(super) last: Loss,
}

/// Numbers of events, by side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Loss {
    pub(super) program: u64,
    pub(super) kernel: u64,
}

impl Loss {
    fn of(chunk: Chunk) -> Self {
        let events = u64::from(chunk.events);
        match chunk.kind {
            ChunkKind::Kernel => Self { program: 0, kernel: events },
            ChunkKind::Header | ChunkKind::Events | ChunkKind::KernelEnd | ChunkKind::End => {
                Self { program: events, kernel: 0 }
            }
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.program += more.program;
        self.kernel += more.kernel;
    }
}

/// Writes full buffers and frees them, until the queue ends.
pub(super) fn write_all(queue: &Queue, writer: Writer) -> Written {
    let (lost, last) = (Loss::default(), Loss::default());
    let mut written = Written { writer, failure: None, lost, last };
    while let Some((chunk, mut buffer)) = queue.next() {
        let events = Loss::of(chunk);
        if written.failure.is_none() {
            match written.writer.add(chunk, &mut buffer) {
                Ok(()) => written.last = events,
                Err(error) => written.failure = Some(error),
            }
        }
        if written.failure.is_some() {
            written.lost.add(events);
        }
        queue.lock().free.push(buffer);
    }
    written
}
