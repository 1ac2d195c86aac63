//! `ferry lab run`: the answer, failing and missing commands, steps around the runs, cache states, resumed records.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::measured::{lab, left_in, valid};
use crate::scene::{FERRY, ferry, is_root, place_program, skip, text};

const FAST_AND_SLOW: [&str; 6] = ["--", "sleep", "0.01", "--", "sleep", "0.1"];

fn run(place: &Path, options: &[&str], commands: &[&str]) -> Output {
    lab(place, &[&["run"], options, commands].concat())
}

fn first_line(output: &Output) -> &str {
    text(&output.stdout).lines().next().unwrap_or_default()
}

/// Figures of a measure in the runs of a cell.
fn figures(record: &Value, cell: usize, measure: &str) -> Vec<f64> {
    let runs = record["cells"][cell]["runs"].as_array().unwrap().iter();
    runs.filter_map(|run| run["figures"][measure].as_f64()).collect()
}

#[test]
fn the_answer_comes_first_and_the_record_has_every_run() {
    let place = tempfile::tempdir().unwrap();
    let output = run(place.path(), &["--runs=5", "--seed=1", "--json=r.json"], &FAST_AND_SLOW);
    let all = format!("{}\n{}", text(&output.stderr), text(&output.stdout));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{all}");
    let line = first_line(&output);
    assert!(line.starts_with("A is ") && line.contains("x as fast as B (95 %: "), "{all}");
    let printed = text(&output.stdout);
    for part in ["\nA: sleep 0.01\n", "\nB: sleep 0.1\n", "memory", "under "] {
        assert!(printed.contains(part), "{part:?} in {all}");
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{all}");
    assert_eq!(left_in(place.path()), ["r.json"]);
    let record = valid(&place.path().join("r.json"));
    let (fast, slow) = (figures(&record, 0, "returned_s"), figures(&record, 1, "returned_s"));
    assert!(fast.len() == 5 && fast.iter().all(|time| *time >= 0.01), "{fast:?}");
    assert!(slow.len() == 5 && slow.iter().all(|time| *time >= 0.1), "{slow:?}");
    assert!(figures(&record, 0, "user_s").iter().all(|time| *time < 0.01), "{record}");
    assert_eq!(record["cells"][1]["base"], "A");
}

#[test]
fn memory_is_that_of_the_command_and_not_of_ferry() {
    let place = tempfile::tempdir().unwrap();
    let large = "x=$(head -c 60000000 /dev/zero | tr '\\0' x)";
    let output = run(place.path(), &["--quick", "--json=r.json"], &["--", "sh", "-c", large, "--", "true"]);
    let record = valid(&place.path().join("r.json"));
    let peaks = figures(&record, 0, "peak_memory_b");
    assert!(peaks.len() == 3 && peaks.iter().all(|peak| *peak > 60e6), "{record}");
    assert_eq!(figures(&record, 1, "peak_memory_b"), [0.0; 0], "{record}");
    assert!(text(&output.stdout).contains("under "), "{}", text(&output.stdout));
}

#[test]
fn a_failing_command_ends_the_measurement_unless_that_is_allowed() {
    let place = tempfile::tempdir().unwrap();
    let output = run(place.path(), &[], &["--", "true", "--", "sh", "-c", "echo why >&2; false"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).ends_with("\nferry lab: sh: 'sh' failed: why\n"), "{output:?}");
    assert_eq!(left_in(place.path()), Vec::<String>::new());
    let options = ["--ignore-failure", "--runs=2", "--json=r.json"];
    let output = run(place.path(), &options, &["--", "true", "--", "false"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let printed = text(&output.stdout);
    assert!(printed.contains("\nfalse: 2 of 2 runs ended with another status than 0.\n"), "{printed}");
    assert_eq!(figures(&valid(&place.path().join("r.json")), 1, "exit_status"), [1.0, 1.0]);
}

#[test]
fn a_command_that_is_not_found_is_named() {
    let place = tempfile::tempdir().unwrap();
    for (options, commands) in [
        (&[][..], ["--", "no-such-program", "--", "true"]),
        (&[], ["--", "true", "--", "no-such-program"]),
        (&["--prepare", "no-such-program"], ["--", "true", "--", "true"]),
    ] {
        let output = run(place.path(), options, &commands);
        let line = "ferry lab: 'no-such-program' is not found on the PATH\n";
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), line));
    }
    let output = run(place.path(), &[], &["--", "true"]);
    let said = "ferry lab run: two commands are needed: '-- COMMAND -- COMMAND'\n";
    assert!(output.status.code() == Some(2) && text(&output.stderr).starts_with(said), "{output:?}");
    assert_eq!(left_in(place.path()), Vec::<String>::new());
}

#[test]
fn a_record_is_resumed_with_more_rounds() {
    let place = tempfile::tempdir().unwrap();
    let output = run(place.path(), &["--runs=2", "--json=r.json"], &FAST_AND_SLOW);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(first_line(&output).ends_with(" (2 runs: decides nothing)"), "{output:?}");
    let path = place.path().join("r.json");
    let before = valid(&path);
    let output = run(place.path(), &["--resume=r.json", "--runs=5"], &[]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let after = valid(&path);
    for cell in 0..2_usize {
        let [before, after] =
            [&before, &after].map(|record| record["cells"][cell]["runs"].as_array().unwrap());
        assert_eq!((before.len(), after.len()), (2, 5));
        assert_eq!(before[..], after[..2]);
    }
    let report = ferry(place.path(), &["lab", "report", "r.json", "--output=page.html"]);
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    assert!(fs::read_to_string(place.path().join("page.html")).unwrap().contains("sleep 0.01"));
}

#[test]
fn each_run_has_its_steps_before_and_after_it() {
    let place = tempfile::tempdir().unwrap();
    let steps = ["--prepare=echo before >> log", "--cleanup=echo after >> log"];
    let options = [&["--quick", "--shell"], &steps[..]].concat();
    let output = run(place.path(), &options, &["--", "test $(tail -n 1 log) = before", "--", "true"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    // Of both commands, one uncounted run and three others.
    assert_eq!(fs::read_to_string(place.path().join("log")).unwrap(), "before\nafter\n".repeat(8));
}

#[test]
fn output_is_shown_only_if_it_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let count = |options: &[&str]| {
        let output = run(place.path(), options, &["--", "echo", "said", "--", "true"]);
        text(&output.stdout).lines().filter(|line| *line == "said").count()
    };
    assert_eq!((count(&["--quick"]), count(&["--quick", "--show-output"])), (0, 4));
}

#[test]
fn named_files_are_proved_to_be_warm_or_cold() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(place.path().join("file"), [1; 10_000]).unwrap();
    for (state, in_memory) in [("warm", 12_288), ("cold", 0)] {
        if state == "cold" && !ferry_lab::needs::may_drop_caches() {
            skip::<()>("caches can't be dropped here");
            continue;
        }
        let json = format!("--json={state}.json");
        let options = ["--runs=1", "--state", state, "--files=file", &json];
        // The commands do not read the file.
        let output = run(place.path(), &options, &["--", "true", "--", "sleep", "0"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let record = valid(&place.path().join(format!("{state}.json")));
        let proof = &record["cells"][0]["runs"][0]["proof"];
        if proof["data_files"] == 0 {
            skip::<()>("the kernel does not tell what is cached");
            continue;
        }
        assert_eq!((&proof["data_in_memory_bytes"], &proof["holds"]), (&in_memory.into(), &true.into()));
        assert_eq!(record["cells"][0]["cache"], state);
    }
}

#[test]
fn commands_are_compared_where_nothing_may_be_written() {
    if !is_root() {
        skip::<()>("another user is needed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let binary = place.path().join("ferry");
    place_program(Path::new(FERRY), &binary);
    let mut command = Command::new(&binary);
    command.args(["lab", "run", "--quick"]).args(FAST_AND_SLOW).current_dir("/").uid(65_534).gid(65_534);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(first_line(&output).starts_with("A is "), "{output:?}");
}
