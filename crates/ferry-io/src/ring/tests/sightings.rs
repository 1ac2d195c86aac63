//! A ring whose completions another thread takes.

use std::fs::File;
use std::time::Instant;

use super::*;
use crate::ring::{Sighting, Unseen, sightings};

/// A processor on which this thread may run.
fn processor() -> usize {
    rustix::thread::sched_getcpu()
}

#[test]
fn another_thread_sees_every_completion_in_each_mode() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(16 * 4096)).unwrap();
    let file = File::open(folder.path().join("file")).unwrap();
    for ring_mode in MODES {
        let options = Options { ring_mode, ..ring_options() };
        if let Err(error) = probe(&options) {
            eprintln!("SKIP: {error}");
            continue;
        }
        let mut computations = 0;
        let found =
            sightings(&options, &file, (0..16).map(|index| index * 4096), processor(), || computations += 1);
        let found: Vec<Sighting> = found.unwrap();
        assert_eq!((found.len(), computations), (16, 16), "{ring_mode:?}");
        assert!(found.iter().all(|one| !one.after.is_zero()), "{ring_mode:?}: {found:?}");
    }
}

#[test]
fn a_panic_of_the_computation_ends_the_observation() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(4096)).unwrap();
    let file = File::open(folder.path().join("file")).unwrap();
    let observe = || {
        sightings(&ring_options(), &file, [0], processor(), || std::panic::resume_unwind(Box::new("panic")))
    };
    // The looking thread would go on for ever.
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(observe)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"panic"));
}

#[test]
fn a_read_that_fails_ends_the_observation() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let opened = File::open(folder.path()).unwrap();
    let failed = sightings(&ring_options(), &opened, [0, 4096], processor(), || ());
    assert_eq!(failed, Err(Unseen::Call("read", rustix::io::Errno::ISDIR)));
    assert!(begun.elapsed().as_secs() < 60);
}
