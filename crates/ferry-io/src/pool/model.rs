//! Models of the pool: hand-over, growth and end.

use super::*;
use crate::concurrent::check;
use crate::descriptor::Descriptor;

/// An operation that the kernel refuses at once.
fn refused() -> Op {
    let file = std::fs::File::open("/dev/null").unwrap();
    Op::Truncate { file: Arc::new(Descriptor::Real(file.into())), size: 0 }
}

fn key(index: u32) -> Key {
    Key { index, generation: 0 }
}

/// Sleeps until `count` requests are answered; returns their indices.
fn wait_for(inbox: &Inbox, count: usize) -> Vec<u32> {
    let mut answered = Vec::new();
    while answered.len() < count {
        let came = inbox.collect();
        if came.is_empty() && !inbox.is_filled() {
            thread::park();
        }
        answered.extend(came.into_iter().map(|(key, _)| key.index));
    }
    answered.sort_unstable();
    answered
}

#[test]
fn every_request_is_answered_once_however_many_threads_there_are() {
    for most in [1, 2] {
        check(2, move || {
            let (pool, owner) = (Pool::new(most, None, None), Arc::new(Inbox::of_this_thread()));
            for index in 0..3 {
                pool.push(key(index), refused(), &owner, Reason::Forced);
            }
            assert_eq!(wait_for(&owner, 3), [0, 1, 2]);
            pool.close();
            assert!(pool.started() <= most as u64);
            assert!(owner.collect().is_empty(), "each comes once");
        });
    }
}

#[test]
fn a_thread_that_has_nothing_to_do_is_woken() {
    check(3, || {
        let (pool, owner) = (Pool::new(1, None, None), Arc::new(Inbox::of_this_thread()));
        for index in 0..2 {
            pool.push(key(index), refused(), &owner, Reason::Forced);
            assert_eq!(wait_for(&owner, 1), [index]);
        }
        pool.close();
    });
}

#[test]
fn two_workers_have_their_own_answers() {
    check(3, || {
        let pool = Pool::new(1, None, None);
        let other = {
            let pool = Arc::clone(&pool);
            loom::thread::spawn(move || {
                let owner = Arc::new(Inbox::of_this_thread());
                pool.push(key(7), refused(), &owner, Reason::Forced);
                assert_eq!(wait_for(&owner, 1), [7]);
            })
        };
        let owner = Arc::new(Inbox::of_this_thread());
        pool.push(key(1), refused(), &owner, Reason::Forced);
        assert_eq!(wait_for(&owner, 1), [1]);
        other.join().unwrap();
        pool.close();
    });
}

#[test]
fn what_is_queued_when_the_pool_ends_is_answered() {
    check(3, || {
        let (pool, owner) = (Pool::new(2, None, None), Arc::new(Inbox::of_this_thread()));
        pool.push(key(0), refused(), &owner, Reason::Forced);
        pool.push(key(1), refused(), &owner, Reason::Forced);
        pool.close();
        assert_eq!(owner.collect().len(), 2);
    });
}

#[test]
fn the_writes_of_one_file_are_all_done_by_one_thread_at_a_time() {
    check(2, || {
        let (pool, owner) = (Pool::new(2, None, None), Arc::new(Inbox::of_this_thread()));
        let file = Arc::new(Descriptor::Real(std::fs::File::open("/dev/null").unwrap().into()));
        for index in 0..3 {
            let write = Op::Write { file: Arc::clone(&file), block: None, skip: 0, at: 0 };
            pool.push(key(index), write, &owner, Reason::Overlaps);
        }
        let mut order = Vec::new();
        while order.len() < 3 {
            let came = owner.collect();
            if came.is_empty() && !owner.is_filled() {
                thread::park();
            }
            order.extend(came.into_iter().map(|(key, _)| key.index));
        }
        assert_eq!(order, [0, 1, 2]);
        pool.close();
    });
}

#[test]
fn a_request_that_is_taken_back_is_not_done() {
    check(3, || {
        let (pool, owner) = (Pool::new(1, None, None), Arc::new(Inbox::of_this_thread()));
        pool.push(key(0), refused(), &owner, Reason::Forced);
        pool.push(key(1), refused(), &owner, Reason::Forced);
        let taken_back = pool.withdraw(key(1), &owner).is_some();
        let expected: &[u32] = if taken_back { &[0] } else { &[0, 1] };
        assert_eq!(wait_for(&owner, expected.len()), expected);
        pool.close();
        assert!(owner.collect().is_empty());
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_request_of_which_no_thread_is_told_is_found() {
    check(3, || {
        let (pool, owner) = (Pool::new(1, None, None), Arc::new(Inbox::of_this_thread()));
        pool.push(key(0), refused(), &owner, Reason::Forced);
        wait_for(&owner, 1);
        let (key, op, owner) = (key(1), refused(), Arc::clone(&owner));
        let request = Request {
            key,
            op,
            rest: Vec::new(),
            owner: Arc::clone(&owner),
            lane: None,
            missed: false,
            wait: None,
        };
        pool.lock().queue.push_back(request);
        wait_for(&owner, 1);
        pool.close();
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_end_of_which_no_thread_is_told_is_found() {
    check(3, || {
        let (pool, owner) = (Pool::new(1, None, None), Arc::new(Inbox::of_this_thread()));
        pool.push(key(0), refused(), &owner, Reason::Forced);
        wait_for(&owner, 1);
        let threads = {
            let mut state = pool.lock();
            state.closing = true;
            std::mem::take(&mut state.threads)
        };
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
