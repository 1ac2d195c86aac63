use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::io::Errno;

use super::{Components, Paths};
use crate::entry::FileKind;

#[test]
fn what_says_nothing_is_left_out() {
    let all = |path: &str| String::from_utf8(Components::of(Path::new(path)).all).expect("it was text");
    assert_eq!(all("a//b/./c/"), "a/b/c/");
    assert_eq!(all("//a/../b"), "/a/../b/");
    assert_eq!(all("./."), "");
    assert_eq!(all("/"), "/");
}

#[test]
fn paths_lead_where_the_kernel_says() {
    let place = tempfile::tempdir().expect("there is room");
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("a/b")).expect("it is empty");
    fs::write(at("a/f"), "f").expect("it is empty");
    for (link, says) in [("to_b", "a/b"), ("to_f", "a/f"), ("loop", "loop"), ("nowhere", "gone")] {
        symlink(says, at(link)).expect("it is empty");
    }
    let paths = Paths::new();
    let names = [
        "",
        "a",
        "a/",
        "a/b",
        "a//./b",
        "to_b",
        "to_b/",
        "to_b/..",
        "to_b/../f",
        "a/f",
        "a/f/",
        "a/f/x",
        "to_f",
        "to_f/",
        "loop",
        "loop/x",
        "nowhere",
        "nowhere/",
        "gone/x",
        "a/b/../../a/b/.",
    ];
    for name in names {
        let path = if name.is_empty() { place.path().to_owned() } else { at(name) };
        for follow in [true, false] {
            let expected = if follow { fs::metadata(&path) } else { fs::symlink_metadata(&path) };
            let found = paths.stat(&path, follow);
            match expected {
                Ok(expected) => {
                    let found = found.expect("the kernel finds it");
                    assert_eq!(found.inode, std::os::unix::fs::MetadataExt::ino(&expected), "{name}");
                }
                Err(error) => {
                    let errno = found.expect_err("the kernel does not find it").as_errno();
                    assert_eq!(errno, Errno::from_io_error(&error), "{name}, {follow}");
                }
            }
        }
    }
    assert_eq!(paths.stat(Path::new("/"), false).map(|stat| stat.kind), Ok(FileKind::Directory));
    assert_eq!(paths.stat(Path::new(""), true).map_err(|error| error.as_errno()), Err(Some(Errno::NOENT)));
}

#[test]
fn a_folder_is_the_one_that_was_found_first() {
    let place = tempfile::tempdir().expect("there is room");
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("a/b")).expect("it is empty");
    fs::write(at("a/b/first"), "").expect("it is empty");
    let paths = Paths::new();
    assert!(paths.folder(&at("a/b")).is_ok());
    fs::rename(at("a"), at("moved")).expect("it is there");
    fs::create_dir_all(at("a/b")).expect("it is gone");
    assert!(paths.stat(&at("a/b/first"), false).is_ok());
    assert!(paths.folder(&at("a/b/.")).is_ok());
    assert!(Paths::new().stat(&at("a/b/first"), false).is_err());
    // Others were dropped for those that came after.
    for name in ["a", "moved", "moved/b", "a/..", "a/../a", "moved/b/.."] {
        assert!(paths.folder(&at(name)).is_ok());
    }
    assert!(paths.stat(&at("a/b/first"), false).is_err());
}
