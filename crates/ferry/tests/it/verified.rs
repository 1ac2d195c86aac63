//! `--verify`: copies are read back from their devices, whatever their files are like.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::faulty::verified::{SIZES, make_sources};
use crate::faulty::{BACKENDS, bytes_of, shell, told};
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, ferry, text};

/// Runs a command, and returns with its output the bytes that it had read from devices (proc_pid_io(5)).
fn reading(folder: &Path, command: &str) -> (Output, u64) {
    let output = shell(folder, &format!("{command}; cat /proc/$$/io >&2"));
    let said = text(&output.stderr);
    let read = said.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap();
    let bytes = read.parse().unwrap();
    (output, bytes)
}

/// Copies with holes, hard links and odd sizes are read from the device, and equal.
fn check(filesystem: &Filesystem) {
    let folder = filesystem.path();
    make_sources(folder);
    let holey = File::create(folder.join("source/holey")).unwrap();
    holey.write_all_at(&bytes_of("holey", 1 << 20), 5 << 20).unwrap();
    holey.set_len(9 << 20).unwrap();
    fs::hard_link(folder.join("source/5000"), folder.join("source/linked")).unwrap();
    fs::write(folder.join("source/empty"), "").unwrap();
    let stored: u64 = SIZES.iter().map(|&size| size as u64).sum::<u64>() + (1 << 20);
    for command in ["cp -aT", "cp -aT --reflink=never", "cp -aT --direct --fsync", "sync", "sync --inplace"] {
        for backend in BACKENDS {
            let line = format!("'{FERRY}' {command} {backend} --verify source target");
            let (output, read) = reading(folder, &line);
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            let least = if filesystem.kind() == "tmpfs" { 0 } else { stored };
            assert!(read >= least, "{line}: {read} bytes were read");
            let same = ferry(folder, &["verify", "--ignore=times,holes", "source", "target"]);
            assert!(same.status.success(), "{line}: {}", text(&same.stdout));
            let blocks =
                std::os::unix::fs::MetadataExt::blocks(&fs::metadata(folder.join("target/holey")).unwrap());
            assert!(blocks * 512 < 3 << 20, "{line}: the holes are not kept");
            ferry_tree::remove::remove(&folder.join("target")).unwrap();
        }
    }
}

#[test]
fn copies_are_read_back_from_ext4() {
    within("verified::copies_are_read_back_from_ext4", "ext4", check);
}

#[test]
fn copies_are_read_back_from_xfs() {
    within("verified::copies_are_read_back_from_xfs", "xfs", check);
}

#[test]
fn copies_are_read_back_from_btrfs() {
    within("verified::copies_are_read_back_from_btrfs", "btrfs", check);
}

#[test]
fn copies_in_memory_are_compared() {
    within("verified::copies_in_memory_are_compared", "tmpfs", check);
}

#[test]
fn what_can_not_be_verified_is_refused() {
    let memory = Filesystem::memory();
    let place = memory.path();
    make_sources(place);
    for option in ["--link", "--symbolic-link", "--attributes-only"] {
        let output = ferry(place, &["cp", "-r", "--verify", option, "source", "target"]);
        let line = format!("ferry cp: --verify compares copies, and {option} makes none\n");
        assert!(text(&output.stderr).starts_with(&line), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(1));
    }
    let output = ferry(place, &["sync", "--verify", "--plan=plan", "source", "target"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let script = format!("mkfifo pipe; echo text >pipe & exec '{FERRY}' cp --verify pipe target");
    let output = Command::new("sh").args(["-c", &script]).current_dir(place).output().unwrap();
    let line = "ferry cp: cannot verify a copy of 'pipe': it can be read only once\n";
    assert_eq!(told(&output), (Some(1), line));
    assert!(!place.join("target").exists());
}
