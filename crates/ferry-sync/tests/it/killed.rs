//! Runs that are killed (SIGKILL) before any of their calls. No complete file of the target is lost, and the next run ends
//! equal.
//!
//! One run gives a copy of its world before each call ([`World::killed`]). Each copy is a world in which the next run
//! starts.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use ferry_io::FileKind;
use ferry_io::sim::{Model, Settings, Sparse, World, differences};
use ferry_sync::{Acting, Comparison, Disposal, MaxDelete, Request};

use super::{at, disposal, request, run, run_listed, target, world};

/// Magic number of ext4 (statfs(2)): hidden names of killed runs are cleared away there.
const EXT4: u64 = 0xef53;
/// More than a run has calls.
const MOST_CALLS: u64 = 1_000;
const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// Size of a file that is copied by parts (`ferry-copy/src/staging/part.rs`).
const LARGE: u64 = 70 * MIB;
/// Bytes in each MiB of it. All else are holes.
const DATA: u64 = 2 * PAGE;
/// Size of the blocks in which what a killed run has copied of it is compared.
const BLOCK: u64 = 1 << 18;

/// Factor of the number of seeds: 1, unless FERRY_SEEDS is set.
fn scale() -> u64 {
    std::env::var("FERRY_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A run that was killed.
struct Killed {
    /// Number of the first call that was not made.
    call: u64,
    world: World,
}

/// Runs to the end. Returns the world as it was before each of these calls.
fn killed(
    world: &World,
    io: &ferry_io::Options,
    wanted: &Request,
    calls: impl Iterator<Item = u64>,
) -> Vec<Killed> {
    let found = Arc::new(Mutex::new(Vec::new()));
    for call in calls {
        let found = Arc::clone(&found);
        world
            .meanwhile(call, move |world| found.lock().unwrap().push(Killed { call, world: world.killed() }));
    }
    let (totals, failures) = run(world, io, wanted);
    assert!(failures.is_empty() && !totals.interrupted, "{failures:?}");
    std::mem::take(&mut *found.lock().unwrap())
}

/// A run and the trees that it started with.
struct Case {
    seed: u64,
    wanted: Request,
    magic: Option<u64>,
    source: Model,
    /// The target before the run.
    old: Model,
}

impl Case {
    fn new(world: &World, seed: u64, wanted: Request) -> Self {
        let mut magic = None;
        world.change(|settings| magic = settings.magic);
        Self { seed, wanted, magic, source: world.model("source"), old: world.model("target") }
    }

    fn has_trash(&self) -> bool {
        matches!(self.wanted.acting.disposal, Disposal::Trash(_))
    }

    /// Panics unless each file that the target had is there, as it was or as the source has it. With a trash, its bytes
    /// are somewhere in the target in any case. Files that are overwritten in place may be incomplete.
    fn assert_nothing_lost(&self, killed: &Killed) {
        if self.wanted.acting.in_place {
            return;
        }
        let Killed { call, world } = killed;
        let found = world.model("target");
        for (path, old) in self.old.iter().filter(|(_, node)| node.kind == FileKind::Regular) {
            let lost = || format!("seed {}, killed at call {call}: {}", self.seed, path.escape_ascii());
            let new = self.source.get(path).filter(|node| node.kind == FileKind::Regular);
            match found.get(path).filter(|node| node.kind == FileKind::Regular) {
                Some(node) => {
                    let is_new = new.is_some_and(|new| node.content == new.content);
                    assert!(node.content == old.content || is_new, "{} is incomplete", lost());
                }
                None => assert!(new.is_none(), "{} is missing", lost()),
            }
            let is_kept = |found: &Model| found.values().any(|node| node.content == old.content);
            assert!(!self.has_trash() || is_kept(&found), "{} is lost", lost());
        }
    }

    /// Panics unless the next run ends equal, and nothing is lost then. Returns the bytes that it copied.
    fn assert_continues(&self, killed: &Killed, lists: bool) -> u64 {
        let Killed { call, world } = killed;
        let io = ferry_io::Options { block_size: 4096 << (call % 5), ..world.options(self.seed + call) };
        let runs = if lists { run_listed } else { run };
        let (totals, failures) = runs(world, &io, &self.wanted);
        self.assert_nothing_lost(killed);
        let told = || format!("seed {}, killed at call {call}", self.seed);
        assert!(failures.is_empty(), "{}: {failures:?}", told());
        let found = differences(&self.source, &counted(target(world)));
        assert_eq!(found, Vec::<String>::new(), "{}", told());
        let is_hidden =
            |path: &[u8]| path.split(|&byte| byte == b'/').any(|name| name.starts_with(b".ferry-"));
        let left = world.model("target").into_keys().find(|path| is_hidden(path) && !is_trash(path));
        let is_cleared = self.magic != Some(EXT4) || left.is_none();
        assert!(is_cleared, "{}: {} is left", told(), left.unwrap_or_default().escape_ascii());
        totals.bytes
    }
}

fn is_trash(path: &[u8]) -> bool {
    path.starts_with(b".ferry-trash")
}

/// Counts the names of each file in this tree alone: a name that a kill left aside may be in the trash by now.
fn counted(mut tree: Model) -> Model {
    let mut names = BTreeMap::<Vec<u8>, Vec<Vec<u8>>>::new();
    for (path, node) in tree.iter().filter(|(_, node)| node.kind != FileKind::Directory) {
        names.entry(node.same_as.clone().unwrap_or_else(|| path.clone())).or_default().push(path.clone());
    }
    for names in names.values() {
        for path in names {
            let node = tree.get_mut(path).unwrap();
            node.links = names.len() as u64;
            node.same_as = Some(names[0].clone()).filter(|first| first != path);
        }
    }
    tree
}

/// The trees of an interrupted run, with files of several blocks, on a filesystem with locks.
fn trees(seed: u64) -> (World, ferry_io::Options) {
    let (world, io) = world(seed);
    let magic = (seed % 3 < 2).then_some(EXT4);
    world.change(|settings| (settings.locks, settings.magic) = (true, magic));
    world.file("target/larger", &[1; 100_000]).times("target/larger", at(8));
    world.file("source/larger", &[2; 90_000]).times("source/larger", at(9));
    world.file("source/same/larger", &[3; 50_000]).hard_link("source/same/larger", "source/other/name");
    world.times("source/other", at(7)).times("source/same", at(20)).times("source", at(21));
    (world, ferry_io::Options { block_size: 16_384, ..io })
}

#[test]
fn after_a_kill_at_any_call_nothing_is_lost_and_the_next_run_ends_equal() {
    let (mut kills, mut twice) = (0, 0);
    for seed in 0..3 * scale() {
        let (world, io) = trees(seed);
        let case = Case::new(&world, seed, request(disposal(seed)));
        let found = killed(&world, &io, &case.wanted, 1..MOST_CALLS);
        assert!((100..MOST_CALLS).contains(&(found.len() as u64)), "{} calls", found.len());
        for killed in &found {
            kills += 1;
            case.assert_nothing_lost(killed);
            // The next run may be killed, too.
            if killed.call % 4 == 0 {
                let again = killed_again(&case, killed);
                twice += u64::from(again.is_some());
                if let Some(again) = again {
                    case.assert_continues(&again, false);
                }
                continue;
            }
            case.assert_continues(killed, killed.call % 3 == 0);
        }
    }
    eprintln!("SEEDS: kills={kills} of_two_runs={twice}");
    assert!(kills > 800 && twice > 150, "{kills} kills, {twice} of two runs");
}

/// Kills the run after a killed one, too, if it has enough calls.
fn killed_again(case: &Case, first: &Killed) -> Option<Killed> {
    let io = first.world.options(case.seed + first.call);
    let call = first.call * 7 % 150 + 1;
    let found = killed(&first.world, &io, &case.wanted, std::iter::once(call)).pop();
    found.iter().for_each(|again| case.assert_nothing_lost(again));
    found
}

fn large() -> Sparse {
    let mut content = Sparse::default();
    for number in 0..LARGE / MIB {
        let at = number * MIB + number * PAGE;
        let byte = u8::try_from(number).unwrap() + 1;
        content.write(at, &vec![byte; usize::try_from(DATA).unwrap()]);
    }
    content.set_size(LARGE);
    content
}

/// New files of several blocks, which are not cloned; and a file that is overwritten.
fn trees_of_new_files(seed: u64) -> (World, ferry_io::Options) {
    let copies_ranges = seed.is_multiple_of(2);
    let allocates = seed % 4 < 2;
    let world = World::new(Settings {
        descriptors: 64,
        locks: true,
        clones: false,
        copies_ranges,
        allocates,
        ..Settings::default()
    });
    world.folder("source").folder("source/in").folder("target").folder("target/in");
    for (number, name) in ["first", "in/second", "in/third"].into_iter().enumerate() {
        let byte = u8::try_from(number).unwrap() + 1;
        world.file(format!("source/{name}"), &vec![byte; 50_000 - number]);
    }
    world
        .hard_link("source/in/third", "source/linked")
        .file("target/kept", b"kept")
        .file("source/kept", b"kept");
    for name in
        ["source/first", "source/in/second", "source/linked", "source/kept", "target/kept", "source/in"]
    {
        world.times(name, at(9));
    }
    world.file("target/first", &[9; 60_000]).times("target/first", at(8));
    let io = world.options(seed);
    (world, ferry_io::Options { block_size: 16_384, ..io })
}

/// Regressions: with `--size-only`, a new file that a kill had left incomplete with its full size counted as equal. With
/// `--inplace`, a file that a kill had left overwritten in part counted as newer, or with its full size as equal.
#[test]
fn after_a_kill_no_incomplete_file_is_taken_for_equal() {
    let [size, content, time] = [Comparison::Size, Comparison::Content, Comparison::SizeAndTime];
    let mut kills = 0;
    for (comparison, keeps_newer, in_place) in [
        (size, false, false),
        (size, false, true),
        (content, false, false),
        (time, true, false),
        (time, true, true),
        (time, false, true),
        (content, false, true),
    ] {
        for seed in 0..3 * scale() {
            let (world, io) = trees_of_new_files(seed);
            let acting = Acting { in_place, ..request(disposal(seed)).acting };
            let wanted = Request { comparison, keeps_newer, acting, ..request(disposal(seed)) };
            let case = Case::new(&world, seed, wanted);
            for killed in killed(&world, &io, &case.wanted, 1..MOST_CALLS) {
                kills += 1;
                case.assert_nothing_lost(&killed);
                case.assert_continues(&killed, false);
            }
        }
    }
    eprintln!("SEEDS: kills={kills}");
    assert!(kills > 1_000, "{kills} kills");
}

/// A large file, which the target lacks, or has an older version of.
fn large_trees(seed: u64) -> (World, ferry_io::Options) {
    let world = World::new(Settings {
        descriptors: 64,
        locks: true,
        clones: false,
        copies_ranges: seed.is_multiple_of(2),
        short_transfers: 50_000,
        magic: Some(EXT4),
        ..Settings::default()
    });
    world.folder("source").folder("target").sparse_file("source/large", large());
    if seed % 4 < 2 {
        world.file("target/large", b"an older version");
    }
    world.file("target/kept", b"kept").file("source/kept", b"kept").file("target/gone", b"gone");
    for name in ["source/large", "source/kept", "target/kept", "source"] {
        world.times(name, at(10));
    }
    let io = world.options(seed);
    (world, ferry_io::Options { block_size: 1 << 18, ..io })
}

/// Bytes of the large file, from the first on, that the target has under any name.
fn copied(world: &World) -> u64 {
    let source = large();
    let block = |content: &Sparse, at: u64| {
        let mut bytes = vec![0; usize::try_from(BLOCK).unwrap()];
        content.read(at, &mut bytes);
        bytes
    };
    let is_same =
        |content: &Sparse, at: u64| content.size() >= at + BLOCK && block(content, at) == block(&source, at);
    let of =
        |content: &Sparse| (0..LARGE / BLOCK).take_while(|index| is_same(content, index * BLOCK)).count();
    world.model("target").values().map(|node| of(&node.content) as u64 * BLOCK).max().unwrap_or(0)
}

/// Bytes of data in the large file from an offset on.
fn data_from(at: u64) -> u64 {
    let end = |number: u64| number * (MIB + PAGE) + DATA;
    (0..LARGE / MIB).map(|number| end(number).saturating_sub(at).min(DATA)).sum()
}

/// The next run copies no byte again, except those of the block that was incomplete.
///
/// Regressions: a run that was killed before the first range was noted, or in one of the last calls before the file had its
/// name, lost all that it had copied.
#[test]
fn after_a_kill_in_a_large_file_the_next_run_goes_on_there() {
    let (mut kills, mut continued) = (0, 0);
    for seed in 0..4 * scale() {
        let (world, io) = large_trees(seed);
        // A rate limit makes the copy last, so that it gets a journal with ranges.
        let bandwidth = NonZeroU64::new(96 << 10).filter(|_| [0, 3, 5, 6].contains(&(seed % 8)));
        let acting = Acting { bandwidth, ..request(disposal(seed)).acting };
        let wanted = Request { acting, max_delete: MaxDelete::Any, ..request(disposal(seed)) };
        let case = Case::new(&world, seed, wanted);
        for killed in killed(&world, &io, &case.wanted, 1..MOST_CALLS) {
            case.assert_nothing_lost(&killed);
            let copied = copied(&killed.world);
            // Each call once all bytes are copied, and some of those before.
            if copied < LARGE && killed.call % 13 != seed % 13 {
                continue;
            }
            kills += 1;
            let bytes = case.assert_continues(&killed, false);
            let told = format!("seed {seed}, killed at call {}: {copied} bytes were copied", killed.call);
            assert!(bytes <= data_from(copied), "{bytes} are copied again: {told}");
            continued += u64::from(copied > 0);
        }
    }
    eprintln!("SEEDS: kills={kills} continued={continued}");
    assert!(kills > 70 && continued > 25, "{kills} kills, {continued} copies continued");
}
