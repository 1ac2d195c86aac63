use std::path::Path;

use ferry_tune::{About, Block, Calls, Can, Depth, Direct, Figure, Place, Profile, VERSION};

use super::take;

fn profile(enough_depth: Option<u32>) -> Profile {
    let figure = Figure::of(&[100.0]).unwrap();
    let direct = enough_depth.map(|enough_depth| Direct {
        sequential_read: figure,
        sequential_write: figure,
        random_read: figure,
        random_write: figure,
        depths: vec![Depth { depth: enough_depth, iops: figure }],
        enough_depth,
        blocks: vec![Block { bytes: 4096, mb_per_s: figure }],
        best_block: 4096,
    });
    let calls = Calls { inline_create: figure, ring_hand_over: None, pool_hand_over: figure };
    let can = Can {
        reflink: false,
        dontcache: false,
        direct_memory_alignment: None,
        direct_offset_alignment: None,
    };
    let place = Place {
        filesystem: "ext4".into(),
        identity: "an identity".into(),
        source: String::new(),
        device: String::new(),
        options: String::new(),
    };
    let about = About { date: "2026-01-01T00:00:00Z".into(), ..About::here(true) };
    Profile { version: VERSION, about, place, direct, calls, can, handed_over: Default::default() }
}

#[test]
fn threads_are_as_many_as_the_profile_says_within_bounds() {
    let cases = [
        (1, 8, 32),
        (33, 8, 33),
        (64, 8, 64),
        (65_536, 8, 64),
        (40, 3, 40),
        (64, 3, 48),
        (64, 2, 32),
        (64, 1, 32),
    ];
    for (enough, workers, threads) in cases {
        let workers = std::num::NonZeroUsize::new(workers).unwrap();
        let mut io = ferry_io::Options { workers, ..Default::default() };
        let told = take(Path::new("p"), &profile(Some(enough)), &mut io);
        assert_eq!(io.pool_threads, threads, "{enough}");
        let words = format!("{enough} reads in flight are enough, so the pool has {threads} threads");
        assert_eq!(told, format!("profile 'p' of 2026-01-01T00:00:00Z: {words}"));
        let others = ferry_io::Options { pool_threads: threads, workers, ..Default::default() };
        assert_eq!(format!("{io:?}"), format!("{others:?}"), "nothing else is set");
    }
}

#[test]
fn a_profile_without_direct_reads_changes_nothing() {
    let mut io = ferry_io::Options::default();
    let told = take(Path::new("p"), &profile(None), &mut io);
    assert_eq!(format!("{io:?}"), format!("{:?}", ferry_io::Options::default()));
    assert!(told.ends_with("it has no figures for direct reads"), "{told}");
}
