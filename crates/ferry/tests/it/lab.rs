//! `ferry lab`: records, errors, interruptions, exit codes, and that nothing is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ferry_lab::work::WorkFolder;
use rustix::fs::{IFlags, ioctl_getflags};
use serde_json::Value;

use crate::measured::unwrapped;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, ferry, is_root, place_program, skip, text};

/// Options of the smallest copy experiment.
const SMALLEST: &[&str] = &[
    "lab",
    "copy",
    "--quick",
    "--seed=3",
    "--trees=small",
    "--states=warm",
    "--programs=none",
    "--also=ferry-ring",
    "--dd-size=0",
    "--json=r.json",
];

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    place
}

fn left(place: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn record(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, line: &str, place: &Path) {
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.trim_end()), (Some(code), line));
    assert_eq!(left(place), Vec::<String>::new());
}

#[test]
fn a_tree_is_made_as_its_preset_says() {
    let place = place();
    let output = ferry(place.path(), &["lab", "tree", "small", "tree", "--depth=2", "--json=r.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let files = text(&output.stdout).lines().find(|line| line.starts_with("files "));
    assert!(files.is_some_and(|line| line.ends_with(" 155")), "{}", text(&output.stdout));
    let record = record(&place.path().join("r.json"));
    assert_eq!(record["experiment"], "tree");
    assert_eq!(record["cells"][0]["runs"][0]["figures"]["folders"], 31.0);
    assert_eq!(left(&place.path().join("tree")).len(), 10);
    let again = ferry(place.path(), &["lab", "tree", "small", "tree"]);
    assert_eq!(
        (again.status.code(), text(&again.stderr)),
        (Some(1), "ferry lab: cannot create 'tree': File exists\n")
    );
}

#[test]
fn a_copy_is_measured_quickly_and_leaves_its_record_only() {
    let place = place();
    let vs =
        ["--vs", "cp -a {source} {target}", "--vs=false {source} {target}", "--current-bench=bench.json"];
    let output = ferry(place.path(), &[SMALLEST, &vs[..]].concat());
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(3), "{said}{printed}");
    assert!(said.contains("seed 3\n"), "{said}");
    // The answer comes first, then that it is none.
    let answer = printed.split("\n--quick decides nothing; ").next().unwrap();
    let is_answer = answer.starts_with("ferry is ") && answer.ends_with("small files, warm (2 runs)");
    assert!(is_answer && !printed.contains('\u{1b}'), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    for part in ["\nsmall (2 levels fewer), warm\n", "\nferry ", "\nClaims\n", "\nNot measured: "] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert_eq!(left(place.path()), ["bench.json", "r.json"]);
    let found = record(&place.path().join("r.json"));
    assert_eq!(
        (&found["complete"], &found["seed"], &found["scale"]),
        (&false.into(), &3.into(), &"quick".into()),
        "one of the commands fails"
    );
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 5);
    assert!(
        cells.iter().all(|cell| cell["missing"].is_string() || cell["runs"].as_array().unwrap().len() == 2)
    );
    assert_eq!(cells[4]["missing"], "'/usr/bin/false' failed: exit status: 1");
    assert_eq!((&cells[4]["failed"], &cells[1]["failed"]), (&"run".into(), &Value::Null));
    assert_eq!(cells[1]["base"], "small/warm/cp");
    assert!(cells[0]["runs"][0]["proof"]["data_bytes"].as_u64().unwrap() > 0);
    let bench = record(&place.path().join("bench.json"));
    assert_eq!(bench["results"].as_array().unwrap().len(), 4);
}

#[test]
fn the_result_is_printed_as_asked_for() {
    let place = place();
    let run = |format: &str| {
        let output = ferry(place.path(), &["lab", "tree", "empty:10:2", &format!("tree{format}"), format]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    assert!(run("--csv").starts_with("experiment,cell,preset,cache,cache_proved,round,started,made_s,"));
    assert!(run("--markdown").contains("| files | 10 |"));
}

#[test]
fn the_result_goes_to_files_by_their_extensions() {
    let place = place();
    let outputs = ["-o", "r.json", "-o", "r.csv", "-o", "r.md", "-o", "r.html"];
    let output = ferry(place.path(), &[&["lab", "tree", "empty:10:2", "tree"], &outputs[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(left(place.path()), ["r.csv", "r.html", "r.json", "r.md", "tree"]);
    assert_eq!(record(&place.path().join("r.json"))["experiment"], "tree");
    for (name, begin) in [("r.csv", "experiment,cell,"), ("r.md", "#"), ("r.html", "<!doctype html>")] {
        let written = fs::read_to_string(place.path().join(name)).unwrap();
        assert!(written.starts_with(begin), "{name}: {written}");
    }
    let place = self::place();
    let output = ferry(place.path(), &["lab", "tree", "empty", "tree", "-o", "no/r.csv"]);
    refused(&output, 1, "ferry lab: cannot write 'no/r.csv': No such file or directory", place.path());
}

#[test]
fn an_interrupt_keeps_what_was_taken_and_resuming_takes_the_rest() {
    let place = place();
    let mut child = Command::new(FERRY)
        .current_dir(place.path())
        .args([
            "lab",
            "copy",
            "--trees=small",
            "--states=warm",
            "--programs=none",
            "--also=ferry-ring",
            "--limits=none",
            "--dd-size=0",
            "--fewer-levels=3",
        ])
        .args(["--vs", "sh -c 'sleep 0.3; exec cp -r \"$1\" \"$2\"' sh {source} {target}"])
        .args(["--runs=4", "--json=r.json"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !place.path().join("r.json").exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = rustix::process::Pid::from_child(&child);
    // timeout(1) sends signals twice, too.
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    let advice = "ferry lab: interrupted; finished runs are in 'r.json', continue with `ferry lab copy --resume 'r.json'`";
    assert!(said.contains(advice), "{said}");
    assert_eq!(left(place.path()), ["r.json"]);
    let taken = |found: &Value| -> usize {
        found["cells"].as_array().unwrap().iter().map(|cell| cell["runs"].as_array().unwrap().len()).sum()
    };
    let before = record(&place.path().join("r.json"));
    assert!(taken(&before) < 16 && before["complete"] == false, "{before}");
    let output = ferry(place.path(), &["lab", "copy", "--resume=r.json"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output.stderr));
    let after = record(&place.path().join("r.json"));
    assert_eq!(
        (taken(&after), &after["complete"], &after["seed"]),
        (16, &true.into(), &before["seed"]),
        "{before:#}\n{after:#}"
    );
    for (before, after) in before["cells"].as_array().unwrap().iter().zip(after["cells"].as_array().unwrap())
    {
        let (before, after) = (before["runs"].as_array().unwrap(), after["runs"].as_array().unwrap());
        assert_eq!(before[..], after[..before.len()]);
    }
    assert_eq!(left(place.path()), ["r.json"]);
}

#[test]
fn a_tree_that_has_levels_less_keeps_them_when_it_is_resumed() {
    let place = place();
    let path = place.path().join("r.json");
    let mut child = Command::new(FERRY)
        .current_dir(place.path())
        .args(["lab", "copy", "--trees=small", "--states=warm", "--programs=none", "--dd-size=0"])
        .args(["--also=ferry-ring", "--limits=none", "--minutes=1", "--runs=10000", "--json=r.json"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !path.exists() && start.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(
        said.contains("\ncopying will take about ") && said.contains("; the whole trees would take "),
        "{said}"
    );
    let output = ferry(place.path(), &["lab", "copy", "--resume=r.json", "--runs=1"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let found = record(&path);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &found["complete"]), (3, &true.into()), "{found}");
    // Of 3,905 files in four levels, 155 in two are the fewest.
    assert!(cells.iter().all(|cell| cell["parameters"]["levels"] == 2), "{found}");
    let said = text(&output.stdout);
    assert!(said.contains("small (2 levels fewer), warm\n"), "{said}");
    let why = "'small' has 2 levels fewer (155 of 3,905 files), because the whole tree would take too long; ";
    assert!(unwrapped(said).contains(why), "{said}");
    assert_eq!(left(place.path()), ["r.json"]);
}

/// Starts the command, and interrupts it when its record exists.
fn interrupted(place: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(FERRY);
    command.current_dir(place).args(arguments).args(["--seed=3", "--json=r.json"]);
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !place.join("r.json").exists() && start.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    record(&place.join("r.json"))
}

#[test]
fn trees_that_were_not_begun_yet_keep_their_levels_when_it_is_resumed() {
    let place = place();
    let trees = ["lab", "copy", "--trees=small,wide", "--states=warm", "--programs=none", "--dd-size=0"];
    let long = ["--also=ferry-ring", "--limits=none", "--minutes=1", "--runs=100000", "--fewer-levels=1"];
    let before = interrupted(place.path(), &[&trees[..], &long].concat());
    assert_eq!(before["cells"].as_array().unwrap().len(), 3, "the second tree was not begun");
    assert_eq!(before["settled"]["levels"][0], 2);
    let output = ferry(place.path(), &["lab", "copy", "--resume=r.json", "--runs=1"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let after = record(&place.path().join("r.json"));
    let cells = after["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &after["settled"]), (6, &before["settled"]));
    for cell in cells {
        let index = usize::from(cell["parameters"]["tree"] == "wide");
        assert_eq!(cell["parameters"]["levels"], before["settled"]["levels"][index], "{cell}");
    }
}

#[test]
fn a_copy_that_differs_is_told_whatever_else_was_measured() {
    let place = place();
    let wrong =
        "--vs=sh -c 'cp -r \"$1\" \"$2\" && echo >> \"$2/d0/f0\" || echo > \"$2/more\"' sh {source} {target}";
    let small = ["--trees=small", "--states=warm", "--programs=none", "--dd-size=0", "--fewer-levels=3"];
    let more = ["--also=ferry-ring", "--minutes=0", "--runs=5", "--json=r.json", wrong];
    let output = ferry(place.path(), &[&["lab", "copy"], &small[..], &more].concat());
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(3), "{said}{printed}");
    assert!(said.contains("small/warm/sh: the copy differs: "), "{said}");
    let printed = unwrapped(printed);
    assert!(printed.contains("the copy was wrong, so its figures are worthless"), "{printed}");
    let found = record(&place.path().join("r.json"));
    assert_eq!((&found["complete"], &found["cells"][3]["failed"]), (&false.into(), &"copy".into()));
}

#[test]
fn figures_are_printed_though_a_file_of_theirs_cannot_be_written() {
    let place = place();
    let line = "ferry lab: cannot write 'no/bench.json': No such file or directory";
    let run = |more: &[&str]| ferry(place.path(), &[&SMALLEST[..9], more].concat());
    refused(&run(&["--current-bench=no/bench.json"]), 1, line, place.path());
    // The command removes its work directory.
    let gone = "--vs=sh -c 'rm -rf \"$0\"; cp -r \"$1\" \"$2\"'";
    for option in ["--current-bench", "--json"] {
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let folder = folder.to_str().unwrap();
        let output = run(&[
            "--fewer-levels=3",
            &format!("{gone} {folder} {{source}} {{target}}"),
            &format!("{option}={folder}/f"),
        ]);
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        assert_eq!(output.status.code(), Some(1), "{said}{printed}");
        assert!(said.contains("ferry lab: cannot write '"), "{said}");
        assert!(printed.contains("\nClaims\n") || option == "--json", "{said}{printed}");
        for name in left(place.path()) {
            assert_eq!(name, "ferry-lab-copy-3.json");
            fs::remove_file(place.path().join(name)).unwrap();
        }
    }
}

#[test]
fn what_is_missing_is_told_before_anything_is_written() {
    let place = place();
    let run = |more: &[&str]| ferry(place.path(), &[SMALLEST, more].concat());
    let line = "ferry lab: cannot work in 'nowhere': No such file or directory";
    refused(&run(&["--work-dir=nowhere"]), 1, line, place.path());
    let line = "ferry lab: cannot write 'no/r.json': No such file or directory";
    let output = ferry(place.path(), &[&SMALLEST[..9], &["--json=no/r.json"]].concat());
    refused(&output, 1, line, place.path());
    let line = "ferry lab: invalid value 'hot' for '--states'; valid are: cold, warm";
    refused(&run(&["--states=hot"]), 2, line, place.path());
    let output = ferry(place.path(), &["lab", "dance"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("ferry lab: 'dance' is not an experiment; choose one of "));
    fs::write(place.path().join("old.json"), "{\"schema\": 0}").unwrap();
    let output = ferry(place.path(), &["lab", "copy", "--resume=old.json"]);
    let said = text(&output.stderr);
    assert!(said.ends_with("it is a record of version 0, older than the first published one, 1\n"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_copier_that_is_not_there_is_named_and_left_out() {
    let place = place();
    let output = ferry(
        place.path(),
        &[SMALLEST, &["--fewer-levels=3", "--vs=no-such-copier {source} {target}"]].concat(),
    );
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let found = record(&place.path().join("r.json"));
    let cells = found["cells"].as_array().unwrap();
    let is_left_out = |cell: &&Value| cell["missing"] == "'no-such-copier' is not found on the PATH";
    assert_eq!((cells.len(), cells.iter().filter(is_left_out).count()), (4, 1), "{found}");
    assert_eq!(found["complete"], true);
}

#[test]
fn what_is_there_is_not_replaced_by_another_record() {
    let place = place();
    let path = place.path().join("r.json");
    let tree = |more: &[&str]| {
        let output = ferry(place.path(), &[&["lab", "tree"], more].concat());
        (output.status.code(), text(&output.stderr).to_owned())
    };
    assert_eq!(tree(&["empty:10:2", "tree", "--json=r.json"]).0, Some(0));
    let whole = fs::read(&path).unwrap();
    let other = "holds a record of another 'lab tree'; remove it, or name another file\n";
    let (code, said) = tree(&["empty:10:3", "other", "--json=r.json"]);
    assert!(code == Some(2) && said.ends_with(other), "{said}");
    fs::write(place.path().join("text"), "a day's work").unwrap();
    let (code, said) = tree(&["empty:10:3", "other", "--json=text"]);
    assert!(
        code == Some(2)
            && said.ends_with("holds something that is no record; remove it, or name another file\n")
    );
    let output = ferry(place.path(), SMALLEST);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(fs::read(&path).unwrap(), whole);
    // A link to the record is followed, and stays a link.
    std::os::unix::fs::symlink("r.json", place.path().join("link")).unwrap();
    fs::remove_dir_all(place.path().join("tree")).unwrap();
    assert_eq!(tree(&["empty:10:2", "tree", "--json=link"]).0, Some(0));
    assert!(place.path().join("link").is_symlink() && fs::read(&path).unwrap() != whole);
    // A device must stay a device.
    for option in ["--json", "--current-bench"] {
        let output = ferry(place.path(), &[&SMALLEST[..9], &[&format!("{option}=/dev/null")]].concat());
        let line = "ferry lab: cannot write '/dev/null': it exists and is not a regular file\n";
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), line));
    }
    let mut unfinished = record(&path);
    unfinished["complete"] = false.into();
    fs::write(&path, unfinished.to_string()).unwrap();
    let (code, said) = tree(&["empty:10:2", "tree", "--json=r.json"]);
    assert!(code == Some(2) && said.contains("not complete: go on with it by --resume"), "{said}");
}

#[test]
fn without_root_cold_cells_say_why_they_are_missing() {
    let place = place();
    let binary = place.path().join("ferry");
    place_program(Path::new(FERRY), &binary);
    let work = place.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&work, PermissionsExt::from_mode(0o777)).unwrap();
    let run = |states: &str| {
        let mut command = Command::new(&binary);
        command.current_dir(&work).args(SMALLEST).args([states, "--fewer-levels=3"]);
        if is_root() {
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    let output = run("--states=cold,warm");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let found = record(&work.join("r.json"));
    for cell in found["cells"].as_array().unwrap() {
        let is_cold = cell["cache"] == "cold";
        let why = cell["missing"].as_str().unwrap_or_default();
        assert_eq!(why.starts_with("cold caches need the right to write"), is_cold, "{cell}");
        assert_eq!(cell["runs"].as_array().unwrap().is_empty(), is_cold, "{cell}");
    }
    fs::remove_file(work.join("r.json")).unwrap();
    let line = "ferry lab: cold caches need the right to write /proc/sys/vm/drop_caches: run it as root, or leave out \
                the cold state";
    refused(&run("--states=cold"), 1, line, &work);
}

#[test]
fn a_tree_larger_than_the_disk_is_refused() {
    within("lab::a_tree_larger_than_the_disk_is_refused", "ext4", |ext4| {
        fs::remove_dir(ext4.path().join("lost+found")).unwrap();
        let output = ferry(ext4.path(), &[&SMALLEST[..4], &["--trees=huge", "--json=r.json"]].concat());
        let said = text(&output.stderr).trim_end().to_owned();
        assert!(
            said.starts_with("ferry lab: the experiment needs 4.3") && said.ends_with("MB free"),
            "{said}"
        );
        refused(&output, 1, &said, ext4.path());
    });
}

#[test]
fn a_disk_that_fills_up_leaves_nothing() {
    if !is_root() {
        skip::<()>("mounting needs root");
        return;
    }
    let memory = Filesystem::memory();
    // dd then uses up the space.
    let script = "mkdir full && mount -t tmpfs -o size=80m tmpfs full || exit 99; \"$0\" lab copy --quick --trees=small \
                  --states=warm --programs=none --dd-size=0 --work-dir=full \
                  --vs 'sh -c \"head -c 200000000 /dev/zero > $1\" sh {target} {source}'; code=$?; ls full; exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, FERRY]).current_dir(memory.path());
    let output = command.output().unwrap();
    if output.status.code() == Some(99) {
        skip::<()>("nothing can be mounted here");
        return;
    }
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("small/warm/sh: '/usr/bin/sh' failed: head: "), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(
        unwrapped(printed)
            .contains("other cells are complete; fix the cause, then continue with --resume FILE"),
        "{printed}"
    );
}

/// Looks at a work folder on this filesystem: does the filesystem pass over removed inodes, and does each copy get others?
fn removals(place: &Filesystem) -> (bool, bool) {
    let work = WorkFolder::make(place.path()).unwrap();
    let flags = ioctl_getflags(fs::File::open(work.path()).unwrap());
    let is_spread = flags.is_ok_and(|flags| flags.contains(IFlags::TOPDIR));
    (ferry_lab::machine::Filesystem::look(work.path()).avoids_removed_inodes(), is_spread)
}

#[test]
fn copies_get_other_inodes_than_removed_ones_on_ext4_without_a_journal() {
    let test = "lab::copies_get_other_inodes_than_removed_ones_on_ext4_without_a_journal";
    within(test, "ext4 -O ^has_journal", |ext4| assert_eq!(removals(ext4), (true, true)));
}

#[test]
fn a_journal_makes_removed_inodes_free_at_once() {
    let test = "lab::a_journal_makes_removed_inodes_free_at_once";
    within(test, "ext4", |ext4| assert_eq!(removals(ext4), (false, true)));
}
