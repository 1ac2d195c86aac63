use ferry_io::{FileKind, Time, Times};

use super::*;

fn file(inode: u64, links: u64) -> Stat {
    let time = Time { seconds: 1, nanoseconds: 2 };
    Stat {
        kind: FileKind::Regular,
        mode: 0o644,
        uid: 1,
        gid: 2,
        links,
        device: 3,
        inode,
        special: 0,
        size: 4,
        blocks: 8,
        times: Times { accessed: time, modified: time },
        changed: time,
        born: None,
    }
}

#[test]
fn names_that_are_linked_alike_stay() {
    let mut names = Names::default();
    assert!(!names.is_kept(&file(1, 2), &file(11, 2)));
    assert!(names.may_stay(&file(1, 2), &file(11, 2)));
    assert!(names.is_kept(&file(1, 2), &file(11, 2)));
    assert!(names.may_stay(&file(1, 2), &file(11, 2)));
    assert!(names.may_stay(&file(5, 1), &file(15, 1)));
}

#[test]
fn names_whose_targets_are_two_files_become_one() {
    let mut names = Names::default();
    assert!(names.may_stay(&file(1, 2), &file(11, 1)));
    assert!(!names.may_stay(&file(1, 2), &file(12, 1)));
}

#[test]
fn names_whose_targets_are_one_file_become_two() {
    let mut names = Names::default();
    assert!(names.may_stay(&file(1, 1), &file(11, 2)));
    assert!(!names.may_stay(&file(2, 1), &file(11, 2)));
    let mut names = Names::default();
    assert!(names.may_stay(&file(1, 2), &file(11, 4)));
    assert!(names.may_stay(&file(1, 2), &file(11, 4)));
    assert!(!names.may_stay(&file(2, 2), &file(11, 4)));
    // Its second name is linked to the new copy of the first.
    assert!(!names.may_stay(&file(2, 2), &file(11, 4)));
}

#[test]
fn a_name_of_a_source_that_was_copied_is_linked_to_the_copy() {
    let mut names = Names::default();
    names.note_made(&file(1, 2));
    assert!(!names.may_stay(&file(1, 2), &file(11, 1)));
}

#[test]
fn a_target_that_had_several_names_is_planned_for_as_before() {
    let mut names = Names::default();
    names.note_target(&file(11, 2));
    assert!(names.may_stay(&file(1, 1), &file(11, 2)));
    // The run has taken the other name away.
    assert!(names.is_shared(&file(11, 1)));
    assert!(!names.may_stay(&file(2, 1), &file(11, 1)));
}

#[test]
fn the_number_of_names_is_the_one_that_was_met_first() {
    let mut names = Names::default();
    names.note_target(&file(11, 3));
    names.note_target(&file(11, 2));
    assert_eq!((names.links(&file(11, 1)), names.links(&file(12, 1))), (3, 1));
    assert!(names.is_shared(&file(11, 1)) && !names.is_shared(&file(12, 1)));
}
