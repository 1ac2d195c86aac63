//! Cancelled and dropped operations leave nothing behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use ferry_io::{Error, Io, OpenHow, for_each, scope, sleep, timeout};

use super::place::{everywhere, name, pattern, poll_once};

/// Waits until every block is back; those of dropped operations come back on completion.
async fn all_blocks_come_back(io: &Io) {
    let back = async {
        while io.free_blocks() < io.blocks() {
            sleep(Duration::from_micros(200)).await?;
        }
        Ok(())
    };
    timeout(Duration::from_secs(30), back).await.expect("every block comes back");
}

#[test]
fn cancelled_operations_give_back_descriptors_and_blocks() {
    everywhere(|place| {
        place.make_file("file", &pattern(100_000));
        for after_us in [0, 20, 100, 400, 2000] {
            place.run(async |io, folder| {
                let outcome = scope(async |fibers| {
                    for fiber in 0..20_u64 {
                        let (io, folder) = (&io, &folder);
                        fibers.spawn(async move {
                            loop {
                                let file = folder.open(&name("file"), OpenHow::read()).await?;
                                let (_, count) = file.read_at(io.block().await?, fiber * 4096).await;
                                count?;
                                folder.stat_entry(&name("file"), false).await?;
                            }
                        });
                    }
                    sleep(Duration::from_micros(after_us)).await?;
                    fibers.cancel();
                    Ok(())
                })
                .await;
                assert!(outcome.is_err_and(|error: Error| error.is_cancelled()));
                assert_eq!(io.free_blocks(), io.blocks(), "a cancelled scope holds no block");
                assert_eq!(place.open_descriptors().len(), 1, "only the folder is open");
            });
        }
    });
}

#[test]
fn futures_dropped_in_flight_give_back_what_they_own() {
    everywhere(|place| {
        place.make_file("file", &pattern(100_000));
        place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            for round in 0..30_u64 {
                let block = io.block().await.expect("not cancelled");
                let mut read = Box::pin(file.read_at(block, round * 1000));
                poll_once(&mut read).await;
                drop(read);
                let file_name = name("file");
                let mut opening = Box::pin(folder.open(&file_name, OpenHow::read()));
                poll_once(&mut opening).await;
                drop(opening);
            }
            all_blocks_come_back(&io).await;
            let (block, count) = file.read_at(io.block().await.expect("not cancelled"), 0).await;
            let count = count.expect("reading goes on");
            assert_eq!(block.as_slice(), &pattern(100_000)[..count]);
        });
    });
}

#[test]
fn a_run_that_ends_with_operations_in_flight_reaps_them() {
    everywhere(|place| {
        place.make_file("file", &pattern(100_000));
        place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            let file_name = name("file");
            let mut left: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
            for index in 0..6 {
                let block = io.block().await.expect("not cancelled");
                let (file, folder, file_name) = (file.clone(), folder.clone(), file_name.clone());
                left.push(Box::pin(async move {
                    file.read_at(block, index * 4096).await.1.ok();
                    folder.open(&file_name, OpenHow::read()).await.ok();
                }));
            }
            for future in &mut left {
                poll_once(future).await;
            }
        });
    });
}

#[test]
fn a_panic_with_operations_in_flight_reaps_them() {
    everywhere(|place| {
        place.make_file("file", &pattern(100_000));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            place.run(async |io, folder| {
                for_each(8, 0..100_u64, async |item| {
                    let file = folder.open(&name("file"), OpenHow::read()).await?;
                    let (_, count) = file.read_at(io.block().await?, item * 512).await;
                    count?;
                    assert!(item < 20, "enough");
                    Ok::<_, Error>(())
                })
                .await
            })
        }));
        assert!(outcome.is_err());
    });
}

/// Regression: a future that outlived its run released the slot of another run's operation.
#[test]
fn a_future_that_outlives_its_run_does_no_harm_to_the_next() {
    everywhere(|place| {
        place.make_file("file", &pattern(20_000));
        let mut kept: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
        place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            for _ in 0..4 {
                let (file, io) = (file.clone(), io.clone());
                let mut future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
                    let block = io.block().await.expect("not cancelled");
                    file.read_at(block, 0).await.1.ok();
                });
                poll_once(&mut future).await;
                kept.push(future);
            }
        });
        place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            let mut read = Box::pin(file.read_at(io.block().await.expect("not cancelled"), 0));
            if !poll_once(&mut read).await {
                kept.clear();
                let (block, count) = read.await;
                assert_eq!(block.as_slice(), &pattern(20_000)[..count.expect("it is read")]);
            }
        });
    });
}

#[test]
fn stopping_ends_a_program_that_waits_for_nothing_in_particular() {
    everywhere(|place| {
        let outcome = place.run(async |io, _| {
            scope(async |fibers| {
                let queue = ferry_io::Queue::<u32>::new(1);
                fibers.spawn(async {
                    sleep(Duration::from_micros(50)).await?;
                    io.stop();
                    Ok(())
                });
                queue.pop().await
            })
            .await
        });
        assert!(outcome.expect_err("cancelled").is_cancelled());
    });
}
