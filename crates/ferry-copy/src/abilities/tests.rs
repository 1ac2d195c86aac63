use ferry_io::{Cause, Operation};

use super::*;

fn refusal(errno: Errno) -> Error {
    Error { operation: Operation::Clone, cause: Cause::Errno(errno) }
}

#[test]
fn one_pair_says_nothing_of_another() {
    let known = Known::default();
    known.of(DevicePair { source: 1, target: 2 }).note_refused_clone(&refusal(Errno::XDEV));
    known.of(DevicePair { source: 1, target: 2 }).note_refused_offload(&refusal(Errno::XDEV));
    assert!(
        !known.of(DevicePair { source: 1, target: 2 }).may_clone()
            && !known.of(DevicePair { source: 1, target: 2 }).may_offload()
    );
    assert!(
        known.of(DevicePair { source: 2, target: 2 }).may_clone()
            && known.of(DevicePair { source: 2, target: 2 }).may_offload()
    );
}

#[test]
fn one_file_says_nothing_of_the_others() {
    let abilities = Abilities::default();
    abilities.note_refused_clone(&refusal(Errno::INVAL));
    assert!(abilities.may_clone());
    for _ in 0..MOST_REFUSALS {
        abilities.note_refused_clone(&refusal(Errno::INVAL));
    }
    assert!(!abilities.may_clone());
}

#[test]
fn what_has_worked_is_tried_again() {
    let abilities = Abilities::default();
    abilities.note_clone();
    for _ in 0..=MOST_REFUSALS {
        abilities.note_refused_clone(&refusal(Errno::XDEV));
    }
    assert!(abilities.may_clone());
}
