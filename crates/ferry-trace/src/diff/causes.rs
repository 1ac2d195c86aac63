//! Attributes the difference between the wall times of two runs to causes.

use std::cmp::Reverse;

use ferry_io::{Operation as Kind, Route};

use super::cell::{Cell, OF_KIND};
use super::profile::{Profile, Sums};
use super::sweep::{SHARED, State};

/// Cause of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Operations ran on another route.
    Route,
    /// Operations waited longer to be performed, or their results for the worker.
    HandOvers,
    /// Operations took longer on the same route, while their threads slept.
    DeviceWait,
    /// Threads ran longer, or were longer ready to run.
    ProcessorTime,
    /// The run performed more operations, or others.
    OtherOperations,
    /// Neither threads nor operations account for it.
    Unexplained,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 6] = [
        Self::Route,
        Self::HandOvers,
        Self::DeviceWait,
        Self::ProcessorTime,
        Self::OtherOperations,
        Self::Unexplained,
    ];

    /// Name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::HandOvers => "hand-overs",
            Self::DeviceWait => "device wait",
            Self::ProcessorTime => "processor time",
            Self::OtherOperations => "other operations",
            Self::Unexplained => "unexplained",
        }
    }
}

/// Causes of time in the states that are shared.
const OF_STATE: [Cause; SHARED] = [Cause::ProcessorTime, Cause::DeviceWait, Cause::HandOvers];

/// Part of the difference that has one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// Wall time in nanoseconds that it adds to B.
    pub difference: i64,
    /// Its parts, the largest first.
    pub contributions: Vec<Contribution>,
}

/// Part of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contribution {
    /// Its origin.
    pub subject: Subject,
    /// Wall time in nanoseconds that it adds to B.
    pub difference: i64,
}

/// Origin of a part of the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Operations of one kind on one route.
    Operations(Kind, Route),
    /// Operations of one kind that moved from one route to another.
    Moved(Kind, Route, Route),
    /// Operations of some kinds on one route in place of other kinds on another. These are the most frequent routes.
    Replaced(Route, Route),
    /// Time that leads to no operation, or operations of several kinds.
    Other,
}

/// Operations of one kind that ran on another route in B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Their kind.
    pub kind: Kind,
    /// Their route in A.
    pub before: Route,
    /// Their route in B.
    pub after: Route,
    /// Number of operations.
    pub operations: u64,
    /// Wall time in nanoseconds that the route adds to B.
    pub difference: i64,
}

/// One operation, as numbers of operations are counted here: moves are fractions of what a cell has.
const ONE: i128 = 1 << 20;
/// Most operations that take the place of one: a request that is split becomes at most as many.
const STEPS: i128 = 8;

/// Operations of kinds of which the other recording has fewer.
#[derive(Default)]
struct Excess {
    /// Wall time.
    time: i128,
    /// Number by route, in units of [`ONE`].
    by_route: [i128; Route::ALL.len()],
}

impl Excess {
    /// Adds `part` of `all` operations.
    fn add(&mut self, cells: &[(Cell, Sums)], (part, all): (i128, i128)) {
        for (cell, sums) in cells {
            self.time += share(sums.time(), part, all);
            self.by_route[cell.route as usize] += share(sums.count * ONE, part, all);
        }
    }

    fn count(&self) -> i128 {
        self.by_route.iter().sum()
    }

    fn main_route(&self) -> Route {
        Route::ALL.into_iter().max_by_key(|route| self.by_route[*route as usize]).unwrap_or(Route::Inline)
    }
}

/// Differences of two profiles, while they are found.
pub(super) struct Comparison<'p> {
    a: &'p Profile,
    b: &'p Profile,
    found: Vec<(Cause, Subject, i128)>,
    moves: Vec<(Kind, Route, Route, i128)>,
    only_a: Excess,
    only_b: Excess,
}

impl<'p> Comparison<'p> {
    pub(super) fn of(a: &'p Profile, b: &'p Profile) -> Self {
        let (found, moves) = (Vec::new(), Vec::new());
        let mut comparison =
            Self { a, b, found, moves, only_a: Excess::default(), only_b: Excess::default() };
        for kind in Kind::ALL {
            comparison.compare(kind);
        }
        comparison.compare_excess();
        for (cause, (a, b)) in OF_STATE.into_iter().zip(a.between.iter().zip(b.between)) {
            comparison.add(cause, Subject::Other, b - a);
        }
        comparison.charge_lost_overlap();
        comparison
    }

    /// Compares as many operations of a kind as both have.
    fn compare(&mut self, kind: Kind) {
        let cells = |profile: &Profile| Cell::of_kind(kind).map(|cell| (cell, profile.sums(cell)));
        let (in_a, in_b) = (cells(self.a), cells(self.b));
        let count = |cells: &[(Cell, Sums)]| cells.iter().map(|(_, sums)| sums.count).sum::<i128>();
        let (all_a, all_b) = (count(&in_a), count(&in_b));
        let both = all_a.min(all_b);
        self.only_a.add(&in_a, (all_a - both, all_a));
        self.only_b.add(&in_b, (all_b - both, all_b));
        let counts_a = in_a.map(|(_, sums)| share(sums.count * ONE, both, all_a));
        let counts_b = in_b.map(|(_, sums)| share(sums.count * ONE, both, all_b));
        let counts = counts_a.into_iter().zip(counts_b);
        for ((before, after), (count_a, count_b)) in in_a.into_iter().zip(in_b).zip(counts) {
            self.compare_moved(count_a.min(count_b), before, after);
        }
        let left: [i128; OF_KIND] = std::array::from_fn(|index| (counts_a[index] - counts_b[index]).max(0));
        let came: [i128; OF_KIND] = std::array::from_fn(|index| (counts_b[index] - counts_a[index]).max(0));
        let all: i128 = came.iter().sum();
        for (before, left) in in_a.into_iter().zip(left) {
            for (after, came) in in_b.into_iter().zip(came) {
                self.compare_moved(share(left, came, all), before, after);
            }
        }
    }

    /// Compares operations that belong to one cell in A and to the same one or another in B.
    fn compare_moved(&mut self, count: i128, (before, a): (Cell, Sums), (after, b): (Cell, Sums)) {
        if count == 0 {
            return;
        }
        let kind = before.kind;
        let has_moved = before.route != after.route;
        let mut by_route = 0;
        for (state, cause) in OF_STATE.into_iter().enumerate() {
            let time = |sums: &Sums| share(sums.times[state], count, sums.count * ONE);
            let difference = time(&b) - time(&a);
            // Data that is not in memory takes the device's time on any route.
            let is_device = state == State::Device as usize && (before.is_cold || after.is_cold);
            if has_moved && !is_device {
                by_route += difference;
            } else {
                self.add(cause, Subject::Operations(kind, after.route), difference);
            }
        }
        if has_moved {
            let (before, after) = (before.route, after.route);
            self.add(Cause::Route, Subject::Moved(kind, before, after), by_route);
            match self.moves.iter_mut().find(|its| (its.0, its.1, its.2) == (kind, before, after)) {
                Some(its) => its.3 += count,
                None => self.moves.push((kind, before, after, count)),
            }
        }
    }

    /// Compares operations that only one recording has. As far as those of A and B replace each other, their routes
    /// differ, or the work does.
    fn compare_excess(&mut self) {
        let (a, b) = (&self.only_a, &self.only_b);
        let (count_a, count_b) = (a.count(), b.count());
        let replaced_a = share(a.time, count_a.min(STEPS * count_b), count_a);
        let replaced_b = share(b.time, count_b.min(STEPS * count_a), count_b);
        let same: i128 = a
            .by_route
            .iter()
            .zip(b.by_route)
            .map(|(of_a, of_b)| share(ONE, *of_a, count_a).min(share(ONE, of_b, count_b)))
            .sum();
        let by_route = share(replaced_b - replaced_a, ONE - same, ONE);
        let all = b.time - a.time;
        let subject = Subject::Replaced(a.main_route(), b.main_route());
        self.add(Cause::Route, subject, by_route);
        self.add(Cause::OtherOperations, Subject::Other, all - by_route);
    }

    /// Moves device time that has grown because fewer operations were performed at once, after they waited.
    fn charge_lost_overlap(&mut self) {
        let device: i128 = self.total(Cause::DeviceWait);
        let lost = if device > 0 {
            lost_overlap(self.a, self.b).min(device)
        } else {
            -lost_overlap(self.b, self.a).min(-device)
        };
        let its = self.found.iter().filter(|(cause, ..)| *cause == Cause::DeviceWait);
        let its: Vec<(Subject, i128)> =
            its.map(|&(_, subject, difference)| (subject, share(difference, lost, device))).collect();
        for (subject, difference) in its {
            self.add(Cause::DeviceWait, subject, -difference);
            self.add(Cause::HandOvers, subject, difference);
        }
    }

    fn add(&mut self, cause: Cause, subject: Subject, difference: i128) {
        match self.found.iter_mut().find(|its| (its.0, its.1) == (cause, subject)) {
            Some(its) => its.2 += difference,
            None if difference != 0 => self.found.push((cause, subject, difference)),
            None => {}
        }
    }

    fn total(&self, cause: Cause) -> i128 {
        let its = self.found.iter().filter(|its| its.0 == cause);
        its.map(|its| its.2).sum()
    }

    /// Returns all causes and moves. What no cause accounts for is unexplained.
    pub(super) fn finish(self) -> (Vec<Part>, Vec<Move>) {
        let all = i128::from(self.b.took) - i128::from(self.a.took);
        let known: i128 = self.found.iter().map(|its| its.2).sum();
        let mut parts: Vec<Part> = Cause::ALL
            .into_iter()
            .map(|cause| {
                let total = if cause == Cause::Unexplained { all - known } else { self.total(cause) };
                Part { cause, difference: nanos(total), contributions: self.contributions(cause) }
            })
            .collect();
        parts.sort_by_key(|part| (part.cause == Cause::Unexplained, Reverse(part.difference.unsigned_abs())));
        let mut moves: Vec<Move> = self
            .moves
            .iter()
            .map(|&(kind, before, after, count)| {
                let subject = Subject::Moved(kind, before, after);
                let its = self.found.iter().find(|its| (its.0, its.1) == (Cause::Route, subject));
                let operations = u64::try_from((count + ONE / 2) / ONE).unwrap_or(u64::MAX);
                Move { kind, before, after, operations, difference: nanos(its.map_or(0, |its| its.2)) }
            })
            .filter(|its| its.operations > 0)
            .collect();
        moves.sort_by_key(|its| Reverse(its.difference.unsigned_abs()));
        (parts, moves)
    }

    fn contributions(&self, cause: Cause) -> Vec<Contribution> {
        let its = self.found.iter().filter(|its| its.0 == cause && its.2 != 0);
        let its =
            its.map(|&(_, subject, difference)| Contribution { subject, difference: nanos(difference) });
        let mut its: Vec<Contribution> = its.collect();
        its.sort_by_key(|its| Reverse(its.difference.unsigned_abs()));
        its
    }
}

/// Wall time that B needs at the device because it performs fewer operations at once than A, as far as more of them
/// are late. A saturated device takes longer for each operation the more are performed at once, so B's longer times are
/// no cost of the overlap: those of A count.
fn lost_overlap(a: &Profile, b: &Profile) -> i128 {
    let [in_a, in_b] = [a, b].map(|profile| i128::from(profile.states[State::Device as usize]));
    let with_overlap_of_a = b.at_device.saturating_mul(in_a).checked_div(a.at_device).unwrap_or(in_b);
    let lost = in_b - with_overlap_of_a;
    let [times_a, times_b] =
        [a.performed.saturating_mul(b.operations.into()), b.performed.saturating_mul(a.operations.into())];
    share(lost, times_a.min(times_b), times_b).min(b.late - a.late).max(0)
}

/// Returns `part` of `all` of a quantity; 0 of nothing.
fn share(of: i128, part: i128, all: i128) -> i128 {
    of.saturating_mul(part).checked_div(all).unwrap_or(0)
}

fn nanos(difference: i128) -> i64 {
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
