//! Copies of whole trees.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::job::{
    PROGRAM, copy, copy_alone, end, expect_equal, job_of, make_many, make_random, mpirun, names, run, turn,
};

/// Options that make ranges and leases small, so that small trees have many.
const SMALL: &[&str] = &["--range", "64K", "--lease", "16"];

#[test]
fn random_trees_are_copied_as_by_the_single_program() {
    let _turn = turn();
    for seed in 0..6 {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        make_random(place.path(), seed, &path("source"));
        copy_alone(&path("source"), &path("alone"));
        copy(4, SMALL, &path("source"), &path("target"));
        expect_equal(&path("alone"), &path("target"), &format!("seed {seed}"));
        assert_eq!(names(place.path()), ["alone", "source", "target"], "the journal is removed");
    }
}

#[test]
fn a_rank_with_several_workers_copies_the_same() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    make_many(&source);
    // Open MPI gives a single rank one processor, unless it is told not to.
    let mut job = mpirun(1);
    job.args(["--bind-to", "none", PROGRAM, "cp", "-aT", "--range", "64K"]).args([&source, &target]);
    let output = end(job.spawn().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_equal(&source, &target, "several workers");
}

#[test]
fn sixteen_ranks_copy_what_one_rank_copies() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    copy(1, SMALL, &path("source"), &path("one"));
    expect_equal(&path("source"), &path("one"), "one rank");
    copy(16, SMALL, &path("source"), &path("sixteen"));
    expect_equal(&path("source"), &path("sixteen"), "16 ranks");
}

#[test]
fn a_second_copy_replaces_what_is_there_and_keeps_what_the_source_lacks() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("source/a")).unwrap();
    fs::write(path("source/a/f"), "new").unwrap();
    fs::create_dir_all(path("target/a")).unwrap();
    fs::write(path("target/a/f"), "old content").unwrap();
    fs::write(path("target/a/other"), "stays").unwrap();
    copy(3, &[], &path("source"), &path("target"));
    assert_eq!(fs::read_to_string(path("target/a/f")).unwrap(), "new");
    assert_eq!(fs::read_to_string(path("target/a/other")).unwrap(), "stays");
}

#[test]
fn an_existing_target_directory_gets_the_copy_in_it() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("source")).unwrap();
    fs::write(path("source/f"), "text").unwrap();
    fs::create_dir(path("target")).unwrap();
    let mut command = job_of(2, "-a");
    assert!(end(command.arg(path("source")).arg(path("target")).spawn().unwrap()).status.success());
    assert_eq!(fs::read_to_string(path("target/source/f")).unwrap(), "text");
}

#[test]
fn an_entry_that_fails_is_reported_by_its_path_and_costs_nothing_else() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("source/a")).unwrap();
    fs::write(path("source/a/file"), "text").unwrap();
    fs::write(path("source/b"), "text").unwrap();
    fs::create_dir_all(path("target/a/file")).unwrap();
    let output = run(3, &[], &path("source"), &path("target"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let target = path("target/a/file");
    let expected = format!("cannot overwrite directory '{}' with non-directory", target.display());
    assert!(said.contains(&expected), "{said}");
    assert_eq!(fs::read_to_string(path("target/b")).unwrap(), "text");
}

#[test]
fn names_of_one_file_in_many_folders_have_one_copy() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for folder in 0..20 {
        fs::create_dir_all(path(&format!("source/{folder}"))).unwrap();
        for file in 0..10 {
            let name = path(&format!("source/{folder}/{file}"));
            match folder {
                0 => fs::write(&name, format!("content {file}")).unwrap(),
                _ => fs::hard_link(path(&format!("source/0/{file}")), &name).unwrap(),
            }
        }
    }
    copy(4, &["--lease", "3"], &path("source"), &path("target"));
    expect_equal(&path("source"), &path("target"), "links");
    for file in 0..10 {
        assert_eq!(fs::metadata(path(&format!("target/0/{file}"))).unwrap().nlink(), 20);
    }
}

#[test]
fn everything_is_durable_with_fsync() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_random(place.path(), 77, &path("source"));
    copy(3, &["--fsync", "--range", "64K"], &path("source"), &path("target"));
    expect_equal(&path("source"), &path("target"), "with --fsync");
}

#[test]
fn a_copy_into_itself_and_a_file_are_refused() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("source")).unwrap();
    fs::write(path("file"), "text").unwrap();
    for (source, target, expected) in [
        ("source", "source/inner", "into itself"),
        ("source", "source", "into itself"),
        ("file", "target", "is not a directory"),
        ("missing", "target", "cannot stat"),
    ] {
        let output = run(2, &[], &path(source), &path(target));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{source} to {target}: {said}");
    }
    assert_eq!(names(place.path()), ["file", "source"]);
}
