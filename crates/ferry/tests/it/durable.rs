//! `--fsync`, and the way that data is read and shared, by the system calls made.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, Stage, ferry, is_root, skip, text};

/// System calls of a run in order; `None` without strace.
fn calls(folder: &Path, traced: &str, arguments: &[&str]) -> Option<Vec<String>> {
    if Command::new("strace").arg("--version").output().is_err() {
        return skip("strace is not here");
    }
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&log).args(["-e", &format!("trace={traced}"), FERRY, "cp"]);
    let output = command.args(["--backend=posix"]).args(arguments).current_dir(folder).output().unwrap();
    if text(&output.stderr).contains("Operation not permitted") && !log.exists() {
        return skip("nothing may be traced");
    }
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let lines = std::fs::read_to_string(&log).unwrap();
    let calls = lines.lines().filter(|line| !line.contains("resumed>") && !line.contains("+++"));
    Some(
        calls.filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim_start().to_owned()).collect(),
    )
}

const CHANGES: &str = "mkdir,mkdirat,symlinkat,linkat,mknodat,renameat2,fchmod,?fchmodat2,utimensat,fchown,fchownat,\
                       write,pwrite64,fsync,syncfs,sync";

fn is_sync(call: &str) -> bool {
    ["fsync(", "syncfs(", "sync("].iter().any(|name| call.starts_with(name))
}

/// Returns true for calls that change files.
fn is_change(call: &str) -> bool {
    let is_said = call.starts_with("write(");
    !is_sync(call) && !is_said
}

#[test]
fn nothing_is_changed_after_the_last_sync() {
    let stage = Stage::new();
    for line in [
        "f new",
        "-P to_f new",
        "-l f new",
        "-s to_f new",
        "-a fifo new",
        "-a f hard empty",
        "-a f g to_f empty",
        "--parents src/sub/deep full",
        "--parents -p src/sub/deep empty",
        "-a src new",
        "-a src/. full",
        "-a --atomic src new",
        "--atomic f g",
    ] {
        stage.set();
        let arguments: Vec<&str> = ["--fsync"].into_iter().chain(line.split(' ')).collect();
        let Some(calls) = calls(&stage.root(), CHANGES, &arguments) else { return };
        let last_change = calls.iter().rposition(|call| is_change(call));
        let last_sync = calls.iter().rposition(|call| is_sync(call));
        assert!(last_change.is_some() && last_sync > last_change, "{line}: {calls:#?}");
    }
}

#[test]
fn one_file_is_synced_alone() {
    let stage = Stage::new();
    stage.set();
    let Some(calls) = calls(&stage.root(), "fsync,syncfs,sync", &["--fsync", "-a", "f", "new"]) else {
        return;
    };
    // The file and its directory.
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls.iter().all(|call| call.starts_with("fsync(")), "{calls:?}");
}

#[test]
fn a_file_is_durable_before_it_has_its_name() {
    let stage = Stage::new();
    stage.set();
    let arguments = ["--fsync", "--atomic", "-a", "src", "new"];
    let Some(mut calls) = calls(&stage.root(), "fsync,linkat", &arguments) else { return };
    // The second name links to the first, whose file is already synced.
    let is_twin =
        |call: &String| call.starts_with("linkat(") && (call.contains("\"a\"") || call.contains("\"twin\""));
    let later = calls.iter().rposition(is_twin).expect("two names are made");
    calls.remove(later);
    // A descriptor number may be reused, so count its syncs.
    let count = |before: usize, start: &str| {
        calls[..before]
            .iter()
            .filter(|call| call.starts_with(start) && !call[start.len()..].starts_with(char::is_numeric))
            .count()
    };
    let mut named = 0;
    for (index, call) in calls.iter().enumerate() {
        let Some((file, _)) = call.strip_prefix("linkat(").and_then(|rest| rest.split_once(", \"\",")) else {
            continue;
        };
        named += 1;
        let (synced, linked) = (format!("fsync({file}"), format!("linkat({file}, \"\""));
        assert!(count(index, &synced) > count(index, &linked), "{call} in {calls:#?}");
    }
    assert_eq!(named, 3, "{calls:#?}");
}

#[test]
fn every_filesystem_that_was_written_to_is_synced() {
    use std::os::unix::fs::MetadataExt;
    let (here, there) = (Filesystem::memory(), tempfile::tempdir().unwrap());
    let device = |path: &Path| path.metadata().unwrap().dev();
    if device(here.path()) == device(there.path()) {
        skip::<()>("there is only one filesystem to write to");
        return;
    }
    let (source, target) = (here.path().join("s"), here.path().join("t"));
    std::fs::create_dir_all(&source).unwrap();
    std::fs::create_dir_all(target.join("s")).unwrap();
    std::fs::write(source.join("f"), "text").unwrap();
    std::fs::write(there.path().join("f"), "old").unwrap();
    std::os::unix::fs::symlink(there.path().join("f"), target.join("s/f")).unwrap();
    let Some(calls) = calls(here.path(), "fsync,syncfs,sync", &["--fsync", "-r", "s", "t"]) else { return };
    // The file behind the link, and the filesystem of everything else.
    let count = |start: &str| calls.iter().filter(|call| call.starts_with(start)).count();
    assert_eq!((calls.len(), count("fsync("), count("syncfs(")), (2, 1, 1), "{calls:?}");
    assert_eq!(std::fs::read(there.path().join("f")).unwrap(), b"text");
}

#[test]
fn filesystems_beyond_those_synced_as_a_whole_are_synced_file_by_file() {
    const TEST: &str = "durable::filesystems_beyond_those_synced_as_a_whole_are_synced_file_by_file";
    within(TEST, "tmpfs", |memory| {
        for number in 0..12 {
            std::fs::create_dir_all(memory.path().join(format!("s/{number}"))).unwrap();
            std::fs::write(memory.path().join(format!("s/{number}/f")), "text").unwrap();
            let target = memory.path().join(format!("t/{number}"));
            std::fs::create_dir_all(&target).unwrap();
            let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&target).status().unwrap();
            assert!(mounted.success());
        }
        let arguments = ["--fsync", "-rT", "s", "t"];
        let Some(calls) = calls(memory.path(), "fsync,syncfs,sync", &arguments) else { return };
        let count = |start: &str| calls.iter().filter(|call| call.starts_with(start)).count();
        // syncfs: the target's and seven others; fsync: a file and a directory on the five remaining.
        assert_eq!((count("syncfs("), count("fsync("), count("sync(")), (8, 10, 0), "{calls:#?}");
    });
}

#[test]
fn a_folder_that_may_not_be_listed_is_synced_with_its_filesystem() {
    let stage = Stage::new();
    stage.set();
    let prepare = "chmod 777 .; chmod 1733 empty; chmod 755 src; chmod 644 f";
    assert!(Command::new("sh").args(["-c", prepare]).current_dir(stage.root()).status().unwrap().success());
    if !is_root() {
        skip::<()>("becoming nobody needs root");
        return;
    }
    let log = stage.root().join("log");
    let mut command = Command::new("strace");
    command.args(["-u", "nobody", "-f", "-qq", "-o"]).arg(&log).args(["-e", "trace=sync,syncfs,fsync"]);
    command.arg(stage.ferry()).args(["--fsync", "-P", "to_f", "empty"]).current_dir(stage.root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let calls = std::fs::read_to_string(&log).unwrap();
    let whole = calls.lines().filter(|line| line.contains("syncfs(") && line.ends_with(" = 0")).count();
    assert!(whole == 1 && !calls.contains(" sync()"), "{calls}");
}

#[test]
fn a_file_elsewhere_is_synced_by_itself() {
    let (here, there) = (Filesystem::memory(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(here.path().join("s")).unwrap();
    std::fs::create_dir_all(here.path().join("t/s")).unwrap();
    std::fs::write(here.path().join("s/f"), "text of it").unwrap();
    std::fs::write(there.path().join("f"), "old").unwrap();
    std::os::unix::fs::symlink(there.path().join("f"), here.path().join("t/s/f")).unwrap();
    let arguments = ["--fsync", "--workers=1", "-r", "s", "t"];
    let Some(calls) = calls(here.path(), "pwrite64,close,fsync", &arguments) else { return };
    let written = calls.iter().position(|call| call.contains("text of it")).unwrap();
    let file = calls[written].trim_start_matches("pwrite64(").split(',').next().unwrap();
    let close = format!("close({file})");
    let closed = calls[written..].iter().position(|call| call.starts_with(&close));
    let sync = format!("fsync({file})");
    let synced = calls[written..].iter().position(|call| call.starts_with(&sync));
    assert!(synced.is_some() && synced < closed, "{calls:#?}");
}

#[test]
fn a_further_name_is_not_read() {
    let stage = Stage::new();
    stage.set();
    let names = ["src/b", "src/b2", "src/b3"];
    for name in &names[1..] {
        std::fs::hard_link(stage.root().join(names[0]), stage.root().join(name)).unwrap();
    }
    let small = stage.root().join("src/b4");
    std::fs::write(&small, vec![7; 100_000]).unwrap();
    std::fs::hard_link(&small, stage.root().join("src/b5")).unwrap();
    let arguments = ["-a", "--workers=1", "src/b4", "src/b5", "empty"];
    let Some(calls) = calls(&stage.root(), "pread64,preadv2,copy_file_range", &arguments) else { return };
    assert_eq!(calls.iter().filter(|call| call.contains("100000")).count(), 1, "{calls:?}");
}

#[test]
fn what_must_not_be_shared_is_not_left_to_the_kernel() {
    let stage = Stage::new();
    stage.set();
    std::fs::write(stage.root().join("large"), vec![7; 3 << 20]).unwrap();
    let by_kernel = |options: &[&str]| {
        let arguments = [&["cp", "--workers=1", "--stats=json", "large", "new"], options].concat();
        let output = ferry(&stage.root(), &arguments);
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
        statistics["methods"]["copy_file_range"]["bytes"].as_u64().unwrap_or_default()
    };
    assert_eq!(by_kernel(&["--reflink=never"]), 0);
    assert_eq!(by_kernel(&["--sparse=never", "--reflink=never"]), 0);
    assert_eq!(by_kernel(&["--sparse=never"]), 0);
}
