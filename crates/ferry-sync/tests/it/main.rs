//! Runs in simulated worlds: interrupted at any call, and with calls that fail. The next run ends equal. And the example
//! of the library's guide.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod example;
mod held;
mod killed;
mod progress;

use std::path::Path;
use std::sync::{Arc, Mutex};

use ferry_copy::{Algorithm, Copied, Digest, Explained, Failure, Observer, Progress, Question, Unfinished};
use ferry_io::sim::{Fault, Model, Node, Settings, World, differences};
use ferry_io::{Errno, FileKind, Operation, Time, Times};
use ferry_sync::manifest::{Format, Manifest};
use ferry_sync::{Acting, Comparison, Disposal, MaxDelete, Refused, Request, Surroundings, Totals, Use};

/// Failures of a run.
#[derive(Default)]
struct Told(Mutex<Vec<Failure>>);

impl Observer for Told {
    fn copied(&self, _: &Copied<'_>) {}

    fn removed(&self, _: &Path) {}

    fn taken_back(&self, _: &Path, _: &Path) {}

    fn agrees(&self, _: &Path, _: Question, _: &dyn Fn() -> bool) -> bool {
        false
    }

    fn explained(&self, _: &Explained<'_>) {}

    fn failed(&self, failure: &Failure) {
        self.0.lock().unwrap().push(failure.clone());
    }

    fn unfinished(&self, _: &Unfinished) {}
}

fn request(disposal: Disposal) -> Request {
    Request {
        source: "/source".into(),
        target: "/target".into(),
        comparison: Comparison::SizeAndTime,
        keeps_newer: false,
        deletes: true,
        allows_empty: false,
        max_delete: MaxDelete::Half,
        selection: ferry_sync::Selection::default(),
        list: None,
        each_entry: false,
        acting: Acting { disposal, ..Acting::default() },
    }
}

/// Makes `/target` equal to `/source`; panics if a descriptor or a block is lost.
fn sync(world: &World, io: &ferry_io::Options, disposal: Disposal) -> (Totals, Vec<Failure>) {
    run(world, io, &request(disposal))
}

/// Makes trees equal as [`sync`] does, with or without a manifest, whose lines have to be right.
fn sync_with(
    world: &World,
    io: &ferry_io::Options,
    disposal: Disposal,
    lists: bool,
) -> (Totals, Vec<Failure>) {
    if lists { run_listed(world, io, &request(disposal)) } else { sync(world, io, disposal) }
}

fn run(world: &World, io: &ferry_io::Options, request: &Request) -> (Totals, Vec<Failure>) {
    let (totals, failures) = attempt(world, io, request, None);
    (totals.unwrap(), failures)
}

/// Runs with a manifest, and panics if a line is wrong, or missing without a failure.
fn run_listed(world: &World, io: &ferry_io::Options, request: &Request) -> (Totals, Vec<Failure>) {
    let manifest = Arc::new(Manifest::new(Algorithm::Blake3));
    let (totals, failures) = attempt(world, io, request, Some(&manifest));
    let totals = totals.unwrap();
    assert_listed(world, &manifest, &failures, !totals.interrupted && !totals.out_of_space);
    (totals, failures)
}

fn attempt(
    world: &World,
    io: &ferry_io::Options,
    request: &Request,
    manifest: Option<&Arc<Manifest>>,
) -> (Result<Totals, Refused>, Vec<Failure>) {
    let (told, progress) = (Arc::new(Told::default()), Arc::new(Progress::default()));
    let surroundings = Surroundings {
        io,
        progress: Arc::clone(&progress),
        observer: Arc::clone(&told) as Arc<dyn Observer>,
        tell: &|_| {},
        explain: None,
        manifest: manifest.cloned(),
        gate: None,
    };
    let totals = ferry_sync::run(request, Use::Perform, &surroundings);
    assert_eq!(world.open_descriptors(), Vec::<String>::new(), "descriptors are open");
    assert_eq!(world.blocks_outstanding(), 0, "blocks are lost");
    let failures = std::mem::take(&mut *told.0.lock().unwrap());
    if failures.is_empty() && totals.as_ref().is_ok_and(|totals| !totals.is_cut_short()) {
        assert_eq!(progress.entries_done.get(), progress.entries_found.get());
    }
    (totals, failures)
}

/// Panics unless each line of a manifest has the hash of its file in the target; and, after a run that was whole, each file
/// of both trees has a line, or a failure.
fn assert_listed(world: &World, manifest: &Manifest, failures: &[Failure], is_whole: bool) {
    let mut text = Vec::new();
    manifest.write(&mut text, Format::Text).unwrap();
    let mut lines = std::collections::BTreeMap::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let (digest, path) = line.split_once("  ").unwrap();
        lines.insert(path.as_bytes().to_vec(), digest.to_owned());
    }
    let target = world.model("target");
    for (path, line) in &lines {
        let path = path.escape_ascii();
        let Some(node) = world.get(format!("target/{path}")) else {
            panic!("{path} is missing, and has a line")
        };
        let mut bytes = vec![0; usize::try_from(node.content.size()).unwrap()];
        node.content.read(0, &mut bytes);
        assert_eq!(*line, Digest::of(Algorithm::Blake3, &bytes).to_string(), "the line of {path}");
    }
    let source = world.model("source");
    let is_file = |node: &Node| node.kind == FileKind::Regular;
    let both = target.iter().filter(|(path, node)| is_file(node) && source.get(*path).is_some_and(is_file));
    for (path, _) in both.filter(|(path, _)| is_whole && !lines.contains_key(*path)) {
        let at = Path::new("/target").join(std::str::from_utf8(path).unwrap());
        // Without a trash, nothing of a folder is replaced.
        let is_of_trash = |failure: &Failure| failure.source.starts_with("/target");
        let is_told = failures.iter().any(|failure| is_of_trash(failure) || at.starts_with(&failure.target));
        assert!(is_told, "{} has no line, and no failure: {failures:?}", at.display());
    }
}

fn at(seconds: i64) -> Times {
    let time = Time { seconds, nanoseconds: 5 };
    Times { accessed: time, modified: time }
}

/// A pair of trees that differ in every way.
fn world(seed: u64) -> (World, ferry_io::Options) {
    let world =
        World::new(Settings { descriptors: 64, lists_kinds: seed.is_multiple_of(2), ..Settings::default() });
    for root in ["source", "target"] {
        world.folder(root);
        for folder in ["same", "same/deep", "other"] {
            world.folder(format!("{root}/{folder}"));
        }
        world.file(format!("{root}/same/file"), b"equal").times(format!("{root}/same/file"), at(9));
    }
    world.file("source/same/deep/changed", b"the new bytes").times("source/same/deep/changed", at(10));
    world.file("target/same/deep/changed", b"the old ones").times("target/same/deep/changed", at(8));
    world.file("source/new", &[7; 9_000]).folder("source/tree").file("source/tree/file", b"in a new tree");
    world.symlink("source/tree/link", "file").symlink("source/link", "new text");
    world.symlink("target/link", "old").file("source/one", b"linked").hard_link("source/one", "source/two");
    world.file("target/one", b"linked").file("target/two", b"apart");
    world.file("source/kind", b"a file now").folder("target/kind").file("target/kind/inner", b"inner");
    world.folder("source/folder").file("source/folder/file", b"file").file("target/folder", b"a folder soon");
    world.file("target/other/gone", b"gone").folder("target/gone").file("target/gone/too", b"too");
    world.file("target/same/mode", b"mode").mode("target/same/mode", 0o600).times("target/same/mode", at(3));
    world.file("source/same/mode", b"mode").mode("source/same/mode", 0o644).times("source/same/mode", at(3));
    world.times("source/same", at(20)).times("source", at(21));
    let options = world.options(seed);
    (world, options)
}

/// The target without its trash, and without ACLs that are equal to the mode.
fn target(world: &World) -> Model {
    let mut target = world.model("target");
    // Hidden names that could not be removed are cleared away where the kernel has locks.
    let is_hidden = |path: &[u8]| path.split(|&byte| byte == b'/').any(|name| name.starts_with(b".ferry-"));
    let has_trash = target.contains_key(&b".ferry-trash"[..]);
    target.retain(|path, _| !is_hidden(path));
    if let Some(root) = target.get_mut(&b""[..]).filter(|_| has_trash) {
        root.links -= 1;
    }
    target.values_mut().for_each(|node| drop(node.xattrs.remove(c"system.posix_acl_access")));
    target
}

fn assert_equal(world: &World, seed: u64, failures: &[Failure]) {
    let found = differences(&world.model("source"), &target(world));
    assert!(failures.is_empty(), "seed {seed}: {failures:?}");
    assert_eq!(found, Vec::<String>::new(), "seed {seed}");
}

fn disposal(seed: u64) -> Disposal {
    if seed.is_multiple_of(2) { Disposal::Remove } else { Disposal::Trash(None) }
}

#[test]
fn trees_become_equal() {
    for seed in 0..40 {
        let (world, io) = world(seed);
        let (totals, failures) = sync(&world, &io, disposal(seed / 2));
        assert_equal(&world, seed, &failures);
        assert_eq!(totals.done.deleted, 4, "gone, gone/too, other/gone and kind/inner");
        let before = world.model("target");
        let (again, failures) = sync(&world, &io, Disposal::Remove);
        // The simulation keeps ACLs that are equal to the mode, which no source has.
        let done = ferry_sync::Done { attributes: 0, ..again.done };
        assert!(failures.is_empty() && done == ferry_sync::Done::default(), "{:?}", again.done);
        assert_eq!(differences(&before, &world.model("target")), Vec::<String>::new());
    }
}

/// The file that changes is the old one or the new one.
fn assert_nothing_lost(world: &World, call: u64) {
    let Some(found) = world.get("target/same/deep/changed") else { panic!("missing at call {call}") };
    let (old, new) = (world.get("old").unwrap(), world.get("source/same/deep/changed").unwrap());
    assert!(found.content == old.content || found.content == new.content, "a part at call {call}");
    assert!(world.get("target/same/file").is_some(), "at call {call}");
}

#[test]
fn after_an_interruption_at_any_call_the_next_run_ends_equal() {
    for call in 0..400 {
        let (world, io) = world(call);
        world.file("old", b"the old ones");
        world.meanwhile(call, World::stop);
        // Files are examined in another way for a manifest.
        let lists = call % 3 == 0;
        sync_with(&world, &io, disposal(call), lists);
        assert_nothing_lost(&world, call);
        let is_left = |name: &[u8]| name.starts_with(b".ferry-") && !name.ends_with(b"-trash");
        let left = world.model("target").keys().any(|path| path.split(|&byte| byte == b'/').any(is_left));
        assert!(!left, "a hidden name is left at call {call}");
        let (_, failures) = sync_with(&world, &io, disposal(call), lists);
        assert_equal(&world, call, &failures);
    }
}

/// Regression: a kill left a new file incomplete, and later runs with `--newer` kept it, because it was newer than its source.
#[test]
fn files_that_must_not_be_newer_get_their_names_when_they_are_complete() {
    for call in 0..200 {
        let (world, io) = world(call);
        world.meanwhile(call, |world| {
            for name in ["new", "tree/file", "same/deep/changed"] {
                let (source, target) =
                    (world.get(format!("source/{name}")).unwrap(), world.get(format!("target/{name}")));
                let is_whole = |target: Node| {
                    target.content == source.content || target.times.modified <= source.times.modified
                };
                assert!(target.is_none_or(is_whole), "{name} is incomplete and newer");
            }
        });
        let wanted = Request { keeps_newer: true, ..request(disposal(call)) };
        let (_, failures) = run(&world, &io, &wanted);
        assert!(failures.is_empty(), "{failures:?}");
    }
}

#[test]
fn after_calls_that_failed_the_next_run_ends_equal() {
    const FAULTS: [(Operation, Errno); 12] = [
        (Operation::Rename, Errno::IO),
        (Operation::Rename, Errno::INVAL),
        (Operation::Write, Errno::NOSPC),
        (Operation::SetTimes, Errno::IO),
        (Operation::Read, Errno::IO),
        (Operation::Open, Errno::IO),
        (Operation::List, Errno::IO),
        (Operation::Stat, Errno::IO),
        (Operation::MakeDirectory, Errno::IO),
        (Operation::Unlink, Errno::IO),
        (Operation::SetMode, Errno::IO),
        (Operation::Link, Errno::IO),
    ];
    for seed in 0..240 {
        let (world, io) = world(seed);
        world.file("old", b"the old ones");
        let (operation, errno) = FAULTS[usize::try_from(seed).unwrap() % FAULTS.len()];
        world.change(|settings| settings.faults.push(Fault::by_chance(operation, 150_000, errno)));
        let manifest =
            (seed / FAULTS.len() as u64 % 2 == 1).then(|| Arc::new(Manifest::new(Algorithm::Blake3)));
        // It may be refused as a whole.
        let (totals, failures) = attempt(&world, &io, &request(disposal(seed)), manifest.as_ref());
        world.change(|settings| settings.faults.clear());
        if let Some(manifest) = &manifest {
            let is_whole = totals.is_ok_and(|totals| !totals.interrupted && !totals.out_of_space);
            assert_listed(&world, manifest, &failures, is_whole);
        }
        // Where a second call fails, too, the old file may have another name.
        let old = world.get("old").unwrap();
        let new = world.get("source/same/deep/changed").unwrap();
        let is_whole = |node: &Node| node.content == old.content || node.content == new.content;
        assert!(world.model("target").values().any(is_whole), "lost with seed {seed}");
        let there = world.get("target/same/deep/changed");
        assert!(there.as_ref().is_none_or(is_whole), "a part with seed {seed}");
        let (_, failures) = sync_with(&world, &io, disposal(seed), manifest.is_some());
        assert_equal(&world, seed, &failures);
    }
}

/// Another program writes to a source, or to its target, at any call of a run. The next run, which compares sizes and
/// times, ends equal: no stale file has the time of its source.
#[test]
fn a_file_that_is_written_to_at_any_call_is_not_taken_for_equal() {
    let [content, time] = [Comparison::Content, Comparison::SizeAndTime];
    // A write to the target between the look at it and the call that sets its time can't be detected.
    for (comparison, written) in [(content, "source/file"), (time, "source/file"), (time, "target/file")] {
        for requests in 0..80 {
            let world = World::new(Settings { longest_ns: 1_000, ..Settings::default() });
            world.folder("source").file("source/file", b"same").times("source/file", at(10));
            world.folder("target").file("target/file", b"same").times("target/file", at(20));
            world.mode("source/file", 0o640);
            let io = world.options(requests);
            world.meanwhile(requests, move |world| {
                if world.get(written).is_some() {
                    world.write(written, 0, b"SAME").times(written, at(30));
                }
            });
            let wanted = Request { comparison, ..request(Disposal::Remove) };
            // What is written to the target after it was hashed has another hash.
            if written == "source/file" && requests % 2 == 1 {
                run_listed(&world, &io, &wanted);
            } else {
                run(&world, &io, &wanted);
            }
            let (totals, failures) = sync(&world, &io, Disposal::Remove);
            assert_eq!(totals.failed, 0, "{failures:?}");
            let found = differences(&world.model("source"), &target(&world));
            assert_eq!(found, Vec::<String>::new(), "{comparison:?}, {written} at call {requests}");
        }
    }
}

/// Regression: each name of a file that stays read it for its line in the manifest.
#[test]
fn a_file_with_several_names_is_read_once_for_its_hash() {
    const SIZE: usize = 200_000;
    for seed in 0..40 {
        let world = World::new(Settings { descriptors: 64, short_transfers: 0, ..Settings::default() });
        for root in ["source", "target"] {
            world.folder(root).folder(format!("{root}/folder"));
            world.file(format!("{root}/0"), &[7; SIZE]).times(format!("{root}/0"), at(9));
            for name in 1..20 {
                let folder = if name % 2 == 0 { "/folder" } else { "" };
                world.hard_link(format!("{root}/0"), format!("{root}{folder}/{name}"));
            }
            world.times(format!("{root}/folder"), at(9)).times(root, at(9));
        }
        let io = ferry_io::Options { block_size: 4096, ..world.options(seed) };
        let (totals, failures) = run_listed(&world, &io, &request(Disposal::Remove));
        assert!(failures.is_empty(), "seed {seed}: {failures:?}");
        let reads = totals.io.operations[Operation::Read as usize].iter().sum::<u64>();
        assert_eq!(reads, SIZE.div_ceil(4096) as u64, "seed {seed}");
    }
}
