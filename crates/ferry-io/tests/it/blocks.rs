//! Back-pressure by blocks, and the bound on descriptors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ferry_io::{
    Error, OpenHow, Options, RouteChoice, SetupError, for_each, map_blocks, scope, sleep, timeout,
};

use super::place::{errno, everywhere, in_simulation, name, pattern};

#[test]
fn more_fibers_than_blocks_take_turns() {
    everywhere(|place| {
        place.make_file("file", &pattern(64 * 1024));
        let (held, most) = (Cell::new(0), Cell::new(0));
        let waits = place.world().is_some();
        let options = place.options();
        let route = if waits { RouteChoice::Pool } else { options.route };
        let options = Options { blocks: 3, workers: std::num::NonZeroUsize::MIN, route, ..options };
        let (outcome, _) = place.run_with(&options, async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await?;
            for_each(40, 0..200_u64, async |item| {
                let block = io.block().await?;
                held.set(held.get() + 1);
                most.set(most.get().max(held.get()));
                let (block, count) = file.read_at(block, item % 8 * 8192).await;
                held.set(held.get() - 1);
                drop(block);
                count.map(|_| ())
            })
            .await?;
            assert_eq!(io.free_blocks(), io.blocks());
            Ok::<_, Error>(())
        });
        outcome.expect("everybody gets a block");
        assert!(most.get() <= 3);
        assert!(most.get() == 3 || !waits, "all are used where reading waits");
    });
}

/// Regression: a fiber polled for another reason was in line twice. The wake-up of its second place was lost, with a
/// block free and others asleep.
#[test]
fn a_waiter_that_gives_up_passes_its_turn_on() {
    everywhere(|place| {
        let options = Options { blocks: 1, workers: std::num::NonZeroUsize::MIN, ..place.options() };
        let (outcome, _) = place.run_with(&options, async |io, _| {
            scope(async |fibers| {
                let first = io.block().await?;
                for waiter in 0..12_u64 {
                    let io = &io;
                    fibers.spawn(async move {
                        if waiter % 3 == 0 {
                            // Polled often while it waits, and dropped when its turn comes.
                            let limit = Duration::from_micros(300 + 100 * waiter);
                            timeout(limit, async { io.block().await.map(drop) }).await.ok();
                            return Ok(());
                        }
                        let block = io.block().await?;
                        sleep(Duration::from_micros(120)).await?;
                        drop(block);
                        Ok(())
                    });
                }
                sleep(Duration::from_micros(900)).await?;
                drop(first);
                Ok(())
            })
            .await
        });
        outcome.map_err(|error: Error| error.to_string()).expect("everybody gets the block");
    });
}

#[test]
fn descriptors_are_bounded_by_what_the_program_asks_for_at_once() {
    everywhere(|place| {
        for index in 0..40 {
            place.make_file(&format!("{index}"), b"x");
        }
        let most = Cell::new(0);
        place
            .run(async |_, folder| {
                for_each(6, 0..40, async |index| {
                    let file = folder.open(&name(format!("{index}")), OpenHow::read()).await?;
                    most.set(most.get().max(place.open_descriptors().len()));
                    file.stat().await.map(|_| ())
                })
                .await
            })
            .expect("all are opened");
        assert!(most.get() <= 7, "six files and their folder, not {}", most.get());
    });
}

#[test]
fn a_simulated_limit_of_descriptors_is_told_and_kept() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.change(|settings| settings.descriptors = 20).file("file", b"x");
        place.run(async |io, folder| {
            assert_eq!(io.descriptors(), 8, "some are kept for what is not an operation");
            let mut files = Vec::new();
            let refused = loop {
                match folder.open(&name("file"), OpenHow::read()).await {
                    Ok(file) => files.push(file),
                    Err(error) => break Err::<(), _>(error),
                }
            };
            assert_eq!(errno(refused), ferry_io::Errno::MFILE);
            assert_eq!(files.len(), 19);
        });
    });
}

#[test]
fn an_operation_outside_a_run_panics() {
    everywhere(|place| {
        let mut kept = None;
        place.run(async |_, folder| kept = Some(folder));
        let folder = kept.take().expect("the folder outlives the run");
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut operation = Box::pin(folder.stat());
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            let _ended = operation.as_mut().poll(&mut cx).is_ready();
        }));
        let panic = outcome.expect_err("there is nothing to run it");
        let message = panic.downcast_ref::<&str>().expect("a message");
        assert!(message.contains("only within ferry_io::run"), "{message}");
    });
}

#[test]
fn who_finds_no_descriptor_waits_for_one() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.change(|settings| settings.descriptors = 20).file("file", b"x");
        let opened = place.run(async |_, folder| {
            for_each(40, 0..100, async |_| {
                let file = folder.open(&name("file"), OpenHow::read()).await?;
                sleep(Duration::from_millis(5)).await?;
                drop(file);
                Ok::<_, Error>(())
            })
            .await
        });
        assert_eq!(opened, Ok(()));
    });
}

#[test]
fn blocks_beyond_memory_or_of_odd_size_are_refused() {
    let refusal = |count, bytes| match map_blocks(count, bytes) {
        Err(SetupError::BadOption { name, .. }) => name,
        other => panic!("{count} blocks of {bytes} bytes: {:?}", other.map(|blocks| blocks.len())),
    };
    assert_eq!([refusal(1, 0), refusal(1, 100)], ["block size"; 2]);
    // Both products wrap in 64 bits, the second to 16384.
    assert_eq!([refusal(usize::MAX, 4096), refusal(4, (1 << 62) + 4096)], ["number of blocks"; 2]);
    assert_eq!(map_blocks(3, 8192).unwrap().len(), 3);
}
