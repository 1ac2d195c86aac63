//! Models of permits that pass between threads.

use loom::future::block_on;

use super::*;
use crate::concurrent::check;
use crate::spare::AMPLE;

/// Counts those that hold a permit.
#[derive(Clone)]
struct Holders(Arc<loom::sync::atomic::AtomicUsize>);

impl Holders {
    fn new() -> Self {
        Self(Arc::new(loom::sync::atomic::AtomicUsize::new(0)))
    }

    fn hold(&self, most: usize) {
        assert!(self.0.fetch_add(1, Ordering::AcqRel) < most);
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[test]
fn a_permit_passes_to_each_who_waits() {
    check(3, || {
        let (semaphore, holders) = (Arc::new(Semaphore::new(1)), Holders::new());
        let take = |semaphore: &Semaphore, holders: &Holders| {
            let _permit = block_on(semaphore.acquire()).unwrap();
            holders.hold(1);
        };
        let others = [(); 2].map(|()| {
            let (semaphore, holders) = (Arc::clone(&semaphore), holders.clone());
            loom::thread::spawn(move || take(&semaphore, &holders))
        });
        take(&semaphore, &holders);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(semaphore.in_list(), 1);
    });
}

#[test]
fn who_gives_up_leaves_the_permit_to_the_next() {
    check(3, || {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = block_on(semaphore.acquire()).unwrap();
        let waits = {
            let semaphore = Arc::clone(&semaphore);
            loom::thread::spawn(move || drop(block_on(semaphore.acquire()).unwrap()))
        };
        let gives_up = {
            let semaphore = Arc::clone(&semaphore);
            loom::thread::spawn(move || {
                let mut acquiring = Box::pin(semaphore.acquire());
                let mut cx = Context::from_waker(Waker::noop());
                drop(acquiring.as_mut().poll(&mut cx));
            })
        };
        drop(held);
        waits.join().unwrap();
        gives_up.join().unwrap();
        assert_eq!(semaphore.in_list(), 1);
    });
}

#[test]
fn a_permit_that_a_worker_keeps_is_had_by_who_waits_at_its_next_turn() {
    check(3, || {
        let semaphore = Arc::new(Semaphore::new(AMPLE));
        let held: Vec<_> = (1..AMPLE).map(|_| block_on(semaphore.acquire()).unwrap()).collect();
        let waits = {
            let semaphore = Arc::clone(&semaphore);
            loom::thread::spawn(move || drop(block_on(semaphore.acquire()).unwrap()))
        };
        spare::keep(true);
        let mut cx = Context::from_waker(Waker::noop());
        drop(std::pin::pin!(semaphore.acquire()).poll(&mut cx));
        // Its turn.
        spare::give_back();
        waits.join().unwrap();
        spare::keep(false);
        drop(held);
    });
}
