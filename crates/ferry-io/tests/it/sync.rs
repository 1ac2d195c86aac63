//! Semaphores and queues: bounds, closing, cancellation.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use ferry_io::{Error, Queue, Semaphore, for_each, give_way, is_cancelled, scope, sleep, timeout};

use super::place::{everywhere, on_the_kernel};

const SOON: Duration = Duration::from_millis(1);

#[test]
fn a_semaphore_bounds_who_holds_it() {
    everywhere(|place| {
        let semaphore = Semaphore::new(3);
        let (most, served) = (Cell::new(0), Cell::new(0));
        place
            .run(async |_, _| {
                for_each(50, 0..50_u64, async |item| {
                    let _permit = semaphore.acquire().await?;
                    most.set(most.get().max(3 - semaphore.free()));
                    sleep(Duration::from_micros(item % 7 * 30)).await?;
                    served.set(served.get() + 1);
                    Ok::<_, Error>(())
                })
                .await
            })
            .expect("everybody is served");
        assert_eq!((most.get(), served.get(), semaphore.free()), (3, 50, 3));
    });
}

#[test]
fn who_gives_up_waiting_for_a_permit_takes_none() {
    everywhere(|place| {
        let semaphore = Semaphore::new(1);
        place
            .run(async |_, _| {
                let held = semaphore.acquire().await?;
                let waited = timeout(SOON, async { semaphore.acquire().await.map(|_| ()) }).await;
                assert!(waited.is_err());
                drop(held);
                semaphore.acquire().await.map(|_| ())
            })
            .expect("the permit is free again");
        assert_eq!(semaphore.free(), 1);
    });
}

#[test]
fn a_queue_holds_no_more_than_its_bound_and_keeps_the_order() {
    everywhere(|place| {
        let queue = Queue::new(4);
        let (most, taken) = (Cell::new(0), RefCell::new(Vec::new()));
        place
            .run(async |_, _| {
                scope(async |fibers| {
                    fibers.spawn(async {
                        for item in 0..100 {
                            queue.push(item).await?;
                            most.set(most.get().max(queue.len()));
                        }
                        queue.close();
                        Ok::<_, Error>(())
                    });
                    while let Some(item) = queue.pop().await? {
                        taken.borrow_mut().push(item);
                        if item % 9 == 0 {
                            sleep(SOON).await?;
                        }
                    }
                    Ok(())
                })
                .await
            })
            .expect("nobody is cancelled");
        assert_eq!(*taken.borrow(), (0..100).collect::<Vec<_>>());
        assert_eq!(most.get(), 4, "it fills up, and no more");
    });
}

#[test]
fn many_producers_and_consumers_lose_nothing() {
    everywhere(|place| {
        let queue = Queue::new(2);
        let sum = Cell::new(0);
        place
            .run(async |_, _| {
                scope(async |fibers| {
                    for _ in 0..3 {
                        fibers.spawn(async {
                            while let Some(item) = queue.pop().await? {
                                sum.set(sum.get() + item);
                                give_way().await;
                            }
                            Ok::<_, Error>(())
                        });
                    }
                    for_each(4, 1..=60, async |item| queue.push(item).await).await?;
                    queue.close();
                    Ok(())
                })
                .await
            })
            .expect("nobody is cancelled");
        assert_eq!(sum.get(), 60 * 61 / 2);
    });
}

#[test]
fn a_closed_queue_gives_what_it_has_and_takes_no_more() {
    everywhere(|place| {
        let queue = Queue::new(4);
        place.run(async |_, _| {
            queue.push(1).await.expect("there is room");
            queue.close();
            assert_eq!(queue.try_push(2), Err(2));
            assert!(queue.push(3).await.is_err());
            assert_eq!(queue.pop().await, Ok(Some(1)));
            assert_eq!(queue.pop().await, Ok(None));
            assert!(queue.is_empty());
        });
    });
}

#[test]
fn cancellation_ends_waiting_for_a_queue() {
    everywhere(|place| {
        let queue = Queue::<u32>::new(1);
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                fibers.spawn(async { queue.pop().await.map(|_| ()) });
                fibers.spawn(async {
                    sleep(SOON).await?;
                    Err(Error { operation: ferry_io::Operation::Wait, cause: ferry_io::Cause::TimedOut })
                });
                Ok::<_, Error>(())
            })
            .await
        });
        assert_eq!(outcome.expect_err("the failing fiber's").cause, ferry_io::Cause::TimedOut);
    });
}

#[test]
fn another_thread_wakes_a_fiber() {
    on_the_kernel(|place| {
        let (sender, receiver) = std::sync::mpsc::channel::<std::task::Waker>();
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flag = std::sync::Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let waker = receiver.recv().expect("a waker");
            std::thread::sleep(Duration::from_millis(10));
            flag.store(true, std::sync::atomic::Ordering::SeqCst);
            waker.wake();
        });
        place.run(async |_, _| {
            std::future::poll_fn(|cx| {
                if done.load(std::sync::atomic::Ordering::SeqCst) {
                    return std::task::Poll::Ready(());
                }
                sender.send(cx.waker().clone()).ok();
                std::task::Poll::Pending
            })
            .await;
            assert!(!is_cancelled());
        });
        thread.join().expect("the waking thread");
    });
}

#[test]
fn a_closed_queue_is_told_from_a_cancelled_scope() {
    everywhere(|place| {
        let pushed = place.run(async |_, _| {
            let queue = Queue::new(1);
            queue.close();
            queue.push(1).await
        });
        assert_eq!(pushed.expect_err("it takes no more").cause, ferry_io::Cause::Closed);
    });
}

#[test]
fn a_permit_that_is_not_taken_goes_to_the_next() {
    everywhere(|place| {
        let (semaphore, served) = (Semaphore::new(1), Cell::new(0));
        let (semaphore, served) = (&semaphore, &served);
        let outcome = place.run(async |_, _| {
            scope(async |fibers| {
                let first = semaphore.acquire().await?;
                for waiter in 0..12_u64 {
                    fibers.spawn(async move {
                        if waiter % 3 == 0 {
                            // Polled often while it waits, and dropped when its turn comes.
                            let limit = Duration::from_micros(300 + 100 * waiter);
                            timeout(limit, async { semaphore.acquire().await.map(drop) }).await.ok();
                            return Ok(());
                        }
                        let permit = semaphore.acquire().await?;
                        sleep(Duration::from_micros(120)).await?;
                        drop(permit);
                        served.set(served.get() + 1);
                        Ok(())
                    });
                }
                sleep(Duration::from_micros(900)).await?;
                drop(first);
                Ok::<_, Error>(())
            })
            .await
        });
        outcome.expect("everybody gets the permit");
        assert_eq!((served.get(), semaphore.free()), (8, 1));
    });
}

#[test]
fn a_permit_wakes_one_of_those_that_wait() {
    on_the_kernel(|place| {
        let (semaphore, polls) = (Semaphore::new(1), Cell::new(0));
        place
            .run(async |_, _| {
                for_each(100, 0..100, async |_| {
                    let mut acquiring = std::pin::pin!(semaphore.acquire());
                    let permit = std::future::poll_fn(|cx| {
                        polls.set(polls.get() + 1);
                        acquiring.as_mut().poll(cx)
                    });
                    let _permit = permit.await?;
                    give_way().await;
                    Ok::<_, Error>(())
                })
                .await
            })
            .expect("everybody is served");
        // Once to begin, and once for its turn.
        assert!(polls.get() <= 200, "{} polls", polls.get());
    });
}
