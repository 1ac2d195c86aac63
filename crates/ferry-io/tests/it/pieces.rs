//! Large files copied piece by piece, by the ways that the copy compares while it runs.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferry_io::sim::{Settings, World};
use ferry_io::{Dir, OpenHow, Tried, Way, Ways, run};

use super::place::{Place, everywhere, name, on_the_kernel, pattern};

/// Copies `source` to `target`. Returns the number of bytes and the ways by which they moved.
async fn copy_in(folder: &Dir, ways: Ways, size: usize) -> (usize, Vec<Tried>) {
    let source = folder.open(&name("source"), OpenHow::read()).await.expect("the source");
    let target = folder.open(&name("target"), OpenHow::write().truncated()).await.expect("the target");
    let ways = Arc::new(ways);
    let mut at = 0;
    while at < size {
        match source.copy_pieces(at as u64, &target, size - at, &ways).await.expect("it is copied") {
            0 => break,
            count => at += count,
        }
    }
    (at, ways.tried())
}

fn copy(place: &Place, ways: Ways, size: usize) -> (usize, Vec<Tried>) {
    place.run(async |_, folder| copy_in(&folder, ways, size).await)
}

#[test]
fn a_large_file_is_copied_to_the_byte_whatever_way_moves_it() {
    let bytes = pattern((20 << 20) + 77);
    everywhere(|place| {
        place.make_file("source", &bytes);
        place.make_file("target", b"");
        for ways in [Ways::default(), Ways::buffered(), Ways::only(Way::Buffered256)] {
            let is_alone = format!("{ways:?}") == format!("{:?}", Ways::only(Way::Buffered256));
            // Asked for more than there is, as of a file that has become shorter.
            let (count, tried) = copy(place, ways, bytes.len() + 5000);
            assert_eq!(count, bytes.len());
            assert_eq!(tried.iter().map(|tried| tried.bytes).sum::<u64>(), bytes.len() as u64);
            assert_eq!(tried.len() == 1, is_alone, "{tried:?}");
            assert_eq!(place.bytes_of("target"), bytes);
        }
    });
}

/// The bytes between a source's new end and the end of its page are zeros in a mapping: no copy has them.
#[test]
fn a_source_that_becomes_shorter_ends_the_copy_at_its_end() {
    on_the_kernel(|place| {
        let bytes = pattern(32 << 20);
        place.make_file("source", &bytes);
        place.make_file("target", b"");
        let cut = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (target, since) = (place.path().join("target"), Instant::now());
                let copied = || std::fs::metadata(&target).map_or(0, |found| found.len());
                while copied() < 4 << 20 && since.elapsed() < Duration::from_secs(10) {
                    std::thread::yield_now();
                }
                place.resize("source", (16 << 20) + 123);
            });
            copy(place, Ways::default(), bytes.len()).0
        });
        // The copy may have been faster than the cut.
        assert!(cut >= (16 << 20) + 123, "{cut}");
        assert_eq!(place.bytes_of("target")[..cut], bytes[..cut]);
    });
}

#[test]
fn a_seed_replays_the_choices() {
    let bytes = pattern(24 << 20);
    let tried = |seed| {
        let world = World::new(Settings::default());
        world.file("source", &bytes);
        world.file("target", b"");
        let copied = run(&world.options(seed), async |io| {
            copy_in(&io.open_dir(Path::new("/")).expect("the root"), Ways::default(), bytes.len()).await
        });
        copied.expect("the simulation runs").0.1
    };
    let once: Vec<_> = (0..12).map(tried).collect();
    assert_eq!(once, (0..12).map(tried).collect::<Vec<_>>());
    let leaders: HashSet<_> = once.iter().map(|tried| tried[0].way.name()).collect();
    assert!(leaders.len() > 1, "devices of different character have different ways: {leaders:?}");
}
