//! `--verify`: copies are read back from their device; one that differs is made once more, and is not kept if it still
//! differs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use super::served::{Call, Mischief};
use super::{bytes_of, copy, shell, told, with_served};
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, ferry, text};

/// Sizes of one block, and of several.
const SIZES: [usize; 4] = [10, 5_000, 300_000, (3 << 20) + 7];

/// Changes what is stored of unfinished files, when they are read, up to `times` in each file.
fn spoiling(times: usize) -> Mischief {
    let mut spoiled = std::collections::BTreeMap::<String, usize>::new();
    Box::new(move |files, call, name| {
        let is_read = call == Call::Read && name.starts_with(".ferry-");
        if let Some(node) = files.at(name).filter(|_| is_read) {
            // A file is read in several requests: all units change at once, when the first is read.
            let is_whole = node.bytes.iter().step_by(4096).all(|byte| byte & 0x80 == 0);
            let so_far = spoiled.entry(name.to_owned()).or_default();
            if is_whole && *so_far < times {
                *so_far += 1;
                node.bytes.iter_mut().step_by(4096).for_each(|byte| *byte |= 0x80);
            }
        }
        Ok(())
    })
}

fn make_sources(place: &Path) {
    fs::create_dir(place.join("source")).unwrap();
    for size in SIZES {
        fs::write(place.join(format!("source/{size}")), bytes_of("abc", size)).unwrap();
    }
}

#[test]
fn a_copy_that_was_stored_wrongly_is_made_once_more() {
    within("faulty::verified::a_copy_that_was_stored_wrongly_is_made_once_more", "tmpfs", |memory| {
        with_served(
            memory,
            |_| (),
            || spoiling(1),
            |place, _, backend| {
                make_sources(place);
                for command in ["cp", "sync"] {
                    let options: &[&str] = if command == "cp" { &["-rT"] } else { &[] };
                    let all = [&[command, backend, "--verify"], options, &["source", "served"]].concat();
                    let output = ferry(place, &all);
                    assert_eq!(told(&output).0, Some(0), "{command}: {}", text(&output.stderr));
                    for size in SIZES {
                        let path = place.join(format!("served/{size}"));
                        assert!(fs::read(&path).unwrap() == bytes_of("abc", size), "{command}: {size}");
                        fs::remove_file(&path).unwrap();
                    }
                }
            },
        );
    });
}

#[test]
fn a_copy_that_stays_wrong_is_not_kept() {
    within("faulty::verified::a_copy_that_stays_wrong_is_not_kept", "tmpfs", |memory| {
        let fill = |files: &mut super::served::Files| files.file("5000", b"older");
        with_served(
            memory,
            fill,
            || spoiling(2),
            |place, _, backend| {
                make_sources(place);
                let output = copy(place, &["-rT", backend, "--verify", "source", "served"]);
                assert_eq!(output.status.code(), Some(1));
                for size in SIZES {
                    let line = format!(
                        "ferry cp: 'served/{size}', read back from its device, differs from 'source/{size}', also after a \
                     second copy\n"
                    );
                    assert!(text(&output.stderr).contains(&line), "{}", text(&output.stderr));
                }
                let left: Vec<_> =
                    fs::read_dir(place.join("served")).unwrap().map(|it| it.unwrap().file_name()).collect();
                assert_eq!(left, ["5000"]);
                assert_eq!(fs::read(place.join("served/5000")).unwrap(), b"older");
            },
        );
    });
}

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
        for backend in super::BACKENDS {
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
    within("faulty::verified::copies_are_read_back_from_ext4", "ext4", check);
}

#[test]
fn copies_are_read_back_from_xfs() {
    within("faulty::verified::copies_are_read_back_from_xfs", "xfs", check);
}

#[test]
fn copies_are_read_back_from_btrfs() {
    within("faulty::verified::copies_are_read_back_from_btrfs", "btrfs", check);
}

#[test]
fn copies_in_memory_are_compared() {
    within("faulty::verified::copies_in_memory_are_compared", "tmpfs", check);
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
