//! Large files that are copied in ranges.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_copy::{FailureKind, Sides};
use ferry_io::sim::differences;
use ferry_io::{Time, Times};

use super::{acting, both, later, name, write_later};
use crate::simulation::world;
use crate::told::for_seeds;

#[test]
fn ranges_in_any_order_make_the_whole_file_and_its_name_comes_last() {
    const RANGE: u64 = 70_000;
    for_seeds(40, |seed| {
        let (world, io) = world(seed);
        let bytes: Vec<u8> = (0..=250).cycle().take(400_001).collect();
        world.folder("source").file("source/large", &bytes).folder("target");
        later(&world, "source/large");
        let ((), told) = acting(&world, &io, async |copier, pair, _| {
            let (large, part) = (name("large"), name(".part"));
            let (source, _) = both(copier, pair, "large").await;
            let mut starts: Vec<u64> = (0..source.size).step_by(70_000).collect();
            starts.rotate_left(usize::try_from(seed % 5).unwrap());
            let missing = copier.copy_range(pair, (&large, &part), &source, 0..RANGE).await;
            assert!(missing.is_err(), "nobody has made the part, or somebody has removed it with its ranges");
            copier.begin_ranges(pair, &part).await.unwrap();
            for start in starts {
                let range = start..source.size.min(start + RANGE);
                copier.copy_range(pair, (&large, &part), &source, range).await.unwrap();
                assert_eq!(world.get("target/large"), None, "it has its name before it is whole");
            }
            let sides = Sides { source: &source, target: None };
            copier.end_ranges(pair, (&large, &part), sides).await.unwrap();
        });
        assert!(told.failures().is_empty(), "{:?}", told.failures());
        let mut target = world.model("target");
        target.values_mut().for_each(|node| drop(node.xattrs.remove(c"system.posix_acl_access")));
        assert_eq!(differences(&world.model("source"), &target), Vec::<String>::new());
    });
}

#[test]
fn a_range_of_a_source_that_was_written_to_is_refused() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/large", &[1; 100_000]).folder("target");
        let (refused, _) = acting(&world, &io, async |copier, pair, _| {
            let (source, _) = both(copier, pair, "large").await;
            write_later(&world, "source/large", b"changed");
            let (large, part) = (name("large"), name(".part"));
            copier.begin_ranges(pair, &part).await.unwrap();
            let copied = copier.copy_range(pair, (&large, &part), &source, 0..100_000).await;
            copier.drop_ranges(pair, &part).await.unwrap();
            copied
        });
        assert!(matches!(refused, Err(FailureKind::Changed)), "{refused:?}");
        assert!(world.model("target").len() <= 1, "the part is left");
    });
}

/// Another process completes the file too early, as `ferry plan --close` beside a part that still runs.
#[test]
fn a_range_that_is_written_after_the_file_got_its_name_is_reported() {
    let mut reported = 0;
    for requests in 0..30 {
        let (world, io) = world(requests);
        world.folder("source").file("source/large", &[1; 100_000]).folder("target");
        let named = Time { seconds: 20_000, nanoseconds: 1 };
        let is_named = Arc::new(AtomicBool::new(false));
        let (copied, _) = acting(&world, &io, async |copier, pair, _| {
            let (large, part) = (name("large"), name(".part"));
            let (source, _) = both(copier, pair, "large").await;
            copier.begin_ranges(pair, &part).await.unwrap();
            let flag = Arc::clone(&is_named);
            world.meanwhile(requests, move |world| {
                world.rename("target/.part", "target/large");
                world.times("target/large", Times { accessed: named, modified: named });
                flag.store(true, Ordering::Relaxed);
            });
            copier.copy_range(pair, (&large, &part), &source, 0..100_000).await
        });
        if !is_named.load(Ordering::Relaxed) {
            assert!(copied.is_ok(), "at call {requests}: {copied:?}");
        } else if copied.is_ok() {
            let time = world.get("target/large").unwrap().times.modified;
            assert_eq!(time, named, "at call {requests}: bytes came after the name");
        } else {
            reported += 1;
        }
    }
    assert!(reported > 0, "no range was too late");
}
