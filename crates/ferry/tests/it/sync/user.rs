//! Runs of a normal user, who can set neither owners nor attributes of root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use ferry_tree::random::Knobs;
use ferry_tree::{Node, Tree};

use super::deletion::trashes;
use super::{Pair, knobs, said, seeds};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, place_program, skip};

/// A user who is not root.
pub(super) const NOBODY: u32 = 65_534;

/// Gives a pair to that user. Nobody but root may change what is in folders that they may not write to.
pub(super) fn give_to_user(pair: &Pair) {
    let given = "chown -hR 65534:65534 . && chmod -R u+rwX .";
    assert!(Command::new("sh").args(["-c", given]).current_dir(pair.path()).status().unwrap().success());
}

/// Gives a pair to that user, and leaves its modes.
pub(super) fn give_entries_to_user(pair: &Pair) {
    let given = Command::new("chown").args(["-hR", "65534:65534", "."]).current_dir(pair.path()).status();
    assert!(given.unwrap().success());
}

/// Runs `ferry sync` as that user, who can run `program`.
pub(super) fn sync_as_user(program: &Path, pair: &Pair, words: &[&str]) -> Output {
    run_as_user(program, pair, &[&["sync"], words].concat())
}

/// Runs a command of ferry as that user.
pub(super) fn run_as_user(program: &Path, pair: &Pair, words: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(pair.path()).env("LC_ALL", "C.UTF-8");
    command.uid(NOBODY).gid(NOBODY).output().unwrap()
}

#[test]
fn a_normal_user_makes_trees_equal() {
    if !is_root() {
        // All other tests are run by this user.
        return;
    }
    let memory = Filesystem::memory();
    let ferry = memory.path().join("ferry");
    place_program(Path::new(FERRY), &ferry);
    for seed in seeds(6) {
        let possible = knobs(memory.path(), seed);
        let knobs =
            Knobs { unreadable: false, devices: false, owners: false, trusted_xattrs: false, ..possible };
        let (pair, _) = Pair::random(memory.path(), seed, &knobs);
        give_to_user(&pair);
        let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
        for round in 0..2 {
            let words = ["-v", "--delete", "--backend", backend, "source", "target"];
            let output = sync_as_user(&ferry, &pair, &words);
            assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
            pair.assert_equal("source", "target", &output);
            assert!(round == 0 || output.stdout.is_empty(), "FERRY_SEED={seed}: {}", said(&output));
        }
    }
}

/// Folders of the source may not be written to, and all entries of the target are to be changed.
fn read_only_pair(memory: &Filesystem) -> Pair {
    let closed = || Node::directory().mode(0o555);
    let file = |text: &str| Node::file(text).mtime(1_000, 1);
    let source = Tree::new()
        .root(closed())
        .with("top", file("new"))
        .with("a", closed())
        .with("a/file", file("new"))
        .with("a/b", closed())
        .with("a/b/file", file("new"))
        .with("a/b/folder", file("no folder"));
    let target = Tree::new()
        .root(Node::directory())
        .with("top", file("old"))
        .with("gone", file("gone"))
        .with("a/file", file("older"))
        .with("a/b/gone", file("gone"))
        .with("a/b/folder/gone", file("gone"))
        .with("a/old/gone", file("gone"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    give_entries_to_user(&pair);
    pair
}

pub(super) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_user_changes_entries_of_own_folders_whose_modes_deny_it() {
    if !is_root() {
        return;
    }
    let memory = Filesystem::memory();
    let ferry = memory.path().join("ferry");
    place_program(Path::new(FERRY), &ferry);
    for (backend, delete) in
        [("posix", "--delete=now"), ("uring", "--delete=now"), ("posix", "--delete"), ("uring", "--delete")]
    {
        let pair = read_only_pair(&memory);
        let [source, target] = ["source", "target"].map(|name| pair.path().join(name));
        let words = [delete, "--backend", backend, "source", "target"];
        // The folders of the target get their modes in the first run, and have them before the second.
        for text in ["first", "second"] {
            if text == "second" {
                fs::rename(source.join("a/file"), source.join("a/b/other")).unwrap();
                fs::create_dir(target.join("a/b/extra")).unwrap();
                fs::write(target.join("a/b/extra/gone"), "gone").unwrap();
                give_entries_to_user(&pair);
            }
            for path in ["top", "a/b/file"] {
                fs::write(source.join(path), text).unwrap();
            }
            let output = sync_as_user(&ferry, &pair, &words);
            assert!(output.status.success(), "{backend} {delete}: {}", said(&output));
            pair.assert_equal("source", "target", &output);
        }
        let mut trashes = trashes(&target);
        trashes.sort();
        for trash in trashes.iter().rev() {
            let undone = sync_as_user(&ferry, &pair, &["--undo", trash.to_str().unwrap()]);
            assert!(undone.status.success(), "{}", said(&undone));
            assert!(!trash.exists(), "{}", said(&undone));
        }
        for path in ["", "a", "a/b"] {
            assert_eq!(mode(&target.join(path)), 0o555, "{path}");
        }
        if delete == "--delete" {
            for path in ["gone", "a/file", "a/b/gone", "a/b/folder/gone", "a/old/gone", "a/b/extra/gone"] {
                assert!(target.join(path).exists(), "{path}");
            }
            assert_eq!(fs::read(target.join("top")).unwrap(), b"old");
            assert_eq!(mode(&target.join("a/old")), 0o755);
        }
    }
}

#[test]
fn a_user_removes_extended_attributes_of_own_files_whose_modes_deny_it() {
    if !is_root() {
        return;
    }
    let memory = Filesystem::memory();
    if !Knobs::possible_in(memory.path()).user_xattrs {
        skip::<()>("this filesystem has no attributes of users");
        return;
    }
    let ferry = memory.path().join("ferry");
    place_program(Path::new(FERRY), &ferry);
    let file = || Node::file("equal").mtime(1_000, 1).mode(0o444);
    let source = Tree::new().with("file", file());
    let target = Tree::new().with("file", file().xattr("user.changed", "x"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    give_entries_to_user(&pair);
    let output = sync_as_user(&ferry, &pair, &["source", "target"]);
    assert!(output.status.success(), "{}", said(&output));
    pair.assert_equal("source", "target", &output);
}
