use std::process::Command;

use rustix::io::Errno;

use super::{Count, Event, switches_of_ended_children};

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
