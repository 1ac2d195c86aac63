use super::run;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[test]
fn jobs_made_by_jobs_are_done() {
    for threads in [0, 1, 2, 8] {
        let done = AtomicU64::new(0);
        run(
            threads,
            10_u32,
            || (),
            |(), level, jobs| {
                done.fetch_add(1, Relaxed);
                jobs.extend((0..2).map(|_| level - 1).filter(|level| *level > 0));
            },
        );
        assert_eq!(done.load(Relaxed), 1023);
    }
}

#[test]
fn panic_is_passed_on() {
    let outcome = std::panic::catch_unwind(|| {
        run(
            4,
            0_u32,
            || (),
            |(), job, jobs| {
                assert!(job < 100, "job 100");
                jobs.push(job + 1);
            },
        );
    });
    assert!(outcome.is_err());
}
