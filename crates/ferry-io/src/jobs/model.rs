//! Models of jobs on several workers: wake-ups, further workers, and the end.

use std::num::NonZeroUsize;

use super::*;
use crate::concurrent::check_workers;
use crate::options::{Backend, Options, RouteChoice};

fn options() -> Options {
    Options {
        blocks: 2,
        block_size: 4096,
        workers: NonZeroUsize::new(2).unwrap(),
        pool_threads: 1,
        backend: Backend::Posix,
        route: RouteChoice::Pool,
        ..Options::default()
    }
}

/// Runs `first` on two workers; returns the number of jobs that ran.
fn run(first: Vec<u32>, job: impl AsyncFn(&Jobs<u32>, u32) + Clone + Send + Sync + 'static) -> usize {
    let ran = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    crate::run(&options(), async move |io| {
        io.share(first, 1, async move |jobs: &Jobs<u32>, number| {
            counted.fetch_add(1, Ordering::Relaxed);
            job(jobs, number).await;
        })
        .await;
    })
    .unwrap();
    ran.load(Ordering::Relaxed)
}

#[test]
fn two_workers_end_when_the_last_job_has() {
    check_workers(3, || assert_eq!(run(vec![1, 2], async |_, _| {}), 2));
}

#[test]
fn a_job_that_is_added_is_run_though_others_wait_or_end() {
    check_workers(3, || {
        let adds = async |jobs: &Jobs<u32>, number: u32| {
            if number > 1 {
                jobs.push(number - 1);
            }
        };
        assert_eq!(run(vec![3], adds), 3);
    });
}

/// A meeting of two jobs: the first to come waits for the other.
#[derive(Default)]
struct Meeting(Mutex<(u32, Option<Waker>)>);

impl Meeting {
    async fn meet(&self) {
        let mut is_here = false;
        std::future::poll_fn(|cx| {
            let mut meeting = self.0.lock().unwrap();
            if !std::mem::replace(&mut is_here, true) {
                meeting.0 += 1;
            }
            if meeting.0 == 2 {
                let other = meeting.1.take();
                drop(meeting);
                other.into_iter().for_each(Waker::wake);
                return Poll::Ready(());
            }
            meeting.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Runs a job that adds another one by `add` and then meets it: another worker has to begin it.
fn meets_what_it_adds(add: fn(&Jobs<u32>, u32)) {
    check_workers(3, move || {
        let meeting = Arc::new(Meeting::default());
        let adds_and_meets = async move |jobs: &Jobs<u32>, number: u32| {
            if number == 2 {
                add(jobs, 1);
            }
            meeting.meet().await;
        };
        assert_eq!(run(vec![2], adds_and_meets), 2);
    });
}

#[test]
fn a_job_that_is_added_is_begun_by_whoever_is_idle() {
    meets_what_it_adds(Jobs::push);
}

#[test]
fn a_job_of_another_worker_is_begun_by_whoever_is_idle() {
    meets_what_it_adds(Jobs::push_own);
}

#[test]
fn a_cancellation_drops_the_waiting_jobs_of_every_worker() {
    check_workers(3, || {
        crate::run(&options(), async |io| {
            let adds_until_cancelled = async |jobs: &Jobs<u32>, number: u32| {
                if number > 0 {
                    jobs.push_own(number - 1);
                }
                std::future::poll_fn(
                    |_| if cancel::is_cancelled() { Poll::Ready(()) } else { Poll::Pending },
                )
                .await;
            };
            crate::first(io.share(vec![2], 1, adds_until_cancelled), async {}).await;
        })
        .unwrap();
    });
}

#[test]
fn a_cancellation_reaches_the_job_of_another_worker() {
    check_workers(3, || {
        crate::run(&options(), async |io| {
            let until_cancelled = async |_: &Jobs<u32>, _| {
                std::future::poll_fn(
                    |_| if cancel::is_cancelled() { Poll::Ready(()) } else { Poll::Pending },
                )
                .await;
            };
            let gives_up = async {};
            crate::first(io.share(vec![1, 2], 1, until_cancelled), gives_up).await;
        })
        .unwrap();
    });
}
