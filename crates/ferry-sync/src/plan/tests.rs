use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::*;

fn header() -> Header {
    Header {
        schema: SCHEMA,
        made_by: "ferry 0.1.0".to_owned(),
        source: Path::new("/from").into(),
        target: Path::new("/to").into(),
        source_root: Version { device: 1, inode: 2, changed: None, written: None },
        target_root: None,
    }
}

fn action(path: &[u8]) -> Action {
    Action {
        verb: Verb::Replace,
        path: Path::new(OsStr::from_bytes(path)).into(),
        kind: Kind::File,
        reason: Some(Reason::Size),
        size: Some(7),
        source: Some(Version { device: 1, inode: u64::MAX, changed: Some((-5, 999_999_999)), written: None }),
        target: None,
        links: 0,
    }
}

fn written(actions: &[Action]) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), header()).expect("it is written");
    for action in actions {
        writer.add(action.clone()).expect("it is written");
    }
    writer.end().expect("it is written")
}

fn read(bytes: &[u8]) -> Result<Vec<Action>, Unreadable> {
    let (mut reader, found) = Reader::begin(bytes)?;
    assert_eq!(found, header());
    let mut actions = Vec::new();
    while let Some(action) = reader.next_action()? {
        actions.push(action);
    }
    Ok(actions)
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let actions = [action(b"a/b"), action(b"line\nfeed \xf0\x9f\x98\x80"), action(b"no\xfftext")];
    assert_eq!(read(&written(&actions)).expect("it is read"), actions);
}

#[test]
fn a_line_that_would_not_be_read_is_not_written() {
    let long = [action(&[1; 170_000])];
    assert_eq!(read(&written(&long)).expect("it is read"), long);
    let mut writer = Writer::begin(Vec::new(), header()).expect("it is written");
    assert!(writer.add(action(&[1; 180_000])).is_err());
}

#[test]
fn a_plan_that_is_cut_anywhere_is_incomplete() {
    let whole = written(&[action(b"a"), action(b"b")]);
    for size in 0..whole.len() {
        assert!(matches!(read(&whole[..size]), Err(Unreadable::Incomplete { .. })), "{size} bytes");
    }
}

#[test]
fn a_plan_with_an_action_less_or_more_is_refused() {
    let whole = String::from_utf8(written(&[action(b"a"), action(b"b")])).expect("text");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let without = [lines[0], lines[1], lines[3]].concat();
    assert!(matches!(read(without.as_bytes()), Err(Unreadable::Miscounted { found: 1, counted: 2 })));
    let behind = [&whole, lines[1]].concat();
    assert!(matches!(read(behind.as_bytes()), Err(Unreadable::Misplaced { line: 5 })));
}

#[test]
fn foreign_text_is_refused_with_its_line() {
    let whole = String::from_utf8(written(&[action(b"a")])).expect("text");
    let other = whole.replacen("\"verb\"", "\"word\"", 1);
    assert!(matches!(read(other.as_bytes()), Err(Unreadable::NotJson { line: 2, .. })));
    let newer = whole.replacen("\"schema\":1", "\"schema\":2", 1);
    assert!(matches!(Reader::begin(newer.as_bytes()), Err(Unreadable::Schema { found: 2 })));
    let long = format!("{}\n", " ".repeat(1_100_000));
    assert!(matches!(Reader::begin(long.as_bytes()), Err(Unreadable::TooLong { line: 1 })));
    let nul = whole.replacen("\"a\"", "\"\\u0000\"", 1);
    assert!(matches!(read(nul.as_bytes()), Err(Unreadable::NotJson { line: 2, .. })));
}
