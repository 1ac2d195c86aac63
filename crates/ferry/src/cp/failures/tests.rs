use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::{Failures, KEPT, Message};
use crate::layout::Screen;

fn message(text: &str, errno: Option<Errno>) -> Message<'_> {
    let source = Path::new(OsStr::from_bytes(b"so\xffurce"));
    Message { source, target: Path::new("target"), text: text.to_owned(), errno }
}

#[test]
fn every_failure_is_recorded_though_few_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("errors");
    let mut failures = Failures::new(Some(&path), &[]).unwrap();
    let number = KEPT + 5;
    for _ in 0..number {
        failures.add(message("message", None));
    }
    assert_eq!(failures.kept.len(), KEPT);
    assert_eq!(failures.count(), u64::try_from(number).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), number);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first, serde_json::json!({"source": "so\\xffurce", "target": "target", "message": "message"}));
    assert!(failures.write_error().is_none());
}

#[test]
fn the_error_of_a_call_is_recorded_by_number_and_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("errors");
    let mut failures = Failures::new(Some(&path), &[]).unwrap();
    failures.add(message("one", Some(Errno::ACCESS)));
    failures.note(message("two", Some(Errno::from_raw_os_error(4000))));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["errno"], &lines[0]["error"]), (&13.into(), &"EACCES".into()));
    assert_eq!((&lines[1]["errno"], lines[1].get("error")), (&4000.into(), None));
}

#[test]
fn failures_are_lost_once_the_first_has_left_the_screen() {
    let screen = Screen::USUAL;
    let mut failures = Failures::default();
    assert!(!failures.has_left(screen, 1000), "there is none");
    failures.begin_at(10);
    failures.begin_at(1000);
    // The screen has 24 rows, and the cursor is in the last one.
    assert!(!failures.has_left(screen, 33));
    assert!(failures.has_left(screen, 34));
}

#[test]
fn as_many_failures_are_repeated_as_the_screen_has_room_for() {
    let mut failures = Failures::default();
    let text = format!("cannot open '{}' for reading: Permission denied", "x".repeat(33));
    (0..100).for_each(|_| failures.add(message(&text, None)));
    // Each message has 80 characters with the two spaces before it.
    for (columns, rows, repeated) in [(40, 24, 10), (80, 24, 21), (200, 24, 21), (200, 200, 100), (80, 3, 0)]
    {
        let lines = failures.again("ferry cp", Screen { columns, rows });
        assert_eq!(lines[0], "ferry cp: 100 paths failed:");
        let shown = lines.iter().filter(|line| line.ends_with(": Permission denied")).count();
        assert_eq!(shown, repeated, "{columns} x {rows}");
        let rest = format!("  and {} more (`--errors FILE` records all)", 100 - repeated);
        assert_eq!(lines.last() == Some(&rest), repeated < 100, "{lines:?}");
        let taken: usize = lines.iter().map(|line| Screen { columns, rows }.rows_of(line)).sum();
        assert!(taken < rows, "{taken} of {rows} rows");
    }
}

#[test]
fn a_record_that_is_refused_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("errors"), folder.path().join("link"));
    std::os::unix::fs::symlink("errors", &link).unwrap();
    for record in [&path, &link] {
        let refused = Failures::new(Some(record), std::slice::from_ref(&path)).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(!path.exists() && link.is_symlink());
    }
}

#[test]
fn a_record_is_not_made_through_a_link_of_another_user() {
    use std::os::unix::fs::{lchown, symlink};
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP: links of another user need root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("victim"), "theirs").unwrap();
    for (name, says) in [("link", "victim"), ("second", "link"), ("dangling", "new")] {
        symlink(says, at(name)).unwrap();
    }
    assert!(Failures::new(Some(&at("second")), &[]).is_ok(), "root's own links count");
    std::fs::write(at("victim"), "theirs").unwrap();
    for name in ["link", "dangling"] {
        lchown(at(name), Some(65_534), Some(65_534)).unwrap();
    }
    for name in ["link", "second", "dangling"] {
        let refused = Failures::new(Some(&at(name)), &[]).unwrap_err();
        assert_eq!(rustix::io::Errno::from_io_error(&refused), Some(rustix::io::Errno::LOOP), "{name}");
    }
    assert_eq!(std::fs::read_to_string(at("victim")).unwrap(), "theirs");
    assert!(!at("new").exists());
    // The link and the file it leads to have the same owner.
    std::os::unix::fs::chown(at("victim"), Some(65_534), None).unwrap();
    assert!(Failures::new(Some(&at("second")), &[]).is_ok());
}
