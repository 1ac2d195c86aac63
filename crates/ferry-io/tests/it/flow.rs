//! Copying between two files: every size, short transfers, sources that change meanwhile.

use std::cell::Cell;

use ferry_io::flow::{self, Flow};
use ferry_io::{Decision, Error, OpenHow, Operation, Options, Reason};

use super::place::{Place, everywhere, in_simulation, name, pattern};

const BLOCK: usize = 4096;

/// Copies `source` to `target` and says where the source ended; `during` is told of each block's bytes.
fn copy(place: &Place, end: u64, depth: usize, during: impl Fn(u64)) -> Result<u64, Error> {
    place.run(async |io, folder| {
        let source = folder.open(&name("source"), OpenHow::read()).await?;
        let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
        let flow = Flow { overlap: depth > 1, ..Flow::buffered(depth, BLOCK) };
        let copied = flow::copy(&io, &source, &target, (0, end), flow, during).await;
        assert_eq!(io.free_blocks(), io.blocks());
        copied
    })
}

#[test]
fn every_size_is_copied_to_the_byte() {
    for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77] {
        for depth in [1, 4, 20] {
            everywhere(|place| {
                place.make_file("source", &pattern(size));
                let told = Cell::new(0);
                let end = copy(place, size as u64, depth, |count| told.set(told.get() + count));
                assert_eq!(end.expect("it is copied"), size as u64);
                assert_eq!(told.get(), size as u64);
                assert_eq!(place.bytes_of("target"), pattern(size));
            });
        }
    }
}

#[test]
fn a_source_shorter_than_it_was_said_to_be_ends() {
    everywhere(|place| {
        place.make_file("source", &pattern(10_000));
        let end = copy(place, 100_000, 4, |_| ()).expect("it ends");
        assert_eq!(end, 10_000);
        assert_eq!(place.bytes_of("target"), pattern(10_000));
    });
}

#[test]
fn a_source_that_shrinks_meanwhile_ends() {
    everywhere(|place| {
        place.make_file("source", &pattern(20 * BLOCK));
        let kept = 3 * BLOCK + 100;
        let end = copy(place, 20 * BLOCK as u64, 2, |_| place.resize("source", kept as u64));
        let end = usize::try_from(end.expect("it ends")).expect("it fits");
        assert!(end < 20 * BLOCK, "it noticed");
        assert!(end >= kept, "nothing that was there throughout is missing");
        let target = place.bytes_of("target");
        assert_eq!(target[..kept], pattern(20 * BLOCK)[..kept]);
    });
}

#[test]
fn a_growing_source_ends() {
    everywhere(|place| {
        place.make_file("source", &pattern(5 * BLOCK));
        let grown = Cell::new(5 * BLOCK as u64);
        let end = copy(place, 5 * BLOCK as u64, 2, |_| {
            grown.set(grown.get() + BLOCK as u64);
            place.resize("source", grown.get());
        });
        assert_eq!(end.expect("it ends"), 5 * BLOCK as u64);
        assert_eq!(place.bytes_of("target"), pattern(5 * BLOCK));
    });
}

#[test]
fn transfers_that_are_always_short_are_resumed_where_they_stopped() {
    in_simulation(|place| {
        place.world().expect("simulated").change(|settings| settings.short_transfers = 1_000_000);
        place.make_file("source", &pattern(9 * BLOCK + 5));
        copy(place, 9 * BLOCK as u64 + 5, 3, |_| ()).expect("it is copied");
        assert_eq!(place.bytes_of("target"), pattern(9 * BLOCK + 5));
    });
}

#[test]
fn the_first_failing_block_ends_the_copy() {
    use ferry_io::sim::Fault;
    for operation in [Operation::Read, Operation::Write] {
        in_simulation(|place| {
            place.make_file("source", &pattern(30 * BLOCK));
            place.world().expect("simulated").change(|settings| {
                settings.faults.push(Fault::nth(operation, 7, ferry_io::Errno::IO));
            });
            let error = copy(place, 30 * BLOCK as u64, 4, |_| ()).expect_err("it fails");
            assert_eq!(error.operation, operation);
            assert!(error.is(ferry_io::Errno::IO));
        });
    }
}

#[test]
fn quick_overlapped_writes_do_not_stop_asking() {
    let place = Place::posix();
    let bytes = pattern(40 * 8192);
    place.make_file("source", &bytes);
    let options = Options { blocks: 8, ..place.options() };
    let (read, stats) = place.run_with(&options, async |io, folder| {
        let source = folder.open(&name("source"), OpenHow::read()).await?;
        let target = folder.open(&name("target"), OpenHow::create(0o600)).await?;
        let flow = Flow { overlap: true, ..Flow::buffered(1, io.block_size()) };
        flow::copy(&io, &source, &target, (0, bytes.len() as u64), flow, |_| ()).await?;
        for _ in 0..50 {
            source.read_at(io.block().await?, 0).await.1?;
        }
        Ok::<_, Error>(())
    });
    read.expect("it is copied and read");
    let is_unasked = |d: &&Decision| d.operation == Operation::Read && d.reason == Reason::RecentlyFast;
    assert_eq!(stats.decisions.iter().find(is_unasked), None);
}
