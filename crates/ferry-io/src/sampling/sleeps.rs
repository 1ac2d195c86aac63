//! Sleeps whose ends the kernel gave no sample of.

use std::collections::HashSet;

use super::{Event, What};

/// Who sleeps, as far as the events so far tell.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    asleep: HashSet<u32>,
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
                self.asleep.insert(event.tid);
            }
            What::Wake { woken, .. } => drop(self.asleep.remove(&woken)),
            What::Ended => drop(self.asleep.remove(&event.tid)),
            What::Run => {
                let is_unseen = self.asleep.remove(&event.tid);
                self.unseen += u64::from(is_unseen);
                return is_unseen;
            }
            What::Began { .. }
            | What::Named(_)
            | What::TaskWork { .. }
            | What::TaskAdd { .. }
            | What::Submit { .. }
            | What::HandOver { .. }
            | What::Complete { .. }
            | What::Wait { .. }
            | What::Enter { .. }
            | What::Leave { .. } => {}
        }
        true
    }
}
