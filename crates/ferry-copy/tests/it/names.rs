//! Files with several names, in the source or in the target.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ferry_copy::{
    Algorithm, Backup, Control, Copied, Dereference, Explained, Failure, Item, Make, Method, Observer,
    Options, Preserve, Progress, Reflink,
};
use ferry_io::sim::{Fault, Settings, Sparse, World};
use ferry_io::{Errno, FileKind, Operation, Time, Times};

use crate::simulation::world;
use crate::told::{archive, copy, for_seeds, is_one_seed};

/// `cp -rL` with some hard links kept.
fn following() -> Options {
    let preserve = Preserve { links: true, ..Preserve::default() };
    Options { dereference: Dereference::Always, preserve, ..archive() }
}

#[test]
fn one_file_is_overwritten_by_one_at_a_time() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        let (a, b) = ([b'a'; 90_000], [b'b'; 80_000]);
        world.folder("source").file("source/a", &a).file("source/b", &b);
        world.folder("target").file("target/a", b"old").hard_link("target/a", "target/b");
        let options = Options { preserve: Preserve::default(), reflink: Reflink::Never, ..archive() };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let (source, target) = (world.model("source"), world.model("target"));
        let written = &target[&b"a"[..]].content;
        let whole = [&b"a"[..], b"b"].iter().any(|name| source[*name].content == *written);
        assert!(whole, "the bytes of both are mixed, {} in all", written.size());
    });
}

/// Panics unless a target file equals one of two source files completely.
fn assert_whole(world: &World, written: &[u8], of: [&[u8]; 2], seed: u64) {
    let (source, target) = (world.model("source"), world.model("target"));
    let Some(node) = target.get(written) else { panic!("seed {seed}: it is missing") };
    let whole = of.iter().any(|name| source[*name].content == node.content);
    assert!(whole, "the bytes of both are mixed, {} in all", node.content.size());
}

/// `cp -r`, which keeps no attributes.
fn plain() -> Options {
    Options { preserve: Preserve::default(), reflink: Reflink::Never, ..archive() }
}

#[test]
fn a_file_being_made_is_not_overwritten_through_a_link() {
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/n", &[b'n'; 400_000]);
        // While these are copied, `n` is created in the target.
        for index in 0..60 {
            world.file(format!("source/{index}"), b"");
        }
        world.file("source/l", &[b'l'; 60_000]);
        world.folder("target").symlink("target/l", "n");
        copy(&world, &plain(), &io);
        assert_whole(&world, b"n", [b"n", b"l"], seed);
    });
}

#[test]
fn a_file_in_a_new_folder_is_not_overwritten_through_a_link() {
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("source/new").file("source/new/n", &[b'n'; 90_000]);
        world.folder("target");
        for name in ["k", "l"] {
            world.file(format!("source/{name}"), &[b'l'; 60_000]);
            world.symlink(format!("target/{name}"), "new/n");
        }
        copy(&world, &plain(), &io);
        assert_whole(&world, b"new/n", [b"new/n", b"l"], seed);
    });
}

#[test]
fn a_file_made_anew_by_force_is_not_overwritten_through_a_link() {
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/m", &[b'm'; 60_000]).file("source/l", &[b'l'; 60_000]);
        world.folder("target").file("target/n", b"old").symlink("target/l", "n").symlink("target/m", "n");
        world.file("source/n", &[b'n'; 90_000]);
        // The first open is the source's.
        world.change(|settings| settings.faults.push(Fault::nth(Operation::Open, 2, Errno::ACCESS).on("n")));
        copy(&world, &Options { force: true, ..plain() }, &io);
        let (source, target) = (world.model("source"), world.model("target"));
        for node in target.values().filter(|node| node.kind == FileKind::Regular) {
            let is_whole = source.values().any(|whole| whole.content == node.content);
            assert!(is_whole, "mixed, {} in all", node.content.size());
        }
    });
}

/// Regression: their hidden names were equal, and cleaning up one removed another's link.
#[test]
fn links_made_by_force_at_once_lead_to_their_own_files() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("target");
        let names: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        for name in &names {
            world.file(format!("source/{name}"), name.as_bytes()).file(format!("target/{name}"), b"old");
        }
        let make = if seed % 2 == 0 { Make::HardLink } else { Make::SymbolicLink };
        let outcome = copy(&world, &Options { make, force: true, ..plain() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let target = world.model("target");
        assert_eq!(target.len(), 1 + names.len());
        for name in &names {
            let made = &target[name.as_bytes()];
            let is_own = match make {
                Make::SymbolicLink => made.target == format!("/source/{name}").as_bytes(),
                Make::HardLink | Make::Copy => made.content == Sparse::from(name.as_bytes()),
            };
            assert!(is_own, "{name}: {made:?}");
        }
    });
}

#[test]
fn a_link_to_another_filesystem_says_nothing_of_the_others() {
    for_seeds(40, |seed| {
        let (world, mut io) = world(seed);
        // With one block, files are copied one at a time: the first one is tried first.
        io.blocks = 1;
        world.change(|settings| settings.clones = true);
        world.folder("source").folder("target").mount("other").file("other/f", b"old");
        world.symlink("target/0", "../other/f");
        let mut files = 0;
        // Each file is larger than a block.
        while files < 10 {
            world.file(format!("source/{files}"), &[7; 40_000]);
            files += 1;
        }
        let outcome = copy(&world, &Options { preserve: Preserve::default(), ..archive() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let cloned = outcome.summary.files_by_method[Method::Reflink as usize];
        assert_eq!(cloned, files - 1);
    });
}

#[test]
fn links_that_are_followed_become_one_file() {
    for_seeds(30, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text").symlink("source/b", "a").symlink("source/c", "b");
        let outcome = copy(&world, &following(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let target = world.model("target");
        let files: Vec<_> = target.values().filter(|node| node.kind == FileKind::Regular).collect();
        assert!(files.len() == 3 && files.iter().all(|file| file.links == 3), "{files:?}");
    });
}

#[test]
fn a_followed_link_that_takes_over_stays_followed() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text of a file");
        for name in ["b", "c", "d"] {
            world.symlink(format!("source/{name}"), "a");
        }
        world.change(|settings| {
            settings.faults.push(Fault::nth(Operation::Write, 1, Errno::IO));
            settings.faults.push(Fault::nth(Operation::CopyRange, 1, Errno::IO));
            settings.faults.push(Fault::nth(Operation::Clone, 1, Errno::IO));
        });
        let outcome = copy(&world, &following(), &io);
        assert!(outcome.failures.len() <= 1, "{:?}", outcome.failures);
        let target = world.model("target");
        assert!(target.values().all(|node| node.kind != FileKind::Symlink), "{target:?}");
        assert_eq!(target.len(), 5 - outcome.failures.len());
    });
}

#[test]
fn a_followed_link_beyond_the_most_names_is_a_copy() {
    for_seeds(30, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/a", b"text");
        for name in 0..10 {
            world.symlink(format!("source/{name}"), "a");
        }
        world.change(|settings| settings.links = 4);
        let outcome = copy(&world, &following(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let target = world.model("target");
        let files = target.values().filter(|node| node.kind == FileKind::Regular && node.content.size() == 4);
        assert_eq!(files.count(), 11);
    });
}

#[test]
fn names_beyond_the_most_take_no_place_before_they_are_made() {
    for_seeds(50, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("target").file("source/a", b"text").file("target/a", b"old");
        for name in 0..10 {
            world.hard_link("source/a", format!("source/{name}")).file(format!("target/{name}"), b"old");
        }
        world.change(|settings| settings.links = 4);
        let backup = Some(Backup { control: Control::Numbered, suffix: "~".into() });
        let options = match seed % 5 {
            0 => Options { force: true, ..archive() },
            1 => Options { atomic: true, ..archive() },
            2 => Options { backup, ..archive() },
            3 => Options { remove_destination: true, ..archive() },
            _ => archive(),
        };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let target = world.model("target");
        for name in ["a", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] {
            let node = target.get(name.as_bytes()).unwrap_or_else(|| panic!("{name} is lost"));
            assert!(node.content == Sparse::from(&b"text"[..]) && node.links <= 4, "{name}: {node:?}");
        }
        assert_eq!(target.len(), if seed % 5 == 2 { 23 } else { 12 }, "{:?}", target.keys());
    });
}

#[test]
fn a_link_to_a_source_that_can_not_be_made_costs_nothing() {
    for_seeds(30, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("target");
        for name in 0..8 {
            world.file(format!("source/{name}"), b"text").file(format!("target/{name}"), b"old");
        }
        world.change(|settings| settings.links = 1);
        let options = match seed % 3 {
            0 => Options { make: Make::HardLink, remove_destination: true, ..plain() },
            1 => Options {
                make: Make::HardLink,
                backup: Some(Backup { control: Control::Simple, suffix: "~".into() }),
                ..plain()
            },
            _ => Options { make: Make::HardLink, atomic: true, ..plain() },
        };
        let outcome = copy(&world, &options, &io);
        assert_eq!(outcome.failures.len(), 8, "{:?}", outcome.failures);
        let target = world.model("target");
        let kept = target.values().filter(|node| node.content == Sparse::from(&b"old"[..])).count();
        assert_eq!((kept, target.len()), (8, 9), "{:?}", target.keys());
    });
}

/// Another process replaces the first copy by a file of its own before other names are linked to the copy.
#[test]
fn names_are_linked_to_the_copy_and_not_to_its_name() {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let replaced = AtomicU64::new(0);
    for_seeds(200, |seed| {
        let (world, io) = world(seed);
        world.change(|settings| settings.tells_birth = seed % 2 == 0);
        world.folder("source").folder("target").file("source/a", b"text of a file");
        for name in &NAMES[1..] {
            world.hard_link("source/a", format!("source/{name}"));
        }
        world.meanwhile(seed / 2 % 80, |world| {
            let there =
                NAMES.iter().map(|name| format!("target/{name}")).find(|path| world.get(path).is_some());
            if let Some(path) = there {
                world.remove(&path).file(&path, b"foreign");
            }
        });
        let outcome = copy(&world, &archive(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let target = world.model("target");
        let holds = |text: &[u8]| target.values().filter(|node| node.content == Sparse::from(text)).count();
        let foreign = holds(b"foreign");
        assert!(foreign < 2, "{foreign} names are linked to what is foreign");
        assert_eq!(holds(b"text of a file") + foreign, NAMES.len());
        replaced.fetch_add(foreign as u64, Ordering::Relaxed);
    });
    let replaced = replaced.into_inner();
    assert!(replaced > 10 || crate::told::is_one_seed(), "only {replaced} were replaced");
}

/// A process with write access to the target's folder replaces each new entry by a file of its own.
#[test]
fn attributes_are_set_on_what_was_made_and_not_on_its_name() {
    for_seeds(240, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("target").file("victim", b"theirs");
        world.owner("victim", 1000, 1000).mode("victim", 0o600);
        if seed % 2 == 0 {
            world.node("source/x", FileKind::Fifo, 0).mode("source/x", 0o4755);
        } else {
            world.symlink("source/x", "anywhere");
        }
        world.owner("source/x", 7, 7);
        // Number of requests that find the entry before it is replaced.
        let patience = Arc::new(AtomicU64::new(seed / 2 % 12));
        for request in 0..80 {
            let patience = Arc::clone(&patience);
            world.meanwhile(request, move |world| {
                let found = world.get("target/x").filter(|node| node.kind != FileKind::Regular);
                if found.is_some() && patience.fetch_sub(1, Ordering::Relaxed) == 0 {
                    world.remove("target/x").hard_link("victim", "target/x");
                }
            });
        }
        let options = match seed % 3 {
            0 => Options { make: Make::SymbolicLink, ..archive() },
            1 => Options { atomic: true, ..archive() },
            _ => archive(),
        };
        let before = world.get("victim").unwrap();
        copy(&world, &options, &io);
        let after = world.get("victim").unwrap();
        let facts =
            |node: &ferry_io::sim::Node| (node.mode, node.uid, node.gid, node.times, node.xattrs.clone());
        assert_eq!(facts(&after), facts(&before));
    });
}

#[test]
fn links_that_a_run_has_made_lead_it_nowhere() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        // Files that the source's owner can't write to.
        world.folder("outside").file("outside/victim", b"theirs").folder("source").folder("outside/folder");
        for (link, name) in [("a", "A"), ("b", "B"), ("c", "C")] {
            world.symlink(format!("source/{link}"), "/outside/victim");
            world.file(format!("source/{name}"), b"planted");
        }
        for (link, name) in [("d", "D"), ("e", "E")] {
            world.symlink(format!("source/{link}"), "/outside/folder");
            world.folder(format!("source/{name}")).file(format!("source/{name}/planted"), b"planted");
        }
        world.change(|settings| settings.ignores_case = true);
        world.folder("target");
        copy(&world, &Options { keep_directory_symlink: true, ..plain() }, &io);
        assert_eq!(world.get("outside/victim").unwrap().content, Sparse::from(&b"theirs"[..]));
        assert_eq!(world.model("outside/folder").len(), 1, "something was put into a folder outside");
    });
}

/// Measures the largest number of folders that were listed and not yet made.
struct Waiting {
    progress: Arc<Progress>,
    made: AtomicU64,
    peak: AtomicU64,
}

impl Observer for Waiting {
    fn copied(&self, _: &Copied<'_>) {
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let found = self.progress.entries_found.get();
        self.peak.fetch_max(found.saturating_sub(made), Ordering::Relaxed);
    }

    fn removed(&self, _: &Path) {}

    fn taken_back(&self, _: &Path, _: &Path) {}

    fn agrees(&self, _: &Path, _: ferry_copy::Question, _: &dyn Fn() -> bool) -> bool {
        false
    }

    fn explained(&self, _: &Explained<'_>) {}

    fn failed(&self, failure: &Failure) {
        panic!("{failure:?}");
    }

    fn unfinished(&self, unfinished: &ferry_copy::Unfinished) {
        panic!("{unfinished:?}");
    }
}

#[test]
fn a_million_subfolders_are_not_a_million_jobs() {
    // Fewer than a million, but many times the bound of two chunks.
    const FOLDERS: u64 = 20_000;
    const CHUNK: u64 = 1024;
    let world = World::new(Settings { lists_kinds: true, ..Settings::default() });
    world.folder("source");
    for index in 0..FOLDERS {
        world.folder(format!("source/{index}"));
    }
    let progress = Arc::new(Progress::default());
    let told = Arc::new(Waiting {
        progress: Arc::clone(&progress),
        made: AtomicU64::default(),
        peak: AtomicU64::default(),
    });
    let items = vec![Item { source: "/source".into(), base: "/".into(), relative: "target".into() }];
    let options = Options { verbose: true, make: Make::Copy, ..archive() };
    let observer = Arc::clone(&told) as Arc<dyn Observer>;
    let summary =
        ferry_copy::run_from(ferry_io::Paths::new(), items, &options, &world.options(7), progress, observer)
            .unwrap();
    assert_eq!(summary.directories, FOLDERS + 1);
    let peak = told.peak.load(Ordering::Relaxed);
    assert!(peak > 0 && peak < 3 * CHUNK, "{peak} folders waited");
}

/// Regression: each name that was linked while another one read the copy read it, too.
#[test]
fn a_newer_target_is_read_once_for_the_hashes_of_all_its_names() {
    const SIZE: usize = 300_000;
    let most_read = AtomicU64::new(0);
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.change(|settings| settings.short_transfers = 0);
        world.folder("source").file("source/0", b"older");
        for name in 1..30 {
            world.hard_link("source/0", format!("source/{name}"));
        }
        let newer = Time { seconds: 1 << 33, nanoseconds: 0 };
        world.folder("target").file("target/0", &[7; SIZE]);
        world.times("target/0", Times { accessed: newer, modified: newer });
        let options = Options { update: true, digest: Some(Algorithm::Blake3), ..archive() };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let reads = outcome.summary.io.operations[Operation::Read as usize].iter().sum::<u64>();
        let blocks = SIZE.div_ceil(io.block_size) as u64;
        assert!(reads <= blocks, "{reads} reads of {blocks} blocks");
        most_read.fetch_max(reads, Ordering::Relaxed);
    });
    // If another name is copied first, the newer target gives way, and is not read.
    assert!(most_read.load(Ordering::Relaxed) > 0 || is_one_seed(), "the newer target was never read");
}
