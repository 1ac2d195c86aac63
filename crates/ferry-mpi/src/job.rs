//! A job on rank 0: answers the ranks, and keeps the journal of a copy.

use std::time::{Duration, Instant};

use ferry_cluster::{Coordinator, Line, Stop, ToCoordinator, Totals};

use crate::failures::complain;
use crate::journal::{Journal, Unwritten};
use crate::note::{Notes, Sent};
use crate::performer::{Performer, Said};
use crate::setup::Setup;
use crate::talk::PAUSE;
use crate::wire::Wire;

/// Time that ranks have to end after a stop. A rank that was killed never answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time that the last notes of ranks may take.
const LAST_NOTES: Duration = Duration::from_secs(5);

/// A job under way.
pub(crate) struct Job<'a> {
    wire: &'a mut Wire,
    performer: Performer,
    coordinator: Coordinator,
    /// `None` if nothing has to survive the job.
    journal: Option<Journal>,
    notes: Notes,
    /// Receiver of the messages in reports.
    hear: &'a mut dyn FnMut(String),
    /// Time of the stop.
    stopped: Option<Instant>,
}

/// The end of a job.
pub(crate) struct Ended {
    pub(crate) totals: Totals,
    /// The reason to end before everything was done.
    pub(crate) stopped: Option<Stop>,
    pub(crate) journal: Option<Journal>,
    pub(crate) notes: Notes,
}

impl<'a> Job<'a> {
    /// Tells the job to all ranks.
    pub(crate) fn start(
        wire: &'a mut Wire,
        setup: Setup,
        coordinator: Coordinator,
        (journal, mut notes): (Option<Journal>, Notes),
        hear: &'a mut dyn FnMut(String),
    ) -> Self {
        wire.send_setup(Some(&setup));
        if setup.is_recorded {
            notes.begin_tracks(wire.compare_clocks());
        }
        let performer = Performer::start(setup, wire.workers());
        Self { wire, performer, coordinator, journal, notes, hear, stopped: None }
    }

    /// Answers the ranks until all have ended. `tick` is called often, and may stop the job.
    pub(crate) fn run(mut self, mut tick: impl FnMut(&Coordinator) -> Option<Stop>) -> Ended {
        self.send();
        loop {
            let mut is_quiet = true;
            for (rank, message) in self.wire.receive() {
                is_quiet = false;
                match serde_json::from_slice(&message) {
                    Ok(message) => self.receive(rank, message),
                    Err(error) => self.fail(&format!("a message of rank {rank}: {error}"), Stop::Failed),
                }
            }
            let is_ended = match self.performer.next() {
                Said::Message(message) => {
                    is_quiet = false;
                    self.receive(0, message);
                    false
                }
                Said::Nothing => false,
                Said::Ended => true,
            };
            if is_ended && self.coordinator.is_over() {
                return self.end();
            }
            if self.stopped.is_some_and(|since| since.elapsed() > PATIENCE) {
                complain("some ranks have not ended");
                return self.end();
            }
            if let Some(stop) = tick(&self.coordinator) {
                self.stop(stop);
            }
            if is_quiet {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn receive(&mut self, rank: u32, sent: Sent) {
        match sent {
            Sent::Work(message) => self.take(rank, message),
            Sent::Note(note) => self.notes.take(rank, *note),
        }
    }

    fn take(&mut self, rank: u32, mut message: ToCoordinator) {
        let messages = match &mut message {
            // The journal keeps those of a copy.
            ToCoordinator::Report(report) if self.journal.is_some() => report.failures.clone(),
            ToCoordinator::Report(report) => std::mem::take(&mut report.failures),
            ToCoordinator::Stopped(_, messages) => std::mem::take(messages),
            ToCoordinator::Want => Vec::new(),
        };
        messages.into_iter().for_each(&mut *self.hear);
        match (self.coordinator.take(rank, message), &mut self.journal) {
            // The journal of a job that is complete is removed: the last record has no use.
            (Ok(Some(record)), Some(journal)) if !self.coordinator.is_complete() => {
                let added = journal.add(&Line::Record(Box::new(record)));
                if journal.is_broken() {
                    // Nothing that depends on the record is sent.
                    drop(self.coordinator.sends());
                }
                if let Err(Unwritten { why, is_full }) = added {
                    self.fail(&why, if is_full { Stop::NoSpace } else { Stop::Failed });
                }
            }
            (Ok(_), _) => {}
            (Err(error), _) => self.fail(&format!("rank {rank}: {error}"), Stop::Failed),
        }
        if self.coordinator.stopped().is_some() && self.stopped.is_none() {
            self.stopped = Some(Instant::now());
        }
        self.send();
    }

    fn fail(&mut self, why: &str, stop: Stop) {
        complain(why);
        self.stop(stop);
    }

    fn stop(&mut self, stop: Stop) {
        self.coordinator.stop(stop);
        self.stopped.get_or_insert_with(Instant::now);
        self.send();
    }

    fn send(&mut self) {
        for (rank, message) in self.coordinator.sends() {
            if rank == 0 {
                self.performer.pass(message);
            } else {
                self.wire.send_json(rank, &message);
            }
        }
    }

    fn end(mut self) -> Ended {
        let since = Instant::now();
        // The last spans come after everything is done.
        while self.notes.awaits_ranks() && since.elapsed() < LAST_NOTES {
            for (rank, message) in self.wire.receive() {
                if let Ok(Sent::Note(note)) = serde_json::from_slice(&message) {
                    self.notes.take(rank, *note);
                }
            }
            std::thread::sleep(PAUSE);
        }
        let Self { coordinator, journal, notes, .. } = self;
        Ended { totals: coordinator.totals(), stopped: coordinator.stopped(), journal, notes }
    }
}
