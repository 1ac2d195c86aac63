//! Directories that may be searched but not read, or not even entered, and paths through links.

use std::os::unix::process::CommandExt;
use std::process::Command;

use ferry_tree::{Node, Tree};

use crate::scene::{Stage, compare_in, comparison, is_root, text};

const NOBODY: u32 = 65_534;

/// Runs the command in `folder` as nobody if the tests run as root, after a line of shell.
fn as_nobody_in(folder: &'static str, change: &'static str) -> impl Fn(&mut Command) {
    move |command| {
        let root = command.get_current_dir().unwrap().to_owned();
        let done = Command::new("sh").args(["-c", change]).current_dir(&root).status().unwrap();
        assert!(done.success());
        command.current_dir(root.join(folder));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    }
}

#[test]
fn what_is_beneath_a_folder_that_may_only_be_searched_is_copied() {
    let change = "chmod 777 . empty; chmod 711 src; chmod 777 full; chmod 755 src/other_sub";
    let table = [
        "src/b new",
        "-p src/b new",
        "src/b empty",
        "-r src/other_sub new",
        "-a src/b src/other_sub empty",
        "--parents src/b full",
        "--parents -p src/b empty",
        "--parents -a src/other_sub empty",
        "-r src empty",
    ];
    compare_in(&Stage::new(), &table, Some(&comparison()), as_nobody_in("", change));
    compare_in(
        &Stage::new(),
        &["b ../new", "-r other_sub ../new"],
        Some(&comparison()),
        as_nobody_in("src", change),
    );
}

#[test]
fn what_goes_into_a_folder_that_may_not_be_listed_is_copied() {
    let change = "chmod 777 .; chmod 1733 empty; chmod 755 src; chmod 644 g";
    let table =
        ["f empty/g", "f empty", "-p g empty", "-r src/other_sub empty", "-P to_f empty", "-l f empty"];
    compare_in(&Stage::new(), &table, Some(&comparison()), as_nobody_in("", change));
}

#[test]
fn files_in_a_folder_that_may_not_be_listed_are_made_durable() {
    let stage = Stage::new();
    let change = "chmod 777 .; chmod 1733 empty; chmod 755 src";
    for line in ["f empty/g", "-r src/other_sub empty", "-P to_f empty"] {
        stage.set();
        let mut command = Command::new(stage.ferry());
        command.current_dir(stage.root()).arg("--fsync").args(line.split(' '));
        as_nobody_in("", change)(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_made_whatever_its_name_ends_in() {
    for change in ["chmod 777 . empty; chmod 711 src", "chmod 777 . empty; chmod 700 src"] {
        let table = ["-r src new", "-r src/ new", "-a src/ new", "-r src/ empty", "--parents -r src/ empty"];
        compare_in(&Stage::new(), &table, Some(&comparison()), as_nobody_in("", change));
    }
}

#[test]
fn the_way_may_lead_through_links() {
    let tree = Tree::new()
        .with("a/b/f", Node::file("text"))
        .with("elsewhere/old", Node::file("old"))
        .with("p/a", Node::symlink("../elsewhere"))
        .with("q/a", Node::symlink("nowhere"))
        .with("r/a", Node::symlink("old"))
        .with("r/old", Node::file("old"));
    let table = [
        "--parents a/b/f p",
        "--parents -a a/b p",
        "--parents -p a/b/f p",
        "--parents a/b/f q",
        "--parents a/b/f r",
    ];
    compare_in(&Stage::with(tree), &table, Some(&comparison()), |_| {});
}

#[test]
fn what_cannot_be_made_is_told_once() {
    let stage = Stage::new();
    stage.set();
    // More entries than are synced one by one.
    let names: Vec<String> = (0..20).map(|index| format!("n{index}")).collect();
    names.iter().for_each(|name| std::fs::write(stage.root().join(name), "text").unwrap());
    let mut command = Command::new(stage.ferry());
    command.current_dir(stage.root()).arg("--fsync").args(&names).arg("empty");
    as_nobody_in("", "chmod 777 .; chmod 000 empty")(&mut command);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr).lines().count(), names.len(), "{}", text(&output.stderr));
}
