use std::cell::Cell;

use ferry_io::sim::{Settings, World};
use ferry_io::{Error, Name, OpenHow, for_each, run};

use crate::{DirectFile, DirectOptions, reading};

fn name() -> Name {
    Name::new(b"file").unwrap()
}

#[test]
fn requests_in_flight_are_bounded() {
    for in_flight in [1, 2, 5] {
        let world = World::new(Settings::default());
        world.file("file", &vec![1; 1 << 20]);
        let options =
            DirectOptions { block_bytes: 4096, blocks: 128, request_blocks: 2, ahead_blocks: 32, in_flight };
        let (most, _) = run(&world.options(in_flight as u64), async |io| {
            let folder = io.open_dir("/".as_ref()).unwrap();
            let file = DirectFile::open(&io, &folder, &name(), OpenHow::write(), options).await.unwrap();
            let most = Cell::new(0);
            let note = || most.set(most.get().max(file.requests.borrow().alive()));
            for_each(8, (0..1 << 20).step_by(4096), async |at: u64| {
                file.read_into(&mut [0; 4096], at).await?;
                note();
                file.write_from(&[2; 100], at.wrapping_mul(77) % (1 << 20)).await?;
                note();
                Ok::<(), Error>(())
            })
            .await
            .unwrap();
            file.close().await.unwrap();
            most.get()
        })
        .unwrap();
        assert_eq!(most, in_flight);
    }
}

/// Neither the write that brings a block nor the next piece of the same writer counts as a second use.
#[test]
fn what_is_written_once_does_not_push_out_what_was_read_again() {
    for piece in [4096, 1024] {
        let world = World::new(Settings::default());
        world.file("file", &vec![1; 4 << 20]);
        let options = DirectOptions {
            block_bytes: 4096,
            blocks: 128,
            request_blocks: 2,
            ahead_blocks: 0,
            in_flight: 4,
        };
        run(&world.options(1), async |io| {
            let folder = io.open_dir("/".as_ref()).unwrap();
            let file = DirectFile::open(&io, &folder, &name(), OpenHow::write(), options).await.unwrap();
            for _ in 0..3 {
                file.read_into(&mut [0; 4096], 0).await.unwrap();
            }
            for index in 0..400_u64 {
                let at = (1 + index * 37 % 1000) * 4096;
                for piece_at in (at..at + 4096).step_by(piece) {
                    file.write_from(&vec![2; piece], piece_at).await.unwrap();
                }
            }
            let before = file.cache_stats().hits;
            file.read_into(&mut [0; 4096], 0).await.unwrap();
            assert_eq!(file.cache_stats().hits, before + 1, "pieces of {piece}");
            file.close().await.unwrap();
        })
        .unwrap();
    }
}

#[test]
fn so_many_places_wait_to_be_read_ahead() {
    let world = World::new(Settings::default());
    world.file("file", &vec![1; 1 << 20]);
    let options = DirectOptions { in_flight: 1, ..DirectOptions::default() };
    run(&world.options(1), async |io| {
        let folder = io.open_dir("/".as_ref()).unwrap();
        let file = DirectFile::open(&io, &folder, &name(), OpenHow::read(), options).await.unwrap();
        let places: Vec<_> = (0..100).map(|place| place * 32_768..place * 32_768 + 10).collect();
        file.state.borrow_mut().note_wanted(&places, 16_384);
        let state = file.state.borrow();
        assert_eq!(state.wanted.len(), reading::MOST_WANTED);
        assert_eq!(state.wanted.front(), Some(&(72..73)), "the first 36 are given up");
    })
    .unwrap();
}

/// A writer waits for the device although the cache has room.
#[test]
fn a_writer_waits_for_what_it_left_behind() {
    let world = World::new(Settings::default());
    world.file("file", &vec![1; 1 << 20]);
    let options =
        DirectOptions { block_bytes: 4096, blocks: 128, request_blocks: 2, ahead_blocks: 0, in_flight: 64 };
    let most = run(&world.options(1), async |io| {
        let folder = io.open_dir("/".as_ref()).unwrap();
        let file = DirectFile::open(&io, &folder, &name(), OpenHow::write(), options).await.unwrap();
        let mut most = 0;
        for at in (0..1 << 20).step_by(4096) {
            file.write_from(&[2; 4096], at).await.unwrap();
            most = most.max(file.state.borrow().cache.writing());
        }
        file.close().await.unwrap();
        most
    });
    assert_eq!(most.unwrap().0, 8, "four requests");
}
