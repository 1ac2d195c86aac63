//! Leases that a rank holds: the one that it performs, and one more, so that it never runs dry.
//!
//! A rank goes on after a report only once the journal has it. Otherwise a kill could cost two leases of one rank.

use std::collections::VecDeque;

use crate::message::{Grant, Outcome, Report, Stop, ToCoordinator, ToRank, Totals};

/// Leases of one rank, the one being performed among them.
const HELD: usize = 2;

/// The next step of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Perform this lease.
    Perform(Grant),
    /// Wait for a message.
    Wait,
    /// End: the job is complete.
    End,
    /// End: the job has been stopped.
    Stop(Stop),
}

/// State of one rank between messages.
#[derive(Debug, Default)]
pub struct Leases {
    waiting: VecDeque<Grant>,
    is_performing: bool,
    /// Number of leases asked for and not granted yet.
    asked: usize,
    /// Number of idle ranks, until the performer takes it.
    idle: u32,
    /// The lease whose last report may not be in the journal yet.
    reported: Option<u64>,
    is_ended: bool,
    stop: Option<Stop>,
}

impl Leases {
    /// Takes a message. Returns the answers to it.
    pub fn take(&mut self, message: ToRank) -> Vec<ToCoordinator> {
        match message {
            ToRank::Grant(grant) => {
                self.asked = self.asked.saturating_sub(1);
                self.waiting.push_back(grant);
                Vec::new()
            }
            ToRank::Taken(lease) => {
                self.reported = self.reported.filter(|&reported| reported != lease);
                Vec::new()
            }
            ToRank::Split(idle) if self.is_performing => {
                self.idle = idle;
                self.waiting.drain(..).map(untouched).collect()
            }
            // It is about to begin a lease: one to begin stays.
            ToRank::Split(idle) => {
                self.idle = if self.waiting.is_empty() { 0 } else { idle };
                self.waiting.drain(1.min(self.waiting.len())..).map(untouched).collect()
            }
            ToRank::Stop(stop) => {
                self.stop = Some(stop);
                Vec::new()
            }
            ToRank::End => {
                self.is_ended = true;
                Vec::new()
            }
        }
    }

    /// Returns the requests to be sent now.
    pub fn asks(&mut self) -> Vec<ToCoordinator> {
        if self.is_ended || self.stop.is_some() {
            return Vec::new();
        }
        let held = self.waiting.len() + usize::from(self.is_performing) + self.asked;
        let more = HELD.saturating_sub(held);
        self.asked += more;
        vec![ToCoordinator::Want; more]
    }

    /// Returns the next step of a rank that performs no lease.
    pub fn next_step(&mut self) -> Next {
        if let Some(stop) = self.stop {
            return Next::Stop(stop);
        }
        if self.reported.is_some() {
            return Next::Wait;
        }
        if let Some(grant) = self.waiting.pop_front() {
            self.is_performing = true;
            return Next::Perform(grant);
        }
        if self.is_ended { Next::End } else { Next::Wait }
    }

    /// Returns the number of idle ranks, once for each message about them.
    pub fn take_idle(&mut self) -> u32 {
        std::mem::take(&mut self.idle)
    }

    /// Returns the reason to end at once, if there is one.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// Notes a report on the lease being performed, which may be its last.
    pub fn report(&mut self, lease: u64, ended: bool) {
        self.reported = Some(lease);
        if ended {
            self.is_performing = false;
            self.idle = 0;
        }
    }

    /// Returns true while the last report may not be in the journal.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.reported.is_some()
    }
}

/// Gives back a lease that was not begun.
fn untouched(grant: Grant) -> ToCoordinator {
    ToCoordinator::Report(Box::new(Report {
        lease: grant.lease,
        ended: true,
        outcomes: vec![Outcome::Untouched; grant.works.len()],
        folders: Vec::new(),
        made: Vec::new(),
        files: Vec::new(),
        large: Vec::new(),
        linked: Vec::new(),
        totals: Totals::default(),
        failures: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(lease: u64) -> ToRank {
        ToRank::Grant(Grant { lease, works: Vec::new() })
    }

    #[test]
    fn a_rank_asks_for_the_next_lease_before_it_runs_dry() {
        let mut leases = Leases::default();
        assert_eq!(leases.asks().len(), 2);
        assert_eq!(leases.asks(), [], "asked for already");
        assert_eq!(leases.next_step(), Next::Wait);
        assert_eq!(leases.take(grant(1)), []);
        assert!(matches!(leases.next_step(), Next::Perform(grant) if grant.lease == 1));
        assert_eq!(leases.asks(), [], "one is performed, and one was asked for");
        leases.report(1, true);
        assert_eq!(leases.asks().len(), 1);
    }

    #[test]
    fn a_rank_begins_nothing_before_its_report_is_in_the_journal() {
        let mut leases = Leases::default();
        leases.take(grant(1));
        leases.take(grant(2));
        leases.next_step();
        leases.report(1, true);
        assert_eq!(leases.next_step(), Next::Wait);
        leases.take(ToRank::Taken(2));
        assert_eq!(leases.next_step(), Next::Wait, "that was another report");
        leases.take(ToRank::Taken(1));
        assert!(matches!(leases.next_step(), Next::Perform(grant) if grant.lease == 2));
    }

    #[test]
    fn a_split_gives_back_what_is_not_begun() {
        let mut leases = Leases::default();
        leases.take(grant(1));
        leases.next_step();
        leases.take(grant(2));
        let given = leases.take(ToRank::Split(3));
        assert!(matches!(&given[..], [ToCoordinator::Report(report)] if report.lease == 2 && report.ended));
        assert_eq!(leases.take_idle(), 3);
        assert_eq!(leases.take_idle(), 0, "it is answered once");
    }

    #[test]
    fn a_split_leaves_a_rank_the_lease_that_it_is_about_to_begin() {
        let mut leases = Leases::default();
        leases.take(grant(1));
        leases.take(grant(2));
        assert_eq!(leases.take(ToRank::Split(3)).len(), 1);
        assert!(matches!(leases.next_step(), Next::Perform(grant) if grant.lease == 1));
    }

    #[test]
    fn a_stop_comes_before_leases_that_wait() {
        let mut leases = Leases::default();
        leases.take(grant(1));
        leases.take(ToRank::Stop(Stop::NoSpace));
        assert_eq!(leases.next_step(), Next::Stop(Stop::NoSpace));
        assert_eq!(leases.asks(), []);
    }
}
