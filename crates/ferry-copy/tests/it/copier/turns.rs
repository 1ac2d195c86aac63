//! Runs that take turns with other programs.

use std::num::NonZeroU8;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ferry_copy::{Algorithm, FailureKind, Gate, Settings, hash_file};
use ferry_io::{Io, OpenHow};

use super::{acting, acting_with, copy, name, trees};
use crate::simulation::world;
use crate::told::for_seeds;

/// Returns a gate beside programs that always wait for I/O.
fn beside_others() -> Arc<Gate> {
    let begun = OnceLock::new();
    Arc::new(Gate::new(NonZeroU8::MIN, move || {
        let now = ferry_io::now();
        Some([now.saturating_duration_since(*begun.get_or_init(|| now)); 3])
    }))
}

#[test]
fn a_run_takes_turns_with_others_that_always_wait() {
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        let gate = beside_others();
        let settings = Settings { gate: Some(Arc::clone(&gate)), ..Settings::default() };
        let (elapsed, told) = acting_with(&world, &io, settings, async |copier, pair, _| {
            let begun = ferry_io::now();
            for entry in ["file", "link", "other", "third", "added"] {
                copy(copier, pair, entry).await.unwrap();
            }
            ferry_io::now() - begun
        });
        assert!(told.failures().is_empty(), "{:?}", told.failures());
        assert_eq!(world.get("target/file").unwrap().content, world.get("source/file").unwrap().content);
        let pauses = gate.pauses();
        assert!(pauses.count > 0 && pauses.time <= elapsed, "seed {seed}: {pauses:?} in {elapsed:?}");
        assert!(elapsed >= Duration::from_millis(1_950), "seed {seed}: {elapsed:?}");
    });
}

#[test]
fn a_run_that_pauses_ends_when_it_is_stopped() {
    const HALF: Duration = Duration::from_millis(500);
    for_seeds(20, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        let gate = beside_others();
        let settings = Settings { gate: Some(Arc::clone(&gate)), ..Settings::default() };
        let ((ended, elapsed), _) = acting_with(&world, &io, settings, async |copier, pair, io| {
            let begun = ferry_io::now();
            let stop = async {
                ferry_io::sleep(HALF).await.ok();
                io.stop();
                Ok::<(), ()>(())
            };
            let looked = async { Ok(copier.look(pair, &name("file")).await) };
            let ended = ferry_io::both(stop, looked).await;
            (ended, ferry_io::now() - begun)
        });
        let is_cancelled =
            matches!(&ended, Ok(((), Err(FailureKind::Io { error, .. }))) if error.is_cancelled());
        assert!(is_cancelled && elapsed < HALF + Duration::from_millis(50), "seed {seed}: {elapsed:?}");
        assert_eq!(gate.pauses().count, 1, "seed {seed}");
    });
}

#[test]
fn hashing_a_file_takes_turns_with_others_that_always_wait() {
    for_seeds(5, |seed| {
        let (world, io) = world(seed);
        trees(&world);
        let hash = async |io: &Io, gate: Option<&Gate>| {
            let dir = io.open_dir("/source".as_ref()).unwrap();
            let file = dir.open(&name("file"), OpenHow::read()).await.unwrap();
            let seen = file.stat().await.unwrap();
            let begun = ferry_io::now();
            let digest = hash_file((io, gate), &file, &seen, Algorithm::Blake3).await.unwrap().unwrap();
            (digest, ferry_io::now() - begun)
        };
        acting(&world, &io, async |_, _, io| {
            let (digest, alone) = hash(io, None).await;
            let (same, elapsed) = hash(io, Some(&*beside_others())).await;
            assert_eq!(digest, same);
            assert!(elapsed > alone + Duration::from_millis(1_900), "seed {seed}: {alone:?}, {elapsed:?}");
        });
    });
}
