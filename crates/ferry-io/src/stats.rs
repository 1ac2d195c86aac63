//! Counters of a run: routes of operations, submissions and system calls.

use std::cell::Cell;
use std::time::Duration;

use crate::error::Operation;
use crate::event::Recorded;
use crate::options::RingFlag;
use crate::route::{Reason, Route};

const KINDS: usize = Operation::ALL.len();
const ROUTES: usize = Route::ALL.len();
const REASONS: usize = Reason::ALL.len();

/// Number of operations of one kind that took one route for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Kind of the operations.
    pub operation: Operation,
    /// Their route.
    pub route: Route,
    /// Reason for the route.
    pub reason: Reason,
    /// Number of operations.
    pub count: u64,
}

/// Totals of one run over all workers.
///
/// ```
/// use ferry_io::{Decision, Operation, Options, Reason, Route, run};
///
/// let (outcome, stats) = run(&Options::default(), async |io| {
///     io.open_dir("/proc/self".as_ref())?.stat().await
/// })?;
/// outcome?;
/// assert_eq!(stats.by_route(Route::Inline), 1);
/// let Decision { operation, route, reason, count, .. } = stats.decisions[0];
/// assert_eq!((operation, route.name(), count), (Operation::Stat, "inline", 1));
/// println!("{}, because {}", reason.name(), reason.why());
/// assert!(Reason::ALL.contains(&reason) && Route::ALL.contains(&route));
/// assert_eq!(stats.named()[0], ("operations".to_owned(), 1));
/// assert_eq!(stats.explain().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Operations by kind (in the order of [`Operation::ALL`]) and route (in the order of [`Route::ALL`]).
    pub operations: [[u64; ROUTES]; KINDS],
    /// Operations by kind, route and reason; only counts above zero.
    pub decisions: Vec<Decision>,
    /// Number of io_uring_enter(2) calls.
    pub ring_enters: u64,
    /// Number of batches submitted to rings: enters that submitted something (with SQPOLL, no enter may be needed).
    pub submissions: u64,
    /// Number of requests in those batches, including retries; a chain counts as three.
    pub submitted: u64,
    /// Number of the rings' own requests: cancellations, and the polls by which other threads end a sleep.
    pub ring_upkeep: u64,
    /// Number of system calls made by the runtime, including those of the pool and of rings.
    pub system_calls: u64,
    /// Number of operations that the kernel handed to its own workers (io-wq), if it may be counted.
    pub kernel_worker_handovers: Option<u64>,
    /// Number of attempts without blocking whose data was not cached (RESOLVE_CACHED, RWF_NOWAIT).
    pub misses: u64,
    /// Number of hand-overs to the pool; a batch of a folder's cold files is one.
    pub pool_requests: u64,
    /// Number of bytes lost because direct files were dropped with them in their caches.
    pub unwritten_bytes: u64,
    /// Number of workers that ran.
    pub workers: u64,
    /// Signal that ended the run, if one did.
    pub signal: Option<i32>,
    /// Number of threads that the pool started.
    pub pool_threads: u64,
    /// Name of the backend.
    pub backend: &'static str,
    /// Reason for the backend, and features that had to be left out.
    pub backend_reason: String,
    /// Flags of the ring mode that the kernel does not support; its rings work without them.
    pub ring_flags_left_out: Vec<RingFlag>,
    /// Time from the call of [`run`](crate::run) until its last thread ended. Excludes closing the counters and the
    /// recording, which takes longer than a small run.
    pub wall: Duration,
    /// Result of the recording, if one was made.
    pub trace: Option<Recorded>,
}

impl Stats {
    /// Returns the number of operations that took `route`.
    #[must_use]
    pub fn by_route(&self, route: Route) -> u64 {
        self.operations.iter().map(|kind| kind[route as usize]).sum()
    }

    /// Returns the counters by their names in `--stats=json`; nested names are joined by a point:
    /// `operations_by_route.inline`.
    #[must_use]
    pub fn named(&self) -> Vec<(String, u64)> {
        let total = Route::ALL.iter().map(|route| self.by_route(*route)).sum();
        let mut named = vec![("operations".to_owned(), total)];
        let by_route = |route: Route| (format!("operations_by_route.{}", route.name()), self.by_route(route));
        named.extend(Route::ALL.map(by_route));
        for (operation, row) in Operation::ALL.iter().zip(&self.operations) {
            for (route, count) in Route::ALL.iter().zip(row).filter(|(_, count)| **count > 0) {
                named.push((format!("operations_by_kind.{}.{}", operation.name(), route.name()), *count));
            }
        }
        let others = [
            ("submissions", self.submissions),
            ("submitted", self.submitted),
            ("ring_upkeep", self.ring_upkeep),
            ("ring_enters", self.ring_enters),
            ("system_calls", self.system_calls),
            ("misses", self.misses),
            ("pool_requests", self.pool_requests),
            ("workers", self.workers),
            ("pool_threads", self.pool_threads),
        ];
        named.extend(others.map(|(name, count)| (name.to_owned(), count)));
        named.extend(self.kernel_worker_handovers.map(|count| ("kernel_worker_handovers".to_owned(), count)));
        named
    }

    /// Explains the routes of operations, one sentence for each decision, the most frequent first.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let mut decisions = self.decisions.clone();
        decisions.sort_by_key(|decision| std::cmp::Reverse(decision.count));
        let sentence = |d: &Decision| {
            format!("{} x {} went {}: {}", d.count, d.operation.name(), d.route.name(), d.reason.why())
        };
        let lost = (self.unwritten_bytes > 0)
            .then(|| format!("{} bytes of direct files were dropped unwritten", self.unwritten_bytes));
        lost.into_iter().chain(decisions.iter().map(sentence)).collect()
    }

    pub(crate) fn add(&mut self, counters: &Counters) {
        for (operation, row) in Operation::ALL.into_iter().zip(counters.decisions.iter()) {
            for (route, row) in Route::ALL.into_iter().zip(row) {
                for (reason, count) in Reason::ALL.into_iter().zip(row) {
                    self.add_decision(Decision { operation, route, reason, count: count.get() });
                }
            }
        }
        self.ring_enters += counters.ring_enters.get();
        self.submissions += counters.submissions.get();
        self.submitted += counters.submitted.get();
        self.ring_upkeep += counters.ring_upkeep.get();
        self.system_calls += counters.system_calls.get();
        self.misses += counters.misses.get();
        self.pool_requests += counters.pool_requests.get();
        self.unwritten_bytes += counters.unwritten_bytes.get();
        self.workers += 1;
    }

    fn add_decision(&mut self, new: Decision) {
        if new.count == 0 {
            return;
        }
        self.operations[new.operation as usize][new.route as usize] += new.count;
        let same = |d: &&mut Decision| {
            d.operation == new.operation && d.route == new.route && d.reason == new.reason
        };
        match self.decisions.iter_mut().find(same) {
            Some(known) => known.count += new.count,
            None => self.decisions.push(new),
        }
    }
}

/// One worker's counters, added to [`Stats`] when it ends.
#[derive(Debug)]
pub(crate) struct Counters {
    decisions: Box<[[[Cell<u64>; REASONS]; ROUTES]; KINDS]>,
    pub(crate) ring_enters: Cell<u64>,
    pub(crate) submissions: Cell<u64>,
    pub(crate) submitted: Cell<u64>,
    pub(crate) ring_upkeep: Cell<u64>,
    pub(crate) system_calls: Cell<u64>,
    pub(crate) misses: Cell<u64>,
    pub(crate) pool_requests: Cell<u64>,
    pub(crate) unwritten_bytes: Cell<u64>,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            decisions: Box::new(std::array::from_fn(|_| {
                std::array::from_fn(|_| std::array::from_fn(|_| Cell::new(0)))
            })),
            ring_enters: Cell::new(0),
            submissions: Cell::new(0),
            submitted: Cell::new(0),
            ring_upkeep: Cell::new(0),
            system_calls: Cell::new(0),
            misses: Cell::new(0),
            pool_requests: Cell::new(0),
            unwritten_bytes: Cell::new(0),
        }
    }

    pub(crate) fn count(&self, operation: Operation, route: Route, reason: Reason) {
        add(&self.decisions[operation as usize][route as usize][reason as usize], 1);
    }

    /// Moves an operation that was counted for the ring to the pool.
    pub(crate) fn recount(&self, operation: Operation, reason: Reason) {
        let counted = &self.decisions[operation as usize][Route::Ring as usize][reason as usize];
        counted.set(counted.get().saturating_sub(1));
        self.count(operation, Route::Pool, Reason::NotInRing);
    }
}

pub(crate) fn add(counter: &Cell<u64>, n: u64) {
    counter.set(counter.get() + n);
}
