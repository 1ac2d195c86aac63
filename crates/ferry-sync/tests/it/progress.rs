//! Counts of progress beneath a folder that can't be made.

use std::sync::Arc;

use ferry_copy::{Observer, Progress};
use ferry_io::sim::{Fault, Settings, World};
use ferry_io::{Errno, Operation};
use ferry_sync::{Disposal, Request, Surroundings, Use};

use super::{Told, request};

/// Syncs seven entries, of which a folder with three files can't be made, and returns the numbers of entries found and done.
fn counts(seed: u64, each_entry: bool) -> (u64, u64) {
    let world = World::new(Settings { lists_kinds: seed.is_multiple_of(2), ..Settings::default() });
    for path in ["source", "source/refused", "source/there", "target", "target/there"] {
        world.folder(path);
    }
    for path in ["refused/1", "refused/2", "refused/3", "there/4", "there/5"] {
        world.file(format!("source/{path}"), b"bytes");
    }
    world.change(|settings| {
        settings.faults.push(Fault::always(Operation::MakeDirectory, Errno::PERM).on("refused"))
    });
    let (told, progress) = (Arc::new(Told::default()), Arc::new(Progress::default()));
    let surroundings = Surroundings {
        io: &world.options(seed),
        progress: Arc::clone(&progress),
        observer: Arc::clone(&told) as Arc<dyn Observer>,
        tell: &|_| {},
        explain: None,
        manifest: None,
        gate: None,
    };
    let wanted = Request { each_entry, ..request(Disposal::Remove) };
    let totals = ferry_sync::run(&wanted, Use::Perform, &surroundings).unwrap();
    let failed: Vec<_> = told.0.lock().unwrap().iter().map(|failure| failure.target.clone()).collect();
    assert_eq!((totals.failed, failed), (1, vec!["/target/refused".into()]), "seed {seed}");
    assert_eq!(totals.done.created, 2, "seed {seed}");
    (progress.entries_found.get(), progress.entries_done.get())
}

/// A folder that is copied as a whole is not listed if it can't be made.
#[test]
fn entries_beneath_a_folder_that_can_not_be_made_are_not_counted_in_a_sync_of_everything() {
    for seed in 0..20 {
        assert_eq!(counts(seed, false), (4, 4), "seed {seed}");
    }
}

/// With patterns a run lists the folders of the source before it makes those of the target.
#[test]
fn entries_beneath_a_folder_that_can_not_be_made_are_counted_if_each_entry_is_examined() {
    for seed in 0..20 {
        assert_eq!(counts(seed, true), (7, 7), "seed {seed}");
    }
}
