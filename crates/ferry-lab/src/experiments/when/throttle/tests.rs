use std::ffi::OsStr;
use std::fs;

use super::{FIRST, Held, LIFT};

#[test]
fn a_limit_that_cannot_be_lifted_does_not_keep_the_others() {
    let place = tempfile::tempdir().unwrap();
    let (own, root) = (place.path().join("own"), place.path().join("root"));
    fs::create_dir(&own).unwrap();
    fs::create_dir(&root).unwrap();
    let words: [&OsStr; 5] =
        ["7:0".as_ref(), "7:1".as_ref(), own.as_os_str(), root.as_os_str(), "1000".as_ref()];
    let held = Held::make("limits of two devices", FIRST, LIFT, &words).unwrap();
    let limits = || {
        ["read", "write"]
            .map(|way| fs::read_to_string(root.join(format!("blkio.throttle.{way}_bps_device"))).unwrap())
    };
    // A file holds what was written last.
    assert_eq!(limits(), ["7:1 1000\n"; 2]);
    fs::remove_dir_all(&own).unwrap();
    let why = held.undo().unwrap_err().to_string();
    assert!(why.starts_with("limits of two devices can't be removed: "), "{why}");
    assert_eq!(limits(), ["7:1 0\n"; 2]);
}
