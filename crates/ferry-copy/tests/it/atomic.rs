//! `--atomic` on a filesystem without unnamed files: each copy has a hidden name at first, and none is left behind.

use std::cell::Cell;

use ferry_copy::Options;
use ferry_io::sim::{Fault, World, differences};
use ferry_io::{Errno, Operation};

use crate::model;
use crate::simulation::world;
use crate::told::{archive, copy, for_seeds, is_one_seed};

fn assert_nothing_hidden(world: &World) {
    for path in world.model("target").keys() {
        let is_hidden = path.split(|&byte| byte == b'/').any(|name| name.starts_with(b".ferry-"));
        assert!(!is_hidden, "{}", path.escape_ascii());
    }
}

#[test]
fn copies_by_hidden_names_are_the_model() {
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").build("source", &model::random(seed, 60));
        world.change(|settings| settings.keeps_history = true);
        let outcome = copy(&world, &Options { atomic: true, ..archive() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(differences(&world.model("source"), &world.model("target")), Vec::<String>::new());
        assert!(world.history().iter().any(|line| line.contains("rename")), "{:?}", world.history());
    });
}

#[test]
fn files_that_fail_leave_no_hidden_names() {
    const FAULTS: [(Operation, Errno); 5] = [
        (Operation::Rename, Errno::IO),
        (Operation::Write, Errno::IO),
        (Operation::SetTimes, Errno::IO),
        (Operation::Read, Errno::IO),
        (Operation::Sync, Errno::IO),
    ];
    let struck = Cell::new(0);
    for_seeds(60, |seed| {
        let (world, io) = world(seed);
        world.folder("source").build("source", &model::random(seed, 60));
        let (operation, errno) = FAULTS[usize::try_from(seed).unwrap() % FAULTS.len()];
        world.change(|settings| settings.faults.push(Fault::by_chance(operation, 100_000, errno)));
        let outcome = copy(&world, &Options { atomic: true, fsync: true, ..archive() }, &io);
        struck.set(struck.get() + outcome.failures.len());
        world.change(|settings| settings.faults.clear());
        if world.get("target").is_some() {
            assert_nothing_hidden(&world);
            let source = world.model("source");
            for (path, node) in &world.model("target") {
                let is_whole = node.content == source[path].content;
                assert!(is_whole, "{}: {:?}", path.escape_ascii(), outcome.failures);
            }
        }
    });
    assert!(struck.get() > 0 || is_one_seed(), "no fault struck");
}
