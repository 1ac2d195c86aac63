//! `ferry verify`: differences, messages and exit codes.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
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
fn a_copy_that_is_the_same_is_equal() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "src", "copy"]);
    let line = "equal: 4 files, 3 directories, 5 other entries, 300 kB of content\n";
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), line, ""));
    let output = ferry(&stage.root(), &["verify", "-q", "src", "copy"]);
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), "", ""));
}

/// Makes three entries differ: `b`, `pipe` and `sub/deep`.
fn change(copy: &Path) {
    // Only root may write to it before its mode allows it.
    fs::set_permissions(copy.join("sub/deep"), PermissionsExt::from_mode(0o644)).unwrap();
    fs::write(copy.join("sub/deep"), "DEEP").unwrap();
    fs::set_permissions(copy.join("sub/deep"), PermissionsExt::from_mode(0o444)).unwrap();
    fs::remove_file(copy.join("pipe")).unwrap();
    fs::set_permissions(copy.join("b"), PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn differences_are_grouped_by_kind() {
    let stage = copied();
    change(&stage.root().join("copy"));
    let output = ferry(&stage.root(), &["verify", "src", "copy", "--ignore=times"]);
    let expected = "\
missing: 1
  'pipe': missing in the target (fifo)
content: 1
  'sub/deep': content differs from byte 0 on
mode: 1
  'b': mode is 0644 in the source, 0600 in the target

different: 3 differences in 12 entries: 1 missing, 1 content, 1 mode
";
    let said = (output.status.code(), text(&output.stdout), text(&output.stderr));
    assert_eq!(said, (Some(1), expected, ""));
    let output = ferry(&stage.root(), &["verify", "src", "copy", "--ignore=times", "--quiet"]);
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(1), "", ""));
}

#[test]
fn a_report_is_written_to_a_file_in_the_format_of_its_extension() {
    let stage = copied();
    change(&stage.root().join("copy"));
    for (name, printed) in [("report.txt", &[][..]), ("report.json", &["--json"]), ("report", &[])] {
        let arguments = ["verify", "src", "copy", "--ignore=times", "--threads=1"];
        let printed = ferry(&stage.root(), &[&arguments, printed].concat());
        let output = ferry(&stage.root(), &[&arguments[..], &["-o", name]].concat());
        let said = (output.status.code(), text(&output.stdout), text(&output.stderr));
        assert_eq!(said, (Some(1), "", ""), "{name}");
        assert_eq!(fs::read(stage.root().join(name)).unwrap(), printed.stdout, "{name}");
    }
}

#[test]
fn a_report_replaces_nothing_that_is_compared() {
    let stage = copied();
    fs::write(stage.root().join("list"), format!("{}  b\n", "0".repeat(64))).unwrap();
    let before = fs::read(stage.root().join("list")).unwrap();
    let output = ferry(&stage.root(), &["verify", "--manifest", "list", "src", "-o", "./list"]);
    let said = "ferry verify: cannot write './list': it is compared, or in a tree that is\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), said));
    assert_eq!(fs::read(stage.root().join("list")).unwrap(), before);
    // In a tree: a file that exists, by its path and by a link, and one that does not.
    fs::write(stage.root().join("copy/precious"), "precious").unwrap();
    std::os::unix::fs::symlink("copy/precious", stage.root().join("link")).unwrap();
    for report in ["copy/precious", "link", "src/new.json"] {
        let output = ferry(&stage.root(), &["verify", "src", "copy", "-o", report]);
        assert_eq!(output.status.code(), Some(2), "{report}: {}", text(&output.stderr));
    }
    assert_eq!(fs::read(stage.root().join("copy/precious")).unwrap(), b"precious");
    assert!(!stage.root().join("src/new.json").exists());
    let output = ferry(&stage.root(), &["verify", "src", "copy", "-o", "missing/report"]);
    let said = "ferry verify: cannot write 'missing/report': No such file or directory\n";
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(1), "", said));
}

#[test]
fn each_difference_is_a_line_if_all_are_asked_for() {
    let stage = copied();
    change(&stage.root().join("copy"));
    let output = ferry(&stage.root(), &["verify", "src", "copy", "--ignore=times", "--all"]);
    assert_eq!(output.status.code(), Some(1));
    let mut lines: Vec<_> = text(&output.stdout).lines().collect();
    let verdict = "different: 3 differences in 12 entries: 1 missing, 1 content, 1 mode";
    assert_eq!(lines.pop(), Some(verdict));
    lines.sort_unstable();
    let expected = [
        "'b': mode is 0644 in the source, 0600 in the target",
        "'pipe': missing in the target (fifo)",
        "'sub/deep': content differs from byte 0 on",
    ];
    assert_eq!(lines, expected);
    let output = ferry(&stage.root(), &["verify", "src", "copy", "--json", "--ignore=times,mode"]);
    assert_eq!(output.status.code(), Some(1));
    let objects: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut kinds: Vec<_> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["content", "missing"]);
    let last = objects.last().unwrap();
    assert_eq!((&last["same"], &last["summary"]["differences"]), (&Value::from(false), &Value::from(2)));
    assert_eq!(last["verdict"], "different");
}

#[test]
fn a_copy_with_other_times_only_is_explained() {
    let stage = copied();
    fs::File::open(stage.root().join("copy/b")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let output = ferry(&stage.root(), &["verify", "src", "copy"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("times: 1\n  'b': time of change is "), "{said}");
    assert!(said.contains("\nOnly modification times differ: was the copy made without -a or -p?"), "{said}");
    assert!(said.ends_with("\n\ndifferent: 1 difference in 12 entries: 1 times\n"), "{said}");
}

/// Address 0 of a process has no page, so that reading its memory from there on fails, even for root.
#[test]
fn what_can_not_be_read_leaves_the_verdict_open() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("empty"), "").unwrap();
    let compared = |option| {
        ferry(place.path(), &["verify", option, "--ignore=times,mode,owner", "/proc/self/mem", "empty"])
    };
    let why = "'.': cannot read it in the source: Input/output error (os error 5)\n";
    let output = compared("--threads=1");
    let verdict = "undecided: 1 failure to read, no other difference in 1 entry";
    assert_eq!(text(&output.stdout), format!("unreadable: 1\n  {why}\n{verdict}\n"));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), ""));
    let output = compared("--quiet");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert_eq!(text(&output.stderr), format!("ferry verify: {why}"));
    let output = compared("--json");
    let object: Value = serde_json::from_str(text(&output.stdout).lines().next().unwrap()).unwrap();
    assert_eq!((&object["errno"], &object["error"]), (&Value::from(5), &Value::from("EIO")));
}

#[test]
fn what_is_not_there_is_no_wrong_use() {
    let stage = copied();
    for (operands, entries, message) in [
        (&["src", "missing"][..], "entries", "cannot stat 'missing': No such file or directory"),
        (
            &["--manifest", "/dev/null", "missing"],
            "files",
            "cannot open 'missing': No such file or directory",
        ),
        (&["--manifest", "missing", "src"], "files", "cannot open 'missing': No such file or directory"),
    ] {
        let output = ferry(&stage.root(), &[&["verify"], operands].concat());
        let verdict = format!("undecided: 1 failure to read, no other difference in 0 {entries}\n");
        let said = (output.status.code(), text(&output.stdout), text(&output.stderr));
        assert_eq!(said, (Some(1), verdict.as_str(), format!("ferry verify: {message}\n").as_str()));
        let output = ferry(&stage.root(), &[&["verify", "--json"], operands].concat());
        let last: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert_eq!((&last["verdict"], &last["same"]), (&Value::from("undecided"), &Value::from(false)));
        assert_eq!((&last["kinds"]["unreadable"], &last["summary"]["differences"]), (&1.into(), &1.into()));
    }
}

#[test]
fn with_progress_the_verdict_has_the_time() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "--progress", "src", "copy"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let said = text(&output.stdout);
    assert!(said.starts_with("equal: 4 files, ") && said.contains(" of content; took "), "{said}");
}

#[test]
fn one_file_on_both_sides_is_told() {
    let stage = copied();
    let output = ferry(&stage.root(), &["verify", "src", "src"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("equal: 4 files, "), "{}", text(&output.stdout));
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
    assert_eq!(last["verdict"], "interrupted");
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
    let help = ferry(Path::new("/"), &["verify", "--help"]);
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
