//! Options of `ferry cp`: many processes make of them what one makes, or refuse them.
//!
//! The single program copies with `--atomic`, as ranks do.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use ferry_tree::compare::{Holes, Options, Progress, trees};
use ferry_tree::make::make;
use ferry_tree::{Node, Tree};

use crate::job::{PROGRAM, copy_alone, end, make_random, mpirun, names, turn};

const SMALL: &[&str] = &["--range", "64K", "--lease", "16"];

/// Runs the program that its arguments name with a umask that lets the group write.
const WITH_UMASK: &[&str] = &["-c", "umask 002 && exec \"$0\" \"$@\""];

/// Returns a job of `cp` of four ranks, without operands.
fn many(options: &[&str]) -> Command {
    let mut command = mpirun(4);
    command.arg("sh").args(WITH_UMASK).args([PROGRAM, "cp"]).args(options).args(SMALL);
    command
}

/// Returns the same copy by the single program; `None` without it.
fn one(options: &[&str]) -> Option<Command> {
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return None;
    };
    let mut command = Command::new("sh");
    command.args(WITH_UMASK).arg(program).args(["cp", "--atomic"]).args(options);
    Some(command)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Returns the lines of an output in order, with one name for both targets.
fn lines(output: &[u8], target: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(output).replace(target.to_str().unwrap(), "TARGET");
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Compares two trees; with their times if these were kept.
fn expect_like(wanted: &Path, found: &Path, mtime: bool, what: &str) {
    let options = Options { threads: 1, mtime, holes: Holes::Same, ..Options::all() };
    let differences = Mutex::new(Vec::new());
    let note = |difference| differences.lock().unwrap().push(format!("{difference}"));
    trees(wanted, found, &options, &Progress::new(), &note).unwrap();
    assert_eq!(differences.into_inner().unwrap(), Vec::<String>::new(), "{what}");
}

/// Copies to a new target, and over one with other entries of the same names. Expects what the single program leaves.
fn expect_same(seed: u64, options: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_random(place.path(), seed, &path("source"));
    make_random(place.path(), seed + 100, &path("target"));
    copy_alone(&path("target"), &path("other"));
    let keeps_times = options.iter().any(|option| option.starts_with("-a") || option.starts_with("-rp"));
    let keeps_times = keeps_times && !options.contains(&"--no-preserve=timestamps");
    for (target, other) in [("target", "other"), ("new", "new other")] {
        let (target, other) = (path(target), path(other));
        let Some(mut alone) = one(options) else { return };
        let wanted = alone.args(["-T".as_ref(), path("source").as_path(), &other]).output().unwrap();
        let mut job = many(options);
        let found = end(job.args(["-T".as_ref(), path("source").as_path(), &target]).spawn().unwrap());
        let what = format!("{options:?}, {}: {}\n{}", target.display(), said(&found), said(&wanted));
        assert_eq!(found.status.code(), wanted.status.code(), "{what}");
        expect_like(&other, &target, keeps_times, &what);
    }
    assert_eq!(names(place.path()), ["new", "new other", "other", "source", "target"], "{options:?}");
}

#[test]
fn attributes_are_kept_as_by_the_single_program() {
    let _turn = turn();
    let cases: [&[&str]; 9] = [
        &["-r"],
        &["-dR"],
        &["-rp"],
        &["-R", "--preserve=mode"],
        &["-r", "--preserve=ownership,links"],
        &["-a", "--no-preserve=timestamps"],
        &["-a", "--no-preserve=mode"],
        &["-a", "--attributes-only"],
        &["-rH", "--preserve=xattr,mode"],
    ];
    (0..).zip(cases).for_each(|(seed, options)| expect_same(seed, options));
}

#[test]
fn existing_targets_meet_the_same_fate_as_by_the_single_program() {
    let _turn = turn();
    let cases: [&[&str]; 9] = [
        &["-a"],
        &["-an"],
        &["-au"],
        &["-r", "--update=none"],
        &["-ru"],
        &["-af"],
        &["-a", "--remove-destination"],
        &["-al"],
        &["-rT", "--preserve=links", "--update=older"],
    ];
    (20..).zip(cases).for_each(|(seed, options)| expect_same(seed, options));
}

#[test]
fn bytes_are_moved_as_by_the_single_program() {
    let _turn = turn();
    let cases: [&[&str]; 8] = [
        &["-a", "--sparse=always"],
        &["-r", "--sparse=never"],
        &["-a", "--reflink=never"],
        &["-a", "--verify"],
        &["-a", "--direct"],
        &["-a", "--bwlimit=400M"],
        &["-a", "--workers=2", "--block-size=64K", "--backend=posix", "--route=pool"],
        &["-rL"],
    ];
    (40..).zip(cases).for_each(|(seed, options)| expect_same(seed, options));
}

/// Makes folders and links between them.
fn make_links(source: &Path) {
    let tree = Tree::new()
        .with("real/inner/file", Node::file("text"))
        .with("real/large", Node::seeded(300_000, 1))
        .with("to folder", Node::symlink("real"))
        .with("to file", Node::symlink("real/inner/file"))
        .with("to large", Node::symlink("real/large"))
        .with("real/inner/up", Node::symlink(".."))
        .with("to nothing", Node::symlink("nothing"));
    make(&tree, source).unwrap();
}

#[test]
fn links_are_followed_into_folders_and_not_in_circles() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_links(&path("source"));
    std::os::unix::fs::symlink("source", path("link")).unwrap();
    for (options, source) in [(&["-rL"][..], "source"), (&["-rH"], "link"), (&["-rL", "-p"], "link")] {
        let Some(mut alone) = one(options) else { return };
        fs::create_dir(path("other")).unwrap();
        fs::create_dir(path("target")).unwrap();
        let wanted = alone.args([path(source), path("other")]).output().unwrap();
        let mut job = many(options);
        let found = end(job.args([path(source), path("target")]).spawn().unwrap());
        let what = format!("{options:?}: {}\n{}", said(&found), said(&wanted));
        assert_eq!(found.status.code(), wanted.status.code(), "{what}");
        expect_like(&path("other"), &path("target"), false, &what);
        assert_eq!(fs::metadata(path("target").join(source).join("real/large")).unwrap().len(), 300_000);
        fs::remove_dir_all(path("other")).unwrap();
        fs::remove_dir_all(path("target")).unwrap();
    }
}

#[test]
fn the_target_is_found_as_by_the_single_program() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("source/inner")).unwrap();
    fs::write(path("source/inner/file"), "text").unwrap();
    for (options, source, target) in [
        (&["-a"][..], "source", "new"),
        (&["-a"], "source/.", "target"),
        (&["-a"], "source/", "target"),
        (&["-at", "target"], "source", ""),
        (&["-a", "--target-directory=target"], "source", ""),
        (&["-a", "-t", "missing"], "source", ""),
        (&["-a"], "source", "missing/target"),
        (&["-aT"], "source", "target"),
    ] {
        let Some(mut alone) = one(options) else { return };
        let mut job = many(options);
        let mut results = Vec::new();
        for (place, command) in [("alone", &mut alone), ("ranks", &mut job)] {
            fs::create_dir_all(path(place).join("target")).unwrap();
            command.current_dir(path(place)).arg(path("source").parent().unwrap().join(source));
            if !target.is_empty() {
                command.arg(target);
            }
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            results.push(end(command.spawn().unwrap()));
        }
        let what = format!("{options:?} {source} {target}: {}\n{}", said(&results[1]), said(&results[0]));
        assert_eq!(results[1].status.code(), results[0].status.code(), "{what}");
        expect_like(&path("alone"), &path("ranks"), false, &what);
        fs::remove_dir_all(path("alone")).unwrap();
        fs::remove_dir_all(path("ranks")).unwrap();
    }
}

#[test]
fn another_filesystem_is_not_entered() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("source/mounted")).unwrap();
    fs::write(path("source/file"), "text").unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(path("source/mounted")).status();
    if !mount.is_ok_and(|status| status.success()) {
        println!("SKIP: no filesystem may be mounted");
        return;
    }
    fs::write(path("source/mounted/file"), "text").unwrap();
    let copied = [&["-a"][..], &["-ax"], &["-rx"]].map(|options| {
        let target = path(options[0]);
        let output = end(many(options).args([path("source"), target.clone()]).spawn().unwrap());
        (output.status.success(), target.join("file").exists(), names(&target.join("mounted")))
    });
    assert!(Command::new("umount").arg(path("source/mounted")).status().unwrap().success());
    let entered = (true, true, vec!["file".to_owned()]);
    assert_eq!(copied, [entered, (true, true, Vec::new()), (true, true, Vec::new())]);
}

#[test]
fn entries_failures_and_totals_are_shown_by_rank_0() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_random(place.path(), 7, &path("source"));
    fs::create_dir_all(path("blocked/target/zz/large/file")).unwrap();
    for (options, target, other) in
        [(&["-av"][..], "target", "other"), (&["-rv"], "blocked/target", "blocked/other")]
    {
        if target.contains('/') {
            copy_alone(&path(target), &path(other));
        }
        let (errors, other_errors) = (path("errors"), path("other errors"));
        let all = [options, &["--stats=json", "--errors", errors.to_str().unwrap()]].concat();
        let Some(mut alone) = one(options) else { return };
        alone.arg("--errors").arg(&other_errors).arg("-T");
        let wanted = alone.args([path("source"), path(other)]).output().unwrap();
        let found = end(many(&all).arg("-T").args([path("source"), path(target)]).spawn().unwrap());
        assert_eq!(found.status.code(), wanted.status.code(), "{}", said(&found));
        let mut printed = lines(&found.stdout, &path(target));
        let totals = printed.iter().position(|line| line.starts_with('{')).map(|at| printed.remove(at));
        // A name is reported once.
        let distinct: BTreeSet<_> = printed.iter().collect();
        assert_eq!(distinct.len(), printed.len());
        assert_eq!(printed, lines(&wanted.stdout, &path(other)), "{options:?}");
        let failures = lines(&fs::read(&errors).unwrap(), &path(target));
        assert_eq!(failures, lines(&fs::read(&other_errors).unwrap(), &path(other)), "{options:?}");
        let totals: serde_json::Value = serde_json::from_str(&totals.unwrap()).unwrap();
        assert_eq!(totals["failed"], failures.len(), "{totals}");
        assert_eq!(totals["ranks"], 4);
    }
}

#[test]
fn totals_that_can_not_be_printed_are_a_failure() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_random(place.path(), 9, &path("source"));
    // Standard output of rank 0 alone: mpirun reads that of its processes.
    let script = "if [ \"$OMPI_COMM_WORLD_RANK\" = 0 ]; then exec > /dev/full; fi; exec \"$0\" \"$@\"";
    for task in [&["cp", "-aT"][..], &["sync"]] {
        let target = path(task[0]);
        let mut job = mpirun(2);
        job.args(["sh", "-c", script, PROGRAM]).args(task).arg("--stats=json");
        let output = end(job.args([&path("source"), &target]).spawn().unwrap());
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{task:?}: {said}");
        assert!(said.contains("cannot print the totals: No space left on device"), "{task:?}: {said}");
        expect_like(&path("source"), &target, true, &said);
    }
}

#[test]
fn ways_of_copying_are_explained_by_one_table() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_random(place.path(), 8, &path("source"));
    let output = end(many(&["-a", "--explain"]).args([path("source"), path("target")]).spawn().unwrap());
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && table.starts_with("way "), "{}", said(&output));
    assert!(table.lines().any(|line| line.starts_with("ranges")), "{table}");
    assert_eq!(table.matches("reason").count(), 1, "{table}");
}

#[test]
fn an_option_that_many_processes_can_not_obey_is_refused_by_its_name() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("source")).unwrap();
    for (options, name) in [
        (&["-ab"][..], "--backup"),
        (&["-aS", "x"], "--backup"),
        (&["-ai"], "--interactive"),
        (&["-a", "--update=none-fail"], "--update=none-fail"),
        (&["-a", "--parents"], "--parents"),
        (&["-as"], "--symbolic-link"),
        (&["-a", "--copy-contents"], "--copy-contents"),
        (&["-a", "--debug"], "--debug"),
        (&["-aL"], "--dereference"),
        (&["-a", "--keep-directory-symlink"], "--keep-directory-symlink"),
        (&["-a", "--events=events"], "--events"),
        (&["-a", "--manifest=manifest"], "--manifest"),
        (&["-a", "source"], "more than one SOURCE"),
        (&["-p"], "a copy without -r"),
    ] {
        let mut job = many(options);
        job.current_dir(place.path()).args(["source", "target"]);
        let output = end(job.spawn().unwrap());
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {said}");
        let expected = format!("ferry-mpi: {name}");
        let lines: Vec<_> = said.lines().filter(|line| line.starts_with(&expected)).collect();
        assert!(lines.len() == 1 && lines[0].contains(" is not possible with many processes: "), "{said}");
        assert_eq!(names(place.path()), ["source"], "{options:?}");
    }
}

#[test]
fn each_option_of_ferry_cp_is_in_the_document() {
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return;
    };
    let help = Command::new(program).args(["cp", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md")).unwrap();
    let is_end = |byte: char| !(byte.is_ascii_alphanumeric() || byte == '-');
    let listed = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let options: BTreeSet<_> = listed
        .flat_map(|line| line.split(' ').filter(|word| word.starts_with("--")).take(1))
        .map(|word| word.split(is_end).next().unwrap())
        .collect();
    assert!(options.len() > 40, "{options:?}");
    for option in options {
        let is_named =
            document.match_indices(option).any(|(at, _)| document[at + option.len()..].starts_with(is_end));
        assert!(is_named, "{option} is missing in docs/cluster.md");
    }
}
