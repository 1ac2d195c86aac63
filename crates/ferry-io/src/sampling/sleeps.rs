//! Sleeps whose ends the kernel gave no sample of.

use std::collections::HashMap;

use super::{Event, What};

/// Who is woken while it is about to leave its processor has left it by so many nanoseconds later.
const LEAVING: u64 = 100_000;

/// Who sleeps, as far as the events so far tell.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    /// Whether a wake-up came right before the sleep, and may be its end.
    asleep: HashMap<u32, bool>,
    /// When who was awake was woken.
    woken: HashMap<u32, u64>,
    pub(super) begun: u64,
    /// Of those the sleeps that nobody was seen to end.
    pub(super) unseen: u64,
}

impl Sleeps {
    /// Whether the event is told, which is the next in order of time: that a thread runs again is known if it was woken.
    pub(super) fn is_told(&mut self, event: &Event) -> bool {
        match event.what {
            What::Sleep => {
                self.begun += 1;
                let woken = self.woken.remove(&event.tid);
                let is_just_woken = woken.is_some_and(|at| event.at.saturating_sub(at) <= LEAVING);
                self.asleep.insert(event.tid, is_just_woken);
            }
            What::Wake { woken, .. } => {
                if self.asleep.remove(&woken).is_none() {
                    self.woken.insert(woken, event.at);
                }
            }
            What::Ended => {
                self.asleep.remove(&event.tid);
                self.woken.remove(&event.tid);
            }
            What::Run => {
                self.woken.remove(&event.tid);
                let asleep = self.asleep.remove(&event.tid);
                self.unseen += u64::from(asleep == Some(false));
                return asleep.is_some();
            }
            What::Began { .. }
            | What::Named(_)
            | What::TaskWork { .. }
            | What::TaskAdd { .. }
            | What::Submit { .. }
            | What::HandOver { .. }
            | What::Complete { .. }
            | What::Enter { .. }
            | What::Leave { .. } => {}
        }
        true
    }
}
