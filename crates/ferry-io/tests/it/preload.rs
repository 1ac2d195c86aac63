//! Files that the request which lists their folder reads.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ferry_io::sim::{Fault, World};
use ferry_io::{
    Content, Errno, Error, Io, Name, OpenHow, Operation, Options, Preload, Reason, RouteChoice, Stat, Stats,
    Xattr, run,
};

use super::place::{name, on_the_kernel, pattern, write_file};

const PLAN: Preload = Preload { xattrs: true, alone: true, largest: 1 << 16, at_once: 3 };

/// Contents, attributes and extended attributes of loaded files; `None` for the content of a file that was only opened.
type Found = BTreeMap<Vec<u8>, (Option<Vec<u8>>, Stat, Vec<Xattr>)>;

/// Enters `folder` and loads all its files.
async fn load_all(io: &Io, preload: Option<Preload>) -> Result<Found, Error> {
    let root = io.open_dir("/".as_ref())?;
    let (folder, _, listed) = root.enter(&name("folder"), preload).await?;
    let mut found = Found::new();
    for entry in listed.entries {
        let loaded = folder.load_alone(&entry.name, io.block().await?, true).await?;
        let bytes = match loaded.content {
            Content::Whole(block) => Some(block.as_slice().to_vec()),
            Content::Open(_) | Content::Stored(..) | Content::Begun(..) => None,
        };
        assert!(bytes.as_ref().is_none_or(|bytes| bytes.len() as u64 == loaded.stat.size));
        found.insert(entry.name.as_bytes().to_vec(), (bytes, loaded.stat, loaded.xattrs));
    }
    Ok(found)
}

fn preloaded(stats: &Stats) -> u64 {
    let is_one = |decision: &&ferry_io::Decision| decision.reason == Reason::Preloaded;
    stats.decisions.iter().filter(is_one).map(|decision| decision.count).sum()
}

/// A folder of 40 plain files, an empty one, a large one, and one with two names.
fn world() -> World {
    let world = World::default();
    world.folder("folder");
    for index in 0..40_usize {
        let path = format!("folder/{index:02}");
        world.file(&path, &pattern(index * 90 + 1)).mode(&path, 0o600 + u32::from(index % 2 == 0));
        world.xattr(&path, c"user.index", index.to_string().as_bytes());
    }
    world.file("folder/empty", b"");
    world.file("folder/large", &pattern(200_000));
    world.file("folder/link", &pattern(900));
    world.hard_link("folder/link", "folder/other");
    world
}

#[test]
fn preloaded_files_are_loaded_as_others_are() {
    let (mut most, mut runs) = (0, 0);
    for seed in 0..60 {
        let world = world();
        let expected = run(&world.options(seed), async |io| load_all(&io, None).await).expect("it runs").0;
        let (found, stats) =
            run(&world.options(seed), async |io| load_all(&io, Some(PLAN)).await).expect("it runs");
        assert_eq!(found.expect("nothing fails"), expected.expect("nothing fails"), "seed {seed}");
        assert!(world.open_descriptors().is_empty(), "seed {seed}");
        runs += u32::from(preloaded(&stats) > 0);
        most = most.max(preloaded(&stats));
    }
    assert!(runs > 5, "{runs} of 60 runs have listed the folder on the pool");
    assert!(
        (30..=40).contains(&most),
        "{most} of 40 plain files; never the empty, the large, and the linked one"
    );
}

#[test]
fn a_file_whose_preload_fails_is_loaded_by_a_request_of_its_own() {
    let mut runs = 0;
    for seed in 0..60 {
        let world = world();
        world.change(|settings| settings.faults = vec![Fault::nth(Operation::Load, 1, Errno::IO).on("07")]);
        let (found, stats) =
            run(&world.options(seed), async |io| load_all(&io, Some(PLAN)).await).expect("it runs");
        let was_preloaded = preloaded(&stats) > 0;
        assert_eq!(found.is_ok(), was_preloaded, "seed {seed}: {found:?}");
        assert!(world.open_descriptors().is_empty(), "seed {seed}");
        runs += u32::from(was_preloaded);
    }
    assert!(runs > 5, "{runs} of 60 runs have listed the folder on the pool");
}

#[test]
fn a_forced_route_preloads_nothing() {
    for seed in 0..20 {
        let world = world();
        let options = Options { route: RouteChoice::Pool, ..world.options(seed) };
        let (found, stats) = run(&options, async |io| load_all(&io, Some(PLAN)).await).expect("it runs");
        assert_eq!((found.expect("nothing fails").len(), preloaded(&stats)), (44, 0));
    }
}

#[test]
fn a_file_that_changes_after_the_listing_is_loaded_as_it_was() {
    let mut as_it_was = 0;
    for seed in 0..40 {
        let world = World::default();
        world.folder("folder").file("folder/file", b"old");
        let seen = RefCell::new(Vec::new());
        let (outcome, stats) = run(&world.options(seed), async |io| {
            let root = io.open_dir("/".as_ref())?;
            let (folder, ..) = root.enter(&name("folder"), Some(PLAN)).await?;
            folder.unlink(&name("file")).await?;
            drop(write_file(&io, &folder, "file", b"newer").await?);
            // The second load reads what is there then.
            for _ in 0..2 {
                let loaded = folder.load(&name("file"), io.block().await?, false).await?;
                let Content::Whole(block) = loaded.content else { panic!("a small file is loaded whole") };
                assert_eq!(block.as_slice().len() as u64, loaded.stat.size);
                seen.borrow_mut().push(block.as_slice().to_vec());
            }
            Ok::<_, Error>(())
        })
        .expect("it runs");
        outcome.expect("nothing fails");
        let was_preloaded = preloaded(&stats) == 1;
        let expected: [&[u8]; 2] = if was_preloaded { [b"old", b"newer"] } else { [b"newer", b"newer"] };
        assert_eq!(seen.take(), expected, "seed {seed}");
        as_it_was += u32::from(was_preloaded);
    }
    assert!(as_it_was > 3, "{as_it_was} of 40 runs have listed the folder on the pool");
}

#[test]
fn folders_of_the_kernel_are_entered_and_loaded_with_a_plan() {
    on_the_kernel(|place| {
        let entered: Result<_, Error> = place.run(async |io, root| {
            root.make_dir(&name("folder"), 0o755).await?;
            let folder = root.open_dir(&name("folder")).await?;
            for index in 0..5_usize {
                let file = folder.open(&number(index), OpenHow::create(0o644)).await?;
                let mut block = io.block().await?;
                block.as_mut_capacity()[..=index].fill(7);
                block.set_filled(index + 1);
                file.write_all_at(block, 0).await.1?;
            }
            let (folder, _, listed) = root.enter(&name("folder"), Some(PLAN)).await?;
            for entry in &listed.entries {
                let loaded = folder.load(&entry.name, io.block().await?, true).await?;
                let Content::Whole(block) = loaded.content else { panic!("a small file is loaded whole") };
                assert_eq!(block.as_slice(), vec![7; usize::try_from(loaded.stat.size).expect("small")]);
            }
            Ok(listed.entries.len())
        });
        assert_eq!(entered.expect("it works"), 5);
    });
}

fn number(index: usize) -> Name {
    name(index.to_string())
}
