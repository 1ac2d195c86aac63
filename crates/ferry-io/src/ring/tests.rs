//! The ring against real files. Without io_uring a test prints SKIP, unless it tests just that.

mod answers;
mod degrade;
mod lifetime;
mod operations;
mod sightings;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use super::*;
use crate::options::{Backend, Options, RouteChoice};
use crate::{Dir, File, Io, Name, OpenHow, Stats, run};

/// Modes that need no particular device.
const MODES: [RingMode; 4] = [RingMode::Defer, RingMode::Coop, RingMode::Plain, RingMode::SqPoll];

/// One worker that sends all operations to its ring.
fn ring_options() -> Options {
    Options {
        backend: Backend::Uring,
        route: RouteChoice::Ring,
        workers: NonZeroUsize::MIN,
        ..Options::default()
    }
}

/// Returns true if a ring is available; else prints SKIP.
fn has_ring() -> bool {
    let there = probe(&ring_options());
    if let Err(error) = &there {
        eprintln!("SKIP: {error}");
    }
    there.is_ok()
}

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("one component")
}

/// Runs `main` in a fresh folder.
fn in_folder<T>(options: &Options, folder: &Path, main: impl AsyncFnOnce(&Io, Dir) -> T) -> (T, Stats) {
    run(options, async |io| {
        let dir = io.open_dir(folder).expect("the folder was just made");
        main(&io, dir).await
    })
    .expect("the options are within their limits")
}

fn pattern(size: usize) -> Vec<u8> {
    (0_u32..).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(size).collect()
}

async fn open_pair(dir: &Dir, source: &str, target: &str) -> (File, File) {
    let source = dir.open(&name(source), OpenHow::read()).await.expect("the source is there");
    let target = dir.open(&name(target), OpenHow::create(0o600)).await.expect("the target is new");
    (source, target)
}

/// Copies `source` to `target` with one fiber a block and `depth` blocks in flight.
async fn copy(io: &Io, dir: &Dir, target: &str, depth: usize) {
    let (from, to) = open_pair(dir, "source", target).await;
    let size = from.stat().await.expect("it is open").size;
    let offsets = (0..size).step_by(io.block_size());
    let copied = crate::for_each(depth, offsets, async |at| {
        let (block, count) = from.read_at(io.block().await?, at).await;
        count?;
        to.write_all_at(block, at).await.1
    });
    copied.await.expect("both are regular files");
}

#[test]
fn a_thousand_reads_are_a_handful_of_submissions() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(4_096_000)).unwrap();
    let options = Options { queue_depth: 1024, blocks: 1000, block_size: 4096, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |io, dir| {
        let file = dir.open(&name("file"), OpenHow::read()).await.unwrap();
        crate::for_each(1000, 0..1000_u64, async |index| {
            let (block, count) = file.read_at(io.block().await?, index * 4096).await;
            assert_eq!(count?, 4096);
            let at = usize::try_from(index * 1024).unwrap();
            let first = u32::try_from(at).unwrap().wrapping_mul(2_654_435_761);
            assert_eq!(block.as_slice()[..4], first.to_le_bytes());
            Ok::<(), crate::Error>(())
        })
        .await
        .unwrap();
    });
    assert_eq!(stats.submitted, 1001);
    assert!(stats.submissions <= 5, "{} submissions", stats.submissions);
    assert!(stats.ring_enters <= 10, "{} enters", stats.ring_enters);
}

/// Number of fibers that read one block after another, and of the blocks of each.
const READERS: (u64, u64) = (64, 50);

/// Returns the number of submissions of these fibers.
fn submissions_of_readers(early_batches: bool) -> u64 {
    let (fibers, rounds) = READERS;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(64 * 4096)).unwrap();
    let options = Options { blocks: 64, block_size: 4096, early_batches, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |io, dir| {
        let file = dir.open(&name("file"), OpenHow::read()).await.unwrap();
        crate::for_each(64, 0..fibers, async |index| {
            let mut block = io.block().await?;
            for _ in 0..rounds {
                let (back, count) = file.read_at(block, index * 4096).await;
                assert_eq!(count?, 4096);
                block = back;
            }
            Ok::<(), crate::Error>(())
        })
        .await
        .unwrap();
    });
    assert_eq!(stats.submitted, fibers * rounds + 1);
    stats.submissions
}

#[test]
fn a_batch_is_begun_while_the_rest_of_it_is_prepared() {
    if !has_ring() {
        return;
    }
    let (submissions, (_, rounds)) = (submissions_of_readers(true), READERS);
    // Batches of two, two, four and so on to 32, and the rest: more than one a round, far fewer than one a read.
    assert!(submissions >= 5 * rounds, "{submissions} submissions");
    assert!(submissions <= 8 * rounds, "{submissions} submissions");
}

#[test]
fn without_early_batches_the_requests_of_all_fibers_are_submitted_together() {
    if !has_ring() {
        return;
    }
    let (submissions, (_, rounds)) = (submissions_of_readers(false), READERS);
    assert!(submissions <= 2 * rounds, "{submissions} submissions");
}

#[test]
fn one_block_in_flight_enters_twice_a_block() {
    if !has_ring() {
        return;
    }
    for (block_size, blocks) in [(4096, 500), (1 << 20, 64)] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("source"), pattern(block_size * blocks)).unwrap();
        for queue_depth in [1, 256] {
            let options = Options { queue_depth, blocks: 2, block_size, ..ring_options() };
            let ((), stats) = in_folder(&options, folder.path(), async |io, dir| {
                copy(io, &dir, "target", 1).await;
                dir.unlink(&name("target")).await.unwrap();
            });
            let (enters, twice) = (stats.ring_enters, 2 * blocks as u64);
            assert!(enters.abs_diff(twice) * 20 <= twice, "{enters} enters for {blocks} of {block_size}");
        }
    }
}

#[test]
fn a_full_queue_makes_progress() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("source"), pattern(100 * 4096)).unwrap();
    for queue_depth in [1, 2] {
        let options = Options { queue_depth, blocks: 100, block_size: 4096, ..ring_options() };
        in_folder(&options, folder.path(), async |io, dir| {
            copy(io, &dir, "target", 100).await;
            crate::for_each(100, 0..100_u32, async |_| dir.stat().await.map(|_| ())).await.unwrap();
            dir.unlink(&name("target")).await.unwrap();
        });
    }
}

#[test]
fn every_mode_gives_the_same_bytes() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // An odd tail, and more blocks of the file than blocks of memory.
    let bytes = pattern(300 * 4096 + 123);
    fs::write(folder.path().join("source"), &bytes).unwrap();
    for ring_mode in MODES {
        for registered_buffers in [false, true] {
            let (queue_depth, blocks) = (16, 40);
            let options = Options {
                queue_depth,
                blocks,
                block_size: 4096,
                ring_mode,
                registered_buffers,
                ..ring_options()
            };
            let target = format!("{ring_mode:?} {registered_buffers}");
            let ((), stats) =
                in_folder(&options, folder.path(), async |io, dir| copy(io, &dir, &target, 32).await);
            assert!(fs::read(folder.path().join(&target)).unwrap() == bytes, "{target}");
            let mode = setup::mode_name(ring_mode);
            assert_eq!(stats.backend, "uring");
            assert!(stats.backend_reason.starts_with(&format!("io_uring ({mode})")), "{stats:?}");
        }
    }
}

#[test]
fn a_batch_costs_as_many_enters_as_it_is_deep() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("source"), pattern(512 * 4096)).unwrap();
    let options = Options { blocks: 64, block_size: 4096, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |io, dir| copy(io, &dir, "target", 32).await);
    assert!(stats.ring_enters < 512, "{} enters for 1024 requests, 32 in flight", stats.ring_enters);
}

#[test]
fn token_survives_the_kernel() {
    let key = Key { index: MOST_SLOTS - 1, generation: u32::MAX };
    let first = Key { index: 0, generation: 0 };
    for token in [
        Token::Request(key, Step::First),
        Token::Request(key, Step::Read),
        Token::Request(first, Step::Close),
        Token::Inbox,
        Token::Cancel,
    ] {
        assert_eq!(Token::from_user_data(token.to_user_data()), Some(token));
    }
    assert_eq!(Token::from_user_data(7), None);
}
