//! `--events`: lines of JSON that keep to their schema and tell all that happens.

use std::fs;
use std::process::Command;
use std::time::Instant;

use ferry_tree::{Node, Tree};
use serde_json::Value;

use super::{Pair, said, sync};
use crate::random::filesystem::Filesystem;
use crate::scene::FERRY;

/// Parses events, and checks each against the schema, the first and the last.
pub(crate) fn events(text: &[u8]) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("../../../../../docs/events.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = std::str::from_utf8(text).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        let errors: Vec<_> = validator.iter_errors(event).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{event}: {errors:?}");
    }
    assert!(events.first().unwrap().get("start").is_some(), "{text}");
    assert!(events.last().unwrap().get("end").is_some(), "{text}");
    events
}

fn actions(events: &[Value]) -> Vec<String> {
    let actions = events.iter().filter_map(|event| event.get("action"));
    let mut found: Vec<String> = actions
        .map(|action| {
            let path = action["path"].as_str().map_or_else(|| action["path"].to_string(), str::to_owned);
            format!("{} {path}", action["verb"].as_str().unwrap())
        })
        .collect();
    found.sort();
    found
}

fn source() -> Tree {
    let node = |text: &str| Node::file(text).mtime(50, 5);
    Tree::new()
        .with("new/deep/file", node("content"))
        .with("new/other", node("content"))
        .with("changed", node("new"))
        .with("same", node("same"))
        .with(&b"odd\xff"[..], node("odd"))
}

#[test]
fn each_entry_has_its_event() {
    let memory = Filesystem::memory();
    let target = Tree::new()
        .with("changed", Node::file("older").mtime(40, 5))
        .with("same", Node::file("same").mtime(50, 5))
        .with("gone", Node::file("gone"));
    for words in [&["--events", "--delete"][..], &["--events=events", "--delete", "-v"]] {
        let pair = Pair::new(memory.path(), 0, &source(), &target);
        let output = pair.sync(words);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        let text = fs::read(pair.path().join("events")).unwrap_or(output.stdout);
        let events = events(&text);
        let created = ["new", "new/deep", "new/deep/file", "new/other", "{\"bytes\":[111,100,100,255]}"];
        let mut expected: Vec<String> = created.iter().map(|path| format!("create {path}")).collect();
        expected.extend(["delete gone".to_owned(), "replace changed".to_owned()]);
        expected.sort();
        let found: Vec<String> =
            actions(&events).into_iter().filter(|action| !action.starts_with("attributes")).collect();
        assert_eq!(found, expected);
        let end = &events.last().unwrap()["end"];
        assert_eq!((end["result"].as_str(), end["created"].as_u64()), (Some("done"), Some(5)), "{end}");
    }
}

#[test]
fn failures_and_progress_have_events() {
    let memory = Filesystem::memory();
    let source = (0..30).fold(Tree::new(), |tree, number| {
        tree.with(format!("{number:02}"), Node::seeded(100 << 10, number).mtime(10, 5))
    });
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    fs::write(pair.path().join("list"), "00\n01\nmissing\n").unwrap();
    let output = pair.sync(&["--files-from=list", "--events"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let found = events(&output.stdout);
    let failed: Vec<&Value> = found.iter().filter_map(|event| event.get("failed")).collect();
    assert_eq!(failed.len(), 1, "{}", said(&output));
    assert_eq!(failed[0]["errno"].as_i64(), Some(2));
    assert_eq!(
        failed[0]["message"].as_str(),
        Some("cannot stat 'source/missing': No such file or directory")
    );
    assert_eq!(found.last().unwrap()["end"]["result"].as_str(), Some("failed"));

    let start = Instant::now();
    let output = pair.sync(&["--bwlimit=1M", "--time-limit=2500ms", "--events"]);
    let seconds = start.elapsed().as_secs();
    assert_eq!(output.status.code(), Some(124), "{}", said(&output));
    let found = events(&output.stdout);
    let reached: Vec<u64> = found
        .iter()
        .filter_map(|event| event.get("progress").map(|progress| progress["bytes"].as_u64().unwrap()))
        .collect();
    let count = u64::try_from(reached.len()).unwrap();
    assert!((1..=seconds).contains(&count) && reached.is_sorted(), "{reached:?} in {seconds} s");
    assert_eq!(found.last().unwrap()["end"]["result"].as_str(), Some("time_is_up"));
}

#[test]
fn events_that_can_not_be_written_do_not_end_the_run() {
    let memory = Filesystem::memory();
    for redirection in [">/dev/full", "| true"] {
        let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
        let line = format!("{{ {FERRY} sync --events source target; echo $? >code; }} {redirection}");
        let output = Command::new("sh").args(["-c", &line]).current_dir(pair.path()).output().unwrap();
        pair.assert_equal("source", "target", &output);
        let code = fs::read_to_string(pair.path().join("code")).unwrap();
        let is_told = said(&output).contains("ferry sync: cannot write events: ");
        // `true` may end before or after the events are written.
        assert!(is_told == (code == "1\n") && (is_told || redirection == "| true"), "{}", said(&output));
    }
}

#[test]
fn events_go_where_nothing_else_is() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
    for (words, code, message) in [
        (&["--events", "-v"][..], 2, "--events and --verbose write to standard output: use --events=FILE"),
        (&["--events", "-n"], 2, "--events and --dry-run write to standard output: use --events=FILE"),
        (&["--events=target/x"], 1, "'target/x' is in 'target': it would be copied or compared, too"),
        (&["--events=no/x"], 1, "ferry sync: cannot create 'no/x': No such file or directory"),
    ] {
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(message), "{words:?}: {}", said(&output));
    }
}

#[test]
fn plans_and_trashes_have_events_too() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new().with("gone", Node::file("gone")));
    let output = pair.sync(&["--delete", "--plan=plan", "--events"]);
    let planned = actions(&events(&output.stdout));
    let output = sync(pair.path(), &["--apply=plan", "--events"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(actions(&events(&output.stdout)), planned);
    let trash = fs::read_dir(pair.path().join("target/.ferry-trash")).unwrap().next().unwrap().unwrap();
    let output = sync(pair.path(), &["--events", "--undo", trash.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(events(&output.stdout)[0]["start"]["task"].as_str(), Some("undo"));
}

/// Regression: entries were counted as done when they were examined, up to 1,024 at a time. After a tenth of the time, progress
/// showed 88 %.
#[test]
fn entries_are_counted_when_they_are_copied() {
    const COUNT: u64 = 600;
    let memory = Filesystem::memory();
    let source = (0..COUNT).fold(Tree::new(), |tree, number| {
        tree.with(format!("{number:03}"), Node::seeded(10_000, number).mtime(10, 5))
    });
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    let output = pair.sync(&["--bwlimit=2M", "--events"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = events(&output.stdout);
    let reached: Vec<(u64, u64)> = found
        .iter()
        .filter_map(|event| event.get("progress"))
        .map(|progress| (progress["entries"].as_u64().unwrap(), progress["bytes"].as_u64().unwrap()))
        .collect();
    assert!(!reached.is_empty(), "{}", said(&output));
    for (entries, bytes) in reached {
        // As many more may be in flight.
        assert!(entries * 10_000 <= bytes + 128 * 10_000, "{entries} entries, {bytes} B");
    }
}
