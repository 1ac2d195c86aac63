//! `--parents` with operands that contain `.` and `..`, compared with GNU cp.

use ferry_tree::{Node, Tree};

use crate::scene::{OLD, Stage, compare_in, comparison};

#[track_caller]
fn same_as_gnu(table: &[&str]) {
    let old = |node: Node| node.mtime(OLD, 1);
    let tree = Tree::new()
        .with("a", old(Node::directory().mode(0o711)))
        .with("b/f", old(Node::file("f")))
        .with("c/e/g", old(Node::file("g")))
        .with("c/h", old(Node::file("h")))
        .with("to_e", Node::symlink("c/e"))
        .with("within/e/to_within", Node::symlink("../../within"))
        .with("d", Node::directory())
        .with("has/c/h", old(Node::file("old")));
    compare_in(&Stage::with(tree), table, Some(&comparison()), |_| {});
}

#[test]
fn folders_that_a_way_leaves_again_are_made() {
    same_as_gnu(&[
        "--parents -v a/../b/f d",
        "--parents -pv a/../b/f d",
        "--parents -v a/./../b/f d",
        "--parents -v c/e/../../b/f d",
        "--parents -pv a/../c/e/../e/g d",
        "--parents -v c/e/../h d",
        "--parents -v to_e/../h d",
        "--parents -v to_e/../e/g d",
        "--parents -rv a/../b d",
        "--parents -rv a/../b/ d",
        "--parents -rv c/e/../../b/ d",
        "--parents -v ./c/e/.././../b/f d",
        "--parents -rv @/a/../b d",
        "--parents -v a/../b/f b/f d",
        "--parents -v no/../b/f d",
        "--parents -rv c/h c/h/../e d",
        "--parents -v c/h .",
        "--parents -v b/f/h .",
        "--parents -v b/f/../f d",
        "--parents -v c/no/../h d",
    ]);
}

#[test]
fn a_folder_made_for_its_own_way_is_not_made_again() {
    same_as_gnu(&[
        "--parents -rv c/. d",
        "--parents -rv c/e/. d",
        "--parents -rv ./c/e/. d",
        "--parents -rv c/e/.. d",
        "--parents -rv a/../b/.. d",
        "--parents -v c/. d",
        "--parents -rv no/. d",
        "--parents -rv b/f/. d",
        "--parents -v b/f/ d",
        "--parents -rv c/. has",
        "--parents -rv c/e/. has",
        "--parents -rv c/e/.. has",
        "--parents -r c/e c/e/. d",
        "--parents -rL c/. has",
    ]);
}

#[test]
fn a_way_that_ends_early_stays_as_it_was_made() {
    same_as_gnu(&[
        "--parents -rp a/no/h d",
        "--parents -rp c/h/. d",
        "--parents -r --preserve=mode c/h/. d",
        "--parents -r --preserve=ownership c/h/. d",
        "--parents -rp c/h/. c/e/g d",
        "--parents -rp c/e/g c/h/. d",
    ]);
}

#[test]
fn the_target_of_a_way_is_looked_at_first() {
    same_as_gnu(&[
        "--parents no/h has",
        "--parents -p no/h has",
        "--parents c/no/h has",
        "--parents -r c/h/. .",
        "--parents b/f/g has",
        "--parents -r b/f/. .",
        "--parents -rp b/f/. .",
        "--parents -p b/f/g/h .",
        "--parents b/f/g/h .",
    ]);
}

#[test]
fn folders_on_the_way_are_no_circle() {
    same_as_gnu(&["--parents -rL within/e d", "--parents -rL within d", "-rL within d"]);
}
