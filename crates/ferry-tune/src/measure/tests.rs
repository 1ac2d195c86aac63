use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ferry_lab::Failure;
use ferry_lab::schedule::Progress;
use ferry_lab::session::Observer;
use ferry_lab::stop::Stop;

use super::steps::{Steps, first_enough};
use super::work::Work;
use super::{Scale, calls, device, folder_of, handed, measure};
use crate::Figure;

/// Records progress and notes.
#[derive(Default)]
struct Told {
    steps: RefCell<Vec<Progress>>,
    notes: RefCell<Vec<String>>,
}

impl Observer for Told {
    fn progress(&self, progress: &Progress) {
        self.steps.borrow_mut().push(progress.clone());
    }

    fn note(&self, line: &str) {
        self.notes.borrow_mut().push(line.to_owned());
    }
}

const SUBJECTS: usize = device::SUBJECTS + calls::SUBJECTS;

const SHORT: Scale = Scale {
    rounds: 3,
    load_ms: 5,
    file_bytes: 16 << 20,
    file_seconds: 1,
    creates: 10,
    reads: 50,
    ..Scale::QUICK
};

#[test]
fn the_least_that_brings_enough_is_taken() {
    let steady = |rate: &f64| Figure { median: *rate, low: *rate, high: *rate, runs: 5 };
    let enough = |rates: &[f64]| first_enough(rates, steady).copied();
    assert_eq!(enough(&[10.0, 50.0, 95.0, 100.0, 90.0]), Some(95.0));
    assert_eq!(enough(&[10.0, 50.0, 94.9, 100.0, 90.0]), Some(100.0));
    assert_eq!(enough(&[100.0, 100.0]), Some(100.0));
    assert_eq!(enough(&[]), None);
}

#[test]
fn what_chance_explains_is_enough() {
    let of = |(median, high): &(f64, f64)| Figure { median: *median, low: *median, high: *high, runs: 5 };
    let enough = |found: &[(f64, f64)]| first_enough(found, of).copied();
    // A device whose rate does not rise with depth: the maximum of eight medians is one of its best moments.
    assert_eq!(enough(&[(93.0, 101.0), (97.0, 102.0), (100.0, 103.0)]), Some((93.0, 101.0)));
    // With a small spread, or far below the maximum, a rate does not suffice.
    assert_eq!(enough(&[(93.0, 94.0), (89.0, 120.0), (100.0, 103.0)]), Some((100.0, 103.0)));
}

#[test]
fn no_set_of_rounds_is_made_twice() {
    let (told, stop) = (Told::default(), Stop::on_signals().unwrap());
    let mut steps = Steps::new(&SHORT, SUBJECTS, &told, &stop);
    let mut rounds = Vec::new();
    for _ in 0..2 {
        let take = |(): &(), round| {
            rounds.push(round);
            Ok(1.0)
        };
        steps.rounds(&[()], |()| String::new(), take).unwrap();
    }
    assert_eq!(rounds, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn subjects_are_taken_in_rounds_and_wide_ones_again() {
    let (told, stop) = (Told::default(), Stop::on_signals().unwrap());
    let mut steps = Steps::new(&SHORT, SUBJECTS, &told, &stop);
    let mut taken = Vec::new();
    let figures = steps
        .rounds(
            &["steady", "odd"],
            |name| (*name).to_owned(),
            |name, round| {
                taken.push((*name, round));
                // One outlier in the first set of rounds.
                Ok(if *name == "odd" && round == 1 { 3.0 } else { 10.0 })
            },
        )
        .unwrap();
    for round in 0..3 {
        let mut names: Vec<&str> =
            taken.iter().filter(|(_, in_round)| *in_round == round).map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert_eq!(names, ["odd", "steady"]);
    }
    assert_eq!(taken[6..], [("odd", 3), ("odd", 4), ("odd", 5)]);
    let low_and_runs: Vec<_> = figures.iter().map(|figure| (figure.low.to_bits(), figure.runs)).collect();
    assert_eq!(low_and_runs, [(10_f64.to_bits(), 3), (10_f64.to_bits(), 3)]);
}

#[test]
fn a_slow_device_is_measured_in_fewer_rounds() {
    let (told, stop) = (Told::default(), Stop::on_signals().unwrap());
    // Twenty rounds of two subjects would take all the time.
    let scale = Scale { rounds: 50, seconds: 2, ..SHORT };
    let mut steps = Steps::new(&scale, SUBJECTS, &told, &stop);
    let slow = |steps: &mut Steps<'_>| {
        let take = |_: &i32, round| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            // Varies enough to be measured again.
            Ok(if round % 2 == 0 { 1.0 } else { 10.0 })
        };
        steps.rounds(&[1, 2], ToString::to_string, take).unwrap().iter().map(|figure| figure.runs).max()
    };
    // The first step leaves time for the minimum of the others; the last step has all that is left.
    assert_eq!((slow(&mut steps), slow(&mut steps)), (Some(2), Some(2)));
    steps.skip(device::SUBJECTS + calls::SUBJECTS - 6);
    let runs = slow(&mut steps);
    assert!(runs >= Some(3) && runs <= Some(18), "{runs:?}");
    let end = told.steps.borrow().last().cloned().unwrap();
    assert!(end.taken < end.planned && end.elapsed.as_secs() < 4, "{end:?}");
}

#[test]
fn what_always_varies_is_not_taken_without_end() {
    let (told, stop) = (Told::default(), Stop::on_signals().unwrap());
    let mut steps = Steps::new(&SHORT, SUBJECTS, &told, &stop);
    let mut count = 0;
    let figures = steps
        .rounds(&[1, 2, 3, 4], ToString::to_string, |_, round| {
            count += 1;
            Ok(if round % 3 == 0 { 1.0 } else { 10.0 })
        })
        .unwrap();
    // Four subjects, and six retakes.
    assert_eq!(count, 3 * (4 + 6));
    assert!(figures.iter().all(|figure| figure.low < 2.0 && figure.runs == 3));
    let taken = told.steps.borrow().iter().map(|step| step.taken).max();
    assert_eq!(taken, Some(29));
}

#[test]
fn what_killed_runs_left_is_removed_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let running = Work::make(place.path()).unwrap();
    let left = place.path().join(".ferry-tune-4194305-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("made0"), "").unwrap();
    let others = [".ferry-tune-notes", ".ferry-tune-1-x", "ferry-tune-1-0"];
    others.iter().for_each(|name| fs::create_dir(place.path().join(name)).unwrap());
    fs::write(place.path().join(".ferry-tune-7-0"), "a file").unwrap();
    let work = Work::make(place.path()).unwrap();
    assert!(!left.exists());
    let numbered = |number: u32| place.path().join(format!(".ferry-tune-{}-{number}", std::process::id()));
    assert_eq!(fs::metadata(numbered(1)).unwrap().permissions().mode() & 0o777, 0o700);
    // By path, or by descriptor.
    fs::write(work.path().join("made"), "").unwrap();
    assert!(numbered(0).exists() && numbered(1).join("made").exists());
    running.remove().unwrap();
    drop(work);
    assert!(!numbered(0).exists() && !numbered(1).exists());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), others.len() + 1);
}

#[test]
fn a_folder_that_is_swapped_is_not_followed() {
    if !std::path::Path::new("/proc/self/fd").exists() {
        eprintln!("SKIP: there is no /proc");
        return;
    }
    let (place, victim) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(victim.path().join("made"), "theirs").unwrap();
    let work = Work::make(place.path()).unwrap();
    let at = place.path().join(format!(".ferry-tune-{}-0", std::process::id()));
    let moved = place.path().join("moved");
    fs::rename(&at, &moved).unwrap();
    std::os::unix::fs::symlink(victim.path(), &at).unwrap();
    fs::write(work.path().join("made"), "ours").unwrap();
    fs::create_dir(work.path().join("folder")).unwrap();
    assert!(moved.join("folder").exists());
    let failure = work.remove().unwrap_err().to_string();
    assert_eq!(
        failure,
        format!("cannot remove '{}': it was moved away; its contents are removed", at.display())
    );
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(victim.path().join("made")).unwrap(), "theirs");
}

#[test]
fn a_hundred_names_are_tried() {
    let place = tempfile::tempdir().unwrap();
    let name = |number: u32| place.path().join(format!(".ferry-tune-{}-{number}", std::process::id()));
    // Files are not leftovers.
    (0..99).for_each(|number| fs::write(name(number), "").unwrap());
    let work = Work::make(place.path()).unwrap();
    assert!(name(99).is_dir());
    let refused = Work::make(place.path()).unwrap_err().to_string();
    assert!(refused.ends_with(": 100 names exist already"), "{refused}");
    work.remove().unwrap();
}

#[test]
fn how_an_operation_ran_is_told_by_its_counts() {
    let how = |requests: u64, handovers: u64, serial: u64| {
        handed::how([7, 7, 7], [7 + requests, 7 + handovers, 7 + serial])
    };
    assert_eq!(how(0, 0, 0), "inline");
    assert_eq!(how(16, 0, 0), "ring");
    assert_eq!(how(17, 3, 3), "ring");
    assert_eq!(how(16, 16, 0), "worker");
    assert_eq!(how(16, 16, 16), "worker, one at a time");
}

#[test]
fn a_file_stands_for_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap();
    fs::write(folder.join("file"), "").unwrap();
    assert_eq!(folder_of(&folder.join("file")).unwrap(), folder);
    assert_eq!(folder_of(&folder).unwrap(), folder);
    let missing = folder_of(&folder.join("nothing")).unwrap_err();
    assert!(missing.to_string().ends_with("nothing': No such file or directory"), "{missing}");
    assert!(matches!(missing, Failure::File { .. }));
    let device = folder_of(std::path::Path::new("/dev/null")).unwrap_err().to_string();
    let why = "it is neither a folder nor a regular file; name a folder on the filesystem";
    assert_eq!(device, format!("cannot measure '/dev/null': {why}"));
}

#[test]
fn a_mount_is_measured_and_nothing_is_left() {
    let (told, stop) = (Told::default(), Stop::on_signals().unwrap());
    let place = tempfile::tempdir().unwrap();
    let profile = measure(place.path(), &SHORT, &told, &stop).unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    assert!(profile.about.quick && profile.calls.inline_create.median > 0.0);
    let last = told.steps.borrow().last().cloned().unwrap();
    assert_eq!(last.taken, last.planned);
    let has_ring = profile.calls.ring_hand_over.is_some();
    assert_eq!(told.notes.borrow().is_empty(), has_ring);
    assert!(has_ring || profile.handed_over.is_empty());
    let Some(direct) = profile.direct else {
        eprintln!("SKIP: {} has no direct I/O", profile.place.filesystem);
        return;
    };
    assert!(direct.depths.iter().any(|found| found.depth == direct.enough_depth));
    assert!(direct.blocks.iter().any(|found| found.bytes == direct.best_block));
    assert!(direct.depths.iter().all(|found| found.iops.runs == 3 && found.iops.median > 0.0));
}
