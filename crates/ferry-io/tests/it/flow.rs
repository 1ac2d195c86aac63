//! Copies between two files: all sizes, short transfers, and sources that change meanwhile.

use std::cell::Cell;

use ferry_io::flow::{self, Flow};
use ferry_io::{Decision, Errno, Error, OpenHow, Operation, Options, Reason};

use super::place::{Place, everywhere, in_simulation, name, on_the_kernel, pattern};

const BLOCK: usize = 4096;

/// By blocks; on the worker if only one is in flight.
fn by_blocks(depth: usize) -> Flow {
    Flow { overlap: depth > 1, ..Flow::buffered(depth, BLOCK) }
}

/// By blocks, and by the kernel as far as it copies.
fn both_ways(depth: usize) -> [Flow; 2] {
    [by_blocks(depth), Flow::offloaded(depth, BLOCK)]
}

/// Copies `source` to `target` and returns the source's end; calls `during` with each block's bytes.
fn copy(place: &Place, end: u64, flow: Flow, during: impl Fn(u64)) -> Result<u64, Error> {
    place.run(async |io, folder| {
        let source = folder.open(&name("source"), OpenHow::read()).await?;
        let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
        let copied = flow::copy(&io, &source, &target, (0, end), flow, during).await;
        assert_eq!(io.free_blocks(), io.blocks());
        copied
    })
}

#[test]
fn every_size_is_copied_to_the_byte() {
    for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77] {
        for flow in [1, 4, 20].into_iter().flat_map(both_ways) {
            everywhere(|place| {
                place.make_file("source", &pattern(size));
                let told = Cell::new(0);
                let end = copy(place, size as u64, flow, |count| told.set(told.get() + count));
                assert_eq!(end.expect("it is copied"), size as u64);
                assert_eq!(told.get(), size as u64);
                assert_eq!(place.bytes_of("target"), pattern(size));
            });
        }
    }
}

#[test]
fn what_is_less_than_a_unit_is_left_to_the_caller() {
    for depth in [1, 4] {
        everywhere(|place| {
            let bytes = pattern(5 * BLOCK + 1077);
            place.make_file("source", &bytes);
            let told = Cell::new(0);
            let flow = Flow { unit: 512, ..by_blocks(depth) };
            let end = copy(place, bytes.len() as u64, flow, |count| told.set(told.get() + count));
            let whole = 5 * BLOCK + 1024;
            assert_eq!((end, told.get()), (Ok(whole as u64), whole as u64));
            assert_eq!(place.bytes_of("target"), bytes[..whole]);
        });
    }
}

#[test]
fn a_part_in_the_middle_goes_to_the_same_place() {
    for flow in both_ways(4) {
        everywhere(|place| {
            let bytes = pattern(5 * BLOCK);
            place.make_file("source", &bytes);
            let (start, end) = (BLOCK + 1, 4 * BLOCK - 1);
            place.run(async |io, folder| {
                let source = folder.open(&name("source"), OpenHow::read()).await.expect("it is there");
                let target = folder.open(&name("target"), OpenHow::create(0o644)).await.expect("it is new");
                let range = (start as u64, end as u64);
                let copied = flow::copy(&io, &source, &target, range, flow, |_| ()).await;
                assert_eq!(copied, Ok(end as u64));
            });
            let target = place.bytes_of("target");
            assert!(target[..start].iter().all(|&byte| byte == 0) && target[start..] == bytes[start..end]);
        });
    }
}

#[test]
fn a_source_shorter_than_it_was_said_to_be_ends() {
    for flow in both_ways(4) {
        everywhere(|place| {
            place.make_file("source", &pattern(10_000));
            let end = copy(place, 100_000, flow, |_| ()).expect("it ends");
            assert_eq!(end, 10_000);
            assert_eq!(place.bytes_of("target"), pattern(10_000));
        });
    }
}

/// The kernel copies everything, a part, or nothing: the target is the same.
#[test]
fn what_the_kernel_will_not_copy_goes_by_blocks() {
    use ferry_io::sim::Fault;
    let size = 9 * BLOCK + 5;
    for errno in [Errno::XDEV, Errno::OPNOTSUPP, Errno::INVAL, Errno::IO] {
        for nth in [1, 2] {
            in_simulation(|place| {
                place.make_file("source", &pattern(size));
                place.world().expect("simulated").change(|settings| {
                    settings.short_transfers = 1_000_000;
                    settings.faults.push(Fault::nth(Operation::CopyRange, nth, errno));
                });
                let told = Cell::new(0);
                let end = copy(place, size as u64, Flow::offloaded(3, BLOCK), |n| told.set(told.get() + n));
                assert_eq!((end, told.get()), (Ok(size as u64), size as u64));
                assert_eq!(place.bytes_of("target"), pattern(size));
            });
        }
    }
}

/// A filesystem with copy_file_range(2) copies all bytes by it.
#[test]
fn what_the_kernel_copies_is_not_read() {
    on_the_kernel(|place| {
        place.make_file("source", &pattern(100_000));
        let (copied, stats) = place.run_with(&place.options(), async |io, folder| {
            let source = folder.open(&name("source"), OpenHow::read()).await?;
            let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
            flow::copy(&io, &source, &target, (0, 100_000), Flow::offloaded(4, BLOCK), |_| ()).await
        });
        assert_eq!(copied, Ok(100_000));
        let count = |operation: Operation| stats.operations[operation as usize].iter().sum::<u64>();
        assert_eq!((count(Operation::CopyRange), count(Operation::Read)), (1, 0));
    });
}

#[test]
fn a_source_that_shrinks_meanwhile_ends() {
    everywhere(|place| {
        place.make_file("source", &pattern(20 * BLOCK));
        let kept = 3 * BLOCK + 100;
        let end = copy(place, 20 * BLOCK as u64, by_blocks(2), |_| place.resize("source", kept as u64));
        let end = usize::try_from(end.expect("it ends")).expect("it fits");
        assert!(end < 20 * BLOCK, "it noticed");
        assert!(end >= kept, "nothing that was there throughout is missing");
        let target = place.bytes_of("target");
        assert_eq!(target[..kept], pattern(20 * BLOCK)[..kept]);
    });
}

/// Piece by piece, because each transfer is short.
#[test]
fn a_source_that_changes_while_the_kernel_copies_ends() {
    for grows in [false, true] {
        in_simulation(|place| {
            let size = 20 * BLOCK as u64;
            place.world().expect("simulated").change(|settings| settings.short_transfers = 1_000_000);
            place.make_file("source", &pattern(20 * BLOCK));
            let is = Cell::new(size);
            let end = copy(place, size, Flow::offloaded(2, BLOCK), |_| {
                let (block, was) = (BLOCK as u64, is.get());
                is.set(if grows { was + block } else { was.saturating_sub(block).max(size / 4) });
                place.resize("source", is.get());
            });
            let end = end.expect("it ends");
            assert!(end <= size && end >= is.get().min(size), "{end} of {size}, {} at last", is.get());
            let kept = usize::try_from(is.get().min(size)).expect("it fits");
            assert_eq!(place.bytes_of("target")[..kept], pattern(20 * BLOCK)[..kept]);
        });
    }
}

#[test]
fn a_growing_source_ends() {
    everywhere(|place| {
        place.make_file("source", &pattern(5 * BLOCK));
        let grown = Cell::new(5 * BLOCK as u64);
        let end = copy(place, 5 * BLOCK as u64, by_blocks(2), |_| {
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
        copy(place, 9 * BLOCK as u64 + 5, by_blocks(3), |_| ()).expect("it is copied");
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
                // A single fault may hit joined writes, which are then tried one by one.
                settings.faults.push(Fault::from_nth(operation, 7, ferry_io::Errno::IO));
            });
            let error = copy(place, 30 * BLOCK as u64, by_blocks(4), |_| ()).expect_err("it fails");
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
