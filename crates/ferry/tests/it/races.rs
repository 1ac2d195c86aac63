//! Names that become links while they are copied: nothing outside the trees is read or written.
//!
//! A thread exchanges a name with a link that leads out, as fast as it can, while copies are made. They may fail, and
//! may hold the link; they must not hold what it leads to, nor change it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::random::filesystem::Filesystem;
use crate::scene::FERRY;

/// How long each race is run with each backend.
const TIME: Duration = Duration::from_millis(700);
const SECRET: &str = "what lies outside";

/// Where a race is run: `source`, `target`, and `outside`, which holds `x` and nothing else.
fn arena() -> Filesystem {
    let memory = Filesystem::memory();
    for folder in ["source/d", "outside"] {
        fs::create_dir_all(memory.path().join(folder)).unwrap();
    }
    let secret = memory.path().join("outside/x");
    fs::write(&secret, SECRET).unwrap();
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o604)).unwrap();
    memory
}

/// Copies `source` to `target` again and again while two names of `place` are exchanged again and again. Before
/// each copy `prepare` is called, and after it what is outside must be as it was.
fn race(place: &Path, names: [&str; 2], prepare: impl Fn(), check: impl Fn()) {
    let outside = || {
        let found = fs::metadata(place.join("outside/x")).unwrap();
        let count = fs::read_dir(place.join("outside")).unwrap().count();
        let facts = (found.mode(), found.uid(), found.mtime(), found.mtime_nsec(), found.nlink());
        (fs::read_to_string(place.join("outside/x")).unwrap(), facts, count)
    };
    let before = outside();
    let (ended, exchanged) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let [one, other] = names.map(|name| place.join(name));
                // One may not be there yet.
                let done = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).is_ok();
                exchanged.fetch_add(u64::from(done), Ordering::Relaxed);
            }
        });
        let raced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for backend in ["uring", "posix"] {
                let start = Instant::now();
                while start.elapsed() < TIME {
                    prepare();
                    let mut command = Command::new(FERRY);
                    command.args(["cp", "-a", "-T", "--backend", backend, "source", "target"]);
                    let output = command.current_dir(place).output().unwrap();
                    assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
                    assert_eq!(outside(), before, "something outside was changed");
                    check();
                }
            }
        }));
        ended.store(true, Ordering::Relaxed);
        raced.unwrap();
    });
    let exchanged = exchanged.into_inner();
    assert!(exchanged > 20, "there was no race: {exchanged} exchanges");
}

/// Removes what has a name, whatever it has become meanwhile.
pub(crate) fn clear(path: &Path) {
    while let Ok(found) = path.symlink_metadata() {
        // What was exchanged since is taken the next time.
        if found.is_dir() {
            fs::remove_dir_all(path).ok()
        } else {
            fs::remove_file(path).ok()
        };
    }
}

/// Panics if a file of the target holds what lies outside. The names themselves may be links.
fn assert_nothing_leaked(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            assert_nothing_leaked(&entry.path());
        } else if kind.is_file() {
            let text = fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains(SECRET), "{} was read through a link", entry.path().display());
        }
    }
}

#[test]
fn a_source_that_becomes_a_link_is_not_followed() {
    let memory = arena();
    let place = memory.path();
    for index in 0..40 {
        fs::write(place.join(format!("source/{index}")), "text").unwrap();
    }
    fs::write(place.join("source/x"), "text").unwrap();
    symlink("../outside/x", place.join("leaf")).unwrap();
    race(
        place,
        ["source/x", "leaf"],
        || clear(&place.join("target")),
        || assert_nothing_leaked(&place.join("target")),
    );
}

#[test]
fn a_folder_of_the_source_that_becomes_a_link_is_not_entered() {
    let memory = arena();
    let place = memory.path();
    for index in 0..40 {
        fs::write(place.join(format!("source/d/{index}")), "text").unwrap();
    }
    fs::write(place.join("source/d/x"), "text").unwrap();
    symlink("../outside", place.join("folder")).unwrap();
    race(
        place,
        ["source/d", "folder"],
        || clear(&place.join("target")),
        || assert_nothing_leaked(&place.join("target")),
    );
}

#[test]
fn a_target_that_becomes_a_link_is_not_written_through() {
    let memory = arena();
    let place = memory.path();
    for index in 0..20 {
        fs::write(place.join(format!("source/{index}")), "text").unwrap();
    }
    fs::write(place.join("source/x"), "text").unwrap();
    fs::set_permissions(place.join("source/x"), PermissionsExt::from_mode(0o4755)).unwrap();
    symlink("../outside/x", place.join("leaf")).unwrap();
    let prepare = || {
        // The exchange has moved the copy to the link's place.
        ["target", "leaf"].iter().for_each(|name| clear(&place.join(name)));
        symlink("../outside/x", place.join("leaf")).unwrap();
    };
    race(place, ["target/x", "leaf"], prepare, || {});
}

#[test]
fn a_folder_of_the_target_that_becomes_a_link_is_not_filled() {
    let memory = arena();
    let place = memory.path();
    for index in 0..40 {
        fs::write(place.join(format!("source/d/{index}")), "text").unwrap();
    }
    fs::write(place.join("source/d/x"), "text").unwrap();
    symlink("../outside", place.join("folder")).unwrap();
    let prepare = || {
        ["target", "folder"].iter().for_each(|name| clear(&place.join(name)));
        symlink("../outside", place.join("folder")).unwrap();
    };
    race(place, ["target/d", "folder"], prepare, || {});
}
