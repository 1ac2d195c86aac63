//! Every path reported as copied holds a version that its source had during the run.
//!
//! Every version of every file has unique bytes. While the copy runs, other processes rewrite, replace, link and remove
//! files of the source and of the target, at any call. Afterwards:
//!
//! - a target file holds one whole version of its source path, unless a failure names it; a file that was modified in
//!   place meanwhile may be a mix of its own versions;
//! - a path that the source always had is in the target, unless a failure names it;
//! - no source file and no foreign file was changed or removed, unless the copy was to write at its path;
//! - an error of fsync(2), syncfs(2) or close(2) was reported.

mod hostile;
mod shadow;

use std::sync::Mutex;

use ferry_copy::{Dereference, Direct, Failure, Options, Preserve, Reflink, Sparse, Verb};
use ferry_io::sim::{Model, Node, Struck, World};
use ferry_io::{Errno, FileKind, Operation};
use ferry_tree::fill::SplitMix64;

use self::hostile::plan;
use self::shadow::{Path, Shadow, Shared, bytes_of};
use crate::simulation;
use crate::storms::{Told, is_about};
use crate::told::{Outcome, archive, copy, for_seeds_at_once, is_one_seed};

/// Everything that a seed decides.
struct Scene {
    world: World,
    io: ferry_io::Options,
    options: Options,
    shared: Shared,
    /// Target tree before the copy.
    before: Model,
}

fn draw(seed: u64) -> Scene {
    let mut numbers = SplitMix64::new(seed ^ 0x7072_6f76);
    let (world, mut io) = simulation::world(seed);
    io.block_size = 4096 << numbers.index(3);
    world.change(|settings| {
        settings.short_transfers = [0, 200_000, 600_000][numbers.index(3)];
        settings.ordinal_cookies = numbers.percent(50);
        settings.reuses_inodes = numbers.percent(60);
        settings.clock_grain_ns = [1, 4_000_000][numbers.index(2)];
        settings.keeps_history = is_one_seed();
        settings.descriptors = [40, 60, 200][numbers.index(3)];
    });
    world.folder("source").folder("outside").folder("foreign");
    let mut shadow = Shadow::default();
    let mut folders = vec![String::new()];
    let most = [6, 6, 40][numbers.index(3)];
    for number in 0..numbers.index(most) {
        let above = folders[numbers.index(folders.len())].clone();
        let folder = format!("{above}d{number}/");
        world.folder(format!("source/{folder}"));
        folders.push(folder);
    }
    for number in 0..4 + numbers.index(40) {
        let path = format!("{}f{number}", folders[numbers.index(folders.len())]);
        let largest = if numbers.percent(80) { 9_000 } else { 90_000 };
        let size = 1 + numbers.index(largest);
        let bytes = shadow.new_bytes(size);
        world.file(format!("source/{path}"), &bytes);
        shadow.begin(&path, bytes);
    }
    let links: Vec<Path> = shadow.paths().filter(|_| numbers.percent(10)).cloned().collect();
    for (number, path) in links.into_iter().enumerate() {
        let other = format!("{}h{number}", folders[numbers.index(folders.len())]);
        world.hard_link(format!("source/{path}"), format!("source/{other}"));
        shadow.link(&path, &other);
    }
    let before = earlier(&world, &mut shadow, &folders, &mut numbers);
    let shared = shadow.share();
    plan(&world, &shared, &folders, &mut numbers);
    let options = options(&mut numbers, &world);
    weather(&world, &mut numbers);
    Scene { world, io, options, shared, before }
}

/// Creates files of an earlier copy, and a bystander in each folder.
fn earlier(world: &World, shadow: &mut Shadow, folders: &[String], numbers: &mut SplitMix64) -> Model {
    if numbers.percent(60) {
        return Model::new();
    }
    for folder in folders {
        world.folder(format!("target/{folder}"));
        let bytes = shadow.new_bytes(300);
        world.file(format!("target/{folder}bystander"), &bytes);
        shadow.stand_by(&format!("{folder}bystander"), bytes);
    }
    for path in shadow.paths().cloned().collect::<Vec<_>>() {
        if numbers.percent(60) {
            let bytes = shadow.new_bytes(1 + numbers.index(20_000));
            world.file(format!("target/{path}"), &bytes);
        }
    }
    world.model("target")
}

fn options(numbers: &mut SplitMix64, world: &World) -> Options {
    let mut flip = |percent| numbers.percent(percent);
    let mut clones = false;
    world.change(|settings| clones = settings.clones);
    let reflink = match () {
        () if flip(60) => Reflink::Auto,
        () if clones && flip(30) => Reflink::Always,
        () => Reflink::Never,
    };
    let sparse = if flip(80) || reflink == Reflink::Always { Sparse::Auto } else { Sparse::Always };
    Options {
        recursive: true,
        dereference: Dereference::Never,
        preserve: if flip(60) {
            archive().preserve
        } else {
            Preserve { links: flip(50), ..Preserve::default() }
        },
        atomic: flip(25),
        fsync: flip(30),
        force: flip(20),
        remove_destination: flip(10),
        verbose: flip(20),
        explain: flip(20),
        direct: if flip(40) { Direct::Always } else { Direct::Auto },
        sparse,
        reflink,
        ..Options::default()
    }
}

/// Every errno in the manual pages of write(2), fsync(2), syncfs(2) and close(2) except those of invalid arguments, and
/// errors that network filesystems add.
const ERRORS: [(Operation, Errno); 28] = [
    (Operation::Write, Errno::AGAIN),
    (Operation::Write, Errno::DQUOT),
    (Operation::Write, Errno::FBIG),
    (Operation::Write, Errno::INTR),
    (Operation::Write, Errno::INVAL),
    (Operation::Write, Errno::IO),
    (Operation::Write, Errno::NOSPC),
    (Operation::Write, Errno::PERM),
    (Operation::Write, Errno::PIPE),
    (Operation::Write, Errno::STALE),
    (Operation::Sync, Errno::INTR),
    (Operation::Sync, Errno::IO),
    (Operation::Sync, Errno::NOSPC),
    (Operation::Sync, Errno::DQUOT),
    (Operation::Sync, Errno::INVAL),
    (Operation::Sync, Errno::ROFS),
    (Operation::Sync, Errno::STALE),
    (Operation::Sync, Errno::TIMEDOUT),
    (Operation::Sync, Errno::NODATA),
    (Operation::Close, Errno::INTR),
    (Operation::Close, Errno::IO),
    (Operation::Close, Errno::NOSPC),
    (Operation::Close, Errno::DQUOT),
    (Operation::Close, Errno::STALE),
    (Operation::Read, Errno::IO),
    (Operation::Open, Errno::IO),
    (Operation::Stat, Errno::IO),
    (Operation::Unlink, Errno::IO),
];

fn weather(world: &World, numbers: &mut SplitMix64) {
    for _ in 0..numbers.index(3) {
        let (operation, errno) = ERRORS[numbers.index(ERRORS.len())];
        let fault = match numbers.index(3) {
            0 => ferry_io::sim::Fault::nth(operation, 1 + numbers.below(20), errno),
            _ => ferry_io::sim::Fault::by_chance(operation, 5_000 << numbers.index(5), errno),
        };
        world.change(|settings| settings.faults.push(fault));
    }
    if numbers.percent(8) {
        let room = world.used_bytes() * (100 + numbers.below(120)) / 100;
        world.change(|settings| settings.space = room);
    }
    if numbers.percent(10) {
        world.meanwhile(numbers.below(600), World::stop);
    }
}

/// Runs a seed's copy and checks it; returns the number of changes made during the copy.
fn run(seed: u64) -> usize {
    let scene = draw(seed);
    let outcome = copy(&scene.world, &scene.options, &scene.io);
    scene.world.change(|settings| settings.faults.clear());
    let mut shadow = scene.shared.lock().unwrap();
    let shadow = &mut *shadow;
    let told = Told::by(&outcome.failures);
    if is_one_seed() {
        eprintln!("{:?}\n{:#?}", scene.options, scene.world.struck());
        outcome.failures.iter().for_each(|failure| eprintln!("{failure:?}"));
        shadow.log.iter().for_each(|line| eprintln!("{line}"));
        scene.world.history().iter().for_each(|line| eprintln!("{line}"));
    }
    assert_sources_are_as_they_were(&scene.world, shadow);
    assert_errors_are_told(&scene.world.struck(), &outcome);
    if scene.world.get("target").is_none() {
        assert!(
            !outcome.failures.is_empty() || outcome.summary.interrupted,
            "nothing is there, nothing is told"
        );
        return shadow.log.len();
    }
    let target = scene.world.model("target");
    assert_provenance(&scene, shadow, (&target, &told), &outcome);
    assert_nothing_is_missing(shadow, (&target, &told), &outcome);
    shadow.log.len()
}

/// Panics if a foreign file was changed.
fn assert_sources_are_as_they_were(world: &World, shadow: &Shadow) {
    for (path, bytes) in shadow.present() {
        let found = world.get(format!("source/{path}")).unwrap_or_else(|| panic!("source {path}: removed"));
        assert!(bytes_of(&found) == bytes, "source {path}: changed");
    }
    for (path, bytes) in &shadow.bystanders {
        let found = world.get(format!("target/{path}")).unwrap_or_else(|| panic!("{path}: removed"));
        assert!(bytes_of(&found) == *bytes, "{path}: changed");
    }
    for (path, bytes) in &shadow.outside {
        let found = world.get(format!("outside/{path}")).unwrap_or_else(|| panic!("outside {path}: removed"));
        assert!(bytes_of(&found) == *bytes, "outside {path}: changed");
    }
}

/// Panics if an error that the kernel reports only once was not reported.
fn assert_errors_are_told(struck: &[Struck], outcome: &Outcome) {
    // EINTR of close(2) says nothing about the bytes, and EINVAL means that the call is unsupported.
    let is_harmless = |struck: &Struck| matches!(struck.errno, Errno::INVAL | Errno::INTR);
    let is_lost = |struck: &&Struck| {
        matches!(struck.operation, Operation::Close | Operation::Sync) && !is_harmless(struck)
    };
    // Targets that were given up are removed or marked.
    if outcome.summary.interrupted || outcome.summary.out_of_space {
        return;
    }
    for struck in struck.iter().filter(is_lost) {
        let is_of = |failure: &Failure| {
            let name = failure.source.file_name().unwrap_or_default().as_encoded_bytes();
            name == struck.name || is_about(failure, &[Verb::Sync])
        };
        // The failure of a file with a hidden name bears the name that it was to get.
        let is_hidden = struck.name.starts_with(b".ferry-") && !outcome.failures.is_empty();
        assert!(is_hidden || outcome.failures.iter().any(is_of), "not told: {struck:?}");
    }
}

/// Panics if a target file holds anything but a version of its source.
fn assert_provenance(scene: &Scene, shadow: &Shadow, (target, told): (&Model, &Told), outcome: &Outcome) {
    let ended_early = outcome.summary.interrupted || outcome.summary.out_of_space;
    for (path, node) in target.iter().filter(|(_, node)| node.kind == FileKind::Regular) {
        let path = std::str::from_utf8(path).unwrap();
        let is_before =
            |node: &Node| scene.before.get(path.as_bytes()).is_some_and(|old| old.content == node.content);
        let name = path.rsplit('/').next().unwrap_or_default();
        // A file is removed only if it is known to be the copier's own.
        let keeps = [Operation::Unlink, Operation::Stat, Operation::Open];
        let is_left = name.starts_with(".ferry-")
            && scene.world.struck().iter().any(|struck| keeps.contains(&struck.operation));
        let may_be_old = ended_early || !shadow.is_always_there(path);
        let bytes = bytes_of(node);
        let is_right = shadow.was_version(path, &bytes)
            || shadow.is_foreign(path, &bytes)
            || shadow.bystanders.contains_key(path)
            || is_left
            || told.is_lost(path.as_bytes())
            || outcome.unfinished.iter().any(|unfinished| unfinished.target.ends_with(path))
            || may_be_old && is_before(node);
        assert!(
            is_right,
            "{path}: {} bytes that its source never had: {}",
            bytes.len(),
            shadow.origin(&bytes)
        );
    }
}

/// Panics if a path that the source always had is neither in the target nor reported.
fn assert_nothing_is_missing(shadow: &Shadow, (target, told): (&Model, &Told), outcome: &Outcome) {
    if outcome.summary.interrupted || outcome.summary.out_of_space {
        return;
    }
    for path in shadow.always_there() {
        let is_excused = told.is_lost(path.as_bytes()) || shadow.is_touched(path);
        assert!(is_excused || target.contains_key(path.as_bytes()), "{path}: missing");
    }
}

#[test]
fn each_copy_is_a_version_that_its_source_had() {
    let acted = Mutex::new(0);
    for_seeds_at_once(300, |seed| {
        let deeds = run(seed);
        *acted.lock().unwrap() += usize::from(deeds > 0);
    });
    let acted = *acted.lock().unwrap();
    assert!(acted > 200 || is_one_seed(), "only in {acted} runs others did something");
}
