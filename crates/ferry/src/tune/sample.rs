//! A profile of a disk, for tests.

use ferry_tune::{About, Block, Calls, Can, Depth, Direct, Figure, Place, Profile, VERSION};

fn figure(median: f64, spread: f64) -> Figure {
    Figure { median, low: median * (1.0 - spread), high: median * (1.0 + spread), runs: 7 }
}

/// 16 requests in flight and blocks of 256 KiB are enough; some of the others are faster by noise.
pub(super) fn profile() -> Profile {
    let depths = [
        (1, 9500.0),
        (2, 18_000.0),
        (4, 33_500.0),
        (8, 52_000.0),
        (16, 58_900.0),
        (32, 61_000.0),
        (64, 61_300.0),
        (128, 60_100.0),
    ];
    let blocks = [
        (16 << 10, 310.0),
        (64 << 10, 820.0),
        (256 << 10, 1450.0),
        (512 << 10, 1490.0),
        (1 << 20, 1520.0),
        (4 << 20, 1380.0),
    ];
    let direct = Direct {
        sequential_read: figure(1460.0, 0.03),
        sequential_write: figure(980.0, 0.05),
        random_read: figure(59_200.0, 0.02),
        random_write: figure(48_000.0, 0.04),
        depths: depths.map(|(depth, iops)| Depth { depth, iops: figure(iops, 0.02) }).to_vec(),
        enough_depth: 16,
        blocks: blocks.map(|(bytes, rate)| Block { bytes, mb_per_s: figure(rate, 0.03) }).to_vec(),
        best_block: 256 << 10,
    };
    let calls = Calls {
        inline_create: figure(12.0, 0.1),
        ring_hand_over: Some(figure(2.1, 0.1)),
        pool_hand_over: figure(14.8, 0.1),
    };
    let can = Can {
        reflink: false,
        dontcache: true,
        direct_memory_alignment: Some(4),
        direct_offset_alignment: Some(512),
    };
    let handed_over = [
        ("buffered_read", "inline"),
        ("buffered_write", "worker, one at a time"),
        ("direct_read", "ring"),
        ("link", "worker"),
        ("mkdir", "worker"),
        ("open", "ring"),
        ("rename", "worker"),
        ("symlink", "worker"),
        ("unlink", "worker"),
    ];
    Profile {
        version: VERSION,
        about: about(),
        place: place(),
        direct: Some(direct),
        calls,
        can,
        handed_over: handed_over.map(|(name, way)| (name.to_owned(), way.to_owned())).into(),
    }
}

fn place() -> Place {
    Place {
        filesystem: "ext4".to_owned(),
        identity: "00010203-0405-0607-0809-0a0b0c0d0e0f".to_owned(),
        source: "/dev/vda1".to_owned(),
        device: "Virtual disk, 64 GB".to_owned(),
        options: "rw,noatime".to_owned(),
    }
}

fn about() -> About {
    About {
        tool: "ferry 0.1.0".to_owned(),
        kernel: "6.18.0".to_owned(),
        date: "2026-11-22T12:00:00Z".to_owned(),
        quick: false,
        processors: 4,
    }
}

/// The same disk, whose rate still rises with the deepest queue that was tried.
pub(super) fn deep() -> Profile {
    let mut profile = profile();
    if let Some(direct) = &mut profile.direct {
        direct.enough_depth = 128;
        direct.depths.iter_mut().for_each(|one| one.iops = figure(f64::from(one.depth) * 1000.0, 0.02));
    }
    profile
}
