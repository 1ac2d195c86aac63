//! Syncs: many processes make a target equal as one does.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use ferry_tree::fill::SplitMix64;

use crate::job::{
    PROGRAM, copy_alone, end, expect_equal, files, make_many, make_random, mpirun, names, ranks, signal, turn,
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

/// Expects that many processes make of the tree `target` what the single program makes of it, with the same exit code and the same
/// trash. Returns that code and all output; `None` without that program.
fn expect_same_result(place: &Path, options: &[&str], what: &str) -> Option<(Option<i32>, String)> {
    let path = |name: &str| place.join(name);
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return None;
    };
    copy_alone(&path("target"), &path("other"));
    let mut alone = Command::new(&program);
    alone.arg("sync").args(options).args([path("source"), path("other")]);
    let wanted = alone.output().unwrap();
    let found = end(sync(4, options, &path("source"), &path("target")).spawn().unwrap());
    assert_eq!(found.status.code(), wanted.status.code(), "{what}: {}", said(&found));
    assert_eq!(trash(&path("target")), trash(&path("other")), "{what}");
    for target in ["target", "other"] {
        if path(target).join(".ferry-trash").exists() {
            ferry_tree::remove::remove(&path(target).join(".ferry-trash")).unwrap();
        }
    }
    // The trash has changed its time.
    alone.output().unwrap();
    let again = end(sync(2, options, &path("source"), &path("target")).spawn().unwrap());
    assert_eq!(again.status.code(), found.status.code(), "{what}: {}", said(&again));
    expect_equal(&path("other"), &path("target"), what);
    Some((found.status.code(), said(&found)))
}

#[test]
fn random_targets_become_what_the_single_program_makes_of_them() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
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
        make_random(place.path(), seed + 100, &path("target"));
        let Some((code, said)) = expect_same_result(place.path(), options, &format!("{options:?}")) else {
            return;
        };
        assert_eq!(code, Some(0), "{options:?}: {said}");
        for tree in ["source", "other", "target"] {
            ferry_tree::remove::remove(&path(tree)).unwrap();
        }
    }
}

/// Makes files with these contents.
fn make(top: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[test]
fn nothing_is_changed_if_ferry_sync_refuses_the_trees() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make(
        &path("source"),
        &[("file", "new"), ("another", "new"), ("inner/file", "other"), ("inner/third", "other")],
    );
    make(&path("old"), &[("file", "kept")]);
    make(&path("trash"), &[(".ferry-is-trash", ""), ("file", "kept")]);
    fs::create_dir(path("empty")).unwrap();
    std::os::unix::fs::symlink("nothing", path("dangling")).unwrap();
    let manifest = |name: &str| format!("--manifest={}", path(name).display());
    for (options, source, target, why) in [
        (&[][..], "source/inner", "source", "is in"),
        (&[], "source", "trash", "is a trash of ferry sync"),
        (&["--delete"], "empty", "old", "is empty"),
        (&[&*manifest("old/inside")], "source", "old", "is in"),
        (&[&*manifest("missing/file")], "source", "old", "cannot create"),
        (&[], "source", "missing/target", "cannot open"),
        (&[], "source", "dangling", "cannot"),
    ] {
        let before = listed(place.path());
        let output = end(sync(2, options, &path(source), &path(target)).spawn().unwrap());
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let said = said(&output);
        assert!(said.contains("ferry sync: ") && said.contains(why), "{why}: {said}");
        assert!(!said.contains("ferry-mpi: "), "{said}");
        assert_eq!(listed(place.path()), before, "{why}");
    }
}

/// An entry and its state.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    path: PathBuf,
    inode: u64,
    mode: u32,
    modified: SystemTime,
    /// Of a file.
    content: Option<Vec<u8>>,
}

/// Returns each entry beneath a folder.
fn listed(top: &Path) -> Vec<Listed> {
    let (mut found, mut folders) = (Vec::new(), vec![top.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let stat = path.symlink_metadata().unwrap();
            if stat.is_dir() {
                folders.push(path.clone());
            }
            let content = stat.is_file().then(|| fs::read(&path).unwrap());
            let modified = stat.modified().unwrap();
            found.push(Listed { path, inode: stat.ino(), mode: stat.mode(), modified, content });
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_copied_before_does_not_allow_more_deletions() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for (tree, count) in [("target", 1_200), ("source", 1_300)] {
        fs::create_dir(path(tree)).unwrap();
        (0..count).for_each(|number| fs::write(path(tree).join(format!("{tree}-{number}")), "").unwrap());
    }
    // A half of the target is 600 before, and 1,250 after the copy.
    let output = end(sync(2, &["--delete=now"], &path("source"), &path("target")).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("at most 1,000 may"), "{}", said(&output));
    assert!(path("target/target-7").exists());
    let output = end(sync(2, &["--delete=now", "--max-delete=1200"], &path("source"), &path("target"))
        .spawn()
        .unwrap());
    assert!(output.status.success(), "{}", said(&output));
    expect_equal(&path("source"), &path("target"), "--max-delete");
}

#[test]
fn trashes_on_both_sides_are_those_of_ferry_sync() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make(&path("source"), &[("old/one", "1"), ("file", "2"), ("new/two", "3"), ("new/deep/three", "4")]);
    fs::hard_link(path("source/new/two"), path("source/new/deep/again")).unwrap();
    make(&path("target"), &[("old/three", "4")]);
    for folder in ["source", "source/new", "target/old"] {
        fs::write(path(folder).join(".ferry-is-trash"), "").unwrap();
    }
    // A trash of the target stays as it is, and a trash of the source is copied if the target lacks it.
    if expect_same_result(place.path(), &[], "marks").is_none() {
        return;
    }
    assert!(!path("target/.ferry-is-trash").exists(), "the target is no trash");
    assert!(!path("target/old/one").exists());
    assert!(path("target/new/.ferry-is-trash").exists());
    assert_eq!(fs::metadata(path("target/new/two")).unwrap().nlink(), 2);
}

#[test]
fn linked_files_of_an_existing_target_are_those_of_ferry_sync() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for options in [&["--delete"][..], &["--newer"]] {
        make(&path("source"), &[("a", "of the source"), ("c", "another")]);
        fs::hard_link(path("source/a"), path("source/b")).unwrap();
        fs::hard_link(path("source/c"), path("source/d")).unwrap();
        // It is newer than the source.
        make(&path("target"), &[("a", "of the target"), ("e", "")]);
        if expect_same_result(place.path(), options, &format!("{options:?}")).is_none() {
            return;
        }
        for tree in ["source", "other", "target"] {
            ferry_tree::remove::remove(&path(tree)).unwrap();
        }
    }
}

#[test]
fn a_link_that_names_a_tree_is_followed() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make(&path("source"), &[("file", "new"), ("inner/file", "new")]);
    make(&path("target"), &[("file", "of another size")]);
    for (link, tree) in [("source-link", "source"), ("target-link", "target")] {
        std::os::unix::fs::symlink(tree, path(link)).unwrap();
    }
    let output = end(sync(2, &[], &path("source-link"), &path("target-link")).spawn().unwrap());
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("2 processes have copied 1 files and links"), "{}", said(&output));
    expect_equal(&path("source"), &path("target"), "through links");
    assert!(path("target-link").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn a_part_of_the_source_that_is_mounted_in_the_target_stays_as_it_is() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make(&path("source"), &[("file", "new"), ("inner/deep", "new")]);
    fs::create_dir_all(path("target/inner")).unwrap();
    let Some(mounted) = Mounted::bind(&path("source"), &path("target/inner")) else {
        println!("SKIP: no filesystem may be mounted");
        return;
    };
    let before = listed(&path("source"));
    end(sync(2, &[], &path("source"), &path("target")).spawn().unwrap());
    assert_eq!(listed(&path("source")), before);
    drop(mounted);
    assert!(path("target/file").exists());
}

/// A folder that is mounted at another path, too.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it; `None` without the right to.
    fn bind(folder: &Path, at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let status = mount.arg("--bind").arg(folder).arg(at).status();
        status.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().ok();
    }
}

#[test]
fn a_sync_that_was_killed_goes_on_and_ends_equal() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    let mut hits = 0;
    for seed in 0..4 {
        fs::create_dir(path("target")).unwrap();
        fs::write(path("target/extra"), "").unwrap();
        let mut child = sync(4, &["--delete=now"], &path("source"), &path("target")).spawn().unwrap();
        while names(&path("target")).len() < 2 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut random = SplitMix64::new(seed);
        std::thread::sleep(Duration::from_millis(random.below(150)));
        let processes = ranks(child.id());
        if !processes.is_empty() {
            signal(processes[random.index(processes.len())], "KILL");
        }
        hits += u32::from(!end(child).status.success());
        let complete = listed(&path("target"));
        let output = end(sync(4, &["--delete=now"], &path("source"), &path("target")).spawn().unwrap());
        assert!(output.status.success(), "seed {seed}: {}", said(&output));
        expect_equal(&path("source"), &path("target"), &format!("seed {seed}"));
        for Listed { path: file, inode, modified, content, .. } in complete {
            let name = file.strip_prefix(path("target")).unwrap();
            let source = path("source").join(name);
            let (Some(content), Ok(wanted)) = (content, fs::metadata(&source)) else { continue };
            // Of linked files, one name takes the place of another.
            let is_complete = wanted.modified().unwrap() == modified && fs::read(&source).unwrap() == content;
            if is_complete && wanted.nlink() == 1 {
                assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "{name:?} was complete");
            }
        }
        ferry_tree::remove::remove(&path("target")).unwrap();
    }
    assert!(hits > 0, "no kill came before the end");
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

#[test]
fn totals_of_both_steps_are_those_of_the_single_program() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return;
    };
    make_many(&path("source"));
    for round in 0..2 {
        if round == 1 {
            // Some entries are missing, some have changed, and one is foreign.
            for target in ["target", "other"] {
                fs::remove_dir_all(path(target).join("d1")).unwrap();
                fs::write(path(target).join("wide/f3"), "changed").unwrap();
                fs::write(path(target).join("foreign"), "foreign").unwrap();
            }
        }
        let mut alone = Command::new(&program);
        let wanted =
            alone.args(["sync", "--delete=now"]).args([path("source"), path("other")]).output().unwrap();
        let options = ["--stats=json", "--delete=now", "--progress"];
        let found = end(sync(4, &options, &path("source"), &path("target")).spawn().unwrap());
        assert!(wanted.status.success() && found.status.success(), "{}", said(&found));
        let totals = String::from_utf8_lossy(&found.stdout);
        let totals: serde_json::Value = serde_json::from_str(totals.trim()).unwrap();
        let line = said(&wanted);
        let number = |name: &str| {
            let rest = &line[line.find(name).unwrap() + name.len()..];
            let digits: String =
                rest.chars().take_while(|char| char.is_ascii_digit() || *char == ',').collect();
            digits.replace(',', "").parse::<u64>().unwrap()
        };
        for (name, before) in [("created", "created "), ("replaced", "replaced "), ("deleted", "deleted ")] {
            assert_eq!(totals[name], number(before), "{name}, round {round}: {totals}, {line}");
        }
        assert_eq!((&totals["failed"], &totals["ranks"]), (&0.into(), &4.into()), "{totals}");
        expect_equal(&path("source"), &path("target"), "sync");
    }
}

/// Makes a pair of trees that differ in part: the target is the source with other entries over some of its names.
fn make_pair(place: &Path, seed: u64) {
    let path = |name: &str| place.join(name);
    make_random(place, seed, &path("source"));
    if seed.is_multiple_of(2) {
        make_random(place, seed + 100, &path("target"));
        return;
    }
    copy_alone(&path("source"), &path("target"));
    let mut random = SplitMix64::new(seed);
    for file in files(&path("target")) {
        match random.below(4) {
            0 => fs::remove_file(&file).unwrap(),
            1 => {
                fs::remove_file(&file).unwrap();
                fs::write(&file, "other").unwrap();
            }
            _ => {}
        }
    }
    fs::write(path("target/foreign"), "foreign").unwrap();
}

#[test]
fn a_plan_is_the_one_that_the_single_program_writes_with_any_number_of_ranks() {
    let _turn = turn();
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program to compare with");
        return;
    };
    for seed in 0..4 {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        make_pair(place.path(), seed);
        let alone = |options: &[&str]| {
            let mut alone = Command::new(&program);
            alone.args(["sync", "--delete"]).args(options).args([path("source"), path("target")]);
            let output = alone.output().unwrap();
            assert!(output.status.success(), "seed {seed}: {}", said(&output));
            output
        };
        let plan = |name: &str| format!("--plan={}", path(name).display());
        alone(&[&plan("wanted")]);
        let shown = alone(&["--dry-run"]);
        let before = listed(&path("target"));
        let read = |name: &str| fs::read_to_string(path(name)).unwrap();
        assert!(read("wanted").lines().count() > 10, "seed {seed}: {}", read("wanted"));
        for ranks in [1, 2, 4] {
            let many = |option: &str| {
                let options = ["--delete", option];
                let output = end(sync(ranks, &options, &path("source"), &path("target")).spawn().unwrap());
                assert!(output.status.success(), "seed {seed}, {ranks} ranks: {}", said(&output));
                output
            };
            many(&plan("found"));
            assert_eq!(read("found"), read("wanted"), "seed {seed}, {ranks} ranks");
            assert_eq!(many("--dry-run").stdout, shown.stdout, "seed {seed}, {ranks} ranks");
            assert_eq!(listed(&path("target")), before, "a plan changes nothing");
        }
        let mut apply = Command::new(&program);
        let output = apply.arg("sync").arg("--apply").arg(path("found")).output().unwrap();
        assert!(output.status.success(), "seed {seed}: {}", said(&output));
        ferry_tree::remove::remove(&path("target/.ferry-trash")).unwrap();
        alone(&[]);
        expect_equal(&path("source"), &path("target"), &format!("seed {seed}"));
    }
}
