//! Small files read and stored in one request.

use std::cell::Cell;

use ferry_io::sim::Fault;
use ferry_io::{Content, Dir, Errno, Error, Io, Loaded, NewMode, OpenHow, Operation, Options, Stats};

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
