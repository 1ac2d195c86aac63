//! Targets that other programs replace during the copy, in a simulated world.

use std::sync::{Arc, Mutex};

use ferry_copy::{Backup, Control, Existing, FailureKind, Options, Reflink, Verb};
use ferry_io::sim::{Fault, World};
use ferry_io::{Errno, Operation, Time, Times};

use crate::told::{archive, copy, for_seeds, is_one_seed};

const OLDEST: Time = Time { seconds: i32::MIN as i64, nanoseconds: 0 };

/// Returns a world with a file to be copied over another one.
fn world(seed: u64) -> (World, ferry_io::Options) {
    let world = World::default();
    world.folder("source").file("source/file", b"the source's bytes");
    world.folder("target").file("target/file", b"what was there before");
    let mut io = world.options(seed);
    io.workers = std::num::NonZeroUsize::MIN;
    (world, io)
}

/// Renames a complete file of another program over the target.
fn replace(world: &World) {
    world.remove("target/file").file("target/file", b"another's complete file");
}

#[test]
fn a_target_that_is_replaced_meanwhile_is_overwritten_as_it_is_then() {
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        world.meanwhile(1 + seed % 20, replace);
        let outcome = copy(&world, &Options { recursive: true, ..Options::default() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let left = world.get("target/file").unwrap().content;
        let may_be =
            [&b"the source's bytes"[..], b"another's complete file"].map(ferry_io::sim::Sparse::from);
        assert!(may_be.contains(&left), "{left:?}");
    });
}

#[test]
fn a_target_that_is_replaced_all_the_time_is_given_up() {
    let (world, io) = world(1);
    // Far more often than the copy looks at its target: a hundred times, by at most ten requests each.
    for request in 1..2_000 {
        world.meanwhile(request, replace);
    }
    let outcome = copy(&world, &Options { recursive: true, ..Options::default() }, &io);
    let [failure] = &outcome.failures[..] else { panic!("{:?}", outcome.failures) };
    let is_stale =
        matches!(&failure.kind, FailureKind::Io { verb: Verb::CreateFile, error } if error.is(Errno::STALE));
    assert!(is_stale, "{failure:?}");
    let left = world.get("target/file").unwrap().content;
    assert_eq!(left, ferry_io::sim::Sparse::from(&b"another's complete file"[..]));
}

#[test]
fn a_target_that_becomes_the_source_itself_is_refused() {
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        world.meanwhile(1 + seed % 20, |world| {
            world.remove("target/file").hard_link("source/file", "target/file");
        });
        let outcome = copy(&world, &Options { recursive: true, ..Options::default() }, &io);
        let kept = world.get("source/file").unwrap().content;
        assert_eq!(kept, ferry_io::sim::Sparse::from(&b"the source's bytes"[..]));
        let is_refused = |kind: &FailureKind| matches!(kind, FailureKind::SameFile);
        assert!(outcome.failures.iter().all(|failure| is_refused(&failure.kind)), "{:?}", outcome.failures);
    });
}

#[test]
fn a_target_that_is_replaced_is_not_asked_for_twice() {
    // The tests' observer answers no; without the question the target would be overwritten.
    for_seeds(50, |seed| {
        let (world, io) = world(seed);
        world.meanwhile(1 + seed % 20, replace);
        let asks = Options { existing: Existing::Ask, recursive: true, ..Options::default() };
        let outcome = copy(&world, &asks, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(outcome.summary.skipped, 1);
    });
}

#[test]
fn what_others_put_in_the_place_of_a_failed_copy_stays() {
    for_seeds(300, |seed| {
        let world = World::default();
        world.folder("source").file("source/file", &[7; 9_000]).folder("target");
        let mut io = world.options(seed);
        io.workers = std::num::NonZeroUsize::MIN;
        io.block_size = 4096;
        let atomic = seed.is_multiple_of(2);
        let fault = Fault::nth(Operation::Write, 1 + seed % 2, Errno::IO);
        world.change(|settings| settings.faults.push(fault));
        world.meanwhile(1 + seed % 40, |world| {
            if world.get("target/file").is_some() {
                world.remove("target/file");
            }
            world.file("target/file", b"another's complete file");
        });
        copy(&world, &Options { recursive: true, atomic, ..Options::default() }, &io);
        // The change may come after the copy.
        if let Some(left) = world.get("target/file") {
            let anothers = ferry_io::sim::Sparse::from(&b"another's complete file"[..]);
            let copied = ferry_io::sim::Sparse::from(&[7; 9_000][..]);
            assert!(left.content == anothers || left.content == copied, "{left:?}");
        }
        for path in world.model("target").keys() {
            assert!(!path.starts_with(b".ferry-"), "{}", path.escape_ascii());
        }
    });
}

#[test]
fn an_existing_target_that_is_left_incomplete_is_marked_and_reported() {
    for_seeds(100, |seed| {
        let (world, io) = world(seed);
        let errno = [Errno::IO, Errno::NOSPC][usize::try_from(seed % 2).unwrap()];
        world.change(|settings| settings.faults.push(Fault::always(Operation::Write, errno)));
        let outcome = copy(&world, &archive(), &io);
        let [unfinished] = &outcome.unfinished[..] else { panic!("{:?}", outcome.failures) };
        assert_eq!(unfinished.target.as_os_str(), "/target/file");
        assert!(unfinished.error.is_none() && !unfinished.is_interrupted, "{unfinished:?}");
        let left = world.get("target/file").unwrap();
        assert_eq!(left.times, Times { accessed: OLDEST, modified: OLDEST });
        world.change(|settings| settings.faults.clear());
        let outcome = copy(&world, &Options { update: true, ..archive() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(world.get("target/file").unwrap().content, world.get("source/file").unwrap().content);
    });
}

#[test]
fn a_target_that_appears_after_the_look_is_asked_about() {
    // The tests' observer answers no.
    for_seeds(100, |seed| {
        let world = World::default();
        world.folder("source").file("source/file", b"the source's bytes").folder("target");
        let mut io = world.options(seed);
        io.workers = std::num::NonZeroUsize::MIN;
        world.meanwhile(1 + seed % 25, |world| {
            if world.get("target/file").is_none() {
                world.file("target/file", b"another's complete file");
            }
        });
        let asks = Options { existing: Existing::Ask, recursive: true, ..Options::default() };
        let outcome = copy(&world, &asks, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let left = world.get("target/file").unwrap().content;
        let is_copied = outcome.summary.files == 1;
        let expected = if is_copied { &b"the source's bytes"[..] } else { b"another's complete file" };
        assert_eq!(left, ferry_io::sim::Sparse::from(expected));
    });
}

#[test]
fn a_backup_gets_its_name_back_when_its_copy_fails() {
    let failed = std::cell::Cell::new(0);
    for_seeds(100, |seed| {
        let world = World::default();
        world.folder("source").folder("target");
        for index in 0..8 {
            world.file(format!("source/{index}"), &[7; 20_000]).file(format!("target/{index}"), b"before");
        }
        let mut io = world.options(seed);
        io.block_size = 4096;
        world.change(|settings| settings.faults.push(Fault::by_chance(Operation::Read, 100_000, Errno::IO)));
        let suffix = "~".into();
        let backup = Some(Backup { control: Control::Simple, suffix });
        let options = Options { recursive: true, backup, reflink: Reflink::Never, ..Options::default() };
        let outcome = copy(&world, &options, &io);
        world.change(|settings| settings.faults.clear());
        failed.set(failed.get() + outcome.failures.len());
        for failure in &outcome.failures {
            let name = failure.target.file_name().unwrap().to_str().unwrap();
            let is_of_file = name.len() == 1;
            let left = || world.get(format!("target/{name}")).map(|node| node.content);
            assert!(
                !is_of_file || left() == Some(ferry_io::sim::Sparse::from(&b"before"[..])),
                "{failure:?}"
            );
        }
    });
    assert!(failed.get() > 0 || is_one_seed(), "no copy failed");
}

/// Another program creates files at names that wait for their file's first name to be copied.
#[test]
fn a_file_that_takes_the_name_of_a_link_meanwhile_stays_if_the_options_say_so() {
    const OTHERS: [&str; 4] = ["b", "c", "d", "e"];
    let kept = std::cell::Cell::new(0);
    for_seeds(300, |seed| {
        let world = World::default();
        world.folder("source").folder("target").file("source/a", &[7; 20_000]);
        for name in OTHERS {
            world.hard_link("source/a", format!("source/{name}"));
        }
        let made = Arc::new(Mutex::new(Vec::new()));
        let makes = Arc::clone(&made);
        world.meanwhile(1 + seed % 60, move |world| {
            let paths = OTHERS.map(|name| format!("target/{name}"));
            for path in paths.into_iter().filter(|path| world.get(path).is_none()) {
                world.file(&path, b"another's complete file");
                makes.lock().unwrap().push(path);
            }
        });
        // The tests' observer answers no.
        let existing = [Existing::Keep, Existing::Refuse, Existing::Ask][usize::try_from(seed % 3).unwrap()];
        let outcome = copy(&world, &Options { existing, ..archive() }, &world.options(seed));
        let made = std::mem::take(&mut *made.lock().unwrap());
        for path in &made {
            let left = world.get(path).unwrap().content;
            assert_eq!(left, ferry_io::sim::Sparse::from(&b"another's complete file"[..]), "{path}");
        }
        let reported = if existing == Existing::Refuse { made.len() } else { 0 };
        assert_eq!(outcome.failures.len(), reported, "{:?}", outcome.failures);
        kept.set(kept.get() + made.len());
    });
    assert!(kept.get() > 100 || is_one_seed(), "only {} names were taken", kept.get());
}

/// Two names that differ only in case are one name in the target: a link may not replace a copy unreported.
#[test]
fn a_link_takes_the_place_of_no_copy_in_a_new_folder_that_ignores_case() {
    for_seeds(200, |seed| {
        let world = World::default();
        world.folder("source").folder("source/new").folder("target");
        world.file("source/new/a", b"a file of its own").file("source/new/z", &[7; 20_000]);
        world.hard_link("source/new/z", "source/new/A");
        world.change(|settings| settings.ignores_case = true);
        let outcome = copy(&world, &archive(), &world.options(seed));
        let reported = |name: &str| {
            let path = std::path::Path::new("/source/new").join(name);
            outcome.failures.iter().any(|failure| failure.source == path)
        };
        let left = world.get("target/new/a").unwrap().content;
        let (own, linked) = (&b"a file of its own"[..], &[7; 20_000][..]);
        assert!(reported("a") || left == ferry_io::sim::Sparse::from(own), "{:?}", outcome.failures);
        assert!(reported("A") || left == ferry_io::sim::Sparse::from(linked), "{:?}", outcome.failures);
    });
}
