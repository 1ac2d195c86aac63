use std::sync::mpsc;

use super::*;

fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("a thread's processors");
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

#[test]
fn a_started_thread_may_run_anywhere() {
    for _ in 0..200 {
        let (tell, told_of) = mpsc::channel();
        let body = move || {
            // At once, perhaps before its starter is done, and later.
            let first = processors();
            std::thread::sleep(std::time::Duration::from_micros(50));
            tell.send((first, processors())).ok();
        };
        let thread = start_beside("beside", body).expect("a thread");
        assert_eq!(told_of.recv().expect("its processors"), (processors(), processors()));
        thread.join().expect("no panic");
    }
}

#[test]
fn a_thread_that_has_taken_its_starters_processor_leaves_it() {
    let Some(here) = Here::now() else { return };
    let allowed = processors();
    std::thread::spawn(move || {
        let mut only = CpuSet::new();
        only.set(here.processor);
        let leaves = || {
            sched_setaffinity(None, &only).expect("one of those allowed");
            here.arrive(&Mutex::new(Placement::Anywhere));
            assert_eq!(processors(), allowed);
            sched_getcpu() != here.processor
        };
        // The scheduler may bring it back at once.
        assert!((0..20).any(|_| leaves()));
    })
    .join()
    .expect("no panic");
}

#[test]
fn who_may_use_one_processor_starts_threads_there() {
    let caller = std::thread::spawn(|| {
        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        sched_setaffinity(None, &only).expect("one of its own");
        assert!(Here::now().is_none());
        let (tell, told_of) = mpsc::channel();
        let thread = start_beside("beside", move || drop(tell.send(processors()))).expect("a thread");
        thread.join().expect("no panic");
        (told_of.recv().expect("its processors"), processors())
    });
    let (its, callers) = caller.join().expect("no panic");
    assert_eq!((its.len(), its), (1, callers));
}

#[test]
fn who_has_arrived_is_left_alone() {
    let Some(here) = Here::now() else { return };
    let thread = std::thread::Builder::new().spawn(|| {}).expect("a thread");
    while !thread.is_finished() {
        std::thread::yield_now();
    }
    let before = processors();
    // That thread has ended: the call would concern another.
    here.send_away(&Mutex::new(Placement::Arrived), &thread);
    assert_eq!(processors(), before);
    thread.join().expect("no panic");
}

#[test]
fn a_set_is_told_to_the_library_bit_by_bit() {
    let mut set = CpuSet::new();
    for processor in [0, 63, 64, 1023] {
        set.set(processor);
    }
    let bits = bits(&set);
    let expected: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|at| bits[at / BITS] >> (at % BITS) & 1 == 1).collect();
    assert_eq!(expected, [0, 63, 64, 1023]);
}
