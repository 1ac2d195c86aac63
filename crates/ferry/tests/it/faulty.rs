//! Filesystem faults and concurrent changes, with both backends; each is a row of docs/faults.md.
//!
//! A copy under a fault must end in time with the right exit code, report each path that was not copied, and
//! copy everything else.

mod devices;
mod limits;
mod meanwhile;
pub(crate) mod served;
mod space;
pub(crate) mod table;
pub(crate) mod verified;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use rustix::io::Errno;

use self::served::{Call, Files, Mischief, Served};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, skip, text};

pub(crate) const BACKENDS: [&str; 2] = ["--backend=uring", "--backend=posix"];
const LIMIT_SECONDS: &str = "60";

fn copy(place: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", LIMIT_SECONDS, FERRY, "cp"]).args(arguments).current_dir(place);
    let output = command.output().unwrap();
    assert_ne!(output.status.code(), Some(137), "it hangs: {}", text(&output.stderr));
    output
}

pub(crate) fn told(output: &Output) -> (Option<i32>, &str) {
    (output.status.code(), text(&output.stderr))
}

pub(crate) fn shell(folder: &Path, script: &str) -> Output {
    Command::new("sh").args(["-ec", script]).current_dir(folder).output().unwrap()
}

/// The usual source: small files, a large one, and a directory with files.
const FILES: [(&str, usize); 6] = [
    ("a", 10),
    ("b", 5_000),
    ("c", 300_000),
    ("folder/d", 20),
    ("folder/e", 100_000),
    ("folder/inner/f", 4_000),
];

pub(crate) fn bytes_of(name: &str, size: usize) -> Vec<u8> {
    name.bytes().cycle().take(size).collect()
}

fn make_source(place: &Path) {
    std::fs::create_dir_all(place.join("source/folder/inner")).unwrap();
    for (name, size) in FILES {
        std::fs::write(place.join("source").join(name), bytes_of(name, size)).unwrap();
    }
}

/// Makes the usual source on the served filesystem.
fn serve_source(files: &mut Files) {
    files.folder("folder");
    files.folder("folder/inner");
    for (name, size) in FILES {
        files.file(name, &bytes_of(name, size));
    }
}

/// Expects exactly the usual files in the target, except those in `lost`.
#[track_caller]
fn assert_holds_all_but(target: &Path, lost: &[&str]) {
    let expected: BTreeMap<_, _> = FILES
        .iter()
        .filter(|(name, _)| !lost.iter().any(|lost| Path::new(name).starts_with(lost)))
        .map(|&(name, size)| (target.join(name), bytes_of(name, size)))
        .collect();
    let mut found = BTreeMap::new();
    let mut folders = vec![target.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    assert!(found.keys().eq(expected.keys()), "{:?} are there", found.keys());
    assert!(found == expected, "some bytes are wrong");
}

#[track_caller]
fn assert_is_empty(folder: &Path) {
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "{} is not empty", folder.display());
}

/// Makes one kind of call on one name fail.
fn failing(call: Call, name: &'static str, errno: Errno) -> Mischief {
    Box::new(move |_, asked, on| if asked == call && on == name { Err(errno) } else { Ok(()) })
}

/// Runs a test with each backend on a filesystem served at `served`.
fn with_served(
    filesystem: &Filesystem,
    fill: impl Fn(&mut Files),
    mischief: impl Fn() -> Mischief,
    test: impl Fn(&Path, &Served, &str),
) {
    for (number, backend) in BACKENDS.iter().enumerate() {
        let place = filesystem.path().join(number.to_string());
        std::fs::create_dir(&place).unwrap();
        match Served::at(&place.join("served"), &fill, mischief()) {
            Ok(served) => test(&place, &served, backend),
            Err(why) => drop(skip::<()>(&why)),
        }
    }
}
