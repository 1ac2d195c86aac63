//! Scopes: errors, cancellation, panics, and fibers that never outlive their scope.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use ferry_io::{
    Error, FileKind, OpenHow, Queue, both, first, for_each, give_way, is_cancelled, protect, scope, sleep,
    timeout,
};

use super::place::{everywhere, name, on_the_kernel};

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(3600);

/// The error of a test's fibers.
#[derive(Debug, PartialEq)]
enum Failure {
    Mine(u32),
    Cancelled,
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_cancelled() { Self::Cancelled } else { Self::Other(error) }
    }
}

#[test]
fn the_first_error_cancels_the_siblings_and_is_returned() {
    everywhere(|place| {
        let cancelled = Cell::new(0);
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                for _ in 0..3 {
                    fibers.spawn(async {
                        let slept = sleep(NEVER).await;
                        cancelled.set(cancelled.get() + 1);
                        Ok(slept?)
                    });
                }
                fibers.spawn(async {
                    sleep(SOON).await?;
                    Err(Failure::Mine(1))
                });
                Ok::<_, Failure>(())
            })
            .await
        });
        assert_eq!(outcome, Err(Failure::Mine(1)));
        assert_eq!(cancelled.get(), 3, "the siblings were told, and awaited");
    });
}

#[test]
fn a_scope_waits_for_what_its_cancelled_fibers_clean_up() {
    everywhere(|place| {
        let cleaned = Cell::new(false);
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                fibers.spawn(async {
                    let slept = sleep(NEVER).await;
                    assert!(is_cancelled());
                    protect(sleep(SOON)).await.expect("what is protected is not cancelled");
                    cleaned.set(true);
                    Ok(slept?)
                });
                Err::<(), _>(Failure::Mine(2))
            })
            .await
        });
        assert_eq!(outcome, Err(Failure::Mine(2)), "an error of the body cancels the fibers");
        assert!(cleaned.get());
    });
}

#[test]
fn a_failing_fiber_cancels_the_body() {
    everywhere(|place| {
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                fibers.spawn(async {
                    sleep(SOON).await?;
                    Err(Failure::Mine(3))
                });
                sleep(NEVER).await?;
                Ok(())
            })
            .await
        });
        assert_eq!(outcome, Err(Failure::Mine(3)));
    });
}

#[test]
fn a_fiber_that_fails_where_it_is_spawned_cancels_what_the_body_waits_for_already() {
    everywhere(|place| {
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                let waits = async { Ok::<_, Failure>(sleep(NEVER).await?) };
                let spawns = async {
                    give_way().await;
                    fibers.spawn(async { Err(Failure::Mine(4)) });
                    Ok(())
                };
                both(waits, spawns).await.map(|_| ())
            })
            .await
        });
        assert_eq!(outcome, Err(Failure::Mine(4)));
    });
}

#[test]
fn a_fiber_that_cancels_the_scope_cancels_the_body_and_the_siblings() {
    everywhere(|place| {
        let told = Cell::new(0);
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                let handle = fibers.clone();
                fibers.spawn(async {
                    let slept = sleep(NEVER).await;
                    told.set(told.get() + 1);
                    Ok(slept?)
                });
                fibers.spawn(async move {
                    sleep(SOON).await?;
                    handle.cancel();
                    protect(sleep(SOON)).await?;
                    Ok(())
                });
                let slept = sleep(NEVER).await;
                told.set(told.get() + 1);
                Ok::<_, Failure>(slept?)
            })
            .await
        });
        assert_eq!(outcome, Err(Failure::Cancelled));
        assert_eq!(told.get(), 2);
    });
}

#[test]
fn an_inner_scope_ends_before_the_outer_one_goes_on() {
    everywhere(|place| {
        let log = RefCell::new(Vec::new());
        let outcome = place.run(async |_, _| {
            scope(async |outer| {
                outer.spawn(async {
                    let inner = scope(async |fibers| {
                        fibers.spawn(async {
                            sleep(SOON).await?;
                            log.borrow_mut().push("inner fiber");
                            Ok(())
                        });
                        Err::<(), _>(Failure::Mine(5))
                    })
                    .await;
                    assert_eq!(inner, Err(Failure::Mine(5)), "an inner error stays within");
                    log.borrow_mut().push("outer fiber");
                    Ok(())
                });
                sleep(SOON * 3).await?;
                log.borrow_mut().push("body");
                Ok::<_, Failure>(())
            })
            .await
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(*log.borrow(), ["outer fiber", "body"], "the inner fiber was cancelled");
    });
}

#[test]
fn fibers_spawn_fibers_in_their_own_scope() {
    everywhere(|place| {
        let ended = Cell::new(0);
        place
            .run(async |_, _| {
                scope(async |fibers| {
                    for _ in 0..3 {
                        let (handle, ended) = (fibers.clone(), &ended);
                        fibers.spawn(async move {
                            for _ in 0..3 {
                                handle.spawn(async move {
                                    give_way().await;
                                    ended.set(ended.get() + 1);
                                    Ok::<_, Failure>(())
                                });
                            }
                            ended.set(ended.get() + 1);
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await
            })
            .expect("no fiber fails");
        assert_eq!(ended.get(), 12);
    });
}

#[test]
fn a_panic_goes_through_the_scope_and_drops_the_siblings() {
    everywhere(|place| {
        let sibling = Rc::new(());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            place.run(async |_, _| {
                scope(async |fibers| {
                    let held = Rc::clone(&sibling);
                    fibers.spawn(async move {
                        let slept = sleep(NEVER).await;
                        drop(held);
                        Ok(slept?)
                    });
                    fibers.spawn(async {
                        sleep(SOON).await?;
                        std::panic::panic_any(7_u32)
                    });
                    Ok::<_, Failure>(())
                })
                .await
            })
        }));
        let panic = outcome.expect_err("the panic is not swallowed");
        assert_eq!(panic.downcast_ref(), Some(&7_u32));
        assert_eq!(Rc::strong_count(&sibling), 1, "the sibling is gone");
    });
}

#[test]
fn both_gives_both_values_or_the_first_error() {
    everywhere(|place| {
        let values = place.run(async |_, _| {
            let one = async {
                sleep(SOON).await?;
                Ok::<_, Failure>(1)
            };
            both(one, async { Ok("two") }).await
        });
        assert_eq!(values, Ok((1, "two")));
        let failed: Result<((), ()), _> = place.run(async |_, _| {
            let waits = async { Ok::<_, Failure>(sleep(NEVER).await?) };
            both(waits, async { Err(Failure::Mine(6)) }).await
        });
        assert_eq!(failed, Err(Failure::Mine(6)));
    });
}

#[test]
fn first_gives_the_winner_and_awaits_the_loser() {
    everywhere(|place| {
        let cleaned = Cell::new(false);
        let winner = place.run(async |_, _| {
            let slow = async {
                sleep(NEVER).await.expect_err("it is cancelled");
                protect(sleep(SOON)).await.expect("protected");
                cleaned.set(true);
                "slow"
            };
            let fast = async {
                sleep(SOON).await.expect("not cancelled");
                "fast"
            };
            first(slow, fast).await
        });
        assert_eq!(winner, "fast");
        assert!(cleaned.get());
    });
}

#[test]
fn for_each_reaches_its_bound_and_never_exceeds_it() {
    everywhere(|place| {
        let (running, most, begun) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
        place
            .run(async |_, _| {
                for_each(5, 0..40_u64, async |item| {
                    begun.borrow_mut().push(item);
                    running.set(running.get() + 1);
                    most.set(most.get().max(running.get()));
                    sleep(Duration::from_micros(item * 37 % 11 * 50)).await?;
                    running.set(running.get() - 1);
                    Ok::<_, Failure>(())
                })
                .await
            })
            .expect("no item fails");
        assert_eq!(most.get(), 5);
        assert_eq!(*begun.borrow(), (0..40).collect::<Vec<_>>(), "in order, each once");
    });
}

#[test]
fn for_each_begins_nothing_after_an_error() {
    everywhere(|place| {
        let (begun, ended) = (Cell::new(0), Cell::new(0));
        let outcome = place.run(async |_, _| {
            for_each(3, 0..1000, async |item| {
                begun.set(begun.get() + 1);
                let outcome = sleep(if item == 1 { SOON } else { NEVER }).await;
                ended.set(ended.get() + 1);
                if item == 1 { Err(Failure::Mine(8)) } else { Ok(outcome?) }
            })
            .await
        });
        assert_eq!(outcome, Err(Failure::Mine(8)));
        assert_eq!((begun.get(), ended.get()), (3, 3), "those that ran were awaited");
    });
}

#[test]
fn a_program_without_fibers_needs_nothing_but_its_body() {
    everywhere(|place| assert_eq!(place.run(async |_, _| 3), 3));
}

/// Regression: `for_each` ended early if its worker was due to take completions while no fiber was alive, and a copy
/// lost files without an error.
#[test]
fn for_each_takes_every_item_though_completions_come_in_between() {
    everywhere(|place| {
        let taken = Cell::new(0);
        place
            .run(async |_, folder| {
                let file = folder.open(&name("file"), OpenHow::create(0o600)).await?;
                let syncs = for_each(4, 0..100, async |_| file.sync().await);
                let stats = for_each(1, 0..5_000, async |_| {
                    taken.set(taken.get() + 1);
                    file.stat().await.map(|_| ())
                });
                both(syncs, stats).await
            })
            .unwrap();
        assert_eq!(taken.get(), 5_000);
    });
}

#[test]
fn a_run_within_a_run_leaves_the_outer_one_usable() {
    on_the_kernel(|place| {
        let kind = place.run(async |_, folder| {
            place.run(async |_, inner| inner.stat().await.map(|_| ())).expect("the inner one works");
            folder.stat().await.map(|stat| stat.kind)
        });
        assert_eq!(kind, Ok(FileKind::Directory));
    });
}

#[test]
fn who_gives_way_lets_the_others_run() {
    everywhere(|place| {
        let turns = RefCell::new(Vec::new());
        let outcome = place.run(async |_, _| {
            for_each(2, ["one", "other"], async |name| {
                for _ in 0..3 {
                    turns.borrow_mut().push(name);
                    give_way().await;
                }
                Ok::<(), Failure>(())
            })
            .await
        });
        assert_eq!(outcome, Ok(()));
        let turns = turns.into_inner();
        let begun = turns.iter().position(|name| *name == "other");
        let ended = turns.iter().rposition(|name| *name == "one");
        assert!(turns.len() == 6 && begun < ended, "{turns:?}");
    });
}

/// A fiber outside the scope spawns in it while the scope waits.
#[test]
fn a_fiber_that_is_spawned_from_outside_is_woken() {
    on_the_kernel(|place| {
        let outcome: Result<((), ()), Error> = place.run(async |_, _| {
            let handed = RefCell::new(None);
            let queue = Rc::new(Queue::new(1));
            let within = scope(async |scope| {
                handed.replace(Some(scope.clone()));
                queue.pop().await.map(drop)
            });
            let outside = async {
                give_way().await;
                let queue = Rc::clone(&queue);
                if let Some(scope) = handed.take() {
                    scope.spawn(async move {
                        sleep(Duration::from_millis(1)).await?;
                        queue.push(()).await.map_err(|_| unreachable!("it is open"))
                    });
                }
                Ok(())
            };
            timeout(Duration::from_secs(20), both(within, outside)).await
        });
        outcome.expect("it ends");
    });
}
