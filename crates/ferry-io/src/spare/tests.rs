use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::{Io, Options, Semaphore, run};

/// Free blocks and permits of the pool, without those kept.
fn in_pool(io: &Io) -> usize {
    io.blocks_in_list()
}

fn options() -> Options {
    Options { blocks: AMPLE, ..Options::default() }
}

#[test]
fn a_spare_is_given_back_by_the_next_turn() {
    let kept = run(&options(), async |io| {
        let semaphore = Semaphore::new(AMPLE);
        drop((io.block().await, semaphore.acquire().await));
        let kept = (in_pool(&io), semaphore.in_list());
        crate::give_way().await;
        let later = (in_pool(&io), semaphore.in_list());
        // A block that comes back to a worker about to sleep is not kept either.
        let late = async {
            let block = io.block().await;
            crate::sleep(Duration::from_micros(100)).await.ok();
            drop(block);
            crate::sleep(Duration::from_millis(1)).await.ok();
            in_pool(&io)
        };
        (kept, later, late.await)
    });
    let (kept, later, late) = kept.expect("a run").0;
    assert_eq!(kept, (AMPLE - 1, AMPLE - 1));
    assert_eq!((later, late), ((AMPLE, AMPLE), AMPLE));
}

#[test]
fn what_is_kept_is_taken_first() {
    let taken = run(&options(), async |io| {
        drop(io.block().await);
        let again = io.block().await.expect("nobody cancels");
        let most = in_pool(&io);
        let second = io.block().await.expect("nobody cancels");
        drop((again, second));
        (most, in_pool(&io), io.free_blocks())
    });
    assert_eq!(taken.expect("a run").0, (AMPLE - 1, AMPLE - 1, AMPLE), "the second goes back at once");
}

#[test]
fn nothing_is_kept_of_what_is_scarce() {
    let scarce = Options { blocks: AMPLE - 1, ..Options::default() };
    let left = run(&scarce, async |io| {
        let semaphore = Semaphore::new(AMPLE - 1);
        drop((io.block().await, semaphore.acquire().await));
        (in_pool(&io), semaphore.in_list())
    });
    assert_eq!(left.expect("a run").0, (AMPLE - 1, AMPLE - 1));
}

/// Polls once, as after a spurious wake-up.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn nothing_is_kept_from_who_waits() {
    let pool = buffers::Blocks::map(AMPLE, 4096).expect("memory");
    let semaphore = Semaphore::new(AMPLE);
    let held: Vec<_> = (1..AMPLE).map(|_| (pool.try_take(), semaphore.free())).collect();
    let permits: Vec<_> = (1..AMPLE).map(|_| poll(pin!(semaphore.acquire()))).collect();
    let kept = keep(true);
    // The last of each is taken and kept, because no fiber waits for it.
    let last = || (poll(pin!(pool.take())), poll(pin!(semaphore.acquire())));
    drop(last());
    assert_eq!((pool.in_list(), semaphore.in_list()), (0, 0));
    let (taken, (waits, wakes)) = (last(), std::sync::mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut block, mut permit) = (pin!(pool.take()), pin!(semaphore.acquire()));
            assert!(poll(block.as_mut()).is_pending() && poll(permit.as_mut()).is_pending());
            waits.send(()).expect("it listens");
            let begun = std::time::Instant::now();
            while pool.in_list() == 0 || semaphore.in_list() == 0 {
                assert!(begun.elapsed() < Duration::from_secs(20), "what is waited for is kept");
                std::thread::yield_now();
            }
            assert!(poll(block).is_ready() && poll(permit).is_ready());
        });
        wakes.recv().expect("it waits");
        drop(taken);
    });
    drop((held, permits));
    keep(kept);
}

#[test]
fn a_worker_keeps_so_many_permits() {
    let left = run(&options(), async |_| {
        let semaphores: Vec<_> = (0..2 * MOST_PERMITS).map(|_| Semaphore::new(AMPLE)).collect();
        for semaphore in &semaphores {
            drop(semaphore.acquire().await);
        }
        semaphores.iter().filter(|semaphore| semaphore.in_list() < AMPLE).count()
    });
    assert_eq!(left.expect("a run").0, MOST_PERMITS);
}

#[test]
fn a_worker_keeps_one_permit_of_a_semaphore() {
    let left = run(&options(), async |_| {
        let semaphore = Semaphore::new(AMPLE);
        let both = (semaphore.acquire().await, semaphore.acquire().await);
        drop(both);
        semaphore.in_list()
    });
    assert_eq!(left.expect("a run").0, AMPLE - 1);
}
