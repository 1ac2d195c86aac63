use ferry_io::Times;

use super::*;

const OLDEST: Time = Time { seconds: -1, nanoseconds: 0 };

const RULES: Rules = Rules {
    comparison: Comparison::SizeAndTime,
    keeps_newer: false,
    owners: true,
    grain: Grain::FINEST,
    xattrs: true,
    unfinished: OLDEST,
    doubted_since: None,
};

fn stat(kind: FileKind, size: u64, seconds: i64) -> Stat {
    let time = Time { seconds, nanoseconds: 7 };
    Stat {
        kind,
        mode: 0o644,
        uid: 1,
        gid: 2,
        links: 1,
        device: 3,
        inode: 4,
        special: 0,
        size,
        blocks: 8,
        times: Times { accessed: time, modified: time },
        changed: time,
        born: None,
    }
}

fn file(size: u64, seconds: i64) -> Stat {
    stat(FileKind::Regular, size, seconds)
}

#[test]
fn files_are_compared_by_size_and_time() {
    let source = file(10, 100);
    assert_eq!(decide(&source, None, &RULES), Decision::Create);
    assert_eq!(decide(&source, Some(&file(10, 100)), &RULES), Decision::Equal);
    assert_eq!(decide(&source, Some(&file(11, 100)), &RULES), Decision::Replace(Reason::Size));
    assert_eq!(decide(&source, Some(&file(10, 101)), &RULES), Decision::Replace(Reason::Time));
    assert_eq!(decide(&source, Some(&file(10, 99)), &RULES), Decision::Replace(Reason::Time));
}

#[test]
fn files_changed_since_a_run_that_lost_its_session_are_compared_by_content() {
    for comparison in [Comparison::SizeAndTime, Comparison::Size] {
        let since = |seconds| Some(Time { seconds, nanoseconds: 7 });
        let rules = |doubted_since| Rules { comparison, doubted_since, ..RULES };
        let target = Stat { changed: Time { seconds: 500, nanoseconds: 7 }, ..file(10, 100) };
        let decided = |doubted_since| decide(&file(10, 100), Some(&target), &rules(doubted_since));
        assert_eq!(decided(None), Decision::Equal);
        assert_eq!(decided(since(501)), Decision::Equal);
        assert_eq!(decided(since(500)), Decision::CompareContent);
        let other = decide(&file(11, 100), Some(&target), &rules(since(500)));
        assert_eq!(other, Decision::Replace(Reason::Size));
    }
}

#[test]
fn a_comparison_of_sizes_leaves_times_to_the_attributes() {
    let rules = Rules { comparison: Comparison::Size, ..RULES };
    assert_eq!(decide(&file(10, 100), Some(&file(10, 5)), &rules), Decision::SetAttributes);
    assert_eq!(decide(&file(10, 100), Some(&file(9, 100)), &rules), Decision::Replace(Reason::Size));
}

#[test]
fn a_comparison_of_content_trusts_no_time() {
    let rules = Rules { comparison: Comparison::Content, ..RULES };
    assert_eq!(decide(&file(10, 100), Some(&file(10, 100)), &rules), Decision::CompareContent);
    assert_eq!(decide(&file(10, 100), Some(&file(9, 100)), &rules), Decision::Replace(Reason::Size));
}

#[test]
fn a_newer_target_stays_only_if_asked_for() {
    let rules = Rules { keeps_newer: true, ..RULES };
    assert_eq!(decide(&file(10, 100), Some(&file(3, 101)), &rules), Decision::KeepNewer);
    assert_eq!(decide(&file(10, 100), Some(&file(3, 99)), &rules), Decision::Replace(Reason::Size));
}

#[test]
fn times_are_compared_as_the_target_stores_them() {
    let rules = Rules { grain: Grain::of_stored(Time { nanoseconds: 0, ..Grain::PROBE }), ..RULES };
    let mut target = file(10, 100);
    target.times.modified.nanoseconds = 0;
    assert_eq!(decide(&file(10, 100), Some(&target), &rules), Decision::Equal);
    assert_eq!(decide(&file(10, 100), Some(&target), &RULES), Decision::Replace(Reason::Time));
}

#[test]
fn an_unfinished_target_is_never_equal() {
    let mut target = file(10, 0);
    target.times.modified = OLDEST;
    for comparison in [Comparison::Size, Comparison::SizeAndTime, Comparison::Content] {
        let rules = Rules { comparison, keeps_newer: true, ..RULES };
        assert_eq!(decide(&file(10, 100), Some(&target), &rules), Decision::Replace(Reason::Unfinished));
    }
}

#[test]
fn attributes_are_always_compared() {
    for kind in [FileKind::Regular, FileKind::Directory, FileKind::Fifo, FileKind::Symlink] {
        let source = stat(kind, 10, 100);
        let owned = Stat { uid: 9, ..source };
        assert_eq!(decide(&source, Some(&owned), &RULES), Decision::SetAttributes, "{kind:?}");
        let rules = Rules { owners: false, ..RULES };
        assert_eq!(decide(&source, Some(&owned), &rules), Decision::Equal, "{kind:?}");
        let moded = Stat { mode: 0o600, ..source };
        let wanted = if kind == FileKind::Symlink { Decision::Equal } else { Decision::SetAttributes };
        assert_eq!(decide(&source, Some(&moded), &RULES), wanted, "{kind:?}");
    }
}

#[test]
fn other_kinds_and_devices_are_exchanged_or_replaced() {
    let device = stat(FileKind::CharDevice, 0, 100);
    let other = Stat { special: 5, ..device };
    assert_eq!(decide(&device, Some(&other), &RULES), Decision::Replace(Reason::Device));
    assert_eq!(decide(&device, Some(&file(0, 100)), &RULES), Decision::Exchange);
}
