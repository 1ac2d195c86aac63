//! Finds sleeps whose end the kernel did not sample.

use std::collections::HashMap;

use super::{Event, SampleKind};

/// Longest time in nanoseconds from a wake-up of a thread that is about to sleep to its leaving the processor.
const LEAVING: u64 = 100_000;

/// Sleeping threads, from the events so far.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    /// True for a thread that was woken right before its sleep, which may have ended it.
    asleep: HashMap<u32, bool>,
    /// Time of the last wake-up of each awake thread.
    woken: HashMap<u32, u64>,
    pub(super) begun: u64,
    /// Number of sleeps without a known end.
    pub(super) unseen: u64,
}

impl Sleeps {
    /// Returns true if the event, the next in order of time, is passed on. [`SampleKind::Run`] is dropped after a known
    /// wake-up.
    pub(super) fn is_told(&mut self, event: &Event) -> bool {
        match event.what {
            SampleKind::Sleep => {
                self.begun += 1;
                let woken = self.woken.remove(&event.tid);
                let is_just_woken = woken.is_some_and(|at| event.at.saturating_sub(at) <= LEAVING);
                self.asleep.insert(event.tid, is_just_woken);
            }
            SampleKind::Wake { woken, .. } => {
                if self.asleep.remove(&woken).is_none() {
                    self.woken.insert(woken, event.at);
                }
            }
            SampleKind::Ended => {
                self.asleep.remove(&event.tid);
                self.woken.remove(&event.tid);
            }
            SampleKind::Run => {
                self.woken.remove(&event.tid);
                let asleep = self.asleep.remove(&event.tid);
                self.unseen += u64::from(asleep == Some(false));
                return asleep.is_some();
            }
            SampleKind::Began { .. }
            | SampleKind::Named(_)
            | SampleKind::TaskWork { .. }
            | SampleKind::TaskAdd { .. }
            | SampleKind::Submit { .. }
            | SampleKind::HandOver { .. }
            | SampleKind::Complete { .. }
            | SampleKind::Enter { .. }
            | SampleKind::Leave { .. }
            | SampleKind::DeviceIssue { .. }
            | SampleKind::DeviceComplete { .. } => {}
        }
        true
    }
}
