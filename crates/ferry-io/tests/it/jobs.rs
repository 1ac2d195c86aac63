//! Jobs shared by workers: each runs once, panics reach the caller, stopping ends them.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use ferry_io::sim::{Settings, World};
use ferry_io::{Error, Jobs, OpenHow, Options, RouteChoice, run, sleep, timeout};

use super::place::{Place, everywhere, name, on_the_kernel, poll_once};

fn with_workers(place: &Place, workers: usize) -> Options {
    Options { workers: NonZeroUsize::new(workers).expect("not zero"), ..place.options() }
}

#[test]
fn each_job_is_run_once() {
    everywhere(|place| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let ran = Arc::clone(&seen);
        place.run_with(&with_workers(place, 4), async |io, _| {
            io.share(vec![1_u64], 3, async move |jobs: &Jobs<u64>, job| {
                sleep(Duration::from_micros(job % 5 * 40)).await.expect("not cancelled");
                ran.lock().expect("no panic").push(job);
                for child in [2 * job, 2 * job + 1] {
                    if child < 256 {
                        jobs.push(child);
                    }
                }
            })
            .await;
        });
        let mut seen = seen.lock().expect("no panic").clone();
        seen.sort_unstable();
        assert_eq!(seen, (1..256).collect::<Vec<_>>());
    });
}

#[test]
fn several_workers_run_at_once() {
    on_the_kernel(|place| {
        let threads: Arc<(Mutex<BTreeSet<String>>, Condvar)> = Arc::default();
        let shared = Arc::clone(&threads);
        place.run_with(&with_workers(place, 3), async |io, _| {
            io.share(vec![1, 2, 3], 1, async move |_, _: u32| {
                // No job ends before three have begun.
                let id: ThreadId = std::thread::current().id();
                let (here, changed) = &*shared;
                let mut here = here.lock().expect("no panic");
                here.insert(format!("{id:?}"));
                changed.notify_all();
                let limit = Duration::from_secs(20);
                drop(changed.wait_timeout_while(here, limit, |here| here.len() < 3).expect("no panic"));
            })
            .await;
        });
        assert_eq!(threads.0.lock().expect("no panic").len(), 3);
    });
}

#[test]
fn no_more_jobs_run_at_once_than_asked_for() {
    everywhere(|place| {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (Arc::clone(&running), Arc::clone(&most));
        place.run_with(&with_workers(place, 1), async |io, _| {
            io.share((0..40).collect(), 4, async move |_, _: u32| {
                let now = counters.0.fetch_add(1, Ordering::SeqCst) + 1;
                counters.1.fetch_max(now, Ordering::SeqCst);
                sleep(Duration::from_micros(100)).await.expect("not cancelled");
                counters.0.fetch_sub(1, Ordering::SeqCst);
            })
            .await;
        });
        assert_eq!(most.load(Ordering::SeqCst), 4);
    });
}

/// A panic in a job of any worker, while the others have long jobs.
#[test]
fn a_panic_in_a_job_comes_out_of_share() {
    everywhere(|place| {
        for panics in 0..3 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                place.run_with(&with_workers(place, 3), async |io, _| {
                    io.share((0..3).collect(), 2, async move |_, job: u32| {
                        if job == panics {
                            sleep(Duration::from_millis(3)).await.expect("not cancelled");
                            std::panic::panic_any(job);
                        }
                        // The panic cancels it.
                        sleep(Duration::from_secs(3600)).await.ok();
                    })
                    .await;
                });
            }));
            let panic = outcome.expect_err("the panic is not swallowed");
            assert_eq!(panic.downcast_ref(), Some(&panics));
        }
    });
}

#[test]
fn stopping_gives_up_the_jobs_that_wait() {
    everywhere(|place| {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        place.run_with(&with_workers(place, 2), async |io, _| {
            let stopper = io.clone();
            io.share((0..1000).collect(), 2, async move |_, _: u32| {
                if counter.fetch_add(1, Ordering::SeqCst) == 5 {
                    stopper.stop();
                }
                sleep(Duration::from_millis(1)).await.ok();
            })
            .await;
            assert!(io.is_stopped());
        });
        assert!(begun.load(Ordering::SeqCst) < 1000);
    });
}

#[test]
fn a_time_limit_reaches_the_jobs_of_other_workers() {
    on_the_kernel(|place| {
        let begun = Instant::now();
        place.run_with(&with_workers(place, 2), async |io, _| {
            let shared = async {
                io.share(vec![1, 2], 1, async |_, _| {
                    sleep(Duration::from_secs(20)).await.ok();
                })
                .await;
                Ok::<_, Error>(())
            };
            timeout(Duration::from_millis(50), shared).await.ok();
        });
        assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    });
}

#[test]
fn sharing_that_is_dropped_ends() {
    on_the_kernel(|place| {
        let options = with_workers(place, 2);
        let (tell, told) = mpsc::channel();
        let runner = std::thread::spawn(move || {
            let ran = run(&options, async |io| {
                let mut share = Box::pin(io.share(vec![1, 2, 3], 1, async |_, _| {
                    sleep(Duration::from_secs(20)).await.ok();
                }));
                poll_once(&mut share).await;
            });
            tell.send(ran.is_ok()).ok();
        });
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(true), "it returns");
        runner.join().expect("no panic");
    });
}

#[test]
fn what_is_added_behind_waits_for_all_others() {
    on_the_kernel(|place| {
        let options = Options { workers: NonZeroUsize::MIN, ..place.options() };
        let order = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&order);
        let (outcome, _) = place.run_with(&options, async |io, _| {
            io.share(vec![0_u32], 1, async move |jobs: &Jobs<u32>, job: u32| {
                seen.lock().expect("no panic").push(job);
                if job == 0 {
                    jobs.push_behind(10);
                    jobs.push(1);
                    jobs.push_behind(20);
                    jobs.push(2);
                } else if job == 2 {
                    jobs.push(3);
                }
            })
            .await;
        });
        let () = outcome;
        assert_eq!(*order.lock().expect("no panic"), [0, 2, 3, 1, 20, 10]);
    });
}

#[test]
fn a_panic_on_a_pool_thread_ends_the_run() {
    // A simulated file makes a call of the kernel panic.
    let world = World::new(Settings::default());
    world.file("f", b"text");
    let open = async |io: ferry_io::Io| {
        io.open_dir("/".as_ref()).expect("it is there").open(&name("f"), OpenHow::read()).await
    };
    let (file, _) = run(&world.options(0), open).expect("it runs");
    let file = file.expect("it is opened");
    let options = Options { route: RouteChoice::Pool, ..Place::posix().options() };
    let (ended, told) = mpsc::channel();
    // A run that hangs must not hang the test.
    std::thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&options, async |_| file.sync().await)));
        ended.send(outcome.is_err()).ok();
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(true), "the run has not ended by the panic");
}
