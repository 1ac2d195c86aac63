//! Several blocks in one call.

use ferry_io::sim::Fault;
use ferry_io::{Block, Dir, Errno, Error, Io, OpenHow, Operation, Options, Route};

use super::place::{Place, errno, everywhere, in_simulation, name, on_the_kernel, pattern};

const BLOCK: usize = 4096;

fn options(place: &Place) -> Options {
    Options { block_size: BLOCK, blocks: 8, ..place.options() }
}

/// Blocks of the given sizes that hold these bytes.
async fn filled(io: &Io, bytes: &[u8], sizes: &[usize]) -> Result<Vec<Block>, Error> {
    let mut rest = bytes;
    let mut blocks = Vec::new();
    for &size in sizes {
        let (part, behind) = rest.split_at(size);
        let mut block = io.block().await?;
        block.as_mut_capacity()[..size].copy_from_slice(part);
        block.set_filled(size);
        blocks.push(block);
        rest = behind;
    }
    Ok(blocks)
}

async fn empty(io: &Io, count: usize) -> Result<Vec<Block>, Error> {
    filled(io, &[], &vec![0; count]).await
}

fn bytes_of(blocks: &[Block]) -> Vec<u8> {
    blocks.iter().flat_map(|block| block.as_slice().iter().copied()).collect()
}

/// Reads four blocks of a file.
async fn read(io: &Io, dir: &Dir, at: u64) -> Result<(Vec<Block>, usize), Error> {
    let file = dir.open(&name("file"), OpenHow::read()).await?;
    let (blocks, count) = file.read_vectored_at(empty(io, 4).await?, at).await;
    Ok((blocks, count?))
}

#[test]
fn what_blocks_hold_is_written_one_behind_the_other() {
    everywhere(|place| {
        let bytes = pattern(3 * BLOCK);
        for sizes in [&[BLOCK, 100, 0, 1, BLOCK][..], &[0, 7], &[BLOCK], &[0], &[]] {
            let size: usize = sizes.iter().sum();
            let written = place.run_with(&options(place), async |io, dir| {
                let file = dir.open(&name("new"), OpenHow::create(0o600)).await?;
                let blocks = filled(&io, &bytes, sizes).await?;
                let (blocks, written) = file.write_vectored_at(blocks, 5).await;
                assert_eq!(bytes_of(&blocks), bytes[..size], "they come back as they were");
                written?;
                drop(blocks);
                assert_eq!(io.free_blocks(), io.blocks());
                dir.unlink(&name("new")).await?;
                let file_again = file.stat().await?;
                let wanted = if size == 0 { 0 } else { 5 + size as u64 };
                assert_eq!(file_again.size, wanted);
                Ok::<_, Error>(())
            });
            written.0.expect("it is written");
        }
    });
}

#[test]
fn what_was_written_is_read_whole() {
    everywhere(|place| {
        let bytes = pattern(9 * BLOCK);
        place.run_with(&options(place), async |io, dir| {
            let file = dir.open(&name("file"), OpenHow::create(0o600)).await.expect("it is new");
            for (index, part) in bytes.chunks(4 * BLOCK).enumerate() {
                let sizes: Vec<_> = part.chunks(BLOCK).map(<[u8]>::len).collect();
                let blocks = filled(&io, part, &sizes).await.expect("not cancelled");
                file.write_vectored_at(blocks, (index * 4 * BLOCK) as u64).await.1.expect("there is room");
            }
            for at in [0, 1, BLOCK - 1, 4 * BLOCK + 77, 8 * BLOCK + 1] {
                let (blocks, count) = read(&io, &dir, at as u64).await.expect("it is there");
                assert_eq!(count, (bytes.len() - at).min(4 * BLOCK), "until it is full or the file ends");
                assert_eq!(bytes_of(&blocks), bytes[at..at + count]);
                let full = count.div_ceil(BLOCK);
                assert!(blocks[full..].iter().all(|block| block.as_slice().is_empty()));
            }
        });
        assert_eq!(place.bytes_of("file"), bytes);
    });
}

#[test]
fn a_read_at_the_end_finds_nothing() {
    everywhere(|place| {
        place.make_file("file", &pattern(BLOCK));
        for size in [BLOCK, 1, 0] {
            place.resize("file", size as u64);
            place.run_with(&options(place), async |io, dir| {
                for at in [size, size + 1, 10 * BLOCK] {
                    let (blocks, count) = read(&io, &dir, at as u64).await.expect("it is there");
                    assert_eq!((count, bytes_of(&blocks)), (0, Vec::new()));
                }
                let file = dir.open(&name("file"), OpenHow::read()).await.expect("it is there");
                assert_eq!(file.read_vectored_at(Vec::new(), 0).await.1, Ok(0));
            });
        }
    });
}

#[test]
fn a_refusal_gives_the_blocks_back() {
    everywhere(|place| {
        place.make_file("file", &pattern(100));
        place.run_with(&options(place), async |io, dir| {
            let reader = dir.open(&name("file"), OpenHow::read()).await.expect("it is there");
            let writer = dir.open(&name("file"), OpenHow::write()).await.expect("it is there");
            let blocks = filled(&io, &pattern(20), &[10, 10]).await.expect("not cancelled");
            let (blocks, refused) = reader.write_vectored_at(blocks, 0).await;
            assert_eq!((errno(refused), bytes_of(&blocks)), (Errno::BADF, pattern(20)));
            let (blocks, refused) = writer.read_vectored_at(blocks, 0).await;
            assert_eq!((errno(refused), blocks.len()), (Errno::BADF, 2));
        });
    });
}

/// Beyond the largest offset, which preadv2(2) and a ring take for the file's own position.
#[test]
fn there_is_no_place_beyond_the_last() {
    everywhere(|place| {
        place.make_file("file", &pattern(100));
        place.run_with(&options(place), async |io, dir| {
            let (read, write) = (OpenHow::read(), OpenHow::write());
            let blocks = filled(&io, &pattern(1), &[1]).await.expect("not cancelled");
            let file = dir.open(&name("file"), write).await.expect("it is there");
            let (blocks, refused) = file.write_vectored_at(blocks, u64::MAX).await;
            assert_eq!(errno(refused), Errno::INVAL);
            let file = dir.open(&name("file"), read).await.expect("it is there");
            assert_eq!(errno(file.read_vectored_at(blocks, u64::MAX).await.1), Errno::INVAL);
        });
    });
}

#[test]
fn transfers_that_are_always_short_are_resumed_in_the_middle_of_a_block() {
    in_simulation(|place| {
        place.world().expect("simulated").change(|settings| settings.short_transfers = 1_000_000);
        let bytes = pattern(3 * BLOCK + 5);
        place.run_with(&options(place), async |io, dir| {
            let file = dir.open(&name("file"), OpenHow::create(0o600)).await.expect("it is new");
            let sizes = [BLOCK, BLOCK, BLOCK, 5];
            let blocks = filled(&io, &bytes, &sizes).await.expect("not cancelled");
            file.write_vectored_at(blocks, 0).await.1.expect("it is written");
            let (blocks, count) = read(&io, &dir, 0).await.expect("it is there");
            assert_eq!((count, bytes_of(&blocks)), (bytes.len(), bytes.clone()));
        });
    });
}

#[test]
fn what_was_read_before_a_failure_is_not_lost() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        place.make_file("file", &pattern(4 * BLOCK));
        world.change(|settings| {
            settings.short_transfers = 1_000_000;
            settings.faults.push(Fault::nth(Operation::Read, 2, Errno::IO));
        });
        place.run_with(&options(place), async |io, dir| {
            let file = dir.open(&name("file"), OpenHow::read()).await.expect("it is there");
            let blocks = empty(&io, 4).await.expect("not cancelled");
            let (blocks, failed) = file.read_vectored_at(blocks, 0).await;
            assert_eq!(errno(failed), Errno::IO);
            let read = bytes_of(&blocks);
            assert!(!read.is_empty() && read == pattern(4 * BLOCK)[..read.len()]);
        });
    });
}

#[test]
fn several_blocks_are_one_operation() {
    on_the_kernel(|place| {
        let (_, stats) = place.run_with(&options(place), async |io, dir| {
            let file = dir.open(&name("file"), OpenHow::create(0o600)).await.expect("it is new");
            let blocks = filled(&io, &pattern(4 * BLOCK), &[BLOCK; 4]).await.expect("not cancelled");
            file.write_vectored_at(blocks, 0).await.1.expect("there is room");
            read(&io, &dir, 0).await.expect("it is there")
        });
        let count = |operation: Operation| stats.operations[operation as usize].iter().sum::<u64>();
        assert_eq!((count(Operation::Write), count(Operation::Read)), (1, 1));
        if options(place).route == ferry_io::RouteChoice::Ring {
            let ring = stats.operations[Operation::Write as usize][Route::Ring as usize];
            assert_eq!((ring, stats.backend), (1, "uring"));
        }
    });
}
