//! Divides wall time into states that exclude each other, and shares each among those that are in it.

use std::ops::Range;

use crate::model::Nanos;

/// State of a run at one moment. The first one that applies counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A thread of the program runs, or is ready to run.
    Processor,
    /// An operation is performed, and its thread sleeps.
    Device,
    /// An operation waits to be performed, or its result waits for the worker.
    HandOver,
    /// None of these.
    Nothing,
}

impl State {
    /// All states in the order in which they apply.
    pub const ALL: [Self; 4] = [Self::Processor, Self::Device, Self::HandOver, Self::Nothing];

    /// Name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Device => "device",
            Self::HandOver => "hand-over",
            Self::Nothing => "nothing",
        }
    }
}

/// Number of states that are shared: all but [`State::Nothing`].
pub(super) const SHARED: usize = State::ALL.len() - 1;

/// Bits of a share behind the point.
const FRACTION: u32 = 32;

/// A period in which a holder, given by its number, is in a state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
    pub(super) state: State,
    pub(super) holder: usize,
    /// Set in [`State::Device`] if the operation would be completed by then if it had been performed at once.
    pub(super) is_late: bool,
}

/// Divided wall time, in nanoseconds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Wall time in each state.
    pub(super) states: [Nanos; State::ALL.len()],
    /// Each holder's part of that time.
    pub(super) holders: Vec<[i128; SHARED]>,
    /// Time in [`State::Device`] multiplied by the number of operations that were performed.
    pub(super) at_device: i128,
    /// Part of [`State::Device`] that belongs to late intervals.
    pub(super) late: i128,
}

/// Divides a period among `holders` holders.
pub(super) fn sweep(intervals: &[Interval], period: &Range<Nanos>, holders: usize) -> Shares {
    let mut sweep = Sweep::default();
    let mut shares = vec![[0_u128; SHARED]; holders];
    // Level of its state at which each interval began.
    let mut since = vec![0_u128; intervals.len()];
    let mut last = period.start;
    for (at, begins, index) in edges(intervals, period) {
        sweep.pass(at - last);
        last = at;
        let Interval { state, holder, is_late, .. } = intervals[index];
        let state = state as usize;
        if state >= SHARED {
            continue;
        }
        if begins {
            sweep.active[state] += 1;
            sweep.are_late += u128::from(is_late);
            since[index] = sweep.levels[state];
        } else {
            sweep.active[state] -= 1;
            sweep.are_late -= u128::from(is_late);
            shares[holder][state] += sweep.levels[state] - since[index];
        }
    }
    sweep.pass(period.end.saturating_sub(last));
    Shares {
        states: sweep.states,
        holders: shares.into_iter().map(|share| share.map(nanos)).collect(),
        at_device: i128::try_from(sweep.at_device).unwrap_or(i128::MAX),
        late: nanos(sweep.late),
    }
}

/// Beginnings and ends of intervals within the period, in order of time.
fn edges(intervals: &[Interval], period: &Range<Nanos>) -> Vec<(Nanos, bool, usize)> {
    let mut edges = Vec::with_capacity(intervals.len() * 2);
    for (index, interval) in intervals.iter().enumerate() {
        let (began, ended) = (interval.began.max(period.start), interval.ended.min(period.end));
        if began < ended {
            edges.extend([(began, true, index), (ended, false, index)]);
        }
    }
    edges.sort_unstable();
    edges
}

fn nanos(share: u128) -> i128 {
    i128::try_from(share >> FRACTION).unwrap_or(i128::MAX)
}

/// Shares have [`FRACTION`] bits behind the point.
#[derive(Default)]
struct Sweep {
    /// Number of intervals in each state.
    active: [u128; SHARED],
    /// Number of late ones among them.
    are_late: u128,
    /// Share of each state that an interval would have if it had always been in it.
    levels: [u128; SHARED],
    states: [Nanos; State::ALL.len()],
    at_device: u128,
    late: u128,
}

impl Sweep {
    /// Time passes without a change.
    fn pass(&mut self, took: Nanos) {
        let first = self.active.iter().position(|&count| count > 0);
        self.states[first.unwrap_or(SHARED)] += took;
        let Some(state) = first else { return };
        let took = u128::from(took);
        self.levels[state] += (took << FRACTION) / self.active[state];
        if state == State::Device as usize {
            let performed = self.active[state];
            self.at_device = self.at_device.saturating_add(took * performed);
            self.late += (took << FRACTION) * self.are_late / performed;
        }
    }
}
