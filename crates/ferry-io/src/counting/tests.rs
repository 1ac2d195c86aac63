use std::process::Command;

use rustix::io::Errno;

use super::{Count, Event, switches_of_ended_children};
use crate::{Backend, Name, OpenHow, Options, RouteChoice, run};

#[test]
fn only_programs_that_are_started_are_counted() {
    let count = match Count::of_programs(Event::ContextSwitch) {
        Ok(count) => count,
        Err(errno) => {
            assert!(matches!(errno, Errno::ACCESS | Errno::PERM | Errno::NOSYS), "{errno}");
            eprintln!("SKIP: nothing may be counted here ({errno})");
            return;
        }
    };
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(count.so_far(), Ok(0));
    let before = switches_of_ended_children();
    assert!(Command::new("sleep").arg("0.01").status().unwrap().success());
    assert!(count.so_far().unwrap() >= 1);
    assert!(switches_of_ended_children() > before);
}

#[test]
fn every_event_is_known_or_refused_with_a_reason() {
    for event in Event::ALL {
        match Count::of_this_thread(event) {
            Ok(count) => assert!(count.so_far().is_ok(), "{}", event.name()),
            Err(errno) => {
                let expected = [Errno::ACCESS, Errno::PERM, Errno::NOENT, Errno::NOSYS];
                assert!(expected.contains(&errno), "{}: {errno}", event.name());
            }
        }
    }
}

/// The kernel hands over the making of folders, each to any worker. On some filesystems it also hands over the writes
/// of one file, one after another.
#[test]
fn serial_hand_overs_are_told_from_others() {
    let counts = [Event::KernelWorkerHandover, Event::SerialHandover].map(Count::of_this_thread);
    let [Ok(all), Ok(serial)] = counts else {
        eprintln!("SKIP: hand-overs may not be counted here");
        return;
    };
    let counted = || (all.so_far().unwrap(), serial.so_far().unwrap());
    let place = tempfile::tempdir().unwrap();
    let workers = std::num::NonZeroUsize::MIN;
    let options =
        Options { backend: Backend::Uring, route: RouteChoice::Ring, workers, ..Options::default() };
    let name = |text: &str| Name::new(text.as_bytes()).unwrap();
    let ran = run(&options, async |io| {
        let folder = io.open_dir(place.path())?;
        let file = folder.open(&name("file"), OpenHow::create(0o600)).await?;
        let before = counted();
        for index in 0..8 {
            folder.make_dir(&name(&format!("folder{index}")), 0o700).await?;
        }
        let between = counted();
        for index in 0..8 {
            let mut block = io.block().await?;
            block.set_filled(4096);
            file.write_all_at(block, index * 4096).await.1?;
        }
        Ok::<_, crate::Error>((before, between, counted()))
    });
    let (before, between, after) = match ran {
        Ok((counted, _)) => counted.unwrap(),
        Err(why) => {
            eprintln!("SKIP: {why}");
            return;
        }
    };
    assert_eq!((between.0 - before.0, between.1 - before.1), (8, 0));
    // All hand-overs of writes are serial, if there are any.
    assert_eq!(after.0 - between.0, after.1 - between.1);
}
