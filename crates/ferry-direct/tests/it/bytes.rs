//! Files past the page cache, over their own cache: reads return written bytes under any conditions.

use ferry_direct::{Access, DirectFile, DirectOptions};
use ferry_io::sim::Fault;
use ferry_io::{Errno, Error, Name, OpenHow, Operation, WhyBuffered, for_each};

use crate::place::{errno, everywhere, in_simulation, name, pattern};

const BLOCK: usize = 4096;

/// Few small blocks, so that every block is soon evicted.
fn few() -> DirectOptions {
    DirectOptions { block_bytes: BLOCK, blocks: 8, request_blocks: 2, ahead_blocks: 2, in_flight: 3 }
}

fn file_name() -> Name {
    name("file")
}

/// Returns the file's whole content.
async fn bytes_of(file: &DirectFile<'_>) -> Vec<u8> {
    let size = usize::try_from(file.size()).expect("it fits");
    let mut bytes = vec![0; size + 100];
    let count = file.read_into(&mut bytes, 0).await.expect("it is read");
    assert_eq!(count, size, "it ends where it ends");
    bytes.truncate(count);
    bytes
}

#[test]
fn every_size_is_kept_to_the_byte() {
    for size in [0, 1, 511, 512, 4095, 4096, 4097, 10 * BLOCK, 30 * BLOCK + 77] {
        everywhere(|place| {
            let written: Result<(), Error> = place.run(async |io, folder| {
                let file =
                    DirectFile::open(&io, &folder, &file_name(), OpenHow::create(0o644), few()).await?;
                file.write_from(&pattern(size), 0).await?;
                assert!(bytes_of(&file).await == pattern(size));
                file.close().await.expect("it is written");
                Ok(())
            });
            written.expect("nothing fails");
            assert!(place.bytes_of("file") == pattern(size), "{size} bytes");
        });
    }
}

#[test]
fn odd_parts_are_changed_and_nothing_else() {
    everywhere(|place| {
        let mut expected = pattern(20 * BLOCK + 1001);
        place.make_file("file", &expected);
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few()).await?;
            for (at, size) in [
                (0, 1),
                (4095, 2),
                (5000, 100),
                (3 * BLOCK + 7, 4 * BLOCK),
                (20 * BLOCK + 990, 11),
                (20 * BLOCK + 500, 1000),
            ] {
                let bytes = vec![u8::try_from(size % 251).expect("a byte"); size];
                file.write_from(&bytes, at as u64).await?;
                expected.resize(expected.len().max(at + size), 0);
                expected[at..at + size].copy_from_slice(&bytes);
                assert!(bytes_of(&file).await == expected, "a read after a write of {size} at {at} sees it");
            }
            file.flush().await.expect("it is written");
            assert!(place.bytes_of("file") == expected, "and so do others after a flush");
            file.close().await.expect("it was written");
            Ok(())
        });
        outcome.expect("nothing fails");
        assert!(place.bytes_of("file") == expected);
    });
}

#[test]
fn it_is_cut_off_and_made_longer() {
    everywhere(|place| {
        place.make_file("file", &pattern(10_000));
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few()).await?;
            file.write_from(&[7; 20_000], 5000).await?;
            file.truncate(6000).await?;
            file.truncate(9000).await?;
            file.write_from(b"end", 12_345).await?;
            file.close().await.expect("it is written");
            Ok(())
        });
        outcome.expect("nothing fails");
        let mut expected = pattern(5000);
        expected.resize(6000, 7);
        expected.resize(12_345, 0);
        expected.extend(b"end");
        assert!(place.bytes_of("file") == expected);
    });
}

/// Each fiber's part shares its first and last block with its neighbours'.
#[test]
fn fibers_share_a_file() {
    const PART: u64 = 10_007;
    everywhere(|place| {
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::create(0o600), few()).await?;
            for_each(6, 0..12_u64, async |fiber| {
                let value = u8::try_from(fiber + 1).expect("a byte");
                for at in (0..PART).step_by(1000) {
                    let size = usize::try_from(1000.min(PART - at)).expect("it fits");
                    file.write_from(&vec![value; size], fiber * PART + at).await?;
                    let mut bytes = vec![0; size];
                    assert_eq!(file.read_into(&mut bytes, fiber * PART + at).await, Ok(size));
                    assert!(bytes.iter().all(|&byte| byte == value), "its own");
                }
                if fiber % 3 == 0 {
                    file.flush().await.expect("nothing fails");
                }
                Ok::<(), Error>(())
            })
            .await?;
            file.close().await.expect("it is written");
            Ok(())
        });
        outcome.expect("nothing fails");
        let expected = (1..=12_u8).flat_map(|value| vec![value; 10_007]).collect::<Vec<_>>();
        assert!(place.bytes_of("file") == expected);
    });
}

#[test]
fn what_is_dropped_dirty_is_counted() {
    everywhere(|place| {
        place.make_file("file", &pattern(3 * BLOCK));
        let (outcome, stats) = place.run_with(&place.options(), async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few()).await?;
            file.write_from(&[1; 700], 100).await?;
            drop(file);
            Ok::<(), Error>(())
        });
        outcome.expect("nothing fails");
        assert_eq!(stats.unwritten_bytes, 700);
        assert_eq!(stats.explain()[0], "700 bytes of direct files were dropped unwritten");
        assert!(place.bytes_of("file") == pattern(3 * BLOCK), "they are nowhere");
    });
}

#[test]
fn a_failed_write_is_reported_once_and_tried_again() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("file", &pattern(4 * BLOCK));
        world.change(|settings| settings.faults.push(Fault::nth(Operation::Write, 1, Errno::IO)));
        place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few())
                .await
                .expect("it is there");
            file.write_from(&[9; 100], 5000).await.expect("it is in the cache");
            let failures = file.flush().await.expect_err("it can't be written");
            assert_eq!(failures.count(), 1);
            let failure = failures.failures[0];
            assert!(
                failure.error.is(Errno::IO) && (failure.offset, failure.size) == (4096, 4096),
                "{failure:?}"
            );
            assert!(place.bytes_of("file") == pattern(4 * BLOCK));
            file.flush().await.expect("the second time it works");
            assert!(place.bytes_of("file")[5000..5100] == [9; 100]);
            file.close().await.expect("and that was all");
        });
    });
}

#[test]
fn a_failed_sync_is_reported_once() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("file", b"x");
        world.change(|settings| settings.faults.push(Fault::nth(Operation::Sync, 1, Errno::IO)));
        place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few())
                .await
                .expect("it is there");
            let failures = file.flush().await.expect_err("it fails");
            assert_eq!(failures.to_string(), "sync: Input/output error");
            file.flush().await.expect("once");
            file.close().await.expect("and for all");
        });
    });
}

/// The data exceeds the cache and the filesystem is full. The writer gets the error, no fiber waits for ever, and no
/// byte is lost.
#[test]
fn a_full_filesystem_stops_the_writer_and_loses_nothing() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.change(|settings| settings.space = 3 * BLOCK as u64);
        let written = place.run(async |io, folder| {
            let how = OpenHow::create(0o644);
            let file = DirectFile::open(&io, &folder, &file_name(), how, few()).await.expect("it is new");
            let mut written = 0;
            let refused = loop {
                match file.write_from(&[5; 1000], written).await {
                    Ok(()) => written += 1000,
                    Err(error) => break error,
                }
                assert!(written < 100_000, "it must be told");
            };
            assert!(refused.is(Errno::NOSPC), "{refused:?}");
            world.change(|settings| settings.space = 1 << 30);
            let told = file.flush().await.err().map_or(0, |failures| failures.count());
            assert!(told <= 1, "one request at a time makes it longer");
            file.close().await.expect("now there is room");
            usize::try_from(written).expect("it fits")
        });
        let bytes = place.bytes_of("file");
        assert!(
            bytes.len() >= written && bytes.iter().all(|&byte| byte == 5),
            "{} of {written}",
            bytes.len()
        );
    });
}

#[test]
fn a_read_that_fails_is_reported_and_tried_again() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("file", &pattern(BLOCK));
        world.change(|settings| settings.faults.push(Fault::nth(Operation::Read, 1, Errno::IO)));
        place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::read(), few())
                .await
                .expect("it is there");
            let mut bytes = [0; 10];
            assert_eq!(errno(file.read_into(&mut bytes, 5).await), Errno::IO);
            assert_eq!(file.read_into(&mut bytes, 5).await, Ok(10));
            assert_eq!(errno(file.write_from(b"no", 0).await), Errno::BADF, "it is open for reading");
            assert_eq!(errno(file.truncate(0).await), Errno::INVAL);
            assert_eq!(errno(file.read_into(&mut bytes, u64::MAX - 5).await), Errno::INVAL);
        });
    });
}

#[test]
fn where_there_is_no_direct_io_it_says_why() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("file", &pattern(10_000));
        let access = || {
            place.run(async |io, folder| {
                let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few())
                    .await
                    .expect("it opens");
                file.write_from(b"any", 3333).await.expect("it is written");
                let access = file.access();
                file.close().await.expect("all the same");
                access
            })
        };
        let buffered = |why| Access::Buffered { why, uncached: false };
        assert_eq!(access(), Access::Direct { unit: 4096, alignment: 512, is_reported: true });
        world.change(|settings| settings.reports_alignment = false);
        assert_eq!(access(), Access::Direct { unit: 4096, alignment: 512, is_reported: false });
        world.change(|settings| settings.direct_alignment = 8192);
        assert_eq!(access(), buffered(WhyBuffered::Tried(Errno::INVAL)));
        world.change(|settings| settings.reports_alignment = true);
        assert_eq!(access(), buffered(WhyBuffered::Alignment(8192)));
        world.change(|settings| settings.direct_alignment = 0);
        assert_eq!(access(), buffered(WhyBuffered::NotThisFile));
        world.change(|settings| settings.opens_direct = false);
        assert_eq!(access(), buffered(WhyBuffered::Refused(Errno::INVAL)));
        assert_eq!(place.bytes_of("file")[3333..3336], *b"any");
    });
}

#[test]
fn what_is_outside_its_limits_is_refused() {
    in_simulation(|place| {
        place.make_file("file", b"x");
        let refused = [
            DirectOptions { block_bytes: 5000, ..few() },
            DirectOptions { block_bytes: 2048, ..few() },
            DirectOptions { blocks: 7, ..few() },
            DirectOptions { request_blocks: 3, ..few() },
            DirectOptions { request_blocks: 0, ..few() },
            DirectOptions { ahead_blocks: 3, ..few() },
            DirectOptions { in_flight: 0, ..few() },
            DirectOptions { in_flight: 65, ..few() },
        ];
        place.run(async |io, folder| {
            for options in refused {
                let opened = DirectFile::open(&io, &folder, &file_name(), OpenHow::read(), options).await;
                assert_eq!(
                    opened.err().and_then(|error| error.as_errno()),
                    Some(Errno::INVAL),
                    "{options:?}"
                );
            }
        });
    });
}

/// A reader in small pieces finds nearly all of them in the cache, in order or in strides.
#[test]
fn readers_are_run_ahead_of() {
    let options =
        DirectOptions { block_bytes: BLOCK, blocks: 128, request_blocks: 4, ahead_blocks: 32, in_flight: 8 };
    for stride in [1000, 3 * BLOCK as u64] {
        everywhere(|place| {
            place.make_file("file", &pattern(200 * BLOCK));
            if let Some(world) = place.world() {
                // A short transfer only goes on when the file is used next.
                world.change(|settings| settings.short_transfers = 0);
            }
            place.run(async |io, folder| {
                let how = OpenHow::read();
                let file =
                    DirectFile::open(&io, &folder, &file_name(), how, options).await.expect("it is there");
                let mut bytes = [0; 1000];
                for at in (0..200 * BLOCK as u64 - 1000).step_by(usize::try_from(stride).expect("it fits")) {
                    file.read_into(&mut bytes, at).await.expect("it is read");
                    // Time in which a program would process the bytes.
                    ferry_io::sleep(std::time::Duration::from_micros(300)).await.expect("not cancelled");
                }
                let stats = file.cache_stats();
                assert!(stats.hits > 6 * stats.misses, "stride {stride}: {stats:?}");
            });
        });
    }
}

#[test]
fn a_cancelled_reader_and_writer_leave_it_whole() {
    in_simulation(|place| {
        place.make_file("file", &pattern(30 * BLOCK));
        place.run(async |io, folder| {
            let file = DirectFile::open(&io, &folder, &file_name(), OpenHow::write(), few())
                .await
                .expect("it is there");
            for round in 0..20 {
                let at = round * 4000;
                let mut bytes = vec![0; 9000];
                let work = async {
                    file.read_into(&mut bytes, at).await?;
                    file.write_from(&pattern(30 * BLOCK)[4000..20_000], 4000).await?;
                    file.flush().await.map_err(|failures| failures.failures[0].error)
                };
                let allowed = std::time::Duration::from_micros(50 * (round + 1));
                ferry_io::timeout(allowed, work).await.ok();
            }
            assert!(bytes_of(&file).await == pattern(30 * BLOCK));
            file.close().await.expect("nothing failed");
        });
        assert!(place.bytes_of("file") == pattern(30 * BLOCK));
    });
}
