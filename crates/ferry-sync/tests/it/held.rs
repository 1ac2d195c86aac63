//! `--max-load`: a run that is held back makes no calls, whatever it is doing. Each case is named after the place that waits
//! at the gate in it. Without this wait, the calls of the case go on.

use std::num::{NonZeroU8, NonZeroU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ferry_copy::{Algorithm, Gate, Observer, Progress};
use ferry_io::RouteChoice;
use ferry_io::sim::{Settings, World};
use ferry_sync::manifest::Manifest;
use ferry_sync::{Acting, Comparison, Disposal, MaxDelete, Request, Rule, Selection, Surroundings, Use};

use super::{Told, at, request};

/// Longer than a window of the gate, and shorter than its time of work.
const LONGER: Duration = Duration::from_millis(200);
const ENTRIES: usize = 1_500;
const LEVELS: usize = 600;
const LARGE: usize = 12 << 20;
/// Magic number of ext4 (statfs(2)): files of a new folder are copied in runs there.
const EXT4: u64 = 0xef53;
const SEEDS: u64 = 3;

/// State of a run when the gate reads for how long others have waited.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    calls: u64,
    bytes: u64,
}

/// Trees, and how they are made equal.
struct Case {
    /// Place that waits at the gate.
    place: &'static str,
    /// Longest duration of a call.
    longest: Duration,
    make: fn(&World),
    wanted: fn(Request) -> Request,
    /// Set if a manifest is written.
    hashes: bool,
    /// Readings of a pause before which calls of entries in flight end.
    ending: usize,
}

impl Case {
    fn new(place: &'static str, make: fn(&World)) -> Self {
        let longest = Duration::from_millis(1);
        Self { place, longest, make, wanted: |request| request, hashes: false, ending: 3 }
    }

    /// Calls of large files take longer, because they are few.
    fn large(place: &'static str, make: fn(&World)) -> Self {
        Self { longest: Duration::from_millis(10), ..Self::new(place, make) }
    }

    fn wanting(self, wanted: fn(Request) -> Request) -> Self {
        Self { wanted, ..self }
    }
}

/// Runs beside others that always wait. Returns the readings, and the number of pauses.
fn readings(case: &Case, world: &World, io: &ferry_io::Options) -> (Vec<Reading>, u64) {
    let progress = Arc::new(Progress::default());
    let found = Arc::new(Mutex::new(Vec::<Reading>::new()));
    let gate = {
        let (progress, found, world) = (Arc::clone(&progress), Arc::clone(&found), world.clone());
        let waited = move || {
            let (at, bytes) = (ferry_io::now(), progress.bytes_done.get());
            let mut found = found.lock().unwrap();
            found.push(Reading { at, calls: world.calls(), bytes });
            Some([at - found[0].at; 3])
        };
        Arc::new(Gate::new(NonZeroU8::MIN, waited))
    };
    let told = Arc::new(Told::default());
    let surroundings = Surroundings {
        io,
        progress,
        observer: Arc::clone(&told) as Arc<dyn Observer>,
        tell: &|_| {},
        explain: None,
        manifest: case.hashes.then(|| Arc::new(Manifest::new(Algorithm::Blake3))),
        gate: Some(Arc::clone(&gate)),
    };
    let request = (case.wanted)(request(Disposal::Remove));
    let totals = ferry_sync::run(&request, Use::Perform, &surroundings).unwrap();
    let failures = std::mem::take(&mut *told.0.lock().unwrap());
    assert!(failures.is_empty() && totals.failed == 0, "{}: {failures:?}", case.place);
    let found = found.lock().unwrap().clone();
    (found, gate.pauses().count)
}

/// Panics if a run makes calls while it is held back, and those of entries in flight have ended.
fn check(case: &Case) {
    let mut pauses = 0;
    for seed in 0..SEEDS {
        let settings = Settings {
            descriptors: 64,
            short_transfers: 0,
            longest_ns: u64::try_from(case.longest.as_nanos()).unwrap(),
            ..Settings::default()
        };
        let world = World::new(settings);
        world.folder("source").folder("target");
        (case.make)(&world);
        let io = ferry_io::Options { block_size: 4096, ..world.options(seed) };
        let (readings, paused) = readings(case, &world, &io);
        pauses += paused;
        for readings in readings.windows(case.ending + 1) {
            let is_one_pause = readings.windows(2).all(|two| two[1].at - two[0].at < LONGER);
            let calls = readings[case.ending].calls - readings[case.ending - 1].calls;
            assert!(!is_one_pause || calls == 0, "{}, seed {seed}: {calls} calls in a pause", case.place);
        }
    }
    // The first pause of each run is before its first entry.
    assert!(pauses >= 2 * SEEDS, "{}: only {pauses} pauses", case.place);
}

/// Makes entries of the same name and time, in each of these folders.
fn fill(world: &World, folders: &[&str], make: impl Fn(&World, &str)) {
    for folder in folders {
        for number in 0..ENTRIES {
            let path = format!("{folder}/{number}");
            make(world, &path);
            world.times(&path, at(5));
        }
        world.times(folder, at(6));
    }
}

fn files(world: &World, folders: &[&str]) {
    fill(world, folders, |world, path| {
        world.file(path, b"a few bytes");
    });
}

fn folders(world: &World, folders: &[&str]) {
    fill(world, folders, |world, path| {
        world.folder(path);
    });
}

fn large(world: &World, folders: &[&str]) {
    for folder in folders {
        let path = format!("{folder}/large");
        world.file(&path, &vec![7; LARGE]).times(&path, at(5));
    }
}

#[test]
fn a_walk_without_jobs_ahead_is_held_back() {
    // Selected entries are not examined ahead.
    check(&Case::new("walk.rs", |world| folders(world, &["source", "target"])).wanting(|request| {
        let rule = Rule { pattern: "excluded".to_owned(), origin: "--exclude".to_owned() };
        Request { selection: Selection { rules: vec![rule], ..Selection::default() }, ..request }
    }));
}

#[test]
fn folders_are_not_examined_ahead_while_the_run_is_held_back() {
    // If content is compared, entries are examined one by one. A job finds the folder of the next one.
    let wanted = |request: Request| Request { comparison: Comparison::Content, ..request };
    let make = |world: &World| {
        for root in ["source", "target"] {
            let paths: Vec<String> =
                (1..LEVELS).map(|level| format!("{root}{}", "/0".repeat(level))).collect();
            for path in &paths {
                world.folder(path);
            }
            for path in &paths {
                world.times(path, at(5));
            }
            world.times(root, at(5));
        }
    };
    check(&Case::new("walk/ahead.rs", make).wanting(wanted));
}

#[test]
fn entries_are_not_examined_together_while_the_run_is_held_back() {
    // A request examines up to 64 entries, and 16 may be in flight.
    let case = Case::new("walk/together.rs", |world| files(world, &["source", "target"]));
    check(&Case { longest: Duration::from_millis(4), ending: 10, ..case });
}

#[test]
fn bytes_are_not_compared_while_the_run_is_held_back() {
    let wanted = |request: Request| Request { comparison: Comparison::Content, ..request };
    check(&Case::large("facts.rs", |world| large(world, &["source", "target"])).wanting(wanted));
}

#[test]
fn nothing_is_hashed_while_the_run_is_held_back() {
    let case = Case::large("digest.rs", |world| large(world, &["source", "target"]));
    check(&Case { hashes: true, ..case });
}

#[test]
fn entries_of_a_new_folder_are_not_copied_while_the_run_is_held_back() {
    check(&Case::new("entry.rs", |world| {
        world.folder("source/new");
        files(world, &["source/new"]);
    }));
}

#[test]
fn runs_of_plain_files_are_held_back() {
    check(&Case::new("file/plain.rs", |world| {
        world.change(|settings| settings.magic = Some(EXT4));
        world.folder("source/new");
        files(world, &["source/new"]);
    }));
}

#[test]
fn new_folders_are_not_entered_while_the_run_is_held_back() {
    check(&Case::new("walk/enter.rs", |world| {
        world.folder("source/new");
        folders(world, &["source/new"]);
    }));
}

#[test]
fn missing_files_are_not_copied_while_the_run_is_held_back() {
    check(&Case::new("copier.rs: copy", |world| files(world, &["source"])));
}

#[test]
fn attributes_are_not_set_while_the_run_is_held_back() {
    check(&Case::new("copier.rs: set_attributes", |world| {
        files(world, &["source", "target"]);
        for number in 0..ENTRIES {
            world.mode(format!("source/{number}"), 0o600);
        }
    }));
}

#[test]
fn nothing_is_deleted_while_the_run_is_held_back() {
    let case = Case::new("copier.rs: look", |world| {
        world.file("source/stays", b"stays");
        files(world, &["target"]);
    });
    check(&case.wanting(|request| Request { max_delete: MaxDelete::Any, ..request }));
}

#[test]
fn bytes_are_not_moved_while_the_run_is_held_back() {
    // The rate limit makes the copy last.
    let rate = |request: Request| {
        let acting = Acting { bandwidth: NonZeroU64::new(LARGE as u64), ..request.acting.clone() };
        Request { acting, ..request }
    };
    let make = |world: &World| {
        world.change(|settings| settings.clones = false);
        large(world, &["source"]);
    };
    check(&Case::new("run.rs: pay", make).wanting(rate));
}

#[test]
fn copies_are_not_read_back_while_the_run_is_held_back() {
    let verify =
        |request: Request| Request { acting: Acting { verify: true, ..request.acting.clone() }, ..request };
    check(&Case::large("check.rs", |world| large(world, &["source"])).wanting(verify));
}

/// Regression: pieces in flight that took longer than 30 ms counted as others' load in the first window.
#[test]
fn pieces_in_flight_end_before_others_are_measured() {
    let case = Case::new("first window", |world| {
        for number in 0..12 {
            world.file(format!("source/{number}"), &vec![7; 3 << 20]);
        }
    });
    let (mut windows, mut moved) = (0, 0);
    for seed in 0..SEEDS {
        let settings = Settings {
            descriptors: 400,
            short_transfers: 0,
            // They are read and written by blocks, each of which takes long. The 64 calls of a piece end within two seconds, the
            // longest time that a measurement waits for them.
            copies_ranges: false,
            clones: false,
            longest_ns: 30_000_000,
            ..Settings::default()
        };
        let world = World::new(settings);
        world.folder("source").folder("target");
        (case.make)(&world);
        let io = ferry_io::Options { route: RouteChoice::Pool, ..world.options(seed) };
        let (readings, _) = readings(&case, &world, &io);
        moved += readings.windows(2).filter(|two| two[1].bytes > two[0].bytes).count();
        for two in readings.windows(2).filter(|two| two[1].at - two[0].at < LONGER) {
            windows += 1;
            let bytes = two[1].bytes - two[0].bytes;
            assert_eq!(bytes, 0, "seed {seed}: {bytes} bytes were moved in a window");
        }
    }
    assert!(windows > 20 && moved > 4, "{windows} windows, {moved} times of work");
}
