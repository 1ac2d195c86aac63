//! Sleeping and time limits.

use std::time::{Duration, Instant};

use ferry_io::{Cause, Error, Operation, both, scope, sleep, timeout};

use super::place::{everywhere, in_simulation, name, on_the_kernel};

const SOON: Duration = Duration::from_millis(2);
const NEVER: Duration = Duration::from_secs(3600);

#[test]
fn sleepers_wake_in_the_order_of_their_times() {
    everywhere(|place| {
        let order = std::cell::RefCell::new(Vec::new());
        place
            .run(async |_, _| {
                scope(async |fibers| {
                    for ms in [30, 10, 20] {
                        let order = &order;
                        fibers.spawn(async move {
                            sleep(Duration::from_millis(ms)).await?;
                            order.borrow_mut().push(ms);
                            Ok::<_, Error>(())
                        });
                    }
                    Ok(())
                })
                .await
            })
            .expect("nobody is cancelled");
        assert_eq!(*order.borrow(), [10, 20, 30]);
    });
}

#[test]
fn a_limit_that_is_reached_cancels() {
    everywhere(|place| {
        let outcome = place.run(async |_, _| timeout(SOON, sleep(NEVER)).await);
        assert_eq!(outcome.expect_err("time is up").cause, Cause::TimedOut);
    });
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    everywhere(|place| {
        place.make_file("file", b"12345");
        let (found, missing) = place.run(async |_, folder| {
            let found = timeout(NEVER, folder.stat_entry(&name("file"), false)).await;
            let missing = timeout(NEVER, folder.stat_entry(&name("nothing"), false)).await;
            (found, missing)
        });
        assert_eq!(found.expect("in time").size, 5);
        assert_eq!(missing.expect_err("not there").cause, Cause::Errno(ferry_io::Errno::NOENT));
    });
}

#[test]
fn being_cancelled_from_outside_is_not_a_time_out() {
    everywhere(|place| {
        let outcome: Result<((), ()), Error> = place.run(async |_, _| {
            let fails = async {
                sleep(SOON).await?;
                Err(Error { operation: Operation::Sync, cause: Cause::Errno(ferry_io::Errno::IO) })
            };
            let limited = async {
                let cause = timeout(NEVER, sleep(NEVER)).await.expect_err("cancelled").cause;
                assert_eq!(cause, Cause::Cancelled);
                Ok(())
            };
            both(fails, limited).await
        });
        assert_eq!(outcome.expect_err("the first error").operation, Operation::Sync);
    });
}

#[test]
fn a_limit_within_a_limit_reports_its_own() {
    everywhere(|place| {
        let outcome = place.run(async |_, _| {
            timeout(NEVER, async {
                let inner = timeout(SOON, sleep(NEVER)).await;
                assert_eq!(inner.expect_err("time is up").cause, Cause::TimedOut);
                sleep(SOON).await
            })
            .await
        });
        outcome.expect("the outer limit is far away");
    });
}

#[test]
fn a_real_sleep_takes_its_time() {
    on_the_kernel(|place| {
        let begun = Instant::now();
        place.run(async |_, _| sleep(Duration::from_millis(30)).await).expect("not cancelled");
        assert!(begun.elapsed() >= Duration::from_millis(30));
    });
}

#[test]
fn a_simulated_sleep_takes_none() {
    in_simulation(|place| {
        let begun = Instant::now();
        place.run(async |_, _| sleep(NEVER * 24).await).expect("not cancelled");
        assert!(begun.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn the_longest_of_limits_is_no_limit() {
    everywhere(|place| {
        let outcome = place.run(async |_, _| {
            timeout(Duration::MAX, async {
                timeout(SOON, sleep(Duration::MAX)).await.expect_err("it never ends");
                Ok::<_, Error>(())
            })
            .await
        });
        assert_eq!(outcome, Ok(()));
    });
}
