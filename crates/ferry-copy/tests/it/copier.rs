//! Entries that a caller chooses: replaced whole or not at all, and only if they are the files that it saw.

mod ranges;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_copy::{
    Algorithm, Copier, Digest, FailureKind, Observer, Pair, Progress, Settings, Sides, Start, Verb,
};
use ferry_io::sim::Fault;
use ferry_io::sim::{World, differences};
use ferry_io::{Errno, Io, Name, Operation, Stat, Time, Times};

use crate::simulation::{EXT4, world};
use crate::told::{Told, for_seeds};

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

/// Runs `act` with a copier and the pair of `/source` and `/target`, and returns what it returned.
fn acting<T>(
    world: &World,
    io: &ferry_io::Options,
    act: impl AsyncFnOnce(&Copier, &Pair, &Io) -> T,
) -> (T, Arc<Told>) {
    acting_with(world, io, Settings::default(), act)
}

fn acting_with<T>(
    world: &World,
    io: &ferry_io::Options,
    settings: Settings,
    act: impl AsyncFnOnce(&Copier, &Pair, &Io) -> T,
) -> (T, Arc<Told>) {
    let told = Arc::new(Told::default());
    let observer = Arc::clone(&told) as Arc<dyn Observer>;
    let (value, _) = ferry_io::run(io, async |io: Io| {
        let copier = Copier::new(io.clone(), settings, Arc::new(Progress::default()), observer);
        let start = Start {
            source: io.open_dir("/source".as_ref()).unwrap(),
            target: io.open_dir("/target".as_ref()).unwrap(),
            source_path: "/source".into(),
            target_path: "/target".into(),
            is_new: false,
        };
        let pair = copier.start(start).await.unwrap();
        let value = act(&copier, &pair, &io).await;
        copier.finish(pair).await;
        copier.end().await;
        value
    })
    .unwrap();
    assert_eq!(world.open_descriptors(), Vec::<String>::new(), "descriptors are open");
    assert_eq!(world.blocks_outstanding(), 0, "blocks are lost");
    (value, told)
}

async fn both(copier: &Copier, pair: &Pair, entry: &str) -> (Stat, Option<Stat>) {
    let (source, target) = copier.look(pair, &name(entry)).await.unwrap();
    (source.unwrap(), target)
}

async fn copy(copier: &Copier, pair: &Pair, entry: &str) -> Result<(), FailureKind> {
    let (source, target) = both(copier, pair, entry).await;
    copier.copy(pair, &name(entry), Sides { source: &source, target: target.as_ref() }).await
}

/// Gives a file a later time than it had.
fn later(world: &World, path: &str) {
    let time = Time { seconds: 9_000, nanoseconds: 1 };
    world.times(path, Times { accessed: time, modified: time });
}

/// Overwrites a file, and gives it a time after that of [`later`].
fn write_later(world: &World, path: &str, bytes: &[u8]) {
    let time = Time { seconds: 10_000, nanoseconds: 1 };
    world.write(path, 0, bytes).times(path, Times { accessed: time, modified: time });
}

fn trees(world: &World) {
    let old = Times {
        accessed: Time { seconds: 5, nanoseconds: 6 },
        modified: Time { seconds: 7, nanoseconds: 8 },
    };
    world
        .folder("source")
        .file("source/file", b"new")
        .symlink("source/link", "text")
        .file("source/other", b"x");
    world.hard_link("source/other", "source/third").file("source/added", b"added");
    world.folder("target").file("target/file", b"the old bytes").file("target/link", b"a file");
    world.symlink("target/other", "nowhere").file("target/third", b"third");
    world.times("source", old);
}

#[test]
fn entries_of_any_kind_replace_one_another() {
    for_seeds(40, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        let ((), told) = acting(&world, &io, async |copier, pair, _| {
            for entry in ["file", "link", "other", "third", "added"] {
                copy(copier, pair, entry).await.unwrap();
            }
        });
        assert!(told.failures().is_empty(), "{:?}", told.failures());
        let mut target = world.model("target");
        // The simulation stores an ACL that is equal to the mode.
        target.values_mut().for_each(|node| drop(node.xattrs.remove(c"system.posix_acl_access")));
        assert_eq!(differences(&world.model("source"), &target), Vec::<String>::new());
        assert_eq!(world.get("target/other").unwrap().links, 2);
    });
}

#[test]
fn what_was_replaced_is_in_the_trash() {
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        world.folder("trash");
        acting(&world, &io, async |copier, pair, io| {
            pair.set_trash(Some(io.open_dir("/trash".as_ref()).unwrap()));
            for entry in ["file", "link", "other", "third"] {
                copy(copier, pair, entry).await.unwrap();
            }
        });
        let kept: Vec<_> = world.model("trash").keys().map(|path| path.escape_ascii().to_string()).collect();
        assert_eq!(kept.into_iter().filter(|path| !path.is_empty()).count(), 4);
        assert_eq!(
            world.get("trash/file").unwrap().content,
            world.file("o", b"the old bytes").get("o").unwrap().content
        );
    });
}

#[test]
fn a_foreign_file_that_takes_the_name_at_any_call_stays() {
    for has_trash in [false, true] {
        for requests in 0..60 {
            let (world, io) = world(requests);
            trees(&world);
            world.folder("trash").file("foreign", b"foreign");
            let foreign = world.get("foreign").unwrap();
            acting(&world, &io, async |copier, pair, io| {
                if has_trash {
                    pair.set_trash(Some(io.open_dir("/trash".as_ref()).unwrap()));
                }
                let (source, target) = both(copier, pair, "file").await;
                world.meanwhile(requests, |world| {
                    world.rename("foreign", "target/file");
                });
                let sides = Sides { source: &source, target: target.as_ref() };
                copier.copy(pair, &name("file"), sides).await.ok();
            });
            if world.get("foreign").is_none() {
                assert_eq!(world.get("target/file").unwrap().content, foreign.content, "at call {requests}");
            }
        }
    }
}

/// A copy in one step leaves the name to the old file or to the new one. So a write by the name is lost only if the old
/// file was removed with it.
#[test]
fn a_target_that_is_written_to_at_any_call_keeps_what_was_written() {
    for requests in 0..60 {
        let (world, io) = world(requests);
        trees(&world);
        let is_written = Arc::new(AtomicBool::new(false));
        acting(&world, &io, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "file").await;
            let flag = Arc::clone(&is_written);
            world.meanwhile(requests, move |world| {
                world.write("target/file", 20, b"written");
                flag.store(true, Ordering::Relaxed);
            });
            let sides = Sides { source: &source, target: target.as_ref() };
            copier.copy(pair, &name("file"), sides).await.ok();
        });
        world.file("old", b"the old bytes").write("old", 20, b"written");
        world.file("new", b"new").write("new", 20, b"written");
        let found = world.get("target/file").unwrap().content;
        let is_kept = ["old", "new"].iter().any(|name| world.get(name).unwrap().content == found);
        // The copy may have ended before the write.
        assert!(is_kept || !is_written.load(Ordering::Relaxed), "at call {requests}: {found:?}");
    }
}

#[test]
fn files_are_replaced_and_trashed_where_renames_have_no_flags() {
    for has_trash in [false, true] {
        for_seeds(20, |seed| {
            let (world, io) = world(seed);
            trees(&world);
            world.folder("trash").change(|settings| settings.renames_with_flags = false);
            acting(&world, &io, async |copier, pair, io| {
                if has_trash {
                    pair.set_trash(Some(io.open_dir("/trash".as_ref()).unwrap()));
                }
                copy(copier, pair, "file").await.unwrap();
                let (_, third) = both(copier, pair, "third").await;
                copier.remove(pair, &name("third"), &third.unwrap()).await.unwrap();
            });
            let bytes = |path| world.get(path).map(|entry| entry.content);
            assert_eq!(bytes("target/file"), bytes("source/file"));
            assert_eq!(bytes("target/third"), None);
            world.file("old", b"the old bytes").file("third", b"third");
            assert_eq!(bytes("trash/file"), bytes("old").filter(|_| has_trash));
            assert_eq!(bytes("trash/third"), bytes("third").filter(|_| has_trash));
        });
    }
}

/// Two foreign files take the name, at any two calls. Each keeps its name, or is aside and reported.
#[test]
fn foreign_files_that_meet_at_a_name_are_kept_and_reported() {
    let mut kept_aside = 0;
    for first in 0..40 {
        for distance in 1..8 {
            let (world, io) = world(first);
            trees(&world);
            world.file("one", b"one of two").file("two", b"the other one");
            let [one, two] = ["one", "two"].map(|name| world.get(name).unwrap().content);
            let (outcome, _) = acting(&world, &io, async |copier, pair, _| {
                let (source, target) = both(copier, pair, "file").await;
                world.meanwhile(first, move |world| {
                    let first = world.get("one").unwrap().content;
                    world.rename("one", "target/file");
                    world.meanwhile(distance, move |world| {
                        // The second does not replace the first itself.
                        if world.get("target/file").is_none_or(|found| found.content != first) {
                            world.rename("two", "target/file");
                        }
                    });
                });
                copier.copy(pair, &name("file"), Sides { source: &source, target: target.as_ref() }).await
            });
            let contents: Vec<_> = world.model("target").into_values().map(|node| node.content).collect();
            for (path, content) in [("one", one), ("two", two)] {
                assert!(
                    world.get(path).is_some() || contents.contains(&content),
                    "calls {first} and {distance}: {path} is lost"
                );
            }
            let has_aside = world.model("target").keys().any(|path| path.starts_with(b".ferry-aside"));
            let is_told = matches!(outcome, Err(FailureKind::KeptAside { aside: Some(_), .. }));
            assert_eq!(has_aside, is_told, "calls {first} and {distance}: {outcome:?}");
            kept_aside += u32::from(is_told);
        }
    }
    assert!(kept_aside > 0, "no file was kept aside");
}

#[test]
fn a_source_or_target_that_was_written_to_gets_no_attributes() {
    for written in ["source/file", "target/file"] {
        let (world, io) = world(1);
        world.folder("source").file("source/file", b"same").mode("source/file", 0o640);
        world.folder("target").file("target/file", b"same");
        let old = world.get("target/file").unwrap();
        let (outcome, _) = acting(&world, &io, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "file").await;
            world.write(written, 0, b"SAME");
            later(&world, written);
            copier.set_attributes(pair, &name("file"), &source, &target.unwrap()).await
        });
        assert!(matches!(outcome, Err(FailureKind::Changed)), "{written}: {outcome:?}");
        assert_eq!(world.get("target/file").unwrap().mode, old.mode);
    }
}

#[test]
fn a_file_with_several_names_is_not_replaced_after_another_program_has_written_to_it() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        world.hard_link("target/file", "target/more");
        let (outcome, _) = acting(&world, &io, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "file").await;
            world.write("target/more", 0, b"THE");
            later(&world, "target/more");
            copier.copy(pair, &name("file"), Sides { source: &source, target: target.as_ref() }).await
        });
        assert!(matches!(outcome, Err(FailureKind::Changed)), "{outcome:?}");
        assert_eq!(world.get("target/file").unwrap().links, 2);
    });
}

#[test]
fn a_file_with_several_names_is_replaced_after_the_run_itself_has_set_its_attributes() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        world.file("source/more", b"the old bytes").hard_link("target/file", "target/more");
        later(&world, "source/more");
        acting(&world, &io, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "file").await;
            let (more, other) = both(copier, pair, "more").await;
            copier.set_attributes(pair, &name("more"), &more, &other.unwrap()).await.unwrap();
            let sides = Sides { source: &source, target: target.as_ref() };
            copier.copy(pair, &name("file"), sides).await.unwrap();
        });
        assert_eq!(world.get("target/more").unwrap().links, 1);
    });
}

#[test]
fn an_entry_that_makes_room_comes_back_if_it_is_not_needed() {
    for has_trash in [false, true] {
        for_seeds(10, |seed| {
            let (world, io) = world(seed);
            trees(&world);
            world.folder("trash");
            let before = world.model("target");
            acting(&world, &io, async |copier, pair, io| {
                if has_trash {
                    pair.set_trash(Some(io.open_dir("/trash".as_ref()).unwrap()));
                }
                let (_, target) = both(copier, pair, "file").await;
                let lifted = copier.lift(pair, &name("file"), &target.unwrap()).await.unwrap();
                assert!(world.get("target/file").is_none());
                copier.give_back(pair, &name("file"), lifted).await.unwrap();
            });
            let after = world.model("target");
            assert_eq!(
                before.iter().map(|(path, node)| (path, &node.content)).collect::<Vec<_>>(),
                after.iter().map(|(path, node)| (path, &node.content)).collect::<Vec<_>>()
            );
        });
    }
}

#[test]
fn entries_are_removed_from_a_filesystem_without_room_for_another_name() {
    for errno in [Errno::NOSPC, Errno::DQUOT] {
        let (world, io) = world(3);
        trees(&world);
        acting(&world, &io, async |copier, pair, _| {
            let (_, target) = both(copier, pair, "file").await;
            world.change(|settings| settings.faults.push(Fault::always(Operation::Rename, errno)));
            copier.remove(pair, &name("file"), &target.unwrap()).await.unwrap();
        });
        assert!(world.get("target/file").is_none());
    }
}

#[test]
fn a_foreign_file_is_not_removed_at_any_call() {
    for has_trash in [false, true] {
        for requests in 0..20 {
            let (world, io) = world(requests);
            trees(&world);
            world.folder("trash").file("foreign", b"foreign");
            let foreign = world.get("foreign").unwrap();
            acting(&world, &io, async |copier, pair, io| {
                if has_trash {
                    pair.set_trash(Some(io.open_dir("/trash".as_ref()).unwrap()));
                }
                let (_, target) = both(copier, pair, "file").await;
                world.meanwhile(requests, |world| {
                    world.rename("foreign", "target/file");
                });
                copier.remove(pair, &name("file"), &target.unwrap()).await.ok();
            });
            if world.get("foreign").is_none() {
                assert_eq!(world.get("target/file").unwrap().content, foreign.content, "at call {requests}");
            }
        }
    }
}

#[test]
fn a_new_entry_does_not_overwrite_one_that_has_appeared() {
    for requests in 0..30 {
        let (world, io) = world(requests);
        trees(&world);
        world.file("foreign", b"foreign");
        let foreign = world.get("foreign").unwrap();
        acting(&world, &io, async |copier, pair, _| {
            let (source, _) = both(copier, pair, "added").await;
            world.meanwhile(requests, |world| {
                world.rename("foreign", "target/added");
            });
            copier.copy(pair, &name("added"), Sides { source: &source, target: None }).await.ok();
        });
        if world.get("foreign").is_none() {
            assert_eq!(world.get("target/added").unwrap().content, foreign.content, "at call {requests}");
        }
    }
}

#[test]
fn attributes_are_set_alone_and_superfluous_ones_removed() {
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/file", b"same").xattr("source/file", c"user.kept", b"1");
        world.mode("source/file", 0o640).folder("target").file("target/file", b"same");
        world.xattr("target/file", c"user.lost", b"2");
        acting(&world, &io, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "file").await;
            copier.set_attributes(pair, &name("file"), &source, &target.unwrap()).await.unwrap();
        });
        let (source, target) = (world.get("source/file").unwrap(), world.get("target/file").unwrap());
        assert_eq!((source.mode, source.xattrs), (target.mode, target.xattrs));
    });
}

#[test]
fn a_pair_in_which_nothing_changes_keeps_its_attributes() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        let before = world.get("target").unwrap();
        acting(&world, &io, async |copier, pair, _| {
            copier.look(pair, &name("file")).await.unwrap();
        });
        assert_eq!(world.get("target").unwrap().times, before.times);
        acting(&world, &io, async |copier, pair, _| copy(copier, pair, "added").await.unwrap());
        assert_eq!(world.get("target").unwrap().times.modified, Time { seconds: 7, nanoseconds: 8 });
    });
}

/// A hash that no bytes of these tests have: it is returned only if the file is not read again.
const REMEMBERED: Digest = Digest([7; 32]);

#[test]
fn a_remembered_hash_counts_until_another_program_writes_to_the_file() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/file", b"same").folder("target").file("target/file", b"same");
        later(&world, "source/file");
        acting(&world, &io, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "file").await;
            let known = Some((REMEMBERED, Sides { source: &source, target: target.as_ref() }));
            let hash = async |known| {
                let (_, now) = both(copier, pair, "file").await;
                copier.hash(pair, &name("file"), &now.unwrap(), Algorithm::Blake3, known).await.unwrap()
            };
            assert_eq!(hash(known).await, REMEMBERED);
            copier.set_attributes(pair, &name("file"), &source, &target.unwrap()).await.unwrap();
            assert_eq!(hash(known).await, REMEMBERED, "this run has set the time itself");
            write_later(&world, "target/file", b"SAME");
            assert_eq!(hash(known).await, Digest::of(Algorithm::Blake3, b"SAME"));
            let seen = target.unwrap();
            let outcome = copier.hash(pair, &name("file"), &seen, Algorithm::Blake3, None).await;
            let Err(FailureKind::Io { verb: Verb::Hash, error }) = outcome else { panic!("{outcome:?}") };
            assert!(error.is(Errno::STALE), "{error:?}");
        });
    });
}

#[test]
fn links_to_a_target_that_another_program_writes_to_have_its_hash() {
    for_seeds(10, |seed| {
        let (world, io) = world(seed);
        world.folder("source").file("source/one", b"same").hard_link("source/one", "source/two");
        world.hard_link("source/one", "source/three").hard_link("source/one", "source/four");
        world.folder("target").file("target/one", b"same");
        let settings = Settings { digest: Some(Algorithm::Blake3), ..Settings::default() };
        let ((), told) = acting_with(&world, &io, settings, async |copier, pair, _| {
            let (source, target) = both(copier, pair, "one").await;
            let kept = (&target.unwrap(), Some(REMEMBERED));
            assert!(copier.keep(pair, &name("one"), &source, kept).await.unwrap());
            copy(copier, pair, "two").await.unwrap();
            write_later(&world, "target/one", b"SAME");
            copy(copier, pair, "three").await.unwrap();
            copy(copier, pair, "four").await.unwrap();
        });
        assert!(told.failures().is_empty(), "{:?}", told.failures());
        assert_eq!(world.get("target/one").unwrap().links, 4);
        let written = Digest::of(Algorithm::Blake3, b"SAME");
        let expected = [("two", REMEMBERED), ("three", written), ("four", written)];
        assert_eq!(
            told.hashes(),
            expected.map(|(name, digest)| (std::path::Path::new("/target").join(name), digest))
        );
    });
}

#[test]
fn a_file_of_a_new_folder_is_copied_as_it_is_then() {
    for_seeds(40, |seed| {
        let world = World::new(ferry_io::sim::Settings { magic: Some(EXT4), ..Default::default() });
        let io = world.options(seed);
        world.folder("source").folder("source/outer").folder("source/outer/inner").folder("target");
        world.file("source/outer/inner/file", b"old");
        let ((), told) = acting(&world, &io, async |copier, pair, _| {
            let outer = copier.make(pair, &name("outer")).await.unwrap();
            let inner = copier.make(&outer, &name("inner")).await.unwrap();
            world.meanwhile(0, |world| {
                world.write("source/outer/inner/file", 0, b"new");
            });
            copy(copier, &inner, "file").await.unwrap();
            copier.finish(inner).await;
            copier.finish(outer).await;
        });
        assert!(told.failures().is_empty(), "{:?}", told.failures());
        let copied = world.get("target/outer/inner/file").unwrap();
        assert_eq!(copied.content, world.get("source/outer/inner/file").unwrap().content);
    });
}

#[test]
fn new_entries_are_copied_together_but_for_those_that_the_caller_leaves() {
    for_seeds(40, |seed| {
        let (world, io) = world(seed);
        world.folder("source").folder("target").folder("source/new").symlink("source/new/link", "text");
        for file in 0..50 {
            world.file(format!("source/new/f{file}"), &vec![b'x'; file * 97]);
        }
        world.hard_link("source/new/f7", "source/new/again");
        world.file("source/new/big", &vec![b'x'; 1 << 20]);
        let (left, told) = acting(&world, &io, async |copier, pair, _| {
            let (new, mut listing) = copier.make_listed(pair, &name("new")).await.unwrap();
            let mut left = Vec::new();
            while !listing.is_over() {
                let entries = listing.next().await.unwrap();
                let leaves = |stat: &Stat| stat.links > 1 || stat.size >= 1 << 20;
                left.extend(copier.copy_new(&new, entries, &leaves).await);
            }
            copier.finish(new).await;
            left
        });
        assert!(told.failures().is_empty(), "{:?}", told.failures());
        let mut names: Vec<_> =
            left.iter().map(|(name, _)| String::from_utf8_lossy(name.as_bytes()).into_owned()).collect();
        names.sort();
        assert_eq!(names, ["again", "big", "f7"], "seed {seed}");
        for file in (0..50_u64).filter(|&file| file != 7) {
            let copied = world.get(format!("target/new/f{file}")).unwrap();
            assert_eq!(copied.content.size(), file * 97);
        }
        assert!(world.get("target/new/link").is_some());
    });
}
