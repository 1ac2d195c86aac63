//! Models of makers and overwriters on several workers: one writes at a time, and all of them end.

use std::sync::Arc;

use ferry_io::{FileKind, Time, Times};
use loom::future::block_on;
use loom::sync::atomic::AtomicUsize;

use super::*;

/// The one file that all fibers write to.
struct Target {
    turns: Turns,
    writers: AtomicUsize,
}

impl Target {
    fn write(&self) {
        assert_eq!(self.writers.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
        self.writers.fetch_sub(1, Ordering::AcqRel);
    }

    fn take_turn(&self) {
        let time = Time { seconds: 0, nanoseconds: 0 };
        let stat = Stat {
            kind: FileKind::Regular,
            mode: 0o644,
            uid: 0,
            gid: 0,
            links: 1,
            device: 1,
            inode: 2,
            special: 0,
            size: 0,
            blocks: 0,
            times: Times { accessed: time, modified: time },
            changed: time,
            born: None,
        };
        let _turn = block_on(self.turns.of(&stat)).expect("not cancelled");
        self.write();
    }

    /// Makes the file; with a turn if links were met.
    fn make(&self) {
        match block_on(self.turns.make()).expect("not cancelled") {
            Some(_counted) => self.write(),
            None => self.take_turn(),
        }
    }

    /// Overwrites it through a link.
    fn overwrite(&self) {
        block_on(self.turns.meet_link()).expect("not cancelled");
        self.take_turn();
    }
}

fn check(preemptions: usize, others: &'static [fn(&Target)], mine: fn(&Target)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(preemptions));
    builder.max_branches = 100_000;
    builder.check(move || {
        let target = Arc::new(Target { turns: Turns::new(2), writers: AtomicUsize::new(0) });
        let others: Vec<_> = others
            .iter()
            .map(|other| {
                let target = Arc::clone(&target);
                loom::thread::spawn(move || other(&target))
            })
            .collect();
        mine(&target);
        others.into_iter().for_each(|other| other.join().expect("a panic ends the model"));
    });
}

#[test]
fn who_overwrites_through_a_link_waits_for_a_maker() {
    check(3, &[Target::make], Target::overwrite);
}

#[test]
fn two_who_overwrite_wait_for_a_maker_and_for_each_other() {
    check(2, &[Target::make, Target::overwrite], Target::overwrite);
}

#[test]
#[should_panic(expected = "one at a time")]
fn who_does_not_wait_for_makers_is_found() {
    check(3, &[Target::make], |target| {
        target.turns.are_links_met.store(true, Ordering::SeqCst);
        target.take_turn();
    });
}
