//! `ferry verify`: differences, messages and exit codes.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use serde_json::Value;

use crate::scene::{FERRY, Stage, ferry, text};

/// The scene with `src` and a copy of it by GNU cp.
fn copied() -> Stage {
    let stage = Stage::new();
    stage.set();
    let copied = Command::new("cp").args(["-a", "src", "copy"]).current_dir(stage.root()).status().unwrap();
    assert!(copied.success());
    stage
}

#[test]
fn a_copy_that_is_the_same_has_no_lines() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "src", "copy"]);
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), "", ""));
}

#[test]
fn each_difference_is_a_line() {
    let stage = copied();
    let copy = stage.root().join("copy");
    // Only root may write to it before its mode allows it.
    fs::set_permissions(copy.join("sub/deep"), PermissionsExt::from_mode(0o644)).unwrap();
    fs::write(copy.join("sub/deep"), "DEEP").unwrap();
    fs::set_permissions(copy.join("sub/deep"), PermissionsExt::from_mode(0o444)).unwrap();
    fs::remove_file(copy.join("pipe")).unwrap();
    fs::set_permissions(copy.join("b"), PermissionsExt::from_mode(0o600)).unwrap();
    let output = ferry(&stage.root(), &["verify", "src", "copy", "--ignore=times"]);
    assert_eq!(output.status.code(), Some(1));
    let mut lines: Vec<_> = text(&output.stdout).lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("'b': mode is 0644 in the source, 0600"), "{lines:?}");
    assert!(lines[1].starts_with("'pipe': missing in the target"), "{lines:?}");
    assert!(lines[2].starts_with("'sub/deep': content differs from byte 0 on"), "{lines:?}");
    assert!(text(&output.stderr).ends_with("3 differences\n"), "{}", text(&output.stderr));
    let output = ferry(&stage.root(), &["verify", "src", "copy", "--json", "--ignore=times,mode"]);
    assert_eq!(output.status.code(), Some(1));
    let objects: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut kinds: Vec<_> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["content", "missing"]);
    let last = objects.last().unwrap();
    assert_eq!((&last["same"], &last["summary"]["differences"]), (&Value::from(false), &Value::from(2)));
}

#[test]
fn what_is_not_there_is_no_wrong_use() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "src", "missing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("ferry verify: "), "{}", text(&output.stderr));
}

#[test]
fn progress_ends_with_a_summary() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "--progress", "src", "copy"]);
    assert_eq!(output.status.code(), Some(0));
    let last = text(&output.stderr).lines().last().unwrap_or_default();
    assert!(last.starts_with("compared ") && last.ends_with("0 differences"), "{last}");
}

#[test]
fn one_file_on_both_sides_is_told() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "src", "src"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), ""));
    let warning = "ferry verify: warning: 12 entries are the same file on both sides, not a copy\n";
    assert_eq!(text(&output.stderr), warning);
}

#[test]
fn an_interrupt_loses_no_finding() {
    let (status, found) = interrupted("exec \"$0\" \"$@\"");
    assert_eq!(status.signal(), Some(2), "{status:?}");
    let lines: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["same"], &last["summary"]["stopped"]), (&Value::from(false), &Value::from(true)));
    assert!(lines.len() > 10 && lines.len() < FILES, "{}", lines.len());
    assert_eq!(last["summary"]["differences"].as_u64().unwrap(), lines.len() as u64 - 1);
}

#[test]
fn an_ignored_interrupt_stays_ignored() {
    let (status, found) = interrupted("trap '' INT; exec \"$0\" \"$@\"");
    assert_eq!(status.code(), Some(1), "{status:?}");
    let last: Value = serde_json::from_str(found.lines().last().unwrap()).unwrap();
    assert_eq!(last["summary"]["stopped"], Value::from(false));
    assert!(found.lines().count() > FILES);
}

const FILES: usize = 8_000;

/// Compares different trees under a line of shell and interrupts; returns the status and the output.
fn interrupted(line: &str) -> (ExitStatus, String) {
    let place = tempfile::tempdir().unwrap();
    for (side, text) in [("source", "1"), ("target", "2")] {
        fs::create_dir(place.path().join(side)).unwrap();
        for index in 0..FILES {
            fs::write(place.path().join(side).join(format!("a file with a rather long name {index}")), text)
                .unwrap();
        }
    }
    let mut command = Command::new("sh");
    command.args(["-c", line, FERRY, "verify", "--json", "source", "target"]).current_dir(place.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The full pipe blocks it, because nothing is read yet.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut found = String::new();
    child.stdout.take().unwrap().read_to_string(&mut found).unwrap();
    (child.wait().unwrap(), found)
}

/// The help states the number of blocks; one fewer is no difference.
#[test]
fn holes_are_compared_from_the_size_on_that_the_help_names() {
    let help = ferry(std::path::Path::new("/"), &["verify", "--help"]);
    let help: Vec<_> = text(&help.stdout).split_whitespace().collect();
    assert!(help.join(" ").contains("8 or more blocks in holes of a file (32 KiB,"), "{help:?}");
    crate::random::filesystem::within(
        "verify::holes_are_compared_from_the_size_on_that_the_help_names",
        "ext4",
        |ext4| {
            let path = |name: &str| ext4.path().join(name);
            for (blocks, code) in [(7, 0), (8, 1)] {
                let size = 64 * 4096;
                fs::File::create(path("sparse")).unwrap().set_len(size).unwrap();
                let file = fs::File::create(path("filled")).unwrap();
                file.set_len(size).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &vec![0; blocks * 4096], 4096).unwrap();
                file.sync_all().unwrap();
                let output = ferry(ext4.path(), &["verify", "--ignore=times", "sparse", "filled"]);
                let said = (output.status.code(), text(&output.stdout));
                assert_eq!(said.0, Some(code), "{blocks} blocks were filled: {said:?}");
            }
        },
    );
}
