//! Ten thousand cancellations on each backend: dropped futures, and fibers of a cancelled scope. Each is one of an operation
//! in flight, chosen by a seed.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;

use super::*;
use crate::error::{Error, Result, SetupError};
use crate::{
    Backend, Dir, File, Io, Name, OpenHow, Options, Preload, RouteChoice, Scope, give_way, run, scope, sleep,
};

/// Cancellations on one backend, and of one run.
const CANCELLATIONS: usize = 10_000;
const OF_ONE_RUN: usize = 500;
/// Futures that wait at once.
const WAITING: usize = 12;
/// Operations of one run, of which some are answered at once.
const MOST_OPERATIONS: usize = 20 * OF_ONE_RUN;

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("one component of a path")
}

/// Returns the next of a sequence of random numbers (xorshift64*).
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
}

/// One operation, or several one after another, which open descriptors or take blocks.
async fn operation(number: u64, io: &Io, folder: &Dir, file: &File) -> Result<()> {
    let offset = number % 50_000;
    match number % 8 {
        0 => drop(folder.open(&name("file"), OpenHow::read()).await?),
        1 => drop(file.read_at(io.block().await?, offset).await.1?),
        2 => {
            let mut block = io.block().await?;
            block.set_filled(1000);
            file.write_all_at(block, offset).await.1?;
        }
        3 => drop(folder.load(&name("file"), io.block().await?, true).await?),
        4 => {
            let plan = Preload { xattrs: true, alone: true, largest: 4096, at_once: 4 };
            drop(folder.enter(&name("inner"), Some(plan)).await?);
        }
        5 => drop(folder.stat_entry(&name("file"), false).await?),
        6 => {
            let open = folder.open(&name("file"), OpenHow::write()).await?;
            file.copy_range(offset, &open, 0, 4096, true).await?;
        }
        _ => {
            let open = folder.open(&name("file"), OpenHow::read()).await?;
            open.read_at(io.block().await?, offset).await.1?;
            open.stat().await?;
        }
    }
    Ok(())
}

/// Number of operations in flight that a future waits for.
fn waited_for() -> usize {
    current().slots.borrow().waited_for().len()
}

/// Begins operations and cancels them; returns the number of those that were in flight when they were cancelled.
async fn cancel_many(seed: u64, io: &Io, folder: &Dir, file: &File) -> usize {
    let mut random = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut waiting: VecDeque<Waiting<'_>> = VecDeque::new();
    let (mut cancelled, mut begun) = (0, 0);
    while cancelled < OF_ONE_RUN && begun < MOST_OPERATIONS {
        let number = next(&mut random);
        if number.is_multiple_of(16) {
            cancelled += cancel_scope(number, io, folder, file).await;
            begun += 4;
        } else {
            let mut future: Waiting<'_> = Box::pin(operation(number / 16, io, folder, file));
            let is_over = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
            if !is_over {
                waiting.push_back(future);
            }
            begun += 1;
        }
        if waiting.len() > usize::try_from(next(&mut random)).unwrap() % WAITING {
            let before = waited_for();
            let at = usize::try_from(next(&mut random)).unwrap() % waiting.len();
            drop(waiting.swap_remove_back(at));
            cancelled += before - waited_for();
        }
        if next(&mut random).is_multiple_of(4) {
            give_way().await;
        }
    }
    let before = waited_for();
    drop(waiting);
    cancelled + before - waited_for()
}

/// Cancels a scope with four fibers.
async fn cancel_scope(number: u64, io: &Io, folder: &Dir, file: &File) -> usize {
    let before = waited_for();
    let in_flight = Cell::new(0);
    let outcome = scope(async |fibers: Scope<'_, Error>| {
        for fiber in 0..4 {
            fibers.spawn(operation(number / 16 + fiber, io, folder, file));
        }
        in_flight.set(waited_for() - before);
        fibers.cancel();
        Ok(())
    });
    outcome.await.ok();
    in_flight.get()
}

/// Runs one seed, checks that nothing is left, and returns the number of cancellations.
fn check_seed(options: &Options, home: &Path, seed: u64) -> std::result::Result<usize, SetupError> {
    let options = Options { blocks: 8, block_size: 8192, ..options.clone() };
    let (cancelled, _) = run(&options, async |io| {
        let folder = io.open_dir(home).expect("the test's folder");
        let how = OpenHow::write().also_reading();
        let file = folder.open(&name("file"), how).await.expect("the test's file");
        let cancelled = cancel_many(seed, &io, &folder, &file).await;
        while current().slots.borrow().in_flight() > 0 {
            sleep(Duration::from_micros(100)).await.expect("not cancelled");
        }
        let (slots, free) = current().slots.borrow().counts();
        assert_eq!(slots, free, "seed {seed}: slots are taken");
        assert!(slots <= OF_ONE_RUN, "seed {seed}: {slots} slots for {WAITING} futures and what they left");
        assert_eq!(io.free_blocks(), io.blocks(), "seed {seed}: blocks are taken");
        cancelled
    })?;
    Ok(cancelled)
}

/// Number of descriptors of this process that are open beneath a folder.
fn open_beneath(folder: &Path) -> usize {
    let listing = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = listing.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.starts_with(folder)).count()
}

fn check_on_the_kernel(options: &Options) -> std::result::Result<(), SetupError> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("file"), vec![7; 60_000]).unwrap();
    std::fs::create_dir(home.path().join("inner")).unwrap();
    let (mut cancelled, mut seed) = (0, 0);
    while cancelled < CANCELLATIONS {
        let more = check_seed(options, home.path(), seed)?;
        assert!(more >= OF_ONE_RUN, "seed {seed}: {more} cancellations");
        assert_eq!(open_beneath(home.path()), 0, "seed {seed}: descriptors are open");
        cancelled += more;
        seed += 1;
    }
    Ok(())
}

#[test]
fn ten_thousand_cancellations_on_the_pool_leak_nothing() {
    let options =
        Options { backend: Backend::Posix, route: RouteChoice::Pool, pool_threads: 4, ..Options::default() };
    check_on_the_kernel(&options).unwrap();
}

#[test]
fn ten_thousand_cancellations_in_the_ring_leak_nothing() {
    let options = Options { backend: Backend::Uring, route: RouteChoice::Ring, ..Options::default() };
    match check_on_the_kernel(&options) {
        Ok(()) => {}
        Err(SetupError::NoUring { reason }) => println!("SKIP uring: {reason}"),
        Err(other) => panic!("{other}"),
    }
}

#[cfg(feature = "sim")]
#[test]
fn ten_thousand_cancellations_of_simulated_operations_leak_nothing() {
    let (mut cancelled, mut seed) = (0, 0);
    while cancelled < CANCELLATIONS {
        let world = crate::sim::World::default();
        world.file("file", &[7; 60_000]).folder("inner");
        let route = if seed % 2 == 0 { RouteChoice::Pool } else { RouteChoice::Ring };
        let options = Options { route, ..world.options(seed) };
        cancelled += check_seed(&options, "/".as_ref(), seed).unwrap();
        assert_eq!(world.open_descriptors(), [""; 0], "seed {seed}");
        assert_eq!(world.blocks_outstanding(), 0, "seed {seed}");
        seed += 1;
    }
    assert!(seed < 200, "a run of {seed} cancelled almost nothing");
}
