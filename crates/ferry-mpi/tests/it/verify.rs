//! Comparisons: many processes find what one finds.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::job::{PROGRAM, copy_alone, end, make_many, make_random, mpirun, ranks, signal, turn};

const SMALL: &[&str] = &["--range", "64K", "--lease", "16"];

/// Runs `ferry-mpi verify`.
fn verify(processes: u32, options: &[&str], source: &Path, target: &Path) -> Output {
    let mut command = mpirun(processes);
    command.args([PROGRAM, "verify"]).args(SMALL).args(options).arg(source).arg(target);
    end(command.spawn().unwrap())
}

/// Runs `ferry verify`. `None` if the tests don't know the program.
fn verify_alone(options: &[&str], source: &Path, target: &Path) -> Option<Output> {
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return None;
    };
    let mut command = Command::new(program);
    Some(command.arg("verify").args(options).arg(source).arg(target).output().unwrap())
}

/// Expects the same lines in any order, and the same exit code.
fn expect_same(processes: u32, options: &[&str], source: &Path, target: &Path) -> Vec<String> {
    let lines = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<String> = text.lines().map(without_bytes).collect();
        lines.sort_unstable();
        lines
    };
    let many = verify(processes, options, source, target);
    let Some(one) = verify_alone(options, source, target) else { return lines(&many) };
    assert_eq!(lines(&many), lines(&one), "{}", String::from_utf8_lossy(&many.stderr));
    assert_eq!(many.status.code(), one.status.code(), "{}", String::from_utf8_lossy(&many.stderr));
    lines(&one)
}

/// Removes the number of bytes that were compared: ranges behind the first difference are compared, too.
fn without_bytes(line: &str) -> String {
    let Some((before, after)) = line.split_once("\"bytes\":") else { return line.to_owned() };
    format!("{before}{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

fn change(path: &Path, offset: usize) {
    let times = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 1;
    fs::write(path, bytes).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(times).unwrap();
}

#[test]
fn random_trees_are_equal_and_with_changes_as_different_as_the_single_program_says() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for seed in 0..3 {
        let (source, target) = (path("source"), path("target"));
        make_random(place.path(), seed, &source);
        copy_alone(&source, &target);
        let equal = expect_same(4, &["--all"], &source, &target);
        assert!(equal.last().is_some_and(|line| line.starts_with("equal: ")), "seed {seed}: {equal:?}");
        // Two ranges of a file, and one of its names; a name of its own for a linked file; and what only one side has.
        let large = target.join("zz/large");
        change(&large.join("file"), 900_000);
        change(&large.join("file"), 200_000);
        fs::remove_file(large.join("again")).unwrap();
        fs::write(large.join("again"), "another file").unwrap();
        fs::hard_link(large.join("hole"), large.join("hole too")).unwrap();
        symlink("nowhere", target.join("link")).unwrap();
        fs::set_permissions(&large, fs::Permissions::from_mode(0o700)).unwrap();
        for options in [&["--all"][..], &["--json"], &["--ignore=content,times"], &["-q"]] {
            expect_same(4, options, &source, &target);
        }
        expect_same(1, &["--all"], &target, &source);
        ferry_tree::remove::remove(&source).unwrap();
        ferry_tree::remove::remove(&target).unwrap();
    }
}

#[test]
fn a_wide_folder_is_shared_and_every_change_in_it_is_found_once() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    make_many(&source);
    copy_alone(&source, &target);
    expect_same(16, &["--all"], &source, &target);
    let wide = target.join("wide");
    for file in (40..3_000).step_by(7).filter(|file| file % 50 > 0) {
        change(&wide.join(format!("f{file}")), 0);
    }
    for file in 0..200 {
        fs::create_dir(wide.join(format!("g{file}"))).unwrap();
        fs::create_dir(source.join(format!("wide/g{file}"))).unwrap();
        fs::write(wide.join(format!("g{file}/inner")), "").unwrap();
    }
    fs::write(wide.join("h"), "").unwrap();
    // A name of a file with several becomes a file.
    fs::copy(target.join("links/1/l1"), place.path().join("l")).unwrap();
    fs::remove_file(target.join("links/1/l1")).unwrap();
    fs::rename(place.path().join("l"), target.join("links/1/l1")).unwrap();
    for processes in [4, 16] {
        let lines = expect_same(processes, &["--all", "--ignore=times"], &source, &target);
        let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
        assert_eq!((count("only in the target"), count("content differs from byte 0")), (201, 415));
    }
}

#[test]
fn trees_that_can_not_be_compared_by_many_are_refused_or_compared_by_one() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("one"), "same").unwrap();
    fs::write(path("other"), "same").unwrap();
    expect_same(2, &["--all"], &path("one"), &path("other"));
    expect_same(2, &["--all"], &path("one"), place.path());
    expect_same(2, &["--all"], &path("one"), &path("missing"));
    let said = |arguments: &[&str]| {
        let mut command = mpirun(2);
        let output = end(command.args([PROGRAM, "verify"]).args(arguments).spawn().unwrap());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, why) = said(&["only"]);
    assert!(
        code == Some(2) && why.starts_with("ferry verify: missing operand after 'only'"),
        "{code:?} {why}"
    );
    let (code, _, why) = said(&["--manifest=x", "y"]);
    assert!(
        code == Some(2) && why.contains("a manifest can't be compared by many processes"),
        "{code:?} {why}"
    );
    let (code, help, _) = said(&["--help"]);
    assert!(code == Some(0) && help.matches("Exit status:").count() == 1, "{code:?} {help}");
}

#[test]
fn large_folders_beside_each_other_and_names_of_one_side_are_found_once() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    for folder in ["a", "b", "c"] {
        fs::create_dir_all(source.join(folder)).unwrap();
        for file in 0..2_600 {
            fs::write(source.join(folder).join(file.to_string()), folder).unwrap();
        }
    }
    copy_alone(&source, &target);
    fs::write(target.join("b/7"), "d").unwrap();
    fs::remove_dir_all(target.join("c")).unwrap();
    fs::create_dir(target.join("c")).unwrap();
    let lines = expect_same(4, &["--all", "--ignore=times"], &source, &target);
    assert_eq!(lines.len(), 2_600 + 1 + 1, "and the verdict");
    expect_same(1, &["--all"], &source, &target);
    // The top folder is large.
    expect_same(4, &["--all", "--ignore=times"], &source.join("b"), &target.join("b"));
    // A link is followed if a dot comes after it.
    symlink("source", place.path().join("link")).unwrap();
    expect_same(2, &["--all"], &place.path().join("link/."), &target);
    expect_same(2, &["--all"], &place.path().join("link"), &target);
}

/// Returns true if a process has a file open.
fn has_open(process: u32, file: &Path) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    descriptors.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|open| open == file))
}

/// Expects a comparison that takes long to end with a verdict after a signal to the process that `choose` returns.
fn expect_end_by_signal(choose: impl Fn(u32) -> u32) {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for tree in ["source", "target"] {
        fs::create_dir(path(tree)).unwrap();
        fs::write(path(tree).join("bytes"), vec![0; 600 << 20]).unwrap();
    }
    let mut command = mpirun(4);
    command.args([PROGRAM, "verify", "--ignore=times"]).args([path("source"), path("target")]);
    let child = command.spawn().unwrap();
    let since = Instant::now();
    while !ranks(child.id()).into_iter().any(|rank| has_open(rank, &path("source/bytes"))) {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing is compared");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(signal(choose(child.id()), "INT"));
    let output = end(child);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("interrupted: no difference in "),
        "{said} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn a_signal_to_any_rank_ends_a_comparison_with_a_verdict() {
    let _turn = turn();
    for rank in [0, 3] {
        expect_end_by_signal(|mpirun| ranks(mpirun)[rank]);
    }
}

#[test]
fn sixty_four_descriptors_are_enough_for_each_rank_that_compares() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    make_many(&source);
    copy_alone(&source, &target);
    let mut limited = mpirun(4);
    limited.args(["sh", "-c", "ulimit -n 64 && exec \"$0\" \"$@\"", PROGRAM, "verify"]).args(SMALL);
    let output = end(limited.arg(&source).arg(&target).spawn().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
