//! Syncs: many processes make a target equal as one does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use ferry_tree::fill::SplitMix64;

use crate::job::{
    PROGRAM, copy_alone, end, expect_equal, make_many, make_random, mpirun, ranks, signal, turn,
};

const SMALL: &[&str] = &["--range", "64K", "--lease", "16"];

fn sync(processes: u32, options: &[&str], source: &Path, target: &Path) -> Command {
    let mut command = mpirun(processes);
    command.args([PROGRAM, "sync"]).args(SMALL).args(options).arg(source).arg(target);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Lists what is in a trash, without the name that has the time.
fn trash(target: &Path) -> Vec<String> {
    let Ok(dates) = fs::read_dir(target.join(".ferry-trash")) else { return Vec::new() };
    let mut found = Vec::new();
    for date in dates.flatten() {
        let mut folders = vec![date.path()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                found.push(entry.path().strip_prefix(date.path()).unwrap().display().to_string());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn random_targets_become_what_the_single_program_makes_of_them() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return;
    };
    let cases: [&[&str]; 7] = [
        &[],
        &["--delete=now"],
        &["--delete"],
        &["--checksum"],
        &["--newer", "--delete=now"],
        &["--inplace"],
        &["--exclude=a*", "--delete=now"],
    ];
    for (seed, options) in (0..).zip(cases) {
        make_random(place.path(), seed, &path("source"));
        // A target with entries of the same and of other types under the same names.
        make_random(place.path(), seed + 100, &path("other"));
        copy_alone(&path("other"), &path("target"));
        let mut alone = Command::new(&program);
        alone.arg("sync").args(options).args([path("source"), path("other")]);
        let wanted = alone.output().unwrap();
        let found = end(sync(4, options, &path("source"), &path("target")).spawn().unwrap());
        assert_eq!(found.status.code(), wanted.status.code(), "{options:?}: {}", said(&found));
        assert_eq!(trash(&path("target")), trash(&path("other")), "{options:?}");
        for target in ["target", "other"] {
            if path(target).join(".ferry-trash").exists() {
                ferry_tree::remove::remove(&path(target).join(".ferry-trash")).unwrap();
            }
        }
        // The trash has changed its time.
        alone.output().unwrap();
        assert!(end(sync(2, options, &path("source"), &path("target")).spawn().unwrap()).status.success());
        expect_equal(&path("other"), &path("target"), &format!("{options:?}"));
        for tree in ["source", "other", "target"] {
            ferry_tree::remove::remove(&path(tree)).unwrap();
        }
    }
}

#[test]
fn a_sync_that_was_killed_goes_on_and_ends_equal() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    for seed in 0..3 {
        fs::create_dir(path("target")).unwrap();
        fs::write(path("target/extra"), "").unwrap();
        let child = sync(4, &["--delete=now"], &path("source"), &path("target")).spawn().unwrap();
        let mut random = SplitMix64::new(seed);
        std::thread::sleep(Duration::from_millis(300 + random.below(1_200)));
        let processes = ranks(child.id());
        if !processes.is_empty() {
            signal(processes[random.index(processes.len())], "KILL");
        }
        end(child);
        let output = end(sync(4, &["--delete=now"], &path("source"), &path("target")).spawn().unwrap());
        assert!(output.status.success(), "seed {seed}: {}", said(&output));
        expect_equal(&path("source"), &path("target"), &format!("seed {seed}"));
        ferry_tree::remove::remove(&path("target")).unwrap();
    }
}

#[test]
fn wrong_arguments_are_refused_as_by_ferry_sync_and_change_nothing() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("source")).unwrap();
    fs::write(path("source/file"), "").unwrap();
    for (options, code, why) in [
        (&["--max-delete=3"][..], 2, "ferry sync: --max-delete needs --delete"),
        (&["--dry-run"], 0, "ferry-mpi: with --dry-run, rank 0 does all the work"),
    ] {
        let output = end(sync(2, options, &path("source"), &path("target")).spawn().unwrap());
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
        assert!(!path("target").exists());
    }
    let output = end(sync(2, &[], &path("missing"), &path("target")).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("ferry sync: "), "{}", said(&output));
    let output = end(sync(2, &[], &path("source"), &path("source/inner")).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!path("source/inner").exists());
}
