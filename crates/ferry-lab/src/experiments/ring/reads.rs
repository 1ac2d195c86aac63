//! The generator: random direct reads, by threads that each have a ring and a runtime of one worker.
//!
//! Each read is made by a fiber, which requests the next one as soon as it has its bytes. So the depth is the number
//! of fibers. Latency is measured from a fiber's request until the fiber continues; it includes the wait for a batch's
//! submission. All threads begin at the same time and count the completions within the window. A thread that got no
//! processor in the whole window counts its first read, and its measurement lasts until then.

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ferry_io::{Backend, File, Io, Name, OpenHow, Options, RingMode, RouteChoice, for_each, give_way, run};
use ferry_tree::fill::{SplitMix64, derive};

use super::load::Computation;
use super::processors::pin;
use super::shares::{Share, Usage};
use crate::error::Failure;
use crate::stop::Stop;

/// Bytes a read.
pub(super) const READ: usize = 4096;

/// One measurement.
pub(super) struct Plan<'a> {
    /// The file, in this folder.
    pub(super) folder: &'a Path,
    /// Its name.
    pub(super) name: &'a Name,
    /// Its size.
    pub(super) bytes: u64,
    /// Reads in flight in each thread.
    pub(super) depth: usize,
    /// Set-up of each thread's ring.
    pub(super) ring: RingSetup,
    /// Threads, and the processors that they take in turn.
    pub(super) workers: usize,
    pub(super) processors: &'a [usize],
    /// For how long.
    pub(super) window: Duration,
    /// Computation of each thread between submissions.
    pub(super) computation: Option<Computation>,
    /// Seed of the offsets.
    pub(super) seed: u64,
    pub(super) stop: &'a Stop,
}

/// Set-up of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingSetup {
    /// Way in which completions arrive.
    pub(super) mode: RingMode,
    /// True if the blocks are registered with the ring.
    pub(super) registers: bool,
    /// Time that a polling thread stays awake without work.
    pub(super) sqpoll_idle: Duration,
}

impl RingSetup {
    /// Returns the options of a runtime that does nothing but read on such a ring.
    pub(super) fn options(&self) -> Options {
        Options { registered_buffers: self.registers, sqpoll_idle: self.sqpoll_idle, ..options(self.mode) }
    }
}

/// Results of one thread or of all.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Seconds of each read.
    pub(super) latencies: Vec<f64>,
    /// Computations that ended.
    pub(super) computations: u64,
    /// From the beginning to the end of the window, or of the first read if that came later.
    pub(super) lasted: Duration,
    /// Share of its processor that each thread ran for.
    pub(super) shares: Vec<Share>,
}

/// Reads.
///
/// # Errors
/// [`Failure::Run`] if a ring can't be had or a read fails; [`Failure::Interrupted`].
pub(super) fn measure(plan: &Plan<'_>) -> Result<Done, Failure> {
    let barrier = Barrier::new(plan.workers);
    let outcomes: Vec<Result<Done, Failure>> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let threads: Vec<_> =
            (0..plan.workers).map(|index| scope.spawn(move || worker(plan, index, barrier))).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let mut all = Done::default();
    for outcome in outcomes {
        let Done { latencies, computations, lasted, shares } = outcome?;
        all.latencies.extend(latencies);
        all.computations += computations;
        all.lasted = all.lasted.max(lasted);
        all.shares.extend(shares);
    }
    plan.stop.check()?;
    Ok(all)
}

/// Waits for the other threads once; also for one that could not begin, or they would wait for it for ever.
struct Gate<'a>(Option<&'a Barrier>);

impl Gate<'_> {
    fn pass(&mut self) {
        if let Some(barrier) = self.0.take() {
            barrier.wait();
        }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.pass();
    }
}

fn worker(plan: &Plan<'_>, index: usize, barrier: &Barrier) -> Result<Done, Failure> {
    let mut gate = Gate(Some(barrier));
    pin(plan.processors[index % plan.processors.len()])?;
    let depth = u32::try_from(plan.depth).unwrap_or(u32::MAX);
    let options =
        Options { queue_depth: depth.next_power_of_two(), blocks: plan.depth, ..plan.ring.options() };
    let seed = derive(plan.seed, u64::try_from(index).unwrap_or(0));
    let ran = run(&options, async |io| {
        let file = io.open_dir(plan.folder)?.open(plan.name, OpenHow::read().direct()).await?;
        gate.pass();
        read(plan, &io, &file, seed).await
    });
    let failed = |why: String| Failure::Run(format!("reads failed: {why}"));
    ran.map_err(|error| failed(error.to_string()))?.0.map_err(|error| failed(error.to_string()))
}

/// A runtime that does nothing but read on a ring of this mode.
pub(super) fn options(mode: RingMode) -> Options {
    Options {
        block_size: READ,
        workers: NonZeroUsize::MIN,
        ring_mode: mode,
        backend: Backend::Uring,
        route: RouteChoice::Ring,
        ..Options::default()
    }
}

async fn read(plan: &Plan<'_>, io: &Io, file: &File, seed: u64) -> ferry_io::Result<Done> {
    let numbers = RefCell::new(SplitMix64::new(seed));
    let latencies = RefCell::new(Vec::with_capacity(1 << 16));
    let computations = Cell::new(0);
    let lasted = Cell::new(plan.window);
    let size = u64::try_from(READ).unwrap_or(u64::MAX);
    let used = Usage::of_this_thread();
    let begun = Instant::now();
    let end = begun + plan.window;
    let is_over = |now: Instant| plan.stop.is_set() || (now >= end && !latencies.borrow().is_empty());
    let fibers = plan.depth + usize::from(plan.computation.is_some());
    for_each(fibers, 0..fibers, async |fiber| {
        if let Some(computation) = plan.computation.filter(|_| fiber == plan.depth) {
            while !is_over(Instant::now()) {
                computation.run();
                computations.set(computations.get() + 1);
                give_way().await;
            }
            return Ok(());
        }
        let mut block = io.block().await?;
        let mut asked = Instant::now();
        while !is_over(asked) {
            let at = numbers.borrow_mut().below(plan.bytes / size) * size;
            let (back, read) = file.read_some_at(block, READ, at).await;
            block = back;
            read?;
            let now = Instant::now();
            let is_first = latencies.borrow().is_empty();
            if now < end || is_first {
                latencies.borrow_mut().push((now - asked).as_secs_f64());
                lasted.set(lasted.get().max(now - begun));
            }
            asked = now;
        }
        Ok(())
    })
    .await?;
    let shares = vec![Share::of_this_thread(used, begun.elapsed())];
    let (computations, lasted) = (computations.get(), lasted.get());
    Ok(Done { latencies: latencies.into_inner(), computations, lasted, shares })
}
