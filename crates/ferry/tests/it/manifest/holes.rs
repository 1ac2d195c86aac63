//! Files with holes: their hashes take no reading of the target.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use ferry_copy::Algorithm;

use super::{assert_right, succeed};
use crate::faulty::BACKENDS;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, skip, text};

const MIB: u64 = 1 << 20;

/// Makes a file from ranges of data, each an offset and a size.
fn make(path: &Path, ranges: &[(u64, usize)], size: u64) {
    let file = File::create(path).unwrap();
    for &(at, count) in ranges {
        let mut bytes = vec![0; count];
        ferry_tree::fill::fill(at + 1, 0, &mut bytes);
        file.write_all_at(&bytes, at).unwrap();
    }
    file.set_len(size).unwrap();
}

/// Returns the reads of files, with their paths; `None` if they can't be traced.
fn reads(folder: &Path, line: &str) -> Option<String> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-o", "log", "-e", "trace=read,readv,pread64,preadv,preadv2", FERRY]);
    let Ok(output) = command.args(line.split_whitespace()).current_dir(folder).output() else {
        return skip("strace is not here");
    };
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    if log.is_empty() {
        return skip(&format!("strace saw nothing: {}", text(&output.stderr)));
    }
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    Some(log)
}

/// The bytes may have left the page cache by then, if there are more of them than memory.
#[test]
fn targets_with_many_holes_are_not_read_back() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("source")).unwrap();
    let ranges: Vec<_> = (0..100).map(|index| (index * 65_536, 4_096)).collect();
    make(&folder.join("source/holey"), &ranges, 8 * MIB);
    for sparse in ["auto", "always"] {
        let line =
            format!("cp -rT --backend=posix --reflink=never --sparse={sparse} --manifest m source target");
        let Some(log) = reads(folder, &line) else { return };
        let count = |tree: &str| {
            let path = format!("<{}/{tree}/", folder.display());
            log.lines().filter(|line| line.contains(&path)).count()
        };
        assert!(count("source") >= 10, "{line}: {log}");
        assert_eq!(count("target"), 0, "{line}: {log}");
        assert_right(folder, "m", Algorithm::Blake3, &line);
        fs::remove_dir_all(folder.join("target")).unwrap();
    }
}

/// Name of a file, offsets and sizes of its data, and its size.
type Described = (&'static str, &'static [(u64, usize)], u64);

/// Small ranges are hashed while they pass, large ones afterwards, and holes in their order between both.
fn check(filesystem: &Filesystem) {
    let folder = filesystem.path();
    fs::create_dir(folder.join("source")).unwrap();
    let files: [Described; 7] = [
        ("hole", &[], 3 * MIB),
        ("small", &[(MIB, 4_096), (2 * MIB, 8_192)], 2 * MIB + 8_192),
        ("small last", &[(0, 1 << 20), (2 * MIB, 20 << 20), (40 * MIB, 4_096)], 41 * MIB),
        ("large last", &[(0, 4_096), (MIB, 8_192), (9 * MIB, 20 << 20)], 29 * MIB),
        ("large only", &[(5 * MIB, 2 << 20), (8 * MIB, 17 << 20), (30 * MIB, 300_000)], 40 * MIB),
        ("in turn", &[(MIB, 1 << 20), (3 * MIB, 100), (4 * MIB, 1 << 20), (6 * MIB, 100)], 7 * MIB + 1),
        ("no units", &[(10, 100), (70_001, 5), (3 * MIB + 7, 1_000_001)], 5 * MIB + 3),
    ];
    for (name, ranges, size) in files {
        make(&folder.join("source").join(name), ranges, size);
    }
    for command in ["cp -rT", "cp -rT --reflink=never", "cp -rT --sparse=always", "cp -rT --verify", "sync"] {
        for backend in BACKENDS {
            let line = format!("{command} {backend} --manifest m.sha256 --hash sha256 source target");
            succeed(folder, &line);
            assert_right(folder, "m.sha256", Algorithm::Sha256, &line);
            fs::remove_dir_all(folder.join("target")).unwrap();
        }
    }
}

#[test]
fn holes_are_hashed_as_zeros_on_tmpfs() {
    check(&Filesystem::memory());
}

#[test]
fn holes_are_hashed_as_zeros_on_ext4() {
    within("manifest::holes::holes_are_hashed_as_zeros_on_ext4", "ext4", check);
}
