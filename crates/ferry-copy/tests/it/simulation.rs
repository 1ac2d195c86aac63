//! Random trees copied in simulated worlds: the copy equals the model, whatever the order of completions and wherever
//! transfers are cut short.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use ferry_copy::{Direct, Method, Options, Preserve, Reflink, Sparse};
use ferry_io::sim::{Fault, Settings, World, differences};
use ferry_io::{Errno, Operation};
use ferry_tree::fill::SplitMix64;

use crate::model;
use crate::told::{archive, copy, for_seeds, is_one_seed, seeds};

/// Magic numbers of filesystems (statfs(2)).
pub(crate) const EXT4: u64 = 0xef53;
pub(crate) const BTRFS: u64 = 0x9123_683e;
/// A server performs the changes of this filesystem.
const NFS: u64 = 0x6969;

/// Returns a world with some features of filesystems, and options of a runtime, both from a seed.
pub(crate) fn world(seed: u64) -> (World, ferry_io::Options) {
    let mut numbers = SplitMix64::new(seed ^ 0x0077_6f72_6c64);
    let mut flip = |percent| numbers.percent(percent);
    let settings = Settings {
        lists_kinds: flip(70),
        clones: flip(40),
        copies_ranges: flip(60),
        finds_holes: flip(70),
        allocates: flip(50),
        opens_direct: flip(50),
        ..Settings::default()
    };
    let settings = Settings { descriptors: 48 + numbers.index(200), ..settings };
    let world = World::new(settings);
    let mut options = world.options(seed);
    options.workers = NonZeroUsize::new(1 + numbers.index(4)).unwrap();
    options.blocks = 4 + numbers.index(12);
    options.block_size = 4096 << numbers.index(4);
    // Plain files are copied in runs where closing can't fail; on btrfs they share extents; changes of NFS may go to the
    // pool.
    let magic = [None, Some(EXT4), Some(BTRFS), Some(NFS)][numbers.index(4)];
    world.change(|settings| settings.magic = magic);
    (world, options)
}

#[test]
fn copies_are_the_model() {
    for_seeds(150, |seed| {
        let (world, io) = world(seed);
        let tree = model::random(seed, 60);
        world.folder("source").build("source", &tree);
        let options = match seed % 4 {
            0 => Options { sparse: Sparse::Always, ..archive() },
            1 => Options { reflink: Reflink::Never, ..archive() },
            _ => archive(),
        };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(differences(&world.model("source"), &world.model("target")), Vec::<String>::new());
        assert_eq!(differences(&tree, &unlinked(&tree, world.model("source"))), Vec::<String>::new());
        let progress = outcome.progress;
        assert_eq!(progress.entries_found.get(), tree.len() as u64);
        assert_eq!(progress.entries_done.get(), tree.len() as u64);
        assert!(progress.walk_ended.load(Ordering::Relaxed));
        let (found, done) = (&progress.bytes_found, &progress.bytes_done);
        assert_eq!(found.get(), done.get());
    });
}

#[test]
fn entries_beneath_a_folder_that_can_not_be_made_are_not_counted() {
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        for path in ["source", "source/refused", "source/refused/deep", "target"] {
            world.folder(path);
        }
        for path in ["refused/1", "refused/2", "refused/deep/3", "4", "5"] {
            world.file(format!("source/{path}"), b"bytes");
        }
        world.change(|settings| {
            settings.faults.push(Fault::always(Operation::MakeDirectory, Errno::PERM).on("refused"))
        });
        let outcome = copy(&world, &archive(), &io);
        let failed: Vec<_> = outcome.failures.iter().map(|failure| failure.target.clone()).collect();
        assert_eq!(failed, [PathBuf::from("/target/refused")]);
        // The root, the folder and two files.
        let progress = outcome.progress;
        assert_eq!((progress.entries_found.get(), progress.entries_done.get()), (4, 4));
        assert_eq!((progress.bytes_found.get(), progress.bytes_done.get()), (10, 10));
    });
}

/// Gives a built tree the link counts of its model, because building counts them anew.
fn unlinked(tree: &ferry_io::sim::Model, mut built: ferry_io::sim::Model) -> ferry_io::sim::Model {
    for (path, node) in &mut built {
        node.links = tree[path].links;
    }
    built
}

#[test]
fn direct_copies_are_the_model() {
    let mut by_direct = 0;
    let (mut tried, mut refused) = (0, 0);
    for seed in seeds(150) {
        let (world, io) = world(seed);
        world.change(|settings| {
            settings.reports_alignment = !seed.is_multiple_of(3);
            settings.direct_alignment = [512, 4096, 1 << 20][usize::try_from(seed / 3 % 3).unwrap()];
        });
        let tree = model::random(seed, 60);
        world.folder("source").build("source", &tree);
        let bandwidth = NonZeroU64::new(1 << 20).filter(|_| seed.is_multiple_of(5));
        let sparse = if seed.is_multiple_of(7) { Sparse::Always } else { Sparse::Auto };
        let options = Options {
            direct: Direct::Always,
            bandwidth,
            sparse,
            atomic: seed.is_multiple_of(2),
            ..archive()
        };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.failures.is_empty(), "FERRY_SEED={seed}: {:?}", outcome.failures);
        let differences = differences(&world.model("source"), &world.model("target"));
        assert_eq!(differences, Vec::<String>::new(), "FERRY_SEED={seed}");
        let (found, done) = (&outcome.progress.bytes_found, &outcome.progress.bytes_done);
        assert_eq!(found.get(), done.get(), "FERRY_SEED={seed}");
        let files = outcome.summary.files_by_method[Method::Direct as usize];
        let mut can = false;
        world.change(|settings| can = settings.opens_direct && settings.direct_alignment <= 4096);
        by_direct += files;
        tried += u64::from(can);
        refused += u64::from(!can && files > 0);
    }
    assert!(refused == 0 && (is_one_seed() || by_direct > tried), "{by_direct} of {tried}, {refused}");
}

#[test]
fn plain_copies_have_the_bytes_and_the_umask() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        let tree = model::random(seed, 60);
        world.folder("source").build("source", &tree);
        let options = Options { preserve: Preserve::default(), ..archive() };
        let outcome = copy(&world, &options, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        let (source, target) = (world.model("source"), world.model("target"));
        assert!(source.keys().eq(target.keys()));
        for (path, node) in &source {
            let copied = &target[path];
            assert_eq!((copied.kind, copied.device), (node.kind, node.device), "{}", path.escape_ascii());
            assert_eq!(copied.target, node.target);
            assert_eq!(copied.content, node.content);
            assert_eq!((copied.uid, copied.gid, copied.xattrs.len()), (0, 0, 0));
            if node.kind == ferry_io::FileKind::Regular {
                assert_eq!(copied.mode, node.mode & 0o755, "{}", path.escape_ascii());
            }
        }
    });
}

#[test]
fn folders_are_deep_and_descriptors_few() {
    for_seeds(8, |seed| {
        let (world, io) = world(seed);
        world.change(|settings| settings.descriptors = 40);
        let mut path = "source".to_owned();
        world.folder(&path);
        for level in 0..200 {
            world.file(format!("{path}/file"), b"text").symlink(format!("{path}/link"), "file");
            path = format!("{path}/{level}");
            world.folder(&path).mode(&path, 0o2750);
        }
        let outcome = copy(&world, &archive(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(differences(&world.model("source"), &world.model("target")), Vec::<String>::new());
    });
}

#[test]
fn walk_ends_when_nothing_more_is_found() {
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        world.folder("source");
        for index in 0..3000 {
            world.file(format!("source/{index}"), b"");
        }
        world.folder("source/folder").file("source/folder/last", b"x");
        let outcome = copy(&world, &archive(), &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(outcome.progress.entries_found.get(), 3003);
        assert_eq!(outcome.summary.files, 3001);
    });
}

/// Number of files that the request which listed their folder has read.
fn preloaded(outcome: &crate::told::Outcome) -> u64 {
    let decisions = outcome.summary.io.decisions.iter();
    let of_listing = decisions.filter(|decision| decision.reason == ferry_io::Reason::Preloaded);
    of_listing.map(|decision| decision.count).sum()
}

#[test]
fn small_files_of_cold_folders_are_read_with_the_listing() {
    let mut counts = [0, 0];
    for seed in seeds(40) {
        for (count, options) in
            counts.iter_mut().zip([archive(), Options { preserve: Preserve::default(), ..archive() }])
        {
            let world = World::new(Settings { magic: Some(EXT4), clones: false, ..Settings::default() });
            let io = world.options(seed);
            world.folder("source").folder("source/sub");
            for folder in 0..8_usize {
                let path = format!("source/sub/{folder}");
                world.folder(&path);
                for file in 0..6_usize {
                    let path = format!("{path}/{file}");
                    world
                        .file(&path, &vec![b'x'; 700 * file + folder])
                        .mode(&path, 0o640 + u32::from(file % 2 == 0));
                    world.xattr(&path, c"user.name", path.as_bytes());
                }
            }
            let outcome = copy(&world, &options, &io);
            assert!(outcome.failures.is_empty(), "FERRY_SEED={seed}: {:?}", outcome.failures);
            let (source, target) = (world.model("source"), world.model("target"));
            if options.preserve.mode {
                assert_eq!(differences(&source, &target), Vec::<String>::new(), "FERRY_SEED={seed}");
            } else {
                let bytes = |model: &ferry_io::sim::Model| -> Vec<_> {
                    model.iter().map(|(path, node)| (path.clone(), node.content.clone())).collect()
                };
                assert_eq!(bytes(&source), bytes(&target), "FERRY_SEED={seed}");
            }
            *count += preloaded(&outcome);
        }
    }
    assert!(is_one_seed() || counts.iter().all(|count| *count > 100), "{counts:?}");
}
