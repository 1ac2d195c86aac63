//! A run's wall time by state, and by cell.

use std::ops::Range;

use ferry_io::{Operation as Kind, Route};

use super::cell::{CELLS, Cell};
use super::sweep::{Interval, SHARED, Shares, State, sweep};
use super::threads::{Arrival, Basis, Span, awake, divide, seems_to_block};
use crate::Trace;
use crate::model::{Did, Nanos, Operation, Role, ScopeKind};

/// Holder of time that leads to no operation.
const BETWEEN: usize = CELLS;
/// Holder of the time of kernel workers.
const KERNEL: usize = CELLS + 1;
const HOLDERS: usize = CELLS + 2;

/// Operations that another thread, or the kernel, was to perform.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// Number handed to the pool.
    pub to_pool: u64,
    /// Number handed to a ring.
    pub to_ring: u64,
    /// Number of a ring's requests that the kernel handed to its workers.
    pub to_kernel_workers: u64,
    /// Sum of the times from request to begin: of the pool's call, or of the ring's submission.
    pub until_begun: Nanos,
    /// Sum of the times from completion until the worker took the result.
    pub until_taken: Nanos,
}

impl HandedOver {
    /// Mean times until operations began, and until results were taken; `None` without operations.
    #[must_use]
    pub fn means(&self) -> Option<(Nanos, Nanos)> {
        let count = self.to_pool.saturating_add(self.to_ring);
        Some((self.until_begun.checked_div(count)?, self.until_taken.checked_div(count)?))
    }
}

/// Operations of one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) count: i128,
    /// Wall time in nanoseconds by [`State`].
    pub(super) times: [i128; SHARED],
}

impl Sums {
    pub(super) fn time(&self) -> i128 {
        self.times.iter().sum()
    }
}

/// Wall time of a run.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) took: Nanos,
    pub(super) states: [Nanos; State::ALL.len()],
    pub(super) operations: u64,
    pub(super) handed_over: HandedOver,
    /// Wall time that belongs to no operation.
    pub(super) between: [i128; SHARED],
    /// As in [`Shares`].
    pub(super) at_device: i128,
    pub(super) late: i128,
    /// Sum of the times in which operations were performed, in any state.
    pub(super) performed: i128,
    sums: Vec<Sums>,
}

impl Profile {
    pub(super) fn of(trace: &Trace, basis: Basis) -> Self {
        let period = period(trace);
        let mut made = Making::new(trace, basis);
        for operation in &trace.operations {
            made.add(operation);
        }
        if trace.operations.is_empty() {
            made.add_requests(&period);
        }
        let Making { mut intervals, mut led, counts, performed, handed_over, .. } = made;
        for ((spans, led), thread) in awake(trace, basis, &period).iter().zip(&mut led).zip(&trace.threads) {
            led.sort_unstable();
            let last = if thread.role == Role::Kernel { KERNEL } else { BETWEEN };
            divide(spans, led, last, &mut intervals);
        }
        let Shares { states, holders, at_device, late } = sweep(&intervals, &period, HOLDERS);
        let sums = counts.iter().zip(&holders).map(|(&count, &times)| Sums { count, times }).collect();
        let mut profile = Self {
            took: period.end - period.start,
            states,
            operations: counts.iter().fold(0, |sum, &count| sum + u64::try_from(count).unwrap_or(0)),
            handed_over,
            between: holders[BETWEEN],
            at_device,
            late,
            performed,
            sums,
        };
        profile.charge_kernel_workers(&holders[KERNEL]);
        profile
    }

    pub(super) fn sums(&self, cell: Cell) -> Sums {
        self.sums[cell.index()]
    }

    /// Divides the time of kernel workers among the ring's operations, because a recording does not show which one a
    /// worker performs.
    fn charge_kernel_workers(&mut self, times: &[i128; SHARED]) {
        let cells = || Kind::ALL.into_iter().flat_map(Cell::of_kind).filter(|cell| cell.route == Route::Ring);
        let all: i128 = cells().map(|cell| self.sums(cell).count).sum();
        let mut left = *times;
        for cell in cells().filter(|_| all > 0) {
            let sums = &mut self.sums[cell.index()];
            for ((own, rest), time) in sums.times.iter_mut().zip(&mut left).zip(times) {
                let part = time * sums.count / all;
                *own += part;
                *rest -= part;
            }
        }
        self.between.iter_mut().zip(left).for_each(|(own, rest)| *own += rest);
    }
}

/// Time from the first worker's begin to the last worker's end; the whole recording of another program.
fn period(trace: &Trace) -> Range<Nanos> {
    let took = trace.about.took;
    let runs = || trace.scopes.iter().filter(|scope| scope.kind == ScopeKind::Run);
    let began = runs().map(|scope| scope.began).min();
    let ended = runs().map(|scope| scope.ended.unwrap_or(took)).max();
    match began.zip(ended) {
        Some((began, ended)) if began < ended => began..ended,
        Some(_) | None => 0..took,
    }
}

/// Intervals of a recording, while it is read.
struct Making<'t> {
    trace: &'t Trace,
    basis: Basis,
    intervals: Vec<Interval>,
    /// Arrivals of each thread at operations.
    led: Vec<Vec<Arrival>>,
    counts: Vec<i128>,
    performed: i128,
    handed_over: HandedOver,
}

impl<'t> Making<'t> {
    fn new(trace: &'t Trace, basis: Basis) -> Self {
        let by_request = trace.requests.iter().filter(|request| request.handed_over.is_some()).count();
        let by_event = trace.kernel.iter().filter(|event| matches!(event.did, Did::HandOver(_))).count();
        let to_kernel_workers = u64::try_from(by_request.max(by_event)).unwrap_or(u64::MAX);
        Self {
            trace,
            basis,
            intervals: Vec::new(),
            led: vec![Vec::new(); trace.threads.len()],
            counts: vec![0; CELLS],
            performed: 0,
            handed_over: HandedOver { to_kernel_workers, ..HandedOver::default() },
        }
    }

    fn hold(&mut self, began: Nanos, ended: Nanos, state: State, holder: usize) {
        if began < ended {
            self.intervals.push(Interval { began, ended, state, holder, is_late: false });
        }
    }

    /// An operation is performed that waited before, or whose result waits.
    fn hold_after(&mut self, waited: Nanos, (began, ended): Span, holder: usize) {
        let late = ended.saturating_sub(waited).max(began);
        self.hold(began, late, State::Device, holder);
        if late < ended {
            let state = State::Device;
            self.intervals.push(Interval { began: late, ended, state, holder, is_late: true });
        }
    }

    /// A thread arrives at an operation, after a call that began at `since`, if there was one.
    fn lead(&mut self, thread: u32, (since, at): Span, holder: usize) {
        if let Some(led) = self.led.get_mut(thread as usize) {
            led.push(Arrival { at, since, holder });
        }
    }

    /// Adds an operation, unless it had no result when the recording ended.
    fn add(&mut self, operation: &Operation) {
        let Some(taken) = operation.taken else { return };
        let cell = Cell::of(operation).index();
        self.counts[cell] += 1;
        let asked = operation.asked;
        // Clocks of two processors may differ by some nanoseconds.
        let taken = taken.max(asked);
        let submitted = operation.submitted.unwrap_or(asked).clamp(asked, taken);
        let began = operation.started.unwrap_or(submitted).clamp(asked, taken);
        let completed = operation.completed.unwrap_or(taken).clamp(began, taken);
        self.performed += i128::from(completed - began);
        match operation.route {
            Route::Inline | Route::Offload => {
                self.lead(operation.thread, (began, completed), cell);
                if self.basis == Basis::Kernel || seems_to_block(operation) {
                    self.hold(began, completed, State::Device, cell);
                }
            }
            Route::Pool | Route::Ring => {
                self.hold(asked, began, State::HandOver, cell);
                self.hold(completed, taken, State::HandOver, cell);
                // A result that is taken late delays the fiber's next operation, so it counts, too.
                let waited = (began - asked).saturating_add(taken - completed);
                self.hold_after(waited, (began, completed), cell);
                // A request can wait for its batch while the worker performs other operations.
                let mut last = None;
                for at in [asked, submitted, taken] {
                    if last.replace(at) != Some(at) {
                        self.lead(operation.thread, (at, at), cell);
                    }
                }
                if let Some(thread) = operation.ran_on {
                    self.lead(thread, (began, completed), cell);
                }
                let its = &mut self.handed_over;
                let count = if operation.route == Route::Pool { &mut its.to_pool } else { &mut its.to_ring };
                *count += 1;
                its.until_begun = its.until_begun.saturating_add(began - asked);
                its.until_taken = its.until_taken.saturating_add(taken - completed);
            }
        }
    }

    /// Adds the ring's requests of another program.
    fn add_requests(&mut self, period: &Range<Nanos>) {
        let trace = self.trace;
        for request in &trace.requests {
            let ended = request.completed.unwrap_or(period.end);
            self.hold(request.submitted, ended, State::Device, BETWEEN);
        }
    }
}
