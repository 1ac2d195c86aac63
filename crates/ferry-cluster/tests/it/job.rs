//! A job: a coordinator, ranks, and messages that arrive in order from each sender, but in any order otherwise.

use std::collections::{BTreeSet, VecDeque};

use ferry_cluster::{Coordinator, Line, Load, Settings, Text, ToCoordinator, Totals, parse_line, write_line};
use ferry_tree::fill::SplitMix64;

use crate::model::{Copied, Model};
use crate::rank::Rank;

/// Steps after which a job counts as stuck.
const MOST: u64 = 2_000_000;

/// The end of a job.
#[derive(Debug)]
pub(crate) enum Ended {
    Complete(Totals),
    /// With the paths that the leases had changed which were being performed.
    Killed(BTreeSet<Text>),
}

/// Runs a job until it is complete, or killed after some steps. The journal has whole lines, and perhaps a part of one.
pub(crate) fn run(
    model: &Model,
    copied: &mut Copied,
    journal: &mut Vec<u8>,
    settings: Settings,
    (ranks, seed, fails): (u32, u64, u64),
    (is_resumed, kill_after): (bool, Option<u64>),
) -> Ended {
    let mut random = SplitMix64::new(seed);
    let mut coordinator = Coordinator::new(settings, ranks);
    let mut whole = 0;
    for line in journal.clone().split_inclusive(|&byte| byte == b'\n') {
        let Ok(line_read) = parse_line(line) else { break };
        coordinator.replay(&line_read).unwrap();
        whole += line.len();
    }
    journal.truncate(whole);
    if is_resumed {
        coordinator.replay(&Line::Resumed).unwrap();
        journal.extend(write_line(&Line::Resumed).unwrap());
    }
    coordinator.begin();
    let mut seats: Vec<Rank> = (0..ranks).map(|_| Rank::new(settings, is_resumed, fails)).collect();
    let mut to_coordinator: Vec<VecDeque<ToCoordinator>> = vec![VecDeque::new(); seats.len()];
    for step in 0..MOST {
        for (rank, message) in coordinator.sends() {
            seats[rank as usize].inbox.push_back(message);
        }
        if coordinator.is_complete() && seats.iter().all(|rank| rank.is_over) {
            if !is_resumed && fails == 0 {
                // A name that is found again keeps its file's entry.
                assert_eq!(coordinator.load(), Load::default(), "something is kept of what is done");
            }
            return Ended::Complete(coordinator.totals());
        }
        if kill_after == Some(step) {
            if random.percent(30) {
                journal.extend(b"0123456789abcdef {\"Record\":");
            }
            return Ended::Killed(seats.into_iter().flat_map(|rank| rank.unreported).collect());
        }
        let at = random.index(seats.len());
        if random.percent(50) {
            let sent = seats[at].step(model, copied, &mut random);
            to_coordinator[at].extend(sent);
        } else if let Some(message) = to_coordinator[at].pop_front() {
            let rank = u32::try_from(at).unwrap();
            if let Some(record) = coordinator.take(rank, message).unwrap() {
                journal.extend(write_line(&Line::Record(Box::new(record))).unwrap());
            }
        }
    }
    panic!("the job is stuck: {:?}", coordinator.load());
}
