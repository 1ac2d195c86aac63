//! Entries that fail on devices that work otherwise, and targets without room: none of them counts as a device that fails. The
//! run goes on, and reports each entry.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rustix::io::Errno;

use super::said;
use crate::faulty::served::{Call, Files, Mischief, Served};
use crate::faulty::{bytes_of, shell};
use crate::random::filesystem::within;
use crate::scene::{FERRY, skip};

const FILES: usize = 200;
/// Files that fail: the first ones of each folder, more than the eight that are tried in vain at most.
const BAD: usize = 60;
const SIZE: usize = 8_192;
/// Folders, of which some can't be listed.
const FOLDERS: usize = 14;
const BAD_FOLDERS: usize = 10;
const COMMANDS: [&[&str]; 4] = [
    &["cp", "-rT", "--backend=uring"],
    &["cp", "-rT", "--backend=posix"],
    &["sync", "--backend=uring"],
    &["sync", "--backend=posix"],
];

fn name(index: usize) -> String {
    format!("{}{index:03}", if index < BAD { "bad" } else { "good" })
}

fn is_bad(name: &str) -> bool {
    name.starts_with("bad")
}

/// Runs a command that has to end by itself.
fn ferry(place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60", FERRY]).args(words).current_dir(place).env("LC_ALL", "C.UTF-8");
    command.output().unwrap()
}

/// Makes calls of one kind fail on all bad names.
fn failing(call: Call) -> Mischief {
    Box::new(move |_, asked, on| if asked == call && is_bad(on) { Err(Errno::IO) } else { Ok(()) })
}

/// Panics unless each path was reported once by a line with `message`, and nothing but them.
#[track_caller]
fn assert_reported<'a>(output: &Output, message: &str, paths: impl IntoIterator<Item = &'a String>) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let mut count = 0;
    for path in paths {
        assert_eq!(said.matches(&format!("{path}': {message}")).count(), 1, "'{path}' once: {said}");
        count += 1;
    }
    assert_eq!(said.matches(message).count(), count, "{said}");
    assert!(!said.contains("device") && !said.contains("stopped early"), "{said}");
}

/// Performs a test with a filesystem that is filled and fails as given.
fn with_served(test: &str, (fill, call): (fn(&mut Files), Call), check: impl Fn(&Path, &[&str])) {
    within(test, "tmpfs", |memory| match Served::at(&memory.path().join("served"), fill, failing(call)) {
        Ok(_served) => COMMANDS.iter().for_each(|words| check(memory.path(), words)),
        Err(why) => drop(skip::<()>(&why)),
    });
}

fn fill_files(files: &mut Files) {
    (0..FILES).map(name).for_each(|name| files.file(&name, &bytes_of(&name, SIZE)));
}

/// Fills folders of which the first ones can't be listed.
fn fill_folders(files: &mut Files) {
    for index in 0..FOLDERS {
        let folder = format!("{}-folder-{index:02}", if index < BAD_FOLDERS { "bad" } else { "good" });
        files.folder(&folder);
        files.file(&format!("{folder}/file"), &bytes_of(&folder, SIZE));
    }
}

/// Returns the names of a folder's entries.
fn entries(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Panics unless a folder has exactly the good files.
#[track_caller]
fn assert_has_good_files(target: &Path, output: &Output) {
    let good: BTreeSet<String> = (BAD..FILES).map(name).collect();
    assert_eq!(entries(target), good, "{}", said(output));
    for name in good {
        assert!(fs::read(target.join(&name)).unwrap() == bytes_of(&name, SIZE), "{name}");
    }
}

/// Regression: the run was stopped, because eight files in a row could not be read.
#[test]
fn files_of_a_part_of_a_source_that_can_not_be_read() {
    let test = "sync::bad_files::files_of_a_part_of_a_source_that_can_not_be_read";
    with_served(test, (fill_files, Call::Read), |place, words| {
        let output = ferry(place, &[words, &["served", "target"]].concat());
        let bad: Vec<String> = (0..BAD).map(|index| format!("served/{}", name(index))).collect();
        assert_reported(&output, "Input/output error", &bad);
        assert_has_good_files(&place.join("target"), &output);
        fs::remove_dir_all(place.join("target")).unwrap();
    });
}

/// Regression: the run was stopped, because eight folders could not be listed.
#[test]
fn folders_of_a_source_that_can_not_be_listed() {
    let test = "sync::bad_files::folders_of_a_source_that_can_not_be_listed";
    with_served(test, (fill_folders, Call::List), |place, words| {
        let output = ferry(place, &[words, &["served", "target"]].concat());
        let bad: Vec<String> =
            (0..BAD_FOLDERS).map(|index| format!("served/bad-folder-{index:02}")).collect();
        assert_reported(&output, "Input/output error", &bad);
        for index in BAD_FOLDERS..FOLDERS {
            assert!(place.join(format!("target/good-folder-{index:02}/file")).is_file(), "{}", said(&output));
        }
        fs::remove_dir_all(place.join("target")).unwrap();
    });
}

#[test]
fn files_of_a_target_that_can_not_be_written() {
    let test = "sync::bad_files::files_of_a_target_that_can_not_be_written";
    with_served(test, (|_| {}, Call::Write), |place, words| {
        let source = place.join("source");
        fs::create_dir_all(&source).unwrap();
        (0..FILES).map(name).for_each(|name| fs::write(source.join(&name), bytes_of(&name, SIZE)).unwrap());
        let output = ferry(place, &[words, &["source", "served/target"]].concat());
        let bad: Vec<String> = (0..BAD).map(|index| format!("served/target/{}", name(index))).collect();
        assert_reported(&output, "Input/output error", &bad);
        assert_has_good_files(&place.join("served/target"), &output);
        fs::remove_dir_all(place.join("served/target")).unwrap();
    });
}

/// Regression: the run was stopped. Of the files that were tried, three could not be read, and the others were too small to tell
/// anything of the device.
#[test]
fn a_few_files_that_can_not_be_read_beside_many_small_ones() {
    const LARGE: usize = 3;
    const SMALL: usize = 300;
    let test = "sync::bad_files::a_few_files_that_can_not_be_read_beside_many_small_ones";
    let fill = |files: &mut Files| {
        (0..LARGE).map(name).for_each(|name| files.file(&name, &bytes_of(&name, SIZE)));
        (0..SMALL).for_each(|index| files.file(&format!("small{index}"), b"small"));
    };
    with_served(test, (fill, Call::Read), |place, words| {
        let output = ferry(place, &[words, &["served", "target"]].concat());
        let bad: Vec<String> = (0..LARGE).map(|index| format!("served/{}", name(index))).collect();
        assert_reported(&output, "Input/output error", &bad);
        assert_eq!(entries(&place.join("target")).len(), SMALL, "{}", said(&output));
        fs::remove_dir_all(place.join("target")).unwrap();
    });
}

/// Makes 400 small files on ext4, and cuts the device so that the inodes of some can't be read.
const BAD_INODES: &str = "truncate -s 64M image
    mkfs.ext4 -q -I 256 -b 1024 -N 512 -O ^flex_bg,^has_journal -E lazy_itable_init=0 image
    mkdir disk; mount -o loop image disk; for at in $(seq 400); do printf '%0100d' $at >disk/$at; done
    umount disk; mount -o loop,ro image disk; truncate -s 48M image";

/// Regression: the run was stopped, because eight small files could not be opened.
#[test]
fn small_files_whose_inodes_can_not_be_read() {
    within("sync::bad_files::small_files_whose_inodes_can_not_be_read", "tmpfs", |memory| {
        let place = memory.path();
        let made = shell(place, BAD_INODES);
        if !made.status.success() {
            skip::<()>(&String::from_utf8_lossy(&made.stderr));
            return;
        }
        let names: Vec<String> = (1..=400).map(|at| at.to_string()).collect();
        for words in COMMANDS {
            let output = ferry(place, &[words, &["disk", "target"]].concat());
            let is_bad = |name: &&String| fs::metadata(place.join("disk").join(name)).is_err();
            let bad: Vec<String> = names.iter().filter(is_bad).map(|name| format!("disk/{name}")).collect();
            assert!(bad.len() > 8 && bad.len() < 200, "{} can't be read", bad.len());
            assert_reported(&output, "Input/output error", &bad);
            let mut copied = entries(&place.join("target"));
            copied.remove("lost+found");
            assert_eq!(copied.len(), names.len() - bad.len());
            fs::remove_dir_all(place.join("target")).unwrap();
        }
        assert!(shell(place, "umount disk").status.success());
    });
}

/// Makes a filesystem on a device, and cuts the device to `megabytes`: what is behind can't be read.
fn cut_device(test: &str, kind: &str, megabytes: u64) {
    within(test, "tmpfs", |memory| {
        let place = memory.path();
        let script = format!(
            "truncate -s 400M image; mkfs.{kind} image >log 2>&1; mkdir disk; mount -o loop image disk
            mkdir disk/source
            for at in $(seq 120); do
                mkdir -p disk/source/$((at % 7)); head -c 1500000 /dev/urandom >disk/source/$((at % 7))/$at
            done
            umount disk; mount -o loop,ro image disk; truncate -s {megabytes}M image"
        );
        let made = shell(place, &script);
        if !made.status.success() {
            skip::<()>(&String::from_utf8_lossy(&made.stderr));
            return;
        }
        let output = ferry(place, &["sync", "disk/source", "target"]);
        let (mut bad, mut good) = (Vec::new(), 0);
        for at in 1..=120 {
            let path = format!("{}/{at}", at % 7);
            match fs::read(place.join("disk/source").join(&path)) {
                Ok(bytes) => {
                    assert!(fs::read(place.join("target").join(&path)).ok() == Some(bytes), "{path}");
                    good += 1;
                }
                Err(_) => bad.push(format!("disk/source/{path}")),
            }
        }
        assert!(bad.len() > 5 && good > 5, "{} can't be read, {good} can", bad.len());
        assert_reported(&output, "Input/output error", &bad);
        assert!(shell(place, "umount disk").status.success());
        eprintln!("SEEDS: bad={} good={good}", bad.len());
    });
}

#[test]
fn a_device_with_a_bad_part_on_ext4() {
    let kind = "ext4 -q -I 256 -O ^has_journal -E lazy_itable_init=0";
    cut_device("sync::bad_files::a_device_with_a_bad_part_on_ext4", kind, 300);
}

#[test]
fn a_device_with_a_bad_part_on_xfs() {
    cut_device("sync::bad_files::a_device_with_a_bad_part_on_xfs", "xfs -q", 330);
}

#[test]
fn a_device_with_a_bad_part_on_btrfs() {
    cut_device("sync::bad_files::a_device_with_a_bad_part_on_btrfs", "btrfs -q -d single -m single", 150);
}

/// Runs a command on a target without room, which has no place for the file that tries the device either, while a call on a
/// file of the source fails. Nothing else is to be copied.
fn without_room(test: &str, (kind, make, end): (&str, &str, &str), (words, call): (&[&str], Call)) {
    within(test, kind, |filesystem| {
        let place = filesystem.path();
        let fill = |files: &mut Files| {
            files.file("bad", &bytes_of("bad", SIZE));
            files.file("good", &bytes_of("good", SIZE));
        };
        let served = Served::at(&place.join("served"), fill, failing(call));
        let made = shell(place, make);
        let (Ok(_served), true) = (served, made.status.success()) else {
            skip::<()>(&format!("{kind}: {}", String::from_utf8_lossy(&made.stderr)));
            return;
        };
        for backend in ["--backend=uring", "--backend=posix"] {
            let output = ferry(place, &[words, &[backend, "served", "small/target"]].concat());
            assert_reported(&output, "Input/output error", [&"served/bad".to_owned()]);
        }
        assert!(shell(place, end).status.success());
    });
}

const SYNC: &[&str] = &["sync", "--exclude=good"];

#[test]
fn a_full_target_on_ext4_while_a_source_fails() {
    without_room(
        "sync::bad_files::a_full_target_on_ext4_while_a_source_fails",
        (
            "tmpfs",
            "truncate -s 20M image; mkfs.ext4 -q -m 0 image; mkdir small; mount -o loop image small
            mkdir small/target; dd if=/dev/zero of=small/large bs=4k status=none 2>log || true; sync -f small",
            "umount small",
        ),
        (SYNC, Call::Read),
    );
}

#[test]
fn a_full_target_on_tmpfs_while_a_source_fails() {
    without_room(
        "sync::bad_files::a_full_target_on_tmpfs_while_a_source_fails",
        (
            "tmpfs",
            "mkdir small; mount -t tmpfs -o size=1m none small
            mkdir small/target; dd if=/dev/zero of=small/large bs=4k status=none 2>log || true",
            "umount small",
        ),
        (SYNC, Call::Read),
    );
}

/// A quota of btrfs also counts names and attributes, so the command sets none.
#[test]
fn a_target_without_quota_while_a_source_fails() {
    without_room(
        "sync::bad_files::a_target_without_quota_while_a_source_fails",
        (
            "btrfs",
            "btrfs subvolume create small >log; btrfs quota enable .; btrfs qgroup limit 1M small
            mkdir small/target; touch small/target/good
            dd if=/dev/zero of=small/large bs=4k status=none 2>log || true; sync -f small",
            "rm small/large",
        ),
        (&["cp", "-rnT"], Call::Lookup),
    );
}
