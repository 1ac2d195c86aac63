//! Lines of events on their way from a run to Python. The queue is bounded: a reader that is slow holds the run back, and
//! so does one that never reads, until the run is stopped or its result is asked for.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most lines in a queue.
const MOST: usize = 4096;

/// Lines and their end.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// Set if lines are dropped, because nobody will read them.
    is_closed: bool,
    is_over: bool,
}

impl Queue {
    /// Adds a line, once there is room.
    fn put(&self, line: Vec<u8>) {
        let mut state = self.lock();
        while state.lines.len() >= MOST && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_closed {
            state.lines.push_back(line);
            self.changed.notify_all();
        }
    }

    /// Takes all lines, after waiting for the first or the end. Returns `None` once there will be no more.
    pub(crate) fn take(&self, timeout: Duration) -> Option<Vec<Vec<u8>>> {
        let is_waiting = |state: &mut State| state.lines.is_empty() && !state.is_over;
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, is_waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<_> = state.lines.drain(..).collect();
        let is_end = lines.is_empty() && state.is_over;
        drop(state);
        self.changed.notify_all();
        (!is_end).then_some(lines)
    }

    /// Drops all lines from now on, so that the run never waits for a reader.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.lines.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Notes that the run is over.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Waits until the run is over, and returns true if it is.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !state.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts each line that is written into a queue; a write holds one whole line.
pub(crate) struct Lines(pub(crate) Arc<Queue>);

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
