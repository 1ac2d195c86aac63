//! `--trace`: a copy's recording agrees with its statistics and the kernel's counters.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ferry_io::counting::{Count, Event};
use ferry_trace::check::{check, counts};
use ferry_trace::model::Role;
use ferry_trace::{Trace, read};
use serde_json::Value;

use crate::scene::{FERRY, Stage, ferry, skip, text};

/// Reads a recording, which must be consistent.
fn recording(file: &Path) -> Trace {
    let trace = read::open(file).unwrap_or_else(|broken| panic!("{}: {broken}", file.display()));
    assert_eq!(check(&trace), Vec::<String>::new(), "{}", file.display());
    assert_eq!(trace.lost.program, 0);
    trace
}

/// Number by its dotted name in `--stats=json`.
fn told(stats: &Value, name: &str) -> Option<u64> {
    name.split('.').try_fold(stats, |within, part| within.get(part))?.as_u64()
}

fn count_of(trace: &Trace, name: &str) -> u64 {
    counts(trace).into_iter().find(|(known, _)| known == name).map_or(0, |(_, count)| count)
}

#[test]
fn a_recording_has_the_counts_of_the_statistics_and_of_the_kernel() {
    let stage = Stage::new();
    let ways = ["auto", "inline", "ring", "pool"]
        .into_iter()
        .flat_map(|route| ["uring", "posix"].map(|backend| (backend, route)));
    for (backend, route) in ways {
        stage.set();
        let counted = [Event::RingEnter, Event::RingRequest].map(Count::of_programs);
        let (backend, route) = (format!("--backend={backend}"), format!("--route={route}"));
        let output =
            ferry(&stage.root(), &["cp", "-a", "--trace=t", "--stats=json", &backend, &route, "src", "new"]);
        assert_eq!(output.status.code(), Some(0), "{backend} {route}: {}", text(&output.stderr));
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
        let trace = recording(&stage.root().join("t"));
        for (name, count) in counts(&trace) {
            assert_eq!(told(&stats, &name), Some(count), "{name} with {backend} {route}");
        }
        for (name, count) in &trace.counters {
            assert_eq!(told(&stats, name), Some(*count), "{name} with {backend} {route}");
        }
        assert_eq!(count_of(&trace, "operations"), told(&stats, "operations").unwrap());
        match counted {
            [Ok(enters), Ok(requests)] => {
                assert_eq!(enters.so_far().unwrap(), trace.enters.len() as u64, "{backend} {route}");
                let upkeep = told(&stats, "ring_upkeep").unwrap();
                let submitted = count_of(&trace, "submitted") + upkeep;
                assert_eq!(requests.so_far().unwrap(), submitted, "{backend} {route}");
            }
            [Err(errno), _] | [_, Err(errno)] => {
                skip::<()>(&format!("tracepoints can't be counted: {errno}"));
            }
        }
    }
}

#[test]
fn a_recording_names_what_is_copied() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "-r", "--trace", "t", "src", "new"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let trace = recording(&stage.root().join("t"));
    assert_eq!(trace.about.command[1..], ["cp", "-r", "--trace", "t", "src", "new"].map(str::to_owned));
    assert!(trace.threads.iter().any(|thread| thread.role == Role::Worker && thread.tid > 0));
    let is_named = |name: &str| trace.fibers.iter().any(|fiber| fiber.name == name);
    for entry in fs::read_dir(stage.root().join("src")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(is_named(&name.to_string_lossy()), "{name:?}");
    }
    assert!(trace.scopes.iter().any(|scope| scope.name == "src"), "folders are scopes");
    let again = ferry(&stage.root(), &["cp", "-r", "--trace", "t", "src", "new"]);
    assert_eq!((again.status.code(), text(&again.stderr)), (Some(0), ""), "a recording is replaced");
}

#[test]
fn any_program_on_the_runtime_is_recorded_where_the_environment_says() {
    let stage = Stage::new();
    stage.set();
    let copy = |name: &str, environment: &str| {
        let mut command = Command::new(FERRY);
        command.current_dir(stage.root()).env("FERRY_TRACE", environment).args(["cp", "f", name]);
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{environment}");
    };
    copy("a", "t");
    assert!(recording(&stage.root().join("t")).operations.iter().any(|operation| operation.name == "a"));
    copy("b", "t.%n");
    copy("c", "t.%n");
    for (file, name) in [("t.1", "b"), ("t.2", "c")] {
        let trace = recording(&stage.root().join(file));
        assert!(trace.operations.iter().any(|operation| operation.name == name), "{file}");
    }
    copy("d", "");
    assert!(!stage.root().join("t.3").exists());
}

/// Message if the run can't be recorded and nothing is copied.
fn refused(stage: &Stage, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = ferry(&stage.root(), arguments);
    assert_eq!((status.code(), text(&stdout)), (Some(1), ""), "{arguments:?}");
    assert!(!stage.root().join("new").exists(), "{arguments:?}");
    text(&stderr).to_owned()
}

#[test]
fn a_recording_takes_the_place_of_nothing_that_somebody_wants() {
    let stage = Stage::new();
    stage.set();
    let root = stage.root();
    let content = fs::read(root.join("f")).unwrap();
    fs::write(root.join("text"), "mine").unwrap();
    std::os::unix::fs::symlink("beyond", root.join("link")).unwrap();
    let named = |file: &str| {
        format!(
            "ferry cp: cannot record to '{file}': the copy reads or writes this file; choose another one\n"
        )
    };
    assert_eq!(refused(&stage, &["cp", "--trace=f", "f", "new"]), named("f"));
    assert_eq!(refused(&stage, &["cp", "--trace=new", "f", "new"]), named("new"));
    let said = refused(&stage, &["cp", "--trace=text", "f", "new"]);
    assert_eq!(said, "ferry cp: cannot record to 'text': it exists and is no recording\n");
    let said = refused(&stage, &["cp", "--trace=link", "f", "new"]);
    assert!(said.starts_with("ferry cp: cannot record to 'link': Too many levels"), "{said}");
    let said = refused(&stage, &["cp", "--trace=no/t", "f", "new"]);
    assert_eq!(said, "ferry cp: cannot record to 'no/t': No such file or directory\n");
    let said = refused(&stage, &["cp", "--trace=e", "--errors=e", "f", "new"]);
    assert_eq!(said, named("e"));
    assert!(!root.join("e").exists());
    assert_eq!(fs::read(root.join("f")).unwrap(), content);
    assert_eq!(fs::read_to_string(root.join("text")).unwrap(), "mine");
    assert!(!root.join("beyond").exists());
}

#[test]
fn a_recording_is_kept_out_of_what_is_copied() {
    let stage = Stage::new();
    let root = stage.root();
    fs::create_dir_all(root.join("many")).unwrap();
    (0..50).for_each(|index| fs::write(root.join(format!("many/{index}")), [b'x'; 100]).unwrap());
    // Within the source: an older recording, which is copied.
    let output = ferry(&root, &["cp", "-r", "--trace=many/7.trc", "many", "zero"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    assert!(!root.join("zero/7.trc").exists(), "it had no name before the copy was over");
    let older = fs::read(root.join("many/7.trc")).unwrap();
    let output = ferry(&root, &["cp", "-r", "--trace=many/7.trc", "many", "one"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    assert!(fs::read(root.join("one/7.trc")).unwrap() == older, "it is copied as it was");
    assert!(fs::read(root.join("many/7.trc")).unwrap() != older, "and replaced then");
    recording(&root.join("many/7.trc"));
    // Within the target: a file and a recording that the copy replaces.
    for (file, base) in [("two/7", "many/7"), ("two/7.trc", "many/7.trc")] {
        fs::create_dir(root.join("two")).unwrap();
        let output = ferry(&root, &["cp", "-r", "--trace", file, "many/.", "two"]);
        assert_eq!(output.status.code(), Some(0));
        let told =
            format!("ferry cp: warning: recorded to '{file}.2', because '{file}' may not be replaced\n");
        assert_eq!(text(&output.stderr), told);
        assert!(fs::read(root.join(file)).unwrap() == fs::read(root.join(base)).unwrap(), "{file}");
        recording(&root.join(format!("{file}.2")));
        fs::remove_dir_all(root.join("two")).unwrap();
    }
}

#[test]
fn two_runs_that_record_to_one_file_have_one_each() {
    let stage = Stage::new();
    stage.set();
    let root = stage.root();
    let begin = |name: &str| {
        let mut command = Command::new(FERRY);
        command.current_dir(&root).args(["cp", "-r", "--trace=t", "src", name]);
        command.stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let outputs = [begin("a"), begin("b")].map(|child| child.wait_with_output().unwrap());
    assert!(outputs.iter().all(|output| output.status.success()), "{outputs:?}");
    recording(&root.join("t"));
    // The first run may end before the second starts.
    if outputs.iter().any(|output| !output.stderr.is_empty()) {
        recording(&root.join("t.2"));
    }
}

#[test]
fn a_run_that_is_refused_leaves_the_older_recording() {
    let stage = Stage::new();
    stage.set();
    let root = stage.root();
    let copy = |arguments: &[&str]| ferry(&root, &[&["cp", "--trace=t"], arguments].concat());
    assert_eq!(copy(&["f", "a"]).status.code(), Some(0));
    let older = fs::read(root.join("t")).unwrap();
    let limited = format!("ulimit -n 12; exec {FERRY} cp --trace=t f new");
    let output = Command::new("sh").current_dir(&root).args(["-c", &limited]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(fs::read(root.join("t")).unwrap() == older);
    let output = ferry(&root, &["cp", "--trace=n%n", "f", "b"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    recording(&root.join("n1"));
    assert!(!root.join("n%n").exists());
}

#[test]
fn a_limit_of_a_files_size_costs_events_and_not_the_copy() {
    let stage = Stage::new();
    let root = stage.root();
    fs::create_dir_all(root.join("many")).unwrap();
    (0..1000).for_each(|index| fs::write(root.join(format!("many/{index}")), [b'x'; 10]).unwrap());
    for blocks in [0, 60] {
        let limited = format!("ulimit -f {blocks}; exec {FERRY} cp -r --route=ring --trace=t many new");
        let output = Command::new("sh").current_dir(&root).args(["-c", &limited]).output().unwrap();
        let said = text(&output.stderr);
        assert!(
            said.contains("'t'") && said.contains("File too large"),
            "{blocks}: {:?} {said}",
            output.status
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        if blocks == 0 {
            assert_eq!(output.status.code(), Some(1));
            assert!(!root.join("new").exists());
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(fs::read_dir(root.join("new")).unwrap().count(), 1000);
        let trace = read::open(&root.join("t")).unwrap();
        assert!(trace.lost.program + trace.lost.kernel > 0);
    }
}

#[test]
fn what_the_lab_runs_is_recorded_under_numbers() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["lab", "tree", "--trace", "t", "made"]);
    assert_eq!(output.status.code(), Some(2), "it runs nothing that could be recorded");
    assert!(text(&output.stderr).contains("unrecognized option '--trace'"), "{}", text(&output.stderr));
    let words = ["lab", "strategies", "--quick", "--runs=1", "--seed=1", "--trace", "t"];
    let output = ferry(&stage.root(), &words);
    assert_eq!(output.status.code(), Some(3), "recorded, so not to be trusted: {}", text(&output.stderr));
    assert!(text(&output.stdout).contains("ferry's runs were recorded"), "{}", text(&output.stdout));
    let mut runs = Vec::new();
    while let Ok(trace) = read::open(&stage.root().join(format!("t.{}", runs.len() + 1))) {
        assert_eq!(check(&trace), Vec::<String>::new(), "{runs:?}");
        runs.push(trace.about.run);
    }
    assert!(runs.iter().all(|run| run.starts_with("strategies: ")), "{runs:?}");
    let of_cells: Vec<&String> = runs.iter().filter(|run| run.ends_with(", round 0")).collect();
    assert!(of_cells.len() > 1 && of_cells.windows(2).all(|pair| pair[0] != pair[1]), "{runs:?}");
    let told = ferry(&stage.root(), &["trace", "show", "t.1"]);
    assert!(text(&told.stdout).contains(&format!("\nrecorded of {}\n", runs[0])), "{}", text(&told.stdout));
}
