//! Ferry's own options, exit codes and names.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::interrupted::{shown_on, terminal};
use crate::scene::{FERRY, Stage, ferry, name, skip, text};

#[test]
fn the_statistics_have_what_was_done_and_what_it_cost() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "-a", "--stats=json", "src", "new"]);
    assert_eq!(output.status.code(), Some(0));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |key: &str| object[key].as_u64().unwrap_or_else(|| panic!("{key} in {object}"));
    assert_eq!(number("bytes"), 8 + 300_000 + 4);
    assert_eq!(number("entries"), 12);
    assert_eq!((number("directories"), number("symlinks"), number("hard_links")), (3, 4, 1));
    assert_eq!((number("specials"), number("failed")), (1, 0));
    assert!(object["wall_seconds"].as_f64().unwrap() > 0.0);
    assert!(number("operations") > 10 && number("system_calls") > 10);
    let routes = object["operations_by_route"].as_object().unwrap();
    assert_eq!(routes.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), number("operations"));
    let methods = object["methods"].as_object().unwrap();
    let moved: u64 = methods.values().map(|method| method["bytes"].as_u64().unwrap()).sum();
    assert_eq!(moved, number("bytes"));
    for key in ["submissions", "submitted", "ring_enters", "workers", "pool_threads", "peak_memory_bytes"] {
        number(key);
    }
    assert!(object.get("kernel_worker_handovers").is_some());
    assert!(object.get("operations_per_submission").is_some());
    assert!(!object["backend"].as_str().unwrap().is_empty());
}

#[test]
fn the_statistics_are_text_for_people() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "-a", "--stats", "src", "new"]);
    let lines = text(&output.stderr);
    for start in
        ["entries ", "bytes ", "wall time ", "operations ", "system calls ", "backend ", "peak memory "]
    {
        assert!(lines.lines().any(|line| line.starts_with(start)), "{start} in {lines}");
    }
    assert!(lines.starts_with("copied 12 entries, 300 kB in "), "{lines}");
    assert!(output.stdout.is_empty());
}

#[test]
fn every_backend_and_route_makes_the_same_copy() {
    let stage = Stage::new();
    let table = [
        "",
        "--route=inline",
        "--route=pool",
        "--workers=1 --queue-depth=1 --block-size=4K",
        "--workers=16",
        "--fsync",
        "--explain",
    ];
    let both = table
        .iter()
        .flat_map(|options| ["uring", "posix"].map(|backend| format!("--backend={backend} {options}")));
    for options in both.chain(["--backend=uring --route=ring".to_owned()]) {
        stage.set();
        let words: Vec<&str> = options.split_whitespace().collect();
        let output = ferry(&stage.root(), &[&["cp", "-a", "src", "new"], words.as_slice()].concat());
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", text(&output.stderr));
        let output = ferry(&stage.root(), &["verify", "src", "new"]);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", text(&output.stdout));
    }
}

#[test]
fn failures_are_recorded_and_printed_once() {
    let stage = Stage::new();
    stage.set();
    let mut command = Command::new(FERRY);
    command.current_dir(stage.root()).args(["cp", "--errors", "record", "missing", "f"]);
    let output = command.args([name(b"gone\xff"), name(b"empty")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_eq!(
        said,
        "ferry cp: cannot stat 'missing': No such file or directory\n\
         ferry cp: cannot stat 'gone'$'\\377': No such file or directory\n"
    );
    let record = std::fs::read_to_string(stage.root().join("record")).unwrap();
    let lines: Vec<Value> = record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["source"], "gone\\xff");
    assert_eq!(lines[1]["target"], "empty/gone\\xff");
    assert_eq!(lines[0]["message"], "cannot stat 'missing': No such file or directory");
    assert_eq!((&lines[0]["errno"], &lines[0]["error"]), (&Value::from(2), &Value::from("ENOENT")));
}

/// Runs ferry on a terminal with 24 rows, in the scene, and returns what was shown.
fn on_terminal(stage: &Stage, arguments: &[&str]) -> Option<String> {
    let (controller, user) = terminal()?;
    tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = Command::new(FERRY);
    command.args(arguments).current_dir(stage.root()).stdin(Stdio::null());
    command.stdout(user.try_clone().unwrap()).stderr(user.try_clone().unwrap());
    command.status().unwrap();
    Some(text(&shown_on(&controller)).replace("\r\n", "\n"))
}

#[test]
fn failures_that_have_left_the_screen_are_printed_again() {
    let stage = Stage::new();
    stage.set();
    // The first failure and 22 lines fit above the cursor's row.
    for (lines, is_again) in [(22, false), (23, true)] {
        let names: Vec<String> = (0..lines).map(|number| format!("gone{number}")).collect();
        let names = names.iter().map(String::as_str);
        let arguments: Vec<&str> = ["cp", "missing"].into_iter().chain(names).chain(["empty"]).collect();
        let Some(shown) = on_terminal(&stage, &arguments) else { return };
        let heading = format!("ferry cp: {} paths failed:\n", lines + 1);
        assert_eq!(shown.contains(&heading), is_again, "{shown}");
        let count = shown.matches("cannot stat 'missing': No such file or directory\n").count();
        assert_eq!(count, 1 + usize::from(is_again), "{shown}");
        let rest = shown.ends_with("\n  and 3 more (`--errors FILE` records all)\n");
        assert_eq!(rest, is_again, "{shown}");
    }
    // Lines of standard output count, too.
    fs::create_dir(stage.root().join("many")).unwrap();
    (0..30).for_each(|number| fs::write(stage.root().join(format!("many/{number}")), "").unwrap());
    let shown = on_terminal(&stage, &["cp", "-rv", "missing", "many", "empty"]).unwrap();
    let again = "\nferry cp: 1 path failed:\n  cannot stat 'missing': No such file or directory\n";
    assert!(shown.ends_with(again), "{shown}");
}

#[test]
fn one_failure_is_told_once() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "missing", "empty"]);
    assert_eq!(text(&output.stderr), "ferry cp: cannot stat 'missing': No such file or directory\n");
}

#[test]
fn a_record_that_cannot_be_made_is_wrong_use() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "--errors", "no/record", "f", "new"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "ferry cp: cannot create 'no/record': No such file or directory\n");
    assert!(!stage.root().join("new").exists());
}

#[test]
fn progress_ends_with_a_summary() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "-a", "--progress", "src", "new"]);
    assert_eq!(output.status.code(), Some(0));
    let last = text(&output.stderr).lines().last().unwrap_or_default();
    assert!(last.starts_with("copied 12 entries, 300 kB in "), "{last}");
    let output = ferry(&stage.root(), &["cp", "f", "new2"]);
    assert!(output.stderr.is_empty() && output.stdout.is_empty());
}

#[test]
fn explanations_count_files_by_way_unless_each_is_asked_for() {
    let stage = Stage::new();
    stage.set();
    let output = ferry(&stage.root(), &["cp", "--reflink=never", "--explain", "src/b", "f", "g", "empty"]);
    let lines = text(&output.stdout);
    assert!(lines.starts_with("way       files   bytes  reason\n"), "{lines}");
    assert!(lines.contains("\nwhole         2    24 B  it fits into a block\n"), "{lines}");
    assert!(lines.contains("\npipeline      1  300 kB  nothing may be shared or left out\n"), "{lines}");
    assert!(lines.lines().any(|line| line.starts_with("backend ")), "{lines}");
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    assert!(!lines.contains("'src/b'"), "{lines}");
    let output = ferry(&stage.root(), &["cp", "-v", "--explain", "src/b", "new"]);
    let lines = text(&output.stdout);
    assert!(lines.lines().any(|line| line.starts_with("'src/b': ")), "{lines}");
    assert!(lines.lines().any(|line| line.starts_with("way ")), "{lines}");
}

#[test]
fn wrong_use_has_the_exit_code_of_its_command() {
    let stage = Stage::new();
    stage.set();
    let table: [(&[&str], i32, &str); 8] = [
        (&[], 2, "Copy directory trees as fast as the kernel allows, and show why\n"),
        (&["cpp"], 2, "ferry: 'cpp' is not a command; did you mean 'cp'?\n"),
        (&["zork"], 2, "ferry: 'zork' is not a command"),
        (&["cp"], 1, "ferry cp: missing file operand"),
        (&["cp", "--zork"], 1, "ferry cp: unrecognized option '--zork'"),
        (&["cp", "--queue-depth=3", "f", "new"], 1, "ferry cp: queue depth 3 is not allowed"),
        (&["verify", "f"], 2, "ferry verify: missing operand after 'f'"),
        (&["verify", "--zork"], 2, "ferry verify: unrecognized option '--zork'"),
    ];
    for (arguments, code, message) in table {
        let output = ferry(&stage.root(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(text(&output.stderr).starts_with(message), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_names_the_exit_codes() {
    let stage = Stage::new();
    stage.set();
    for arguments in [&["cp", "--help"][..], &["verify", "--help"], &["help", "cp"]] {
        let output = ferry(&stage.root(), arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Exit status:"));
    }
    let output = ferry(&stage.root(), &["--version"]);
    assert_eq!(text(&output.stdout), format!("ferry {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_closed_standard_output_is_told() {
    let stage = Stage::new();
    stage.set();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(FERRY);
    command.current_dir(stage.root()).args(["cp", "-v", "f", "new"]);
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "ferry cp: write error: No space left on device\n");
    assert!(stage.root().join("new").exists());
}

#[test]
fn names_of_any_bytes_are_quoted_as_gnu_quotes_them() {
    let Some(gnu) = crate::scene::gnu() else { return };
    let stage = Stage::new();
    stage.set();
    let mut names: Vec<Vec<u8>> = Vec::new();
    for byte in (1..=255).filter(|byte| *byte != b'/') {
        names.extend([vec![byte], vec![byte, b'\''], vec![b'\'', byte], vec![b'a', byte, b'1']]);
    }
    let said = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command.arg0("cp").current_dir(stage.root()).env("LC_ALL", "C.UTF-8").args(["-t", "empty", "--"]);
        let absent = names.iter().filter(|absent| absent.as_slice() != b".");
        command.args(absent.map(|absent| name(absent)));
        text(&command.output().unwrap().stderr).to_owned()
    };
    let (expected, actual) = (said(&gnu), said(&stage.ferry()));
    for (expected, actual) in expected.lines().zip(actual.lines()) {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual.lines().count(), expected.lines().count());
}

#[test]
fn progress_is_shown_on_a_terminal_but_not_by_a_cp() {
    let stage = Stage::new();
    stage.set();
    let said = |program: &str, options: &str| {
        // `src/b` of 300,000 bytes takes more than a second.
        let line = format!("exec {program} {options} --bwlimit=200K src/b new");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        let output = command.current_dir(stage.root()).stdin(Stdio::null()).output().ok()?;
        assert!(output.status.success(), "{line}: {output:?}");
        Some(text(&output.stdout).to_owned())
    };
    let cp = stage.ferry();
    let Some(by_ferry) = said(FERRY, "cp") else { return skip("there is no script(1)").unwrap_or_default() };
    assert!(by_ferry.contains("copied"), "{by_ferry:?}");
    assert_eq!(said(cp.to_str().unwrap(), "").as_deref(), Some(""));
    assert!(said(cp.to_str().unwrap(), "--progress").is_some_and(|said| said.contains("copied")));
}
