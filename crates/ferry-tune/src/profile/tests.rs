use std::collections::BTreeMap;

use super::{
    About, Block, Calls, Can, Depth, Direct, Figure, Malformed, Place, Profile, VERSION, age_seconds, date,
    figures::rounded, kernel,
};

fn figure(median: f64) -> Figure {
    Figure { median, low: rounded(median * 0.9), high: rounded(median * 1.1), runs: 5 }
}

/// A profile of a typical disk.
pub(super) fn sample() -> Profile {
    let place = Place {
        filesystem: "ext4".to_owned(),
        identity: "00010203-0405-0607-0809-0a0b0c0d0e0f".to_owned(),
        source: "/dev/vda \"1\"".to_owned(),
        device: "a disk, 1000 bytes".to_owned(),
        options: "rw,noatime".to_owned(),
    };
    let depths = [(1, 10_000.0), (8, 60_000.0), (32, 61_000.0)];
    let blocks = [(4096, 200.0), (65_536, 900.0), (1 << 20, 1500.0)];
    let direct = Direct {
        sequential_read: figure(1500.0),
        sequential_write: figure(1200.0),
        random_read: figure(60_000.0),
        random_write: figure(50_000.5),
        depths: depths.map(|(depth, iops)| Depth { depth, iops: figure(iops) }).to_vec(),
        enough_depth: 8,
        blocks: blocks.map(|(bytes, rate)| Block { bytes, mb_per_s: figure(rate) }).to_vec(),
        best_block: 1 << 20,
    };
    let calls = Calls {
        inline_create: figure(12.0),
        ring_hand_over: Some(figure(2.0)),
        pool_hand_over: figure(15.0),
    };
    let can = Can {
        reflink: false,
        dontcache: true,
        direct_memory_alignment: Some(4),
        direct_offset_alignment: Some(512),
    };
    let handed_over = BTreeMap::from([
        ("buffered write".to_owned(), "worker, one at a time".to_owned()),
        ("stat".to_owned(), "inline".to_owned()),
    ]);
    let about = About::here(true);
    Profile { version: VERSION, about, place, direct: Some(direct), calls, can, handed_over }
}

/// A profile without optional figures.
fn bare() -> Profile {
    let mut profile = sample();
    profile.direct = None;
    profile.calls.ring_hand_over = None;
    profile.can.direct_memory_alignment = None;
    profile.can.direct_offset_alignment = None;
    profile.handed_over.clear();
    profile
}

#[test]
fn a_profile_is_read_as_it_was_written() {
    for profile in [sample(), bare()] {
        let text = profile.to_toml().unwrap();
        assert_eq!(Profile::parse(&text), Ok(profile.clone()), "{text}");
        assert_eq!(profile.check(), Ok(()));
    }
    let text = sample().to_toml().unwrap();
    let line = "sequential_read = { median = 1500.0, low = 1350.0, high = 1650.0, runs = 5 }  # MB/s\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_profile_cut_off_anywhere_is_none() {
    for profile in [sample(), bare()] {
        let text = profile.to_toml().unwrap();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let cut = Profile::parse(&text[..end]);
            let told = cut.expect_err("a piece of a profile").to_string();
            assert!(!told.contains('\n') && !told.is_empty(), "{end}: {told:?}");
        }
    }
}

#[test]
fn whatever_bytes_are_changed_a_profile_is_refused_in_a_line_or_can_be_written_again() {
    let text = sample().to_toml().unwrap();
    let mut state = 7_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    let mut read = 0;
    for _ in 0..4000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            match below(3) {
                0 => bytes[at] = b" \n\"#=.[]{}0129einf-+'\\\x7f\xff"[below(24)],
                1 => drop(bytes.remove(at)),
                _ => drop(bytes.drain(at..(at + below(40)).min(text.len() - 50).max(at))),
            }
        }
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        match Profile::parse(&changed) {
            Err(refused) => assert!(!refused.to_string().contains('\n'), "{refused:?}"),
            Ok(profile) => {
                read += 1;
                if let Err(why) = profile.check() {
                    assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
                } else {
                    assert_eq!(Profile::parse(&profile.to_toml().unwrap()), Ok(profile));
                }
            }
        }
    }
    assert!(read > 100, "only {read} of the changed ones could be read");
}

#[test]
fn what_is_no_profile_is_told_by_its_line() {
    let cases = [
        ("", "it is truncated: its last line is incomplete"),
        ("a = 1\n", "it is not a profile of ferry: it has no version"),
        ("version = 2\nnew = 1\n", "it has format version 2; this program reads version 1"),
        ("version = 1\n[place\n", "line 2: "),
        ("version = 1\nnew = 1\n", "line 2: unknown field `new`"),
        ("version = \"1\"\n", "it is not a profile of ferry: it has no version"),
    ];
    for (text, told) in cases {
        let refused = Profile::parse(text).unwrap_err().to_string();
        assert!(refused.starts_with(told), "{text:?}: {refused}");
    }
    assert_eq!(Profile::parse("version = -1\n"), Err(Malformed::Version(-1)));
}

/// Changes the sample, and expects it to be refused with these words.
fn refused(change: impl FnOnce(&mut Profile, &mut Direct), words: &str) {
    let mut profile = sample();
    let mut direct = profile.direct.take().unwrap();
    change(&mut profile, &mut direct);
    profile.direct = Some(direct);
    let why = profile.check().expect_err(words);
    assert!(why.contains(words), "{words:?} is not in {why:?}");
}

#[test]
fn figures_that_cannot_be_are_refused() {
    refused(
        |_, d| d.sequential_read = figure(200.0),
        "random reads reach 221 MB/s, more than sequential ones (220 MB/s)",
    );
    refused(|_, d| d.sequential_write = figure(150.0), "random writes reach");
    refused(|_, d| d.sequential_read.median = f64::NAN, "sequential_read is NaN");
    refused(|_, d| d.sequential_read.high = f64::INFINITY, "to inf");
    refused(|_, d| d.sequential_read.low = -1.0, "from -1");
    refused(|_, d| d.sequential_read.low = 0.0, "from 0");
    refused(|_, d| d.sequential_read.median = 2000.0, "median 2000 is not within");
    refused(|_, d| d.sequential_read.runs = 0, "was not measured");
    refused(|_, d| d.sequential_read.low = 499.0, "spread is too wide");
    refused(|_, d| d.sequential_read.high = 4501.0, "spread is too wide");
    refused(|_, d| d.sequential_read = figure(1e6), "beyond any device");
    refused(|_, d| d.enough_depth = 16, "enough_depth 16 is not one of the depths");
    refused(|_, d| d.depths.clear(), "depths has 0 items");
    refused(|_, d| d.depths.reverse(), "depths are not in order");
    refused(|_, d| d.depths[0].depth = 0, "depths are out of bounds");
    refused(|_, d| d.depths[1].iops = figure(19_000.0), "times what depth 8 gave");
    refused(|_, d| d.depths = vec![d.depths[0].clone(); 65], "depths has 65 items");
    refused(|_, d| d.best_block = 8192, "best_block 8192 is not one of the blocks");
    refused(|_, d| d.blocks[0].bytes = 511, "blocks are out of bounds");
    refused(|_, d| d.blocks[2].bytes = (64 << 20) + 1, "blocks are out of bounds");
    refused(
        |_, d| {
            d.blocks.iter_mut().for_each(|block| {
                block.mb_per_s = figure(f64::from(u32::try_from(block.bytes).unwrap()) / 1e3)
            })
        },
        "the number in flight was the limit, not the device",
    );
    refused(|p, _| p.calls.inline_create.low = 1.0, "spread is too wide");
    refused(|p, _| p.calls.pool_hand_over = figure(1e6), "beyond any device");
    refused(|p, _| p.calls.ring_hand_over = Some(figure(0.0)), "ring_hand_over is 0");
    refused(|p, _| p.can.direct_offset_alignment = Some(513), "513 is not a valid alignment");
    refused(|p, _| p.can.direct_memory_alignment = Some(1 << 21), "is not a valid alignment");
    refused(|p, _| drop(p.handed_over.insert("x".into(), "nowhere".into())), "\"nowhere\"");
    refused(|p, _| p.about.date = "yesterday".into(), "is not a date");
    refused(|p, _| p.about.processors = 0, "the number of processors is 0");
    refused(|p, _| p.place.device = "a\x1b[31m".into(), "device has control characters");
    refused(|p, _| p.place.options = "a".repeat(1001), "options is too long");
}

#[test]
fn a_profile_of_something_else_is_stale() {
    let profile = sample();
    assert_eq!(profile.stale(&profile.place, &kernel()), None);
    let moved = Place { source: "/dev/vdb".into(), options: "ro".into(), ..profile.place.clone() };
    assert_eq!(profile.stale(&moved, &kernel()), None, "it is the same device by another name");
    let other = Place { device: "a disk, 2000 bytes".into(), ..profile.place.clone() };
    let told = "it was measured on a disk, 1000 bytes, but this is a disk, 2000 bytes";
    assert_eq!(profile.stale(&other, &kernel()).as_deref(), Some(told));
    assert!(profile.stale(&profile.place, "2.6").is_some());
    let mut older = profile.clone();
    older.about.tool = "ferry 0.0.9".into();
    assert!(older.stale(&profile.place, &kernel()).unwrap().contains("by ferry 0.0"), "{older:?}");
    older.about.tool = format!("{}.1", profile.about.tool);
    assert_eq!(older.stale(&profile.place, &kernel()), None, "only its last number differs");
}

#[test]
fn figures_are_of_their_samples() {
    let of = |samples: &[f64]| Figure::of(samples);
    assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Figure { median: 2.0, low: 1.0, high: 3.0, runs: 3 }));
    assert_eq!(of(&[4.0, 1.0]), Some(Figure { median: 2.5, low: 1.0, high: 4.0, runs: 2 }));
    assert_eq!(of(&[1_234.567_89]).unwrap().median, 1234.6);
    assert_eq!((of(&[]), of(&[f64::NAN])), (None, None));
}

#[test]
fn dates_are_read_as_they_are_written() {
    for milliseconds in [0, 951_782_400_000, 1_785_500_000_123, 4_102_444_799_000] {
        let text = ferry_lab::clock::text(milliseconds);
        assert_eq!(date::since_1970(&text).map(u128::from), Some(milliseconds / 1000), "{text}");
    }
    for text in ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-+1-01T00:00:00Z"] {
        assert_eq!(date::since_1970(text), None, "{text}");
    }
    assert!(age_seconds(&About::here(false).date).unwrap() < 60);
}

#[test]
fn a_path_is_on_the_filesystem_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::of(folder.path()).unwrap();
    assert!(!place.filesystem.is_empty() && !place.identity.is_empty(), "{place:?}");
    let fifo = folder.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    assert_eq!(Place::of(&fifo).unwrap(), place);
    assert!(Place::of(&folder.path().join("none")).is_err());
    assert_ne!(Place::of("/proc".as_ref()).unwrap().identity, place.identity);
    assert_eq!(Place::of("/proc".as_ref()).unwrap().identity, "proc proc");
}
