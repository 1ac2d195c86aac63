//! Special files and symbolic links of the target that another user exchanges for a hard link to a file of theirs: that
//! file keeps its owner, its mode and its times.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::races::clear;
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, skip, text};

const NAMES: usize = 200;
/// Exchanges made during copies, with each backend.
const EXCHANGES: usize = 5_000;
const TIME: Duration = Duration::from_secs(120);
const NOBODY: u32 = 65_534;

/// Gives the names of finished and unfinished copies to `theirs` until `ended`; returns the number of names given.
fn exchange(folder: &Path, theirs: &Path, ended: &AtomicBool) -> usize {
    let spare = folder.with_extension("spare");
    let names: Vec<PathBuf> = (0..NAMES).map(|index| folder.join(index.to_string())).collect();
    let mut exchanged = 0;
    while !ended.load(Ordering::Relaxed) {
        for name in names.iter().filter(|name| name.symlink_metadata().is_ok_and(|found| !found.is_file())) {
            fs::hard_link(theirs, &spare).unwrap();
            fs::rename(&spare, name).unwrap();
            exchanged += 1;
        }
    }
    exchanged
}

/// Attributes of a file that a copy could set.
fn facts(path: &Path) -> impl PartialEq + std::fmt::Debug + use<> {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.gid(), found.mode(), found.atime(), found.mtime(), found.mtime_nsec())
}

/// Copies entries that `make` creates, while another user exchanges each copy.
fn copy_beside_exchanges(make: impl Fn(&Path)) {
    if !is_root() {
        skip::<()>("only root gives files away");
        return;
    }
    let place = Filesystem::memory();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("source")).unwrap();
    for index in 0..NAMES {
        make(&at(&format!("source/{index}")));
    }
    fs::write(at("theirs"), "a program of another user").unwrap();
    chown(at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(at("theirs"), PermissionsExt::from_mode(0o755)).unwrap();
    let before = facts(&at("theirs"));
    for backend in ["--backend=posix", "--backend=uring"] {
        let (start, mut exchanged, mut copies) = (Instant::now(), 0, 0);
        while exchanged < EXCHANGES {
            assert!(start.elapsed() < TIME, "{backend}: {exchanged} names exchanged in {copies} copies");
            clear(&at("target"));
            fs::create_dir(at("target")).unwrap();
            let ended = AtomicBool::new(false);
            let (output, count) = std::thread::scope(|scope| {
                let exchange = scope.spawn(|| exchange(&at("target"), &at("theirs"), &ended));
                let mut command = Command::new(FERRY);
                command.args(["cp", "-a", "-T", backend, "source", "target"]).current_dir(place.path());
                let output = command.stdin(Stdio::null()).output();
                ended.store(true, Ordering::Relaxed);
                (output.unwrap(), exchange.join().unwrap())
            });
            let said = text(&output.stderr);
            assert!(output.status.code().is_some_and(|code| code < 2), "{backend}: {said}");
            assert_eq!(facts(&at("theirs")), before, "{backend}: the other user's file is changed; {said}");
            exchanged += count;
            copies += 1;
        }
        println!("{backend}: {exchanged} names exchanged in {copies} copies, {:?}", start.elapsed());
    }
}

#[test]
fn a_fifo_that_becomes_another_users_file_gives_it_no_attributes() {
    copy_beside_exchanges(|path| {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o4755)).unwrap();
    });
}

#[test]
fn a_symbolic_link_that_becomes_another_users_file_gives_it_no_attributes() {
    copy_beside_exchanges(|path| symlink("nowhere", path).unwrap());
}
