//! Small files read and stored in one request.

use std::cell::Cell;

use ferry_io::sim::Fault;
use ferry_io::{
    Content, Dir, Errno, Error, Io, Loaded, Name, NewMode, OpenHow, Operation, Options, Stats, Stored,
    TransferPlan, Transferred,
};

use super::place::{Place, everywhere, in_simulation, name, pattern};

/// The source's permission bits.
const OF_SOURCE: NewMode = NewMode { fixed: 0, of_source: 0o777, at_once: None };

/// Transfers a file of `folder` to its folder `target`.
async fn transfer(io: &Io, folder: &Dir, file: &str, alone: bool, mode: NewMode) -> Result<Loaded, Error> {
    let target = folder.open_dir(&name("target")).await?;
    folder.transfer(&name(file), io.block().await?, (false, alone), &target, mode).await
}

fn stores(stats: &Stats) -> u64 {
    stats.operations[Operation::Store as usize].iter().sum()
}

#[test]
fn what_is_transferred_is_stored_or_loaded_but_never_lost() {
    everywhere(|place| {
        place.make_file("small", &pattern(5000));
        let outcome: Result<bool, Error> = place.run(async |io, folder| {
            folder.make_dir(&name("target"), 0o755).await?;
            let loaded =
                transfer(&io, &folder, "small", false, NewMode { fixed: 0o640, of_source: 0, at_once: None })
                    .await?;
            let target = folder.open_dir(&name("target")).await?;
            match loaded.content {
                Content::Stored(file, bytes) => {
                    assert_eq!(bytes, 5000);
                    assert_eq!(file.stat().await?.mode & 0o7777, 0o640);
                }
                Content::Whole(block) => {
                    assert!(block.as_slice() == pattern(5000));
                    let file = target.open(&name("small"), OpenHow::create(0o640)).await?;
                    file.write_all_at(block, 0).await.1?;
                }
                // A short read allows this.
                Content::Open(_) => return Ok(false),
                Content::Begun(..) => panic!("nothing refused to be written"),
            }
            Ok(true)
        });
        if outcome.expect("all of it works") {
            assert!(place.bytes_of("target/small") == pattern(5000));
        }
    });
}

#[test]
fn what_is_in_memory_is_stored_at_once() {
    let place = Place::posix();
    place.make_file("small", &pattern(5000));
    place.make_file("empty", b"");
    let options = Options { route: ferry_io::RouteChoice::Auto, ..place.options() };
    let (outcome, stats) = place.run_with(&options, async |io, folder| {
        folder.open(&name("small"), OpenHow::write()).await?.set_mode(0o4751).await?;
        folder.make_dir(&name("target"), 0o755).await?;
        for (file, size) in [("small", 5000), ("empty", 0)] {
            let loaded = transfer(&io, &folder, file, true, OF_SOURCE).await?;
            let Content::Stored(stored, bytes) = loaded.content else { panic!("{file}: {loaded:?}") };
            assert_eq!(bytes, size);
            // The tests' umask takes nothing from this.
            assert_eq!(
                stored.stat().await?.mode & 0o7755,
                loaded.stat.mode & 0o755,
                "without what it may do as another"
            );
        }
        Ok::<_, Error>(())
    });
    outcome.expect("all of it works");
    assert_eq!(stores(&stats), 2);
    assert_eq!(place.bytes_of("target/small"), pattern(5000));
    assert_eq!(place.bytes_of("target/empty"), b"");
}

#[test]
fn what_is_begun_and_can_not_be_filled_is_given_back_with_its_bytes() {
    let (begun, stored) = (Cell::new(0), Cell::new(0));
    in_simulation(|place| {
        place.make_file("small", &pattern(5000));
        let world = place.world().expect("it is simulated");
        world.folder("target");
        world.change(|settings| settings.faults.push(Fault::nth(Operation::Write, 2, Errno::IO)));
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            match transfer(&io, &folder, "small", true, OF_SOURCE).await?.content {
                Content::Begun(file, block) => {
                    begun.set(begun.get() + 1);
                    assert!(block.as_slice() == pattern(5000));
                    file.write_all_at(block, 0).await.1?;
                }
                Content::Stored(..) => stored.set(stored.get() + 1),
                Content::Whole(_) | Content::Open(_) => return Ok(()),
            }
            let copied = folder.open_dir(&name("target")).await?.stat_entry(&name("small"), false).await?;
            assert_eq!(copied.size, 5000);
            Ok(())
        });
        outcome.expect("a write fails once");
    });
    assert!(begun.get() > 0 && stored.get() > 0, "{} begun, {} stored", begun.get(), stored.get());
}

#[test]
fn what_can_not_be_stored_is_only_loaded() {
    let place = Place::posix();
    place.make_file("taken", &pattern(3000));
    place.make_file("large", &pattern(50_000));
    place.make_file("linked", &pattern(100));
    let options = Options { route: ferry_io::RouteChoice::Auto, ..place.options() };
    let (outcome, stats) = place.run_with(&options, async |io, folder| {
        folder.make_dir(&name("target"), 0o755).await?;
        folder.link(&name("linked"), &folder, &name("again"), false).await?;
        let target = folder.open_dir(&name("target")).await?;
        target.open(&name("taken"), OpenHow::create(0o644)).await?;
        let taken = transfer(&io, &folder, "taken", false, OF_SOURCE).await?;
        let Content::Whole(block) = taken.content else { panic!("{taken:?}") };
        assert_eq!(block.as_slice(), pattern(3000));
        drop(block);
        for file in ["large", "linked"] {
            let loaded = transfer(&io, &folder, file, true, OF_SOURCE).await?;
            assert!(matches!(loaded.content, Content::Open(_)), "{file}");
        }
        let names = target.list(None).await?.entries;
        assert_eq!(names.len(), 1, "{names:?}");
        Ok::<_, Error>(())
    });
    outcome.expect("all of it works");
    assert_eq!(stores(&stats), 0);
    assert_eq!(place.bytes_of("target/taken"), b"", "what was there stays");
}

const PLAN: TransferPlan = TransferPlan {
    xattrs: false,
    alone: true,
    mode: OF_SOURCE,
    needs_whole: false,
    times: true,
    shares: false,
};

/// Stores a file that was only loaded.
async fn complete(io: &Io, target: &Dir, name: &Name, loaded: Loaded) -> Result<(), Error> {
    let block = match loaded.content {
        Content::Stored(file, _) => return file.close(),
        Content::Begun(file, block) => return file.write_all_at(block, 0).await.1,
        Content::Whole(block) => block,
        Content::Open(source) => {
            let file = target.open(name, OpenHow::create(0o644)).await?;
            let mut at = 0;
            loop {
                let (block, count) = source.read_at(io.block().await?, at).await;
                let count = count? as u64;
                if count == 0 {
                    return Ok(());
                }
                file.write_all_at(block, at).await.1?;
                at += count;
            }
        }
    };
    let file = target.open(name, OpenHow::create(0o644)).await?;
    file.write_all_at(block, 0).await.1
}

/// Transfers files from the first name on until one is not plain. Returns the number of those stored, and the one that
/// was not.
async fn run_of(
    io: &Io,
    folder: &Dir,
    target: &Dir,
    names: &[Name],
) -> Result<(usize, Option<Loaded>), Error> {
    let mut many = folder.transfer_many(target, io.block().await?, PLAN);
    for (index, name) in names.iter().enumerate() {
        match many.transfer(name) {
            Transferred::Stored(Stored { file, bytes, size }) => {
                assert_eq!(bytes, size);
                file.close()?;
            }
            Transferred::Left(rest) => {
                assert!(many.is_over());
                drop(many);
                return Ok((index, Some(rest.load().await?)));
            }
        }
        if many.is_over() {
            return Ok((index + 1, None));
        }
    }
    Ok((names.len(), None))
}

#[test]
fn a_run_of_files_ends_after_32_and_loses_none() {
    let (longest, left) = (Cell::new(0), Cell::new(0));
    everywhere(|place| {
        let names: Vec<_> = (0..40).map(|index| name(format!("f{index}"))).collect();
        let bytes = |index: usize| pattern(index * 100);
        for index in 0..names.len() {
            place.make_file(&format!("f{index}"), &bytes(index));
        }
        let outcome: Result<(), Error> = place.run(async |io, folder| {
            folder.make_dir(&name("target"), 0o755).await?;
            let target = folder.open_dir(&name("target")).await?;
            let mut rest = &names[..];
            while let [first, later @ ..] = rest {
                if !folder.transfers_many(first) {
                    let loaded =
                        folder.transfer(first, io.block().await?, (false, true), &target, OF_SOURCE).await?;
                    complete(&io, &target, first, loaded).await?;
                    rest = later;
                    continue;
                }
                let (count, loaded) = run_of(&io, &folder, &target, rest).await?;
                assert!(count <= 32, "{count} files in one run");
                longest.set(longest.get().max(count));
                rest = &rest[count..];
                if let (Some(loaded), [last, later @ ..]) = (loaded, rest) {
                    complete(&io, &target, last, loaded).await?;
                    left.set(left.get() + 1);
                    rest = later;
                }
                ferry_io::give_way().await;
            }
            Ok(())
        });
        outcome.expect("all of it works");
        for index in 0..names.len() {
            assert!(place.bytes_of(&format!("target/f{index}")) == bytes(index), "file {index}");
        }
    });
    assert_eq!(longest.get(), 32);
    assert!(left.get() > 0, "no file was left");
}

/// Copies `f0` to `f9` in runs that share extents. Returns the numbers of files that did, and that could not.
async fn share_all(io: &Io, folder: &Dir, target: &Dir) -> Result<[u32; 2], Error> {
    let (mut index, mut shared, mut refused) = (0, 0, 0);
    while index < 10 {
        let mut many = folder.transfer_many(target, io.block().await?, TransferPlan { shares: true, ..PLAN });
        while index < 10 && !many.is_over() {
            let file = name(format!("f{index}"));
            index += 1;
            match many.transfer(&file) {
                Transferred::Stored(Stored { file, .. }) => {
                    shared += 1;
                    file.close()?;
                }
                Transferred::Left(rest) => {
                    assert!(many.is_over());
                    if let Some(made) = rest.refused() {
                        refused += 1;
                        assert_eq!(made.stat().await?.size, 0);
                        target.unlink(&file).await?;
                    }
                    complete(io, target, &file, rest.load().await?).await?;
                }
            }
        }
        drop(many);
        ferry_io::give_way().await;
    }
    Ok([shared, refused])
}

#[test]
fn a_run_that_shares_extents_hands_back_a_file_that_can_not() {
    for is_refused in [false, true] {
        let (shared, refused) = (Cell::new(0), Cell::new(0));
        in_simulation(|place| {
            for index in 0..10 {
                place.make_file(&format!("f{index}"), &pattern(index * 100));
            }
            if is_refused {
                let fault = Fault::nth(Operation::Clone, 3, Errno::INVAL);
                place.world().expect("it is simulated").change(|settings| settings.faults.push(fault));
            }
            let outcome: Result<[u32; 2], Error> = place.run(async |io, folder| {
                folder.make_dir(&name("target"), 0o755).await?;
                let target = folder.open_dir(&name("target")).await?;
                share_all(&io, &folder, &target).await
            });
            let [these, those] = outcome.expect("all of it works");
            shared.set(shared.get() + these);
            refused.set(refused.get() + those);
            for index in 0..10 {
                let copied = place.bytes_of(&format!("target/f{index}"));
                assert!(copied == pattern(index * 100), "file {index}");
            }
        });
        assert!(shared.get() > 0);
        assert_eq!(refused.get() > 0, is_refused, "{} files were refused", refused.get());
    }
}

#[test]
fn a_run_of_files_ends_at_the_first_that_is_not_plain() {
    let place = Place::posix();
    for file in ["a", "b", "large", "taken", "linked", "after"] {
        place.make_file(file, &pattern(if file == "large" { 50_000 } else { 3000 }));
    }
    let options = Options { route: ferry_io::RouteChoice::Auto, ..place.options() };
    let (outcome, stats) = place.run_with(&options, async |io, folder| {
        folder.make_dir(&name("target"), 0o755).await?;
        folder.link(&name("linked"), &folder, &name("again"), false).await?;
        let target = folder.open_dir(&name("target")).await?;
        target.open(&name("taken"), OpenHow::create(0o644)).await?;
        for last in ["large", "taken", "linked", "missing"] {
            for file in ["a", "b"] {
                // Left from the round before.
                target.unlink(&name(file)).await.ok();
            }
            let names = ["a", "b", last, "after"].map(name);
            let (mut index, mut is_kept) = (0, true);
            // On a busy machine a run may end earlier.
            let ended = loop {
                let (count, loaded) = match run_of(&io, &folder, &target, &names[index..]).await {
                    Err(error) if last == "missing" => break Err(error),
                    ended => ended?,
                };
                index += count;
                match loaded {
                    None => assert!(index <= 2, "{last} was stored"),
                    Some(loaded) if index < 2 => {
                        // Its times are not kept.
                        complete(&io, &target, &names[index], loaded).await?;
                        is_kept &= index > 0;
                        index += 1;
                    }
                    Some(loaded) => break Ok(loaded),
                }
                ferry_io::give_way().await;
            };
            assert!(
                target.stat_entry(&name("after"), false).await.is_err_and(|error| error.is(Errno::NOENT))
            );
            let content = match ended {
                Ok(loaded) => {
                    assert_eq!(index, 2, "{last}");
                    loaded.content
                }
                Err(error) => {
                    assert!(error.is(Errno::NOENT), "{error:?}");
                    continue;
                }
            };
            assert_eq!(matches!(content, Content::Whole(_)), last == "taken", "{content:?}");
            assert_eq!(matches!(content, Content::Open(_)), last != "taken", "{content:?}");
            let (made, source) =
                (target.stat_entry(&name("a"), false).await?, folder.stat_entry(&name("a"), false).await?);
            assert_eq!(made.size, 3000);
            assert!(!is_kept || made.times.modified == source.times.modified);
        }
        Ok::<_, Error>(())
    });
    outcome.expect("all of it works");
    assert!((1..=8).contains(&stores(&stats)), "{} files were stored", stores(&stats));
    assert_eq!(place.bytes_of("target/b"), pattern(3000));
}

#[test]
fn after_a_slow_run_64_files_begin_none() {
    let place = Place::posix();
    let names: Vec<_> = (0..4).map(|index| name(format!("f{index}"))).collect();
    for index in 0..names.len() {
        place.make_file(&format!("f{index}"), b"text");
    }
    let options = Options { route: ferry_io::RouteChoice::Auto, ..place.options() };
    let (outcome, _) = place.run_with(&options, async |io, folder| {
        folder.make_dir(&name("target"), 0o755).await?;
        let target = folder.open_dir(&name("target")).await?;
        assert!(folder.transfers_many(&names[0]));
        let mut many = folder.transfer_many(&target, io.block().await?, PLAN);
        for name in &names {
            // As a call that blocks.
            std::thread::sleep(std::time::Duration::from_millis(1));
            drop(many.transfer(name));
            if many.is_over() {
                break;
            }
        }
        drop(many);
        ferry_io::give_way().await;
        for file in 0..64 {
            assert!(!folder.transfers_many(&names[0]), "file {file}");
        }
        assert!(folder.transfers_many(&names[0]));
        Ok::<_, Error>(())
    });
    outcome.expect("all of it works");
}
