//! Injected failures: each is reported with its path, and the rest of the tree is copied in full.

use std::cell::Cell;
use std::collections::BTreeSet;

use ferry_copy::{Direct, Failure, FailureKind, Options, Preserve, Reflink, Sparse, Verb};
use ferry_io::sim::{Fault, Model, World};
use ferry_io::{Errno, FileKind, Operation};
use ferry_tree::fill::SplitMix64;

use crate::model;
use crate::simulation::{BTRFS, EXT4, world};
use crate::told::{Outcome, archive, copy, for_seeds, is_one_seed};

/// Returns the paths beneath the source that failures name.
fn named(failures: &[Failure]) -> BTreeSet<Vec<u8>> {
    let beneath = |failure: &Failure| {
        let path = failure.source.strip_prefix("/source").unwrap();
        path.as_os_str().as_encoded_bytes().to_vec()
    };
    failures.iter().map(beneath).collect()
}

/// Returns true if a failure names the path or a folder above it.
fn is_excused(path: &[u8], named: &BTreeSet<Vec<u8>>) -> bool {
    let above = (0..path.len()).filter(|&at| path[at] == b'/').map(|at| &path[..at]);
    named.contains(&b""[..]) || named.contains(path) || above.into_iter().any(|above| named.contains(above))
}

/// Panics if a path that no failure names differs from the source.
fn assert_rest_is_right(source: &Model, target: &Model, failures: &[Failure]) {
    let mut named = named(failures);
    // A failure of one name affects the other names of its file, too.
    let group = |path: &Vec<u8>| source.get(path).map(|node| node.same_as.clone().unwrap_or(path.clone()));
    let groups: BTreeSet<_> = named.iter().filter_map(group).collect();
    let same = source.keys().filter(|path| group(path).is_some_and(|first| groups.contains(&first)));
    named.extend(same.cloned().collect::<Vec<_>>());
    for (path, node) in source.iter().filter(|(path, _)| !is_excused(path, &named)) {
        let copied = target.get(path).unwrap_or_else(|| panic!("{} is missing", path.escape_ascii()));
        // Some names of a file may have failed.
        let copied =
            ferry_io::sim::Node { links: node.links, same_as: node.same_as.clone(), ..copied.clone() };
        assert!(copied == *node, "{}: {copied:?}\nshould be {node:?}", path.escape_ascii());
    }
}

/// Operations with errors that they return in practice.
const ERRORS: [(Operation, Errno); 14] = [
    (Operation::Open, Errno::ACCESS),
    (Operation::Stat, Errno::IO),
    (Operation::Read, Errno::IO),
    (Operation::Write, Errno::IO),
    (Operation::List, Errno::IO),
    (Operation::MakeDirectory, Errno::ACCESS),
    (Operation::Symlink, Errno::ACCESS),
    (Operation::ReadLink, Errno::IO),
    (Operation::Link, Errno::PERM),
    (Operation::MakeNode, Errno::PERM),
    (Operation::SetOwner, Errno::PERM),
    (Operation::SetTimes, Errno::IO),
    (Operation::SetMode, Errno::PERM),
    (Operation::Seek, Errno::IO),
];

#[test]
fn errors_belong_to_their_paths() {
    let struck = Cell::new(0);
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        let tree = model::random(seed, 60);
        world.folder("source").build("source", &tree);
        let mut numbers = SplitMix64::new(seed);
        world.change(|settings| {
            for _ in 0..=numbers.below(3) {
                let (operation, errno) = ERRORS[numbers.index(ERRORS.len())];
                settings.faults.push(Fault::by_chance(operation, 60_000, errno));
            }
        });
        let outcome = copy(&world, &archive(), &io);
        struck.set(struck.get() + outcome.failures.len());
        world.change(|settings| settings.faults.clear());
        let (Some(_), Some(_)) = (world.get("source"), world.get("target")) else {
            assert!(!outcome.failures.is_empty());
            return;
        };
        assert_rest_is_right(&world.model("source"), &world.model("target"), &outcome.failures);
        assert_no_pieces(&world, &outcome);
    });
    // A single seed may have no fault.
    assert!(struck.get() > 0 || is_one_seed(), "no fault struck");
}

/// Panics if a partly copied file was neither removed nor reported.
fn assert_no_pieces(world: &World, outcome: &Outcome) {
    let (source, target) = (world.model("source"), world.model("target"));
    let is_reported = |path: &[u8]| {
        let mut reported = outcome.unfinished.iter().filter(|unfinished| unfinished.error.is_some());
        reported.any(|unfinished| {
            unfinished.target.as_os_str().as_encoded_bytes() == [b"/target/", path].concat()
        })
    };
    for (path, node) in
        target.iter().filter(|(path, node)| node.kind == FileKind::Regular && !is_reported(path))
    {
        let failures = &outcome.failures;
        assert!(node.content == source[path].content, "{}: in pieces, {failures:?}", path.escape_ascii());
    }
}

/// Regression: the file at which a run of plain ones had ended was dropped, with its begun copy.
#[test]
fn a_copy_that_is_stopped_leaves_no_pieces() {
    let stopped = Cell::new(0);
    for_seeds(600, |seed| {
        let (world, io) = world(seed);
        world.folder("source");
        (0..12).for_each(|file| {
            world.file(format!("source/{file}"), &[b'x'; 3000]);
        });
        world.change(|settings| {
            settings.magic = Some(EXT4);
            settings.faults.push(Fault::by_chance(Operation::Write, 200_000, Errno::IO));
        });
        world.meanwhile(seed % 120, World::stop);
        let outcome = copy(&world, &archive(), &io);
        stopped.set(stopped.get() + u64::from(outcome.summary.interrupted));
        world.change(|settings| settings.faults.clear());
        if world.get("target").is_some() {
            assert_no_pieces(&world, &outcome);
        }
    });
    assert!(stopped.get() > 50 || is_one_seed(), "{} were stopped", stopped.get());
}

#[test]
fn what_the_target_cannot_keep_costs_no_file() {
    for_seeds(40, |seed| {
        let (world, io) = world(seed);
        let tree = model::random(seed, 60);
        world.folder("source").build("source", &tree);
        world.change(|settings| {
            settings.faults.push(Fault::always(Operation::SetOwner, Errno::PERM));
            settings.faults.push(Fault::always(Operation::SetXattr, Errno::NOSPC));
            settings.faults.push(Fault::always(Operation::SetTimes, Errno::PERM));
            settings.faults.push(Fault::always(Operation::SetMode, Errno::PERM));
        });
        let outcome = copy(&world, &archive(), &io);
        assert!(!outcome.summary.out_of_space);
        let (source, target) = (world.model("source"), world.model("target"));
        assert!(source.keys().eq(target.keys()));
        for (path, node) in &source {
            assert!(target[path].content == node.content, "{}", path.escape_ascii());
            assert_eq!(target[path].same_as, node.same_as, "{}", path.escape_ascii());
        }
    });
}

#[test]
fn a_full_filesystem_ends_the_run_with_one_failure() {
    let (full, roomy) = (Cell::new(0), Cell::new(0));
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        let tree = model::random(seed, 80);
        world.folder("source").build("source", &tree);
        // From no space at all to more than the copy needs.
        let used = world.used_bytes();
        let room = used + used * (seed % 40) / 30;
        world.change(|settings| settings.space = room);
        let outcome = copy(&world, &archive(), &io);
        if !outcome.summary.out_of_space {
            assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
            roomy.set(roomy.get() + 1);
            return;
        }
        full.set(full.get() + 1);
        let [failure] = outcome.failures.as_slice() else { panic!("{:?}", outcome.failures) };
        assert!(
            matches!(&failure.kind, FailureKind::Io { error, .. } if error.is(Errno::NOSPC)),
            "{failure:?}"
        );
        assert!(!outcome.summary.interrupted);
        assert_no_pieces(&world, &outcome);
    });
    let (full, roomy) = (full.get(), roomy.get());
    assert!(full > 5 && roomy > 5 || is_one_seed(), "{full} worlds were full, {roomy} were not");
}

#[test]
fn what_was_copied_before_the_filesystem_was_full_is_made_durable() {
    let synced = Cell::new(0);
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        // Early write-back of larger files would meet the fault instead.
        let io = ferry_io::Options { block_size: 16 << 10, ..io };
        world.folder("source");
        for name in 0..20 {
            world.file(format!("source/{name}"), &[7; 10_000]);
        }
        world.change(|settings| {
            settings.space = 300_000;
            settings.faults.push(Fault::always(Operation::Sync, Errno::IO));
        });
        let outcome = copy(&world, &Options { fsync: true, ..archive() }, &io);
        assert!(outcome.summary.out_of_space);
        let is_sync = |failure: &&Failure| matches!(failure.kind, FailureKind::Io { verb: Verb::Sync, .. });
        assert_eq!(outcome.failures.iter().filter(is_sync).count(), 1, "{:?}", outcome.failures);
        synced.set(synced.get() + outcome.summary.files);
    });
    assert!(synced.get() > 0, "nothing was copied");
}

#[test]
fn a_file_whose_overwriting_failed_is_not_counted() {
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text of a file");
        world.folder("target").file("target/a", b"old");
        world.change(|settings| {
            for operation in [Operation::Write, Operation::CopyRange, Operation::Clone] {
                settings.faults.push(Fault::always(operation, Errno::IO));
            }
        });
        let outcome = copy(&world, &archive(), &io);
        assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
        assert_eq!(outcome.summary.files, 0);
    });
}

#[test]
fn what_can_neither_be_written_nor_removed_is_told_by_why_it_can_not_be_written() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text of a file");
        world.change(|settings| {
            for operation in [Operation::Write, Operation::CopyRange, Operation::Clone, Operation::Unlink] {
                settings.faults.push(Fault::always(operation, Errno::IO));
            }
        });
        let outcome = copy(&world, &Options { reflink: Reflink::Never, ..archive() }, &io);
        let [failure] = outcome.failures.as_slice() else { panic!("{:?}", outcome.failures) };
        assert!(
            matches!(&failure.kind, FailureKind::Io { verb: Verb::Write, error } if error.is(Errno::IO)),
            "{failure:?}"
        );
    });
}

#[test]
fn a_name_whose_first_failed_takes_its_place() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text of a file");
        for name in ["b", "c", "d"] {
            world.hard_link("source/a", format!("source/{name}"));
        }
        world.change(|settings| {
            settings.faults.push(Fault::nth(Operation::Write, 1, Errno::IO));
            settings.faults.push(Fault::nth(Operation::CopyRange, 1, Errno::IO));
            settings.faults.push(Fault::nth(Operation::Clone, 1, Errno::IO));
        });
        let outcome = copy(&world, &archive(), &io);
        assert!(outcome.failures.len() <= 1, "{:?}", outcome.failures);
        let target = world.model("target");
        assert_eq!(target.len(), 5 - outcome.failures.len());
        let copies = target.values().filter(|node| node.kind == FileKind::Regular);
        for copied in copies {
            assert_eq!((copied.links, copied.content.size()), (4 - outcome.failures.len() as u64, 14));
        }
    });
}

/// Makes the first copy of a file fail.
fn fail_first(world: &World) {
    world.change(|settings| {
        for operation in [Operation::Write, Operation::CopyRange, Operation::Clone] {
            settings.faults.push(Fault::nth(operation, 1, Errno::IO));
        }
    });
}

#[test]
fn names_left_with_one_that_cannot_be_looked_at_are_copied() {
    for_seeds(300, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text of a file").mode("source", 0o2711);
        let names = ["b", "c", "d", "e"];
        for name in names {
            world.hard_link("source/a", format!("source/{name}"));
        }
        fail_first(&world);
        let operation = if seed % 2 == 0 { Operation::Stat } else { Operation::Load };
        world.change(|settings| {
            for name in ["c", "d", "e"] {
                settings.faults.push(Fault::from_nth(operation, 2, Errno::IO).on(name));
            }
        });
        let outcome = copy(&world, &archive(), &io);
        let target = world.model("target");
        let told = outcome.failures.iter().filter(|failure| !failure.source.ends_with("source"));
        // At least: a copy whose attributes could not be kept counts twice, as copied and as reported.
        assert!(target.len() + told.count() >= 6, "lost: {:?}, {:?}", target.keys(), outcome.failures);
        assert_eq!(target[&b""[..]].mode & 0o7777, 0o2711, "the folder was never finished");
    });
}

#[test]
fn thousands_of_names_fail_one_after_another() {
    const NAMES: usize = 6_000;
    for_seeds(2, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text of a file");
        for name in 1..NAMES {
            world.hard_link("source/a", format!("source/{name}"));
        }
        world.change(|settings| {
            for operation in [Operation::Write, Operation::CopyRange, Operation::Clone] {
                settings.faults.push(Fault::always(operation, Errno::IO));
            }
        });
        let outcome = copy(&world, &archive(), &io);
        assert_eq!(outcome.failures.len(), NAMES);
        assert_eq!(world.model("target").len(), 1);
    });
}

#[test]
fn files_with_too_many_names_are_copied_again() {
    for_seeds(30, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text");
        for name in 0..10 {
            world.hard_link("source/a", format!("source/{name}"));
        }
        world.change(|settings| settings.links = 4);
        let outcome = copy(&world, &archive(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let target = world.model("target");
        assert_eq!(target.len(), 12);
        let files = target.values().filter(|node| node.kind == FileKind::Regular);
        files.for_each(|node| assert!(node.content.size() == 4 && node.links <= 4));
    });
}

#[test]
fn an_unreadable_folder_is_named_and_made() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("source/closed").file("source/closed/inside", b"x");
        world.mode("source/closed", 0o711).file("source/open", b"y");
        world.change(|settings| {
            settings.faults.push(Fault::always(Operation::Open, Errno::ACCESS).on("closed"))
        });
        let outcome = copy(&world, &archive(), &io);
        // The target has the same name: neither can be opened.
        assert!(outcome.failures.iter().all(|failure| failure.source.ends_with("closed")));
        assert!(outcome.failures.iter().any(|failure| matches!(
            failure.kind,
            FailureKind::Io { verb: Verb::OpenDirectory | Verb::CreateDirectory, .. }
        )));
        assert!(world.get("target/closed").is_some() && world.get("target/open").is_some());
    });
}

/// Copies a large file with early write-back, of which one call fails.
fn write_back(seed: u64, fault: Fault) -> Vec<Failure> {
    let (world, io) = world(seed);
    world.folder("source").file("source/f", &vec![7; 3 << 20]);
    world.change(|settings| settings.faults.push(fault));
    let options =
        Options { direct: Direct::Always, sparse: Sparse::Always, reflink: Reflink::Never, ..archive() };
    let outcome = copy(&world, &options, &io);
    assert_eq!(world.get("target/f").is_some(), outcome.failures.is_empty());
    outcome.failures
}

#[test]
fn an_error_of_write_back_is_its_files() {
    let unsupported = [Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL, Errno::PERM, Errno::SPIPE];
    let lost = [
        Errno::IO,
        Errno::STALE,
        Errno::TIMEDOUT,
        Errno::NODATA,
        Errno::ROFS,
        Errno::NOMEM,
        Errno::FBIG,
        Errno::NOTCONN,
        Errno::UCLEAN,
    ];
    for (seed, errno) in (0..).zip(unsupported.into_iter().chain(lost)) {
        // The first call does not block, and shows if the call is supported at all.
        let failures = write_back(seed, Fault::nth(Operation::Sync, 1, errno));
        assert_eq!(failures.is_empty(), unsupported.contains(&errno), "{errno}: {failures:?}");
        // The second takes the kernel's error for the written bytes; no later call would get it.
        let failures = write_back(seed, Fault::nth(Operation::Sync, 2, errno));
        let is_told = matches!(&failures[..], [Failure { kind: FailureKind::Io { verb: Verb::Write, error }, .. }]
            if error.is(errno));
        assert!(is_told, "{errno}: {failures:?}");
    }
}

#[test]
fn every_error_of_syncing_is_told() {
    for (seed, errno) in (0..).zip([Errno::IO, Errno::STALE, Errno::ROFS, Errno::INVAL, Errno::BADF]) {
        let (world, io) = world(seed);
        world.folder("source").file("source/f", b"text");
        world.change(|settings| settings.faults.push(Fault::always(Operation::Sync, errno)));
        let outcome = copy(&world, &Options { fsync: true, ..archive() }, &io);
        let is_told = matches!(&outcome.failures[..], [Failure { kind: FailureKind::Io { verb: Verb::Sync, error }, .. }]
            if error.is(errno));
        assert!(is_told, "{errno}: {:?}", outcome.failures);
    }
}

#[test]
fn a_sparse_source_that_shrinks_is_not_made_longer() {
    /// Size of a file with data at both ends and a hole between.
    const SIZE: u64 = 3 << 20;
    const DATA: u64 = 1 << 20;
    let whole = |bytes: &[u8]| {
        let is_data = |at: usize| (at as u64) < DATA || at as u64 >= SIZE - DATA;
        bytes.iter().enumerate().all(|(at, &byte)| byte == if is_data(at) { 7 } else { 0 })
    };
    for (requests, left) in (0..60).flat_map(|requests| [SIZE / 2, DATA / 2].map(|left| (requests, left))) {
        let (world, io) = world(requests);
        world.folder("source").file("source/f", &vec![7; usize::try_from(DATA).unwrap()]);
        world.set_size("source/f", SIZE).write(
            "source/f",
            SIZE - DATA,
            &vec![7; usize::try_from(DATA).unwrap()],
        );
        world.change(|settings| {
            (settings.clones, settings.copies_ranges, settings.finds_holes) = (false, false, true);
        });
        world.meanwhile(requests, move |world| {
            world.set_size("source/f", left);
        });
        let outcome = copy(&world, &archive(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let content = world.get("target/f").unwrap().content;
        let mut copied = vec![0; usize::try_from(content.size()).unwrap()];
        assert_eq!(content.read(0, &mut copied), copied.len());
        assert!(whole(&copied), "{requests}, {left}: {} bytes that the source never had", copied.len());
    }
}

#[test]
fn a_byte_copied_for_debug_is_no_part_of_the_copy() {
    const HOLE: u64 = 1 << 20;
    for requests in 0..60 {
        let (world, io) = world(requests);
        world.folder("source").file("source/f", b"").write("source/f", HOLE, &[7; 4096]);
        world.change(|settings| {
            (settings.clones, settings.copies_ranges, settings.finds_holes) = (false, true, true);
            settings.short_transfers = 0;
        });
        // The whole file becomes a hole.
        world.meanwhile(requests, |world| {
            world.set_size("source/f", 0).set_size("source/f", HOLE + 4096);
        });
        let outcome = copy(&world, &Options { debug: true, ..archive() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let content = world.get("target/f").unwrap().content;
        let mut copied = [0; 4096];
        assert_eq!(content.read(HOLE, &mut copied), copied.len());
        assert!(copied == [0; 4096] || copied == [7; 4096], "{requests}: {}", copied[0]);
    }
}

#[test]
fn a_file_that_can_not_share_extents_and_stays_is_reported() {
    let [mut failed, mut unfinished] = [0, 0];
    let others = [Operation::Unlink, Operation::Stat, Operation::Rename, Operation::SetTimes];
    for operation in others {
        for seed in 0..25 {
            let (world, io) = world(seed);
            world.folder("source");
            for index in 0..60 {
                world.file(format!("source/f{index}"), &vec![b'x'; 1 + index * 50]);
            }
            world.change(|settings| {
                (settings.clones, settings.magic) = (true, Some(BTRFS));
                let refused = Fault::by_chance(Operation::Clone, 300_000, Errno::INVAL);
                let other = Fault::by_chance(operation, 100_000, Errno::IO);
                settings.faults.extend([refused, other]);
            });
            let outcome = copy(&world, &archive(), &io);
            world.change(|settings| settings.faults.clear());
            failed += outcome.failures.len();
            unfinished += outcome.unfinished.len();
            if world.get("target").is_some() {
                assert_rest_is_right(&world.model("source"), &world.model("target"), &outcome.failures);
                assert_no_pieces(&world, &outcome);
            }
        }
    }
    assert!(failed > 0 && unfinished > 0, "{failed} failed, {unfinished} stayed");
}

/// A folder closed during the run is opened again to be synced, even after a full filesystem has ended the run.
#[test]
fn folders_above_a_full_one_are_synced_or_reported() {
    // More than are synced as a whole.
    const MOUNTS: u64 = 10;
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("target");
        let full = seed % MOUNTS;
        let mut above = Vec::new();
        for mount in 0..MOUNTS {
            world.mount(format!("target/{mount}"));
            let mut path = format!("/source/{mount}");
            for level in 0..12 {
                world.folder(&path);
                if mount == full {
                    above.push(path.clone());
                }
                path = format!("{path}/{level}");
            }
            if mount == full {
                world.folder(format!("{path}full"));
            }
        }
        world.change(|settings| {
            settings.descriptors = 40;
            settings.faults.push(Fault::always(Operation::MakeDirectory, Errno::NOSPC).on("11full"));
            settings.faults.push(Fault::always(Operation::Sync, Errno::IO));
        });
        let options = Options { fsync: true, preserve: Preserve::default(), ..archive() };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.summary.out_of_space, "{:?}", outcome.failures);
        let is_sync = |failure: &&Failure| matches!(failure.kind, FailureKind::Io { verb: Verb::Sync, .. });
        let reported: BTreeSet<_> =
            outcome.failures.iter().filter(is_sync).map(|failure| failure.source.clone()).collect();
        let as_a_whole = reported.contains(std::path::Path::new(&format!("/target/{full}")));
        for path in above {
            assert!(as_a_whole || reported.contains(std::path::Path::new(&path)), "{path}: {reported:?}");
        }
    });
}
