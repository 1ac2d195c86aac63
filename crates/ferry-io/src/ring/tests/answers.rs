//! Errors of io_uring_enter(2): no completion is lost or counted twice, and no sleep lasts too long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::*;
use crate::descriptor::Descriptor;

/// A ring of depth 8, and the state that it needs.
fn small_ring(ring_mode: RingMode) -> (Arc<Shared>, Arc<Inbox>, Ring) {
    let shared = Shared::open(&Options { queue_depth: 8, ring_mode, ..ring_options() }).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    let ring = Ring::open(&shared, &inbox).unwrap();
    (shared, inbox, ring)
}

/// A read of the file's first byte.
fn read_of(shared: &Shared, file: &Arc<Descriptor>) -> Op {
    Op::Read { file: Arc::clone(file), block: shared.blocks.try_take(), skip: 0, at: 0, size: 1 }
}

fn file_of_one_byte(folder: &Path) -> Arc<Descriptor> {
    fs::write(folder.join("file"), "x").unwrap();
    Arc::new(Descriptor::Real(fs::File::open(folder.join("file")).unwrap().into()))
}

#[test]
fn what_was_not_submitted_is_submitted_by_the_next_call() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = file_of_one_byte(folder.path());
    for errno in [Errno::BUSY, Errno::AGAIN, Errno::NOMEM, Errno::INTR, Errno::TIME] {
        let (shared, _inbox, mut ring) = small_ring(RingMode::Defer);
        let counters = Counters::new();
        for index in 0..4 {
            let key = Key { index, generation: 0 };
            assert!(ring.push(key, read_of(&shared, &file), Reason::Forced, 0).is_ok());
        }
        ring.entered(Err(errno), &counters);
        assert_eq!((counters.submissions.get(), counters.submitted.get()), (0, 0), "{errno}");
        assert_eq!((ring.in_flight(), ring.is_due()), (4, true), "{errno}");
        let mut done = 0;
        while done < 4 {
            done += ring.enter(Some(None), &counters).len();
        }
        assert_eq!((counters.submissions.get(), counters.submitted.get()), (1, 4), "{errno}");
        assert_eq!((ring.in_flight(), ring.is_due()), (0, false), "{errno}");
    }
}

#[test]
fn an_answer_after_which_memory_could_not_be_freed_is_not_passed_over() {
    if !has_ring() {
        return;
    }
    let (_shared, _inbox, mut ring) = small_ring(RingMode::Defer);
    let entered = || ring.entered(Err(Errno::BADF), &Counters::new());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(entered)).is_err());
}

/// The queue gets more completions than it holds. The kernel keeps the rest, or reports that it is busy.
#[test]
fn completions_beyond_the_queue_are_not_lost() {
    if !has_ring() {
        return;
    }
    for ring_mode in MODES {
        let (_shared, _inbox, mut ring) = small_ring(ring_mode);
        let counters = Counters::new();
        let room = ring.io.params().cq_entries() as usize;
        let most = 3 * room;
        let deadline = Instant::now() + Duration::from_secs(20);
        while ring.cancels_owed < most && Instant::now() < deadline {
            // A cancellation of nothing: it only yields a completion.
            let nothing = io_uring::opcode::AsyncCancel::new(u64::MAX).build();
            if ring.queue(&[nothing.user_data(Token::Cancel.to_user_data())]) {
                ring.cancels_owed += 1;
            } else {
                ring.call(None, &counters);
            }
        }
        assert_eq!(ring.cancels_owed, most, "{ring_mode:?}: the kernel took no more");
        ring.call(None, &counters);
        while ring.cancels_owed > 0 && Instant::now() < deadline {
            drop(ring.enter(Some(Some(Duration::from_millis(10))), &counters));
        }
        assert_eq!(ring.cancels_owed, 0, "{ring_mode:?}: answers were lost");
    }
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Interrupts a thread's system calls until `is_over`.
fn interrupt(thread: libc::pthread_t, is_over: &AtomicBool) {
    // SAFETY: zero is a valid value of each field.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // Without SA_RESTART, so that calls return EINTR.
    action.sa_sigaction = ignore as *const () as libc::sighandler_t;
    // SAFETY: the action is valid, and its handler does nothing.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    while !is_over.load(Ordering::Relaxed) {
        // SAFETY: the thread is joined only after this has ended.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_sleep_that_signals_interrupt_goes_on_until_its_end() {
    const SLEEP: Duration = Duration::from_millis(100);
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = file_of_one_byte(folder.path());
    for ring_mode in MODES {
        let (shared, inbox, mut ring) = small_ring(ring_mode);
        inbox.take_ready();
        let counters = Counters::new();
        let is_over = AtomicBool::new(false);
        // SAFETY: it has no arguments.
        let this = unsafe { libc::pthread_self() };
        std::thread::scope(|threads| {
            threads.spawn(|| interrupt(this, &is_over));
            let begun = Instant::now();
            while begun.elapsed() < SLEEP {
                assert!(ring.enter(Some(Some(SLEEP * 100)), &counters).is_empty());
            }
            let interruptions = counters.ring_enters.get();
            assert!(interruptions > 5, "{ring_mode:?}: {interruptions} sleeps were interrupted");
            // Requests made between interruptions complete.
            for index in 0..100 {
                let key = Key { index, generation: 0 };
                assert!(ring.push(key, read_of(&shared, &file), Reason::Forced, 0).is_ok());
                while ring.in_flight() > 0 {
                    for (_, (_, outcome)) in ring.enter(Some(None), &counters) {
                        assert!(matches!(outcome, Ok(crate::op::Outcome::Count(1))), "{outcome:?}");
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
