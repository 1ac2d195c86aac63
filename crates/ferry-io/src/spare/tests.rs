use std::time::Duration;

use super::*;
use crate::{Io, Options, Semaphore, run};

/// What the pool itself has, apart from what is kept.
fn in_pool(io: &Io) -> usize {
    io.blocks_in_list()
}

fn options() -> Options {
    Options { blocks: AMPLE, ..Options::default() }
}

#[test]
fn a_spare_is_given_back_before_the_worker_sleeps() {
    let kept = run(&options(), async |io| {
        let semaphore = Semaphore::new(AMPLE);
        drop((io.block().await, semaphore.acquire().await));
        let kept = (in_pool(&io), semaphore.in_list());
        crate::sleep(Duration::from_millis(1)).await.expect("nobody cancels");
        (kept, (in_pool(&io), semaphore.in_list()))
    });
    let (kept, later) = kept.expect("a run").0;
    assert_eq!(kept, (AMPLE - 1, AMPLE - 1));
    assert_eq!(later, (AMPLE, AMPLE));
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

#[test]
fn nothing_is_kept_from_who_waits() {
    let served = run(&options(), async |io| {
        let semaphore = Semaphore::new(AMPLE);
        let served = Cell::new(0);
        // Each holds one of either for a while, three times as many as there are.
        crate::for_each(3 * AMPLE, 0..3 * AMPLE, async |_| {
            let held = (semaphore.acquire().await?, io.block().await?);
            crate::sleep(Duration::from_micros(100)).await?;
            drop(held);
            served.set(served.get() + 1);
            Ok::<(), crate::Error>(())
        })
        .await
        .expect("nobody cancels");
        served.get()
    });
    assert_eq!(served.expect("a run").0, 3 * AMPLE);
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
