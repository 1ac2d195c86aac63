//! Permission errors as another user than root, compared with GNU cp.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use ferry_tree::compare::Options;

use crate::scene::{Stage, comparison, gnu, is_root, same_as_gnu_with};

const NOBODY: u32 = 65_534;

/// Runs the command as nobody if the tests run as root, after a line of shell.
fn as_nobody(change: &'static str) -> impl Fn(&mut Command) {
    move |command| {
        let root = command.get_current_dir().unwrap().to_owned();
        let done = Command::new("sh").args(["-c", change]).current_dir(root).status().unwrap();
        assert!(done.success());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    }
}

#[test]
fn what_may_not_be_read_is_told() {
    let change = "chmod 777 . empty; chmod 0 f src/b src/sub; chmod 755 src";
    same_as_gnu_with(
        &["f new", "-r src empty", "-r src new", "f exec empty", "-a src empty", "-u f empty"],
        &comparison(),
        as_nobody(change),
    );
}

#[test]
fn a_dot_in_what_may_not_be_searched_is_told() {
    let change = "chmod 777 . empty; chmod 644 src full";
    same_as_gnu_with(
        &[
            "-r src/. new",
            "-r src/./ empty",
            "-r empty/. full",
            "empty/. full",
            "src/. empty",
            "-a src/. new",
            "f full/.",
            "-r src/sub/.. new",
        ],
        &comparison(),
        as_nobody(change),
    );
}

#[test]
fn what_may_not_be_written_is_told() {
    let change = "chmod 755 . empty src; chmod 644 g src/a; chmod 555 full";
    same_as_gnu_with(
        &[
            "exec g",
            "exec new",
            "exec empty",
            "-r src empty",
            "-r src/. empty",
            "-r fifo empty",
            "-d to_f empty",
            "-s @/f empty",
            "--remove-destination exec g",
            "-r src/other_sub full",
        ],
        &comparison(),
        as_nobody(change),
    );
}

#[test]
fn owners_that_may_not_be_given_are_passed_over() {
    let change = "chmod 777 . empty; chmod 755 src; chmod 644 src/a g; chmod 666 exec";
    same_as_gnu_with(
        &[
            "-p exec new",
            "-a exec new",
            "-a g exec empty",
            "--preserve=ownership exec new",
            "-f g newer",
            "-a src/a new",
        ],
        &comparison(),
        as_nobody(change),
    );
}

#[test]
fn a_target_that_cannot_be_opened_is_replaced_by_force() {
    let change = "chmod 777 .; chmod 444 g";
    same_as_gnu_with(&["exec g", "-f exec g", "-fn exec g"], &comparison(), as_nobody(change));
}

#[test]
fn a_read_only_folder_is_filled() {
    if gnu().is_none() {
        return;
    }
    let stage = Stage::new();
    let dress = as_nobody("chmod 777 .; chmod -R a+rX src; chmod 555 src/sub");
    drop(stage.run(&stage.ferry(), "-r src new", dress));
    let mode = |name: &str| std::fs::metadata(stage.root().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("new/sub") & 0o7777, 0o555);
    assert!(stage.root().join("new/sub/deep").exists());
}

/// The default ACL's owner permissions would forbid creating entries in new directories.
#[test]
fn folders_are_filled_whatever_an_acl_leaves_their_owner() {
    let changes = [
        "chmod -R a+rX src; chmod 777 empty; setfacl -d -m u::rx empty",
        "chmod -R a+rX src; chmod 777 empty; setfacl -d -m u::wx empty",
        "chmod -R a+rX src; chmod 777 empty; setfacl -d -m u::x,u:5:rwx empty",
        "chmod -R a+rX src; chmod 777 empty; setfacl -d -m u::-,g::rwx empty",
    ];
    for change in changes {
        let table = [
            "-r src empty",
            "-r src empty/new",
            "-r --no-preserve=mode src empty",
            "-r --preserve=ownership src empty",
            "--parents src/sub/deep empty",
            "--parents --no-preserve=mode src/sub/deep empty",
        ];
        same_as_gnu_with(&table, &comparison(), as_nobody(change));
        // GNU cp keeps an inherited ACL even when preserving permissions.
        let table = ["-rp src empty", "-a src empty", "--parents -p src/sub/deep empty"];
        same_as_gnu_with(&table, &Options { acls: false, ..comparison() }, as_nobody(change));
    }
}

/// A directory that preserves its source's permissions does not inherit the setgid bit.
#[test]
fn folders_have_the_setgid_bit_as_with_gnu() {
    let table = [
        "-a src empty",
        "-pr src empty",
        "-r src empty",
        "--parents -p src/sub/deep empty",
        "-a src/other_sub full",
    ];
    let given = "chmod 2777 empty full; setfacl -m u:5:rx src/sub";
    same_as_gnu_with(&table, &comparison(), |command| {
        let root = command.get_current_dir().unwrap().to_owned();
        assert!(Command::new("sh").args(["-c", given]).current_dir(root).status().unwrap().success());
    });
    let given = "chmod -R a+rX src; chgrp 65534 empty; chmod 2777 empty; chmod g+s src/other_sub";
    same_as_gnu_with(&table[..4], &comparison(), as_nobody(given));
}
