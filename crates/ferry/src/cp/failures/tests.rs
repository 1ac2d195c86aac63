use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Failures, KEPT};

#[test]
fn every_failure_is_recorded_though_few_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("errors");
    let mut failures = Failures::new(Some(&path), &[]).unwrap();
    let number = KEPT + 5;
    for _ in 0..number {
        failures.add(Path::new(OsStr::from_bytes(b"so\xffurce")), Path::new("target"), "message".to_owned());
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
