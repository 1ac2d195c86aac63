//! Every experiment with a requirement missing: a writable directory, space, root, io_uring, a peer. Each
//! prints one line, exits as documented, and leaves only its record.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ferry_lab::record::Record;
use ferry_lab::record::read::read;
use ferry_lab::search_path::find_program;

use crate::measured::{left_in, unwrapped};
use crate::no_uring::FILTER;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, is_root, place_program, skip, text};

/// Each experiment in its smallest form.
const ALL: &[(&str, &[&str])] = &[
    ("tree", &["small", "tree", "--depth=1"]),
    ("copy", &["--trees=small", "--fewer-levels=3", "--dd-size=1M"]),
    ("limits", &["--trees=small,huge:1", "--fewer-levels=3"]),
    ("strategies", &["--size=1M", "--many-count=3"]),
    ("write", &["--size=1M", "--download-size=1M"]),
    ("ring", &["--file-size=1M", "--time=20"]),
    ("disk", &["--size=1M", "--milliseconds=20"]),
    ("cache", &["--file-size=1M", "--cache-sizes=256K", "--requests=100"]),
    ("syscalls", &["--files=2", "--block-sizes=64K"]),
    ("handovers", &["--requests=2"]),
    ("when", &["--size=1M", "--files=5"]),
    ("evict", &["--resident=4M", "--memory=40M", "--size=48M"]),
];

/// Expected end of an experiment.
#[derive(Clone, Copy)]
enum Ends {
    /// Exit code and words of its only line; nothing was written.
    Refused(i32, &'static [&'static str]),
    /// Measured as far as possible, with these words in the result.
    Measured(&'static [&'static str]),
}
use Ends::{Measured, Refused};

/// An empty directory that every user may write to.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    place
}

/// Builds `lab NAME --quick` with the options of [`ALL`], prefixed with another program.
fn order(name: &str, before: &[&str], folder: &Path) -> Command {
    let (_, options) = ALL.iter().find(|(known, _)| *known == name).unwrap();
    let words = [before, &["lab", name, "--quick", "--seed=7"], options].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder);
    command
}

/// Expects this end, and at most a tree or a record in `folder`.
#[track_caller]
fn ended(name: &str, output: &Output, folder: &Path, ends: Ends) {
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    let all = format!("{name}: {:?}\n{said}\n{printed}", output.status);
    match ends {
        Refused(code, words) => {
            assert_eq!(output.status.code(), Some(code), "{all}");
            assert!(said.starts_with("ferry lab: ") && said.lines().count() == 1, "{all}");
            assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {all}");
            assert_eq!(left_in(folder), Vec::<String>::new(), "{all}");
        }
        Measured(words) => {
            let made = if name == "tree" { ["tree"] } else { ["record"] };
            assert_eq!(output.status.code(), Some(if name == "tree" { 0 } else { 3 }), "{all}");
            let printed = unwrapped(printed);
            assert!(words.iter().all(|word| printed.contains(word)), "{words:?} in {all}");
            assert_eq!(left_in(folder), made, "{all}");
            if name != "tree" {
                is_whole(&read(&folder.join("record")).unwrap());
            }
        }
    }
}

/// Expects every cell to have all runs or a reason, and some to have runs.
#[track_caller]
fn is_whole(record: &Record) {
    assert!(record.complete, "{:?}", record.warnings);
    let has_runs = |cell: &&ferry_lab::record::Cell| cell.missing.is_none() && !cell.runs.is_empty();
    assert!(record.cells.iter().any(|cell| has_runs(&cell)), "{:?}", record.cells);
    let says_why = |cell: &ferry_lab::record::Cell| has_runs(&cell) || cell.missing.is_some();
    assert!(record.cells.iter().all(says_why), "{:?}", record.cells);
}

/// Option for a record, where supported.
fn json(name: &str) -> &'static [&'static str] {
    if name == "tree" { &[] } else { &["--json=record"] }
}

#[test]
fn no_experiment_is_forgotten() {
    let known = ferry_lab::experiments::ALL.iter().map(|experiment| experiment.spec().name);
    // It makes no files and needs only its commands: see lab_run.rs.
    let known: Vec<&str> = known.filter(|name| *name != "run").collect();
    assert_eq!(ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>(), known);
}

#[test]
fn a_folder_that_may_not_be_written_is_refused() {
    if !is_root() {
        skip::<()>("another user is needed");
        return;
    }
    let place = place();
    let binary = place.path().join("ferry");
    place_program(Path::new(FERRY), &binary);
    let folder = place.path().join("folder");
    fs::create_dir(&folder).unwrap();
    for (name, _) in ALL {
        let mut command = order(name, &[binary.to_str().unwrap()], &folder);
        let output = command.uid(65_534).gid(65_534).output().unwrap();
        ended(name, &output, &folder, Refused(1, &["cannot work in '.': Permission denied"]));
    }
}

#[test]
fn a_read_only_disk_is_refused() {
    within("lab_refusals::a_read_only_disk_is_refused", "ext4", |ext4| {
        fs::remove_dir(ext4.path().join("lost+found")).unwrap();
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(ext4.path()).status().unwrap();
        assert!(status.success());
        for (name, _) in ALL {
            let output = order(name, &[FERRY], ext4.path()).output().unwrap();
            ended(name, &output, ext4.path(), Refused(1, &["cannot work in '.': Read-only file system"]));
        }
    });
}

#[test]
fn without_root_all_that_needs_none_is_measured() {
    let place = place();
    let binary = place.path().join("ferry");
    place_program(Path::new(FERRY), &binary);
    let cold = &["cold caches need the right to write"];
    for (name, ends) in [
        ("tree", Measured(&["The tree"])),
        ("copy", Measured(cold)),
        ("limits", Measured(cold)),
        ("strategies", Measured(cold)),
        ("write", Measured(&[])),
        ("ring", Measured(&[])),
        ("disk", Measured(&[])),
        ("cache", Measured(&[])),
        ("syscalls", Measured(&[])),
        ("handovers", Refused(1, &["this experiment needs root"])),
        ("when", Measured(&["loop devices need root"])),
        ("evict", Refused(1, &["this experiment needs root"])),
    ] {
        let folder = place.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        let mut command = order(name, &[binary.to_str().unwrap()], &folder);
        if is_root() {
            command.uid(65_534).gid(65_534);
        }
        ended(name, &command.args(json(name)).output().unwrap(), &folder, ends);
    }
}

#[test]
fn where_nothing_can_be_measured_it_fails() {
    let place = place();
    let run = |mut command: Command| {
        let output = command.current_dir(place.path()).output().unwrap();
        assert_eq!(left_in(place.path()), Vec::<String>::new());
        (output.status.code(), text(&output.stderr).to_owned(), text(&output.stdout).to_owned())
    };
    let mut command = Command::new("perl");
    command.args(["-e", FILTER, FERRY, "lab", "write", "--sinks=ring", "--size=1M", "--download-size=1M"]);
    let (code, said, printed) = run(command);
    if code == Some(99) {
        return skip("no seccomp filter can be set").unwrap_or_default();
    }
    assert_eq!((code, printed.as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("\nferry lab: nothing was measured: io_uring"), "{said}");
    if !is_root() {
        let mut command = Command::new(FERRY);
        command.args(["lab", "when", "--cases=two-devices"]);
        assert!(
            run(command).1.ends_with("nothing was measured: dropping caches and loop devices need root\n")
        );
    }
}

#[test]
fn without_io_uring_all_that_needs_none_is_measured() {
    let why = &["io_uring"];
    for (name, ends) in [
        ("tree", Measured(&["The tree"])),
        ("copy", Measured(why)),
        ("limits", Measured(&["fastest limit program"])),
        ("strategies", Measured(why)),
        ("write", Measured(why)),
        ("ring", Refused(1, why)),
        ("disk", Measured(&["several requests in flight are made by a pool of threads"])),
        ("cache", Measured(&["several requests in flight are made by a pool of threads"])),
        ("syscalls", Refused(1, why)),
        ("handovers", Refused(1, why)),
        ("when", Measured(why)),
        ("evict", Measured(&[])),
    ] {
        let place = place();
        let output = order(name, &["perl", "-e", FILTER, FERRY], place.path()).args(json(name)).output();
        let Ok(output) = output else { return skip("there is no perl").unwrap_or_default() };
        if output.status.code() == Some(99) {
            return skip("no seccomp filter can be set").unwrap_or_default();
        }
        ended(name, &output, place.path(), ends);
    }
}

/// A directory with links to all programs but one.
fn programs_without(absent: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let used = ["sh", "cat", "rmdir", "mkdir", "sleep", "cp", "dd", "fio", "setsid"];
    let of_mounts = ["mkfs.ext4", "mount", "umount"];
    for name in used.into_iter().chain(of_mounts).filter(|name| *name != absent) {
        if let Some(path) = find_program(name.as_ref()) {
            symlink(path, place.path().join(name)).unwrap();
        }
    }
    place
}

#[test]
fn a_missing_peer_is_named() {
    let devices = if is_root() { &["'mkfs.ext4' is not found on the PATH"] } else { &["need root"] };
    for (name, absent, ends) in [
        ("copy", "cp", Refused(1, &["'cp' is not found on the PATH"])),
        ("copy", "dd", Measured(&["'dd' is not found on the PATH"])),
        ("limits", "cp", Refused(1, &["'cp' is not found on the PATH"])),
        ("strategies", "cp", Refused(1, &["'cp' is not found on the PATH"])),
        ("strategies", "dd", Measured(&["'dd' is not found on the PATH"])),
        ("write", "dd", Measured(&["'dd' is not found on the PATH"])),
        ("ring", "sh", Refused(1, &["'sh' is not found on the PATH"])),
        ("ring", "setsid", Refused(1, &["'setsid' is not found on the PATH"])),
        ("ring", "fio", Measured(&["'fio' is not found on the PATH"])),
        ("when", "mkfs.ext4", Measured(devices)),
        ("when", "sh", Measured(&["small-memory", ": No such file or directory"])),
    ] {
        let (place, programs) = (place(), programs_without(absent));
        let mut command = order(name, &[FERRY], place.path());
        let output = command.args(json(name)).env("PATH", programs.path()).output().unwrap();
        ended(&format!("{name} without {absent}"), &output, place.path(), ends);
    }
}

/// Uses up the remaining space; returns its size.
fn fill(file: &File, mut size: u64) -> u64 {
    let mut piece = 64 << 20;
    let before = size;
    while piece >= 4096 {
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), size, piece) {
            Ok(()) => size += piece,
            Err(_) => piece /= 2,
        }
    }
    size - before
}

#[test]
fn a_full_disk_is_refused() {
    within("lab_refusals::a_full_disk_is_refused", "ext4", |ext4| {
        fs::remove_dir(ext4.path().join("lost+found")).unwrap();
        let folder = ext4.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fill(&File::create(ext4.path().join("filler")).unwrap(), 0);
        for (name, _) in ALL {
            let output = order(name, &[FERRY], &folder).output().unwrap();
            ended(name, &output, &folder, Refused(1, &["the experiment needs ", " and '.' has ", " free"]));
        }
    });
}

/// Runs an experiment on a disk that fills up once the experiment has started.
fn on_a_disk_that_fills_up(name: &str, options: &[&str], ext4: &Filesystem) -> Output {
    let folder = ext4.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let record = ext4.beside().join(format!("{name}.json"));
    let mut command = Command::new(FERRY);
    command.args(["lab", name, "--quick", "--seed=7"]).args(options).arg("--json").arg(&record);
    command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let filler = ext4.path().join("filler");
    let file = File::create(&filler).unwrap();
    let mut size = 0;
    while child.try_wait().unwrap().is_none() {
        // Freed space is used up, too.
        if size > 0 || !left_in(&folder).is_empty() {
            size += fill(&file, size);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(left_in(&folder), Vec::<String>::new(), "{name}: {}", text(&output.stderr));
    fs::remove_dir(&folder).unwrap();
    fs::remove_file(&filler).unwrap();
    output
}

#[test]
fn a_disk_that_fills_up_meanwhile_is_told() {
    within("lab_refusals::a_disk_that_fills_up_meanwhile_is_told", "ext4", |ext4| {
        // Experiments that write for a while, or repeatedly.
        for (name, options) in [
            ("tree", &["large", "tree", "--files=1"][..]),
            ("copy", &["--trees=large", "--fewer-levels=1", "--states=warm", "--programs=none"]),
            ("limits", &["--trees=huge:96", "--states=warm", "--limits=limit-pipe-2,limit-mapped-2"]),
            ("strategies", &["--size=96M", "--files=one", "--states=warm"]),
            ("write", &["--size=256M", "--download-size=128M"]),
            ("ring", &["--file-size=256M"]),
            ("disk", &["--size=256M"]),
            ("cache", &["--file-size=256M"]),
            ("syscalls", &["--files=100"]),
            ("when", &["--size=64M", "--cases=buffered,small-memory,durable,latency"]),
        ] {
            // The filler may be too late on a busy machine.
            let is_told = (0..3).any(|_| {
                let output = on_a_disk_that_fills_up(name, options, ext4);
                let said = text(&output.stderr);
                assert!(matches!(output.status.code(), Some(1 | 3)), "{name}: {:?} {said}", output.status);
                let line = said.lines().find(|line| line.contains("No space left on device"));
                if output.status.code() == Some(1) {
                    let last = said.lines().last().unwrap_or_default();
                    assert!(last.starts_with("ferry lab: ") && line.is_some(), "{name}: {said}");
                }
                line.is_some()
            });
            assert!(is_told, "{name}");
        }
    });
}
