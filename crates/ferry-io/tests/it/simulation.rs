//! The simulation: equal seeds give equal runs, and the settings take effect.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ferry_io::sim::{Fault, Settings, World, differences};
use ferry_io::{
    Dir, Errno, Error, FileKind, Io, Jobs, OpenHow, Operation, Options, Queue, Reason, Route, RouteChoice,
    Stats, for_each, run, sleep, timeout,
};

use super::place::{errno, in_simulation, name, pattern, write_file};

/// Copies a flat folder, many files at once, with some time limits.
async fn copy_flat(io: &Io) -> Result<(), Error> {
    let source = io.open_dir("/source".as_ref())?;
    let target = io.open_dir("/target".as_ref())?;
    let listing = source.list(None).await?;
    for_each(6, listing.entries, async |entry| {
        let loaded = source.load(&entry.name, io.block().await?, true).await?;
        let file = target.open(&entry.name, OpenHow::create(loaded.stat.mode)).await?;
        if let ferry_io::Content::Whole(block) = loaded.content {
            let written = async { file.write_all_at(block, 0).await.1 };
            timeout(Duration::from_millis(1), written).await.ok();
        }
        sleep(Duration::from_micros(10)).await?;
        file.set_times(loaded.stat.times).await
    })
    .await
}

/// Copies folders of a few files each, one job per folder.
async fn copy_by_jobs(io: &Io) -> Result<(), Error> {
    let (source, target) = (io.open_dir("/source".as_ref())?, io.open_dir("/target".as_ref())?);
    let files: Vec<u32> = (0..30).collect();
    let first: Vec<Vec<u32>> = files.chunks(5).map(<[u32]>::to_vec).collect();
    let shared = io.clone();
    let target = target.open(&name("log"), OpenHow::create(0o644)).await?;
    io.share(first, 2, async move |jobs: &Jobs<Vec<u32>>, mut files: Vec<u32>| {
        if jobs.is_someone_idle() && files.len() > 1 {
            jobs.push(files.split_off(files.len() / 2));
        }
        for file in files {
            let read = async {
                let open = source.open(&name(file.to_string()), OpenHow::read()).await?;
                open.read_at(shared.block().await?, 0).await.1?;
                open.stat().await?;
                let loaded = source.load(&name(file.to_string()), shared.block().await?, false).await?;
                let ferry_io::Content::Whole(block) = loaded.content else { return Ok(()) };
                target.write_all_at(block, u64::from(file) << 20).await.1?;
                target.sync().await
            };
            read.await.expect("nothing fails");
        }
    })
    .await;
    Ok(())
}

/// The history and the counters of a seed's run.
fn run_of(seed: u64) -> (Vec<String>, Stats) {
    let world = World::new(Settings { keeps_history: true, ..Settings::default() });
    world.folder("source").folder("target");
    for index in 0..30 {
        world.file(format!("source/{index}"), &pattern(index * 900));
    }
    let copies = async |io: Io| {
        copy_by_jobs(&io).await?;
        copy_flat(&io).await
    };
    let (outcome, stats) = run(&world.options(seed), copies).expect("it runs");
    outcome.expect("nothing fails");
    assert!(world.open_descriptors().is_empty());
    (world.history(), stats)
}

fn history_of(seed: u64) -> Vec<String> {
    run_of(seed).0
}

#[test]
fn seeds_take_every_route_for_every_reason_on_several_workers() {
    let (mut routes, mut reasons, mut most_workers) = (Vec::new(), Vec::new(), 0);
    for seed in 0..60 {
        let (_, stats) = run_of(seed);
        routes.extend(stats.decisions.iter().map(|decision| decision.route));
        reasons.extend(stats.decisions.iter().map(|decision| decision.reason));
        most_workers = most_workers.max(stats.workers);
    }
    for route in [Route::Inline, Route::Ring, Route::Pool] {
        assert!(routes.contains(&route), "{route:?}");
    }
    use Reason::{Asked, Changes, Durable, Missed, NotInRing, RecentlyFast, RecentlySlow};
    for reason in [Asked, Changes, Durable, Missed, NotInRing, RecentlyFast, RecentlySlow] {
        assert!(reasons.contains(&reason), "{reason:?}");
    }
    assert_eq!(most_workers, 4);
}

#[test]
fn a_forced_route_is_taken_in_the_simulation() {
    for (route, taken) in [
        (RouteChoice::Inline, Route::Inline),
        (RouteChoice::Pool, Route::Pool),
        (RouteChoice::Ring, Route::Ring),
    ] {
        let mut read = 0;
        for seed in 0..8 {
            let world = World::default();
            world.file("file", &pattern(9000));
            let options = Options { route, ..world.options(seed) };
            let (outcome, stats) = run(&options, async |io| {
                let root = io.open_dir("/".as_ref())?;
                let file = root.open(&name("file"), OpenHow::read()).await?;
                file.read_at(io.block().await?, 0).await.1
            })
            .expect("it runs");
            outcome.expect("it is read");
            read += stats.operations[Operation::Read as usize][taken as usize];
        }
        // Some seeds have no ring, or one without reads.
        assert!(read == 8 || route == RouteChoice::Ring && read > 0, "{route:?}: {read}");
    }
}

#[test]
fn another_process_acts_between_the_calls_of_one_request() {
    let mut seen = [0, 0];
    for seed in 0..40 {
        let world = World::default();
        world.folder("folder").file("folder/file", b"first");
        // The load is an open, a stat, a read and a close.
        world.meanwhile(1 + seed % 4, |world| {
            world.file("folder/other", b"another").rename("folder/other", "folder/file");
            world.remove("folder/file");
        });
        let (outcome, _) = run(&world.options(seed), async |io| {
            let folder = io.open_dir("/folder".as_ref())?;
            folder.load(&name("file"), io.block().await?, false).await
        })
        .expect("it runs");
        match outcome.map(|loaded| loaded.content) {
            Ok(ferry_io::Content::Whole(block)) => {
                assert_eq!(block.as_slice(), b"first", "what was opened is what is read");
                seen[0] += 1;
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert!(error.is(Errno::NOENT), "{error:?}");
                seen[1] += 1;
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn closing_fails_where_a_fault_says_so_and_closes_all_the_same() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("file", b"x").change(|settings| {
            settings.faults.push(Fault::nth(Operation::Close, 1, Errno::DQUOT));
        });
        place.run(async |_, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            assert_eq!(errno(file.close()), Errno::DQUOT);
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            file.close().expect("the second is closed");
        });
        assert_eq!(world.struck().len(), 1);
        world.change(|settings| settings.faults = vec![Fault::nth(Operation::Close, 1, Errno::DQUOT)]);
        place.run(async |_, folder| {
            for wanted in [Err(Errno::DQUOT), Ok(())] {
                let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
                let closed = file.close_in(&folder).await;
                assert_eq!(closed.map_err(|error| error.as_errno().expect("the kernel's")), wanted);
            }
        });
        assert!(world.open_descriptors().is_empty(), "{:?}", world.open_descriptors());
        assert_eq!((world.struck()[0].operation, &*world.struck()[0].name), (Operation::Close, &b"file"[..]));
    });
}

#[test]
fn positions_as_cookies_shift_where_entries_are_removed() {
    let world = World::new(Settings { ordinal_cookies: true, short_transfers: 0, ..Settings::default() });
    world.folder("folder");
    for index in 0..1500 {
        world.file(format!("folder/{index}"), b"");
    }
    let (outcome, _) = run(&world.options(1), async |io| {
        let folder = io.open_dir("/folder".as_ref())?;
        let first = folder.list(None).await?;
        for entry in &first.entries[..100] {
            folder.unlink(&entry.name).await?;
        }
        let again = io.open_dir("/folder".as_ref())?;
        let (kept, resumed) = (folder.list(None).await?, again.list(first.next).await?);
        Ok::<_, Error>((first.entries.len(), kept.entries.len(), resumed.entries.len()))
    })
    .expect("it runs");
    assert_eq!(outcome.expect("nothing fails"), (1024, 476, 376), "the new descriptor passes over 100");
}

#[test]
fn the_number_of_an_inode_that_is_gone_is_given_again() {
    let world = World::new(Settings { reuses_inodes: true, ..Settings::default() });
    world.file("one", b"").file("two", b"");
    let (outcome, _) = run(&world.options(1), async |io| {
        let root = io.open_dir("/".as_ref())?;
        let one = root.stat_entry(&name("one"), false).await?;
        let open = root.open(&name("one"), OpenHow::read()).await?;
        root.unlink(&name("one")).await?;
        root.open(&name("three"), OpenHow::create(0o644)).await?;
        drop(open);
        root.open(&name("four"), OpenHow::create(0o644)).await?;
        let three = root.stat_entry(&name("three"), false).await?;
        let four = root.stat_entry(&name("four"), false).await?;
        Ok::<_, Error>((one.inode, three.inode, four.inode))
    })
    .expect("it runs");
    let (one, three, four) = outcome.expect("nothing fails");
    assert_eq!(four, one);
    assert_ne!(three, one, "not as long as it is open");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        assert_eq!(history_of(seed), history_of(seed), "seed {seed}");
    }
    assert_ne!(history_of(1), history_of(2), "and another seed another one");
}

#[test]
fn a_deadlock_panics_and_names_the_seed() {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run(&World::default().options(4711), async |_| Queue::<u32>::new(1).pop().await)
    }));
    let panic = outcome.expect_err("nothing can ever happen");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("seed 4711") && message.contains("deadlock"), "{message}");
}

#[test]
fn a_fault_strikes_where_it_is_told_to() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("good", b"x").file("bad", b"x").change(|settings| {
            settings.faults.push(Fault::nth(Operation::Stat, 3, Errno::IO));
            settings.faults.push(Fault::always(Operation::Open, Errno::ACCESS).on("bad"));
        });
        place.run(async |io, folder| {
            for asked in 1..6 {
                let answer = folder.stat_entry(&name("good"), false).await;
                assert_eq!(answer.is_err(), asked == 3, "the third");
            }
            assert!(folder.open(&name("good"), OpenHow::read()).await.is_ok());
            assert_eq!(errno(folder.open(&name("bad"), OpenHow::read()).await), Errno::ACCESS);
            let loaded = folder.load(&name("bad"), io.block().await.expect("a block"), false).await;
            assert_eq!(errno(loaded.map(|_| ())), Errno::ACCESS, "a load opens, too");
        });
    });
}

#[test]
fn a_full_disk_says_so_after_a_short_write() {
    in_simulation(|place| {
        place.world().expect("simulated").change(|settings| settings.space = 20_000);
        let refused = place.run(async |io, folder| {
            let written = write_file(&io, &folder, "file", &pattern(50_000)).await;
            let refused = errno(written.map(|_| ()));
            folder.unlink(&name("file")).await.expect("it can be removed");
            refused
        });
        assert_eq!(refused, Errno::NOSPC);
        assert_eq!(place.world().expect("simulated").used_bytes(), 0, "and removing makes room");
    });
}

#[test]
fn filesystems_are_apart() {
    in_simulation(|place| {
        place.world().expect("simulated").file("file", b"12345").mount("other");
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let other = folder.open_dir(&name("other")).await?;
            assert_ne!(other.stat().await?.device, folder.stat().await?.device);
            let linked = folder.link(&name("file"), &other, &name("file"), false).await;
            assert_eq!(errno(linked), Errno::XDEV);
            let moved = folder.rename(&name("file"), &other, &name("file"), true).await;
            assert_eq!(errno(moved), Errno::XDEV);
            let source = folder.open(&name("file"), OpenHow::read()).await?;
            let target = other.open(&name("file"), OpenHow::create(0o644)).await?;
            assert_eq!(errno(source.clone_to(&target).await), Errno::XDEV);
            assert_eq!(errno(source.copy_range(0, &target, 0, 5, false).await), Errno::XDEV);
            assert_eq!(errno(folder.remove_dir(&name("other")).await), Errno::BUSY);
            Ok(())
        });
        outcome.expect("the rest works");
    });
}

#[test]
fn what_a_filesystem_lacks_is_refused() {
    in_simulation(|place| {
        place.world().expect("simulated").file("file", b"12345").change(|settings| {
            settings.clones = false;
            settings.copies_ranges = false;
            settings.allocates = false;
            settings.has_xattrs = false;
            settings.opens_direct = false;
            settings.lists_kinds = false;
        });
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            let source = folder.open(&name("file"), OpenHow::read()).await?;
            let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
            assert_eq!(errno(source.clone_to(&target).await), Errno::OPNOTSUPP);
            assert_eq!(errno(source.copy_range(0, &target, 0, 5, false).await), Errno::OPNOTSUPP);
            assert_eq!(errno(target.allocate(0, 5).await), Errno::OPNOTSUPP);
            assert_eq!(errno(target.set_xattr(c"user.x", b"").await), Errno::OPNOTSUPP);
            assert_eq!(source.xattrs().await?, []);
            let direct = folder.open(&name("file"), OpenHow::read().direct()).await;
            assert_eq!(errno(direct), Errno::INVAL);
            assert!(folder.list(None).await?.entries.iter().all(|entry| entry.kind.is_none()));
            Ok(())
        });
        outcome.expect("the rest works");
    });
}

#[test]
fn case_can_be_ignored() {
    let world = World::new(Settings { ignores_case: true, ..Settings::default() });
    world.file("File", b"x");
    let (outcome, _) = run(&world.options(0), async |io| {
        let root: Dir = io.open_dir("/".as_ref())?;
        assert_eq!(errno(root.open(&name("FILE"), OpenHow::create(0o644)).await), Errno::EXIST);
        root.stat_entry(&name("fILE"), false).await
    })
    .expect("it runs");
    assert_eq!(outcome.expect("it is there").size, 1);
}

#[test]
fn another_user_is_held_to_the_modes() {
    in_simulation(|place| {
        let world = place.world().expect("simulated");
        world.file("secret", b"x").mode("secret", 0o600).folder("closed").mode("closed", 0o744);
        world.file("closed/inside", b"x").file("mine", b"x").owner("mine", 7, 7).mode("mine", 0o644);
        world.change(|settings| (settings.uid, settings.gid) = (7, 7));
        let outcome: Result<(), Error> = place.run(async |_, folder| {
            assert_eq!(errno(folder.open(&name("secret"), OpenHow::read()).await), Errno::ACCESS);
            let closed = folder.open_dir(&name("closed")).await?;
            assert_eq!(closed.list(None).await?.entries.len(), 1, "it may be read");
            assert_eq!(errno(closed.stat_entry(&name("inside"), false).await), Errno::ACCESS);
            assert_eq!(errno(folder.make_dir(&name("new"), 0o755).await), Errno::ACCESS);
            let mine = folder.open(&name("mine"), OpenHow::write()).await?;
            mine.set_mode(0o4755).await?;
            assert_eq!(errno(mine.set_owner(Some(0), None).await), Errno::PERM);
            assert_eq!(errno(folder.reach(&name("secret")).await?.set_mode(0o777).await), Errno::PERM);
            let device = folder.make_node(&name("null"), FileKind::CharDevice, 0o644, 1).await;
            assert!(device.is_err());
            Ok(())
        });
        outcome.expect("the rest works");
    });
}

#[test]
fn a_tree_that_is_built_from_a_model_reads_back_as_that_model() {
    let world = World::default();
    world.folder("a").folder("a/b").file("a/file", &pattern(9000)).hard_link("a/file", "a/b/same");
    world.symlink("a/link", "b/../file").node("a/b/fifo", FileKind::Fifo, 0);
    world.node("a/null", FileKind::CharDevice, 0x103).mode("a/b", 0o1777).owner("a/link", 5, 6);
    world.xattr("a/file", c"user.x", b"y").write("a/file", 1 << 40, b"far away");
    let model = world.model("a");
    let again = World::default();
    again.folder("copy").build("copy", &model);
    assert_eq!(differences(&model, &again.model("copy")), Vec::<String>::new());
    assert_eq!(again.model("copy"), model);
    again.mode("copy/b", 0o700).write("copy/file", 0, b"!");
    assert_eq!(differences(&model, &again.model("copy")).len(), 3, "mode, and content by both names");
}
