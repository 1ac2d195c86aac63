//! Models of deliveries and wake-ups that meet a worker on its way to sleep.

use super::*;
use crate::concurrent::check;
use crate::descriptor::Descriptor;
use crate::op::{Op, Outcome};

fn completion(index: u32) -> (Key, Completion) {
    let file = std::fs::File::open("/dev/null").unwrap();
    let op = Op::Truncate { file: Arc::new(Descriptor::Real(file.into())), size: 0 };
    (Key { index, generation: 0 }, (op, Ok(Outcome::Done)))
}

/// The place where a worker sleeps.
#[derive(Clone, Copy)]
enum Bed {
    Thread,
    Ring,
    /// Each in turn.
    Both,
    /// In the ring without a last look.
    Careless,
}

/// `Worker::sleep` with the ring's event only.
fn sleep(inbox: &Inbox, bed: Bed, is_odd: bool) {
    match bed {
        Bed::Thread => thread::park(),
        Bed::Both if is_odd => thread::park(),
        Bed::Ring | Bed::Both => {
            if inbox.enter_ring() {
                inbox.event().unwrap().sleep();
                inbox.leave_ring();
            }
        }
        Bed::Careless => {
            inbox.in_ring.store(true, Ordering::SeqCst);
            inbox.event().unwrap().sleep();
            inbox.leave_ring();
        }
    }
}

/// The worker's loop (`task.rs`), until `wanted` completions have come and a poll has seen `is_over`.
fn run(inbox: &Inbox, bed: Bed, wanted: usize, is_over: impl Fn() -> bool) {
    inbox.event().unwrap();
    let (mut taken, mut polled, mut sleeps) = (0, false, 0);
    loop {
        if inbox.take_ready() {
            polled = is_over();
        }
        taken += inbox.collect().len();
        assert!(taken <= wanted, "each comes once");
        if polled && taken == wanted {
            return;
        }
        if !inbox.is_ready() && !inbox.is_filled() {
            sleep(inbox, bed, sleeps % 2 == 1);
            sleeps += 1;
        }
    }
}

/// One thread delivers, another wakes the future.
fn one_delivers_and_one_wakes(bed: Bed) {
    let inbox = Arc::new(Inbox::of_this_thread());
    let is_there = Arc::new(AtomicBool::new(false));
    let delivers = {
        let inbox = Arc::clone(&inbox);
        loom::thread::spawn(move || inbox.deliver([completion(1)]))
    };
    let wakes = {
        let (inbox, is_there) = (Arc::clone(&inbox), Arc::clone(&is_there));
        loom::thread::spawn(move || {
            is_there.store(true, Ordering::Relaxed);
            inbox.wake_by_ref();
        })
    };
    run(&inbox, bed, 1, || is_there.load(Ordering::Relaxed));
    delivers.join().unwrap();
    wakes.join().unwrap();
}

/// Two threads deliver, one of them twice.
fn two_deliver(bed: Bed) {
    let inbox = Arc::new(Inbox::of_this_thread());
    let delivering = [1, 2].map(|count| {
        let inbox = Arc::clone(&inbox);
        loom::thread::spawn(move || (0..count).for_each(|index| inbox.deliver([completion(index)])))
    });
    run(&inbox, bed, 3, || true);
    for thread in delivering {
        thread.join().unwrap();
    }
}

#[test]
fn no_wake_up_is_lost_by_a_worker_that_parks() {
    check(3, || one_delivers_and_one_wakes(Bed::Thread));
    check(3, || two_deliver(Bed::Thread));
}

#[test]
fn no_wake_up_is_lost_by_a_worker_that_sleeps_in_its_ring() {
    check(3, || one_delivers_and_one_wakes(Bed::Ring));
    check(3, || two_deliver(Bed::Ring));
}

#[test]
fn no_wake_up_is_lost_between_two_ways_to_sleep() {
    check(3, || one_delivers_and_one_wakes(Bed::Both));
    check(3, || two_deliver(Bed::Both));
}

/// A thread delivers a panic and the answer of its request, in this order or in the opposite one.
fn one_panics(bed: Bed, is_panic_first: bool) {
    let inbox = Arc::new(Inbox::of_this_thread());
    let panics = {
        let inbox = Arc::clone(&inbox);
        loom::thread::spawn(move || {
            let panic = || inbox.deliver_panic(Box::new("a call panics"));
            if is_panic_first {
                panic();
            }
            inbox.deliver([completion(1)]);
            if !is_panic_first {
                // The panic's lock is not loom's: without a yield, no order would have the worker run in between.
                loom::thread::yield_now();
                panic();
            }
        })
    };
    run(&inbox, bed, 1, || true);
    assert!(inbox.take_panic().is_some(), "the worker goes on without the panic");
    panics.join().unwrap();
}

#[test]
fn a_panic_is_there_when_its_answer_is() {
    for bed in [Bed::Thread, Bed::Ring] {
        check(3, move || one_panics(bed, true));
    }
}

#[test]
#[should_panic(expected = "the worker goes on without the panic")]
fn a_panic_delivered_after_its_answer_is_found() {
    check(3, || one_panics(Bed::Thread, false));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_worker_that_does_not_look_again_before_it_sleeps_in_its_ring_is_found() {
    check(3, || one_delivers_and_one_wakes(Bed::Careless));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_completion_told_of_before_it_is_there_is_found() {
    check(3, || {
        let inbox = Arc::new(Inbox::of_this_thread());
        let delivers = {
            let inbox = Arc::clone(&inbox);
            loom::thread::spawn(move || {
                inbox.filled.store(true, Ordering::SeqCst);
                inbox.completions.lock().unwrap().push(completion(1));
                inbox.notify();
            })
        };
        run(&inbox, Bed::Thread, 1, || true);
        delivers.join().unwrap();
    });
}
