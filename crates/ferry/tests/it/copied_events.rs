//! `ferry cp --events`: lines of JSON that keep to their schema and tell all that happens.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ferry_tree::{Node, Tree, make};
use serde_json::{Value, json};

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, ferry, name, text};
use crate::sync::events::events;

/// A scene in a folder of its own, and the tree `source` in it.
fn scene(memory: &Path) -> tempfile::TempDir {
    let place = tempfile::tempdir_in(memory).unwrap();
    let tree = Tree::new()
        .with("folder/file", Node::file("content"))
        .with("one", Node::file("one"))
        .with(&b"odd\xff"[..], Node::file("odd"));
    make::make(&tree, &place.path().join("source")).unwrap();
    place
}

/// Returns the contents of the events of this name.
fn of<'a>(found: &'a [Value], name: &str) -> Vec<&'a Value> {
    found.iter().filter_map(|event| event.get(name)).collect()
}

fn end(found: &[Value]) -> &Value {
    &found.last().unwrap()["end"]
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_copied_entry_has_its_event() {
    let memory = Filesystem::memory();
    for (options, printed) in
        [(&["--events"][..], 0), (&["--events=-"], 0), (&["--events=log"], 0), (&["--events=log", "-v"], 5)]
    {
        let place = scene(memory.path());
        let output = ferry(place.path(), &[&["cp", "-a"], options, &["source", "target"]].concat());
        assert!(output.status.success(), "{}", said(&output));
        let log = fs::read(place.path().join("log"));
        let lines = if log.is_ok() { output.stdout.iter().filter(|byte| **byte == b'\n').count() } else { 0 };
        assert_eq!(lines, printed, "{options:?}");
        let found = events(&log.unwrap_or(output.stdout));
        let start = &found[0]["start"];
        assert_eq!(start["task"].as_str(), Some("cp"));
        assert_eq!(start["operands"], json!([{"source": "source", "target": "target"}]));
        let mut targets: Vec<String> =
            of(&found, "copied").iter().map(|copied| copied["target"].to_string()).collect();
        targets.sort();
        let odd = json!({"bytes": b"target/odd\xff"}).to_string();
        let expected = ["\"target\"", "\"target/folder\"", "\"target/folder/file\"", "\"target/one\"", &odd];
        assert_eq!(targets, expected);
        let counts = ["files", "directories", "bytes", "failed"].map(|name| end(&found)[name].as_u64());
        assert_eq!(counts, [Some(3), Some(2), Some(13), Some(0)]);
        assert_eq!(end(&found)["result"].as_str(), Some("done"));
    }
}

#[test]
fn backups_removals_and_failures_have_events() {
    let memory = Filesystem::memory();
    let place = scene(memory.path());
    for file in ["target", "other"] {
        fs::create_dir(place.path().join(file)).unwrap();
        fs::write(place.path().join(file).join("one"), "old").unwrap();
    }
    let run = |options: &[&str]| {
        let output = ferry(place.path(), &[&["cp", "--events"], options].concat());
        (events(&output.stdout), output)
    };
    let (found, output) = run(&["-b", "source/one", "source/missing", "target"]);
    assert_eq!(output.status.code(), Some(1));
    let copied = json!({"source": "source/one", "target": "target/one", "backup": "target/one~"});
    assert_eq!(of(&found, "copied"), [&copied]);
    let message = "cannot stat 'source/missing': No such file or directory";
    let failed =
        json!({"source": "source/missing", "target": "target/missing", "message": message, "errno": 2});
    assert_eq!(of(&found, "failed"), [&failed], "{}", said(&output));
    assert_eq!(said(&output).matches("missing").count(), 1, "{}", said(&output));
    assert_eq!((&end(&found)["result"], &end(&found)["failed"]), (&json!("failed"), &json!(1)));

    let (found, output) = run(&["--remove-destination", "source/one", "other"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(of(&found, "removed"), [&json!({"target": "other/one"})]);
    assert_eq!(of(&found, "copied").len(), 1);
}

#[test]
fn progress_and_an_interruption_have_events() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    for (file, size) in [("one", 8 << 20), ("two", 8 << 20)] {
        fs::File::create(place.path().join(file)).unwrap().set_len(size).unwrap();
    }
    fs::create_dir(place.path().join("target")).unwrap();
    fs::write(place.path().join("target/one"), "old").unwrap();
    let mut command = Command::new(FERRY);
    command.args(["cp", "--events", "--bwlimit=1M", "--sparse=never", "one", "two", "target"]);
    let copy =
        command.current_dir(place.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let process = rustix::process::Pid::from_child(&copy);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let output = copy.wait_with_output().unwrap();
    let found = events(&output.stdout);
    let reached: Vec<_> = of(&found, "progress").iter().map(|at| at["bytes"].as_u64().unwrap()).collect();
    assert!(!reached.is_empty() && reached.is_sorted(), "{reached:?}: {}", said(&output));
    let unfinished = of(&found, "unfinished");
    assert_eq!(unfinished.len(), 1, "{}", said(&output));
    assert_eq!(unfinished[0]["target"].as_str(), Some("target/one"));
    assert!(said(&output).contains(unfinished[0]["message"].as_str().unwrap()));
    assert_eq!((&end(&found)["result"], &end(&found)["unfinished"]), (&json!("interrupted"), &json!(1)));
}

#[test]
fn copies_whose_events_can_not_be_written_are_whole() {
    let memory = Filesystem::memory();
    let place = scene(memory.path());
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(FERRY);
    command.args(["cp", "-a", "--events", "source", "target"]).current_dir(place.path()).stdout(full);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output), "ferry cp: cannot write events: No space left on device\n");
    assert!(ferry(place.path(), &["verify", "source", "target"]).status.success());
}

#[test]
fn events_of_copies_go_where_nothing_else_is() {
    let memory = Filesystem::memory();
    let place = scene(memory.path());
    fs::create_dir(place.path().join("target")).unwrap();
    let tree = "the copy reads or writes";
    for (words, message) in [
        (
            &["--events", "-v"][..],
            "--events and --verbose write to standard output: use --events=FILE".to_owned(),
        ),
        (&["--events", "--debug"], "--events and --debug write to standard output".to_owned()),
        (&["--events", "--explain"], "--events and --explain write to standard output".to_owned()),
        (&["--events", "--stats=json"], "--events and --stats=json write to standard output".to_owned()),
        (&["--events=source/one"], format!("cannot write events to 'source/one': {tree} 'source'")),
        (&["--events=source/new"], format!("cannot write events to 'source/new': {tree} 'source'")),
        (&["-T", "--events=target/new"], format!("cannot write events to 'target/new': {tree} 'target'")),
        (&["--events=no/x"], "cannot create 'no/x': No such file or directory".to_owned()),
        (&["--events=e", "--errors=e"], format!("cannot write events to 'e': {tree} this file")),
        (&["--events=e", "--trace=e"], format!("cannot record to 'e': {tree} this file")),
    ] {
        let output = ferry(place.path(), &[&["cp", "-a"], words, &["source", "target"]].concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(&message), "{words:?}: {}", said(&output));
        assert!(fs::read_dir(place.path().join("target")).unwrap().next().is_none(), "{words:?}");
        assert_eq!(fs::read(place.path().join("source/one")).unwrap(), b"one", "{words:?}");
        assert!(!place.path().join("source/new").exists(), "{words:?}");
    }
    // A file beside the copy is left alone by it.
    let output = ferry(place.path(), &["cp", "-a", "--events=target/log", "source", "target"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(text(&output.stdout), "");
    assert!(place.path().join("target/source").join(name(b"odd\xff")).exists());
}
