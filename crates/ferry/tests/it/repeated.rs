//! Operands that are the same file or directory, by one or several names, compared with GNU cp.

use ferry_tree::{Node, Tree};

use crate::scene::{OLD, Stage, compare_in, comparison};

fn stage() -> Stage {
    let old = |node: Node| node.mtime(OLD, 1);
    let tree = Tree::new()
        .with("x/f", old(Node::file("f")))
        .with("y/f", Node::hard_link("x/f"))
        .with("x/to", Node::symlink("f"))
        .with("y/to", Node::symlink("../x/f"))
        .with("to_x", Node::symlink("x"))
        .with("x/within", Node::symlink("../s"))
        .with("y/within", Node::symlink("../s"))
        .with("s/a/f", old(Node::file("f of a")))
        .with("to_s", Node::symlink("s"))
        .with("to_a", Node::symlink("s/a"))
        .with("old/f", old(Node::file("old")))
        .with("d", Node::directory());
    Stage::with(tree)
}

#[track_caller]
fn same_as_gnu(table: &[&str]) {
    compare_in(&stage(), table, Some(&comparison()), |_| {});
}

#[test]
fn names_of_one_file_in_several_folders_are_no_repeats() {
    same_as_gnu(&[
        "-v x/f y/f d",
        "-a x/f y/f d",
        "-l x/f y/f d",
        "-nv x/f y/f d",
        "--remove-destination x/f y/f d",
        "--backup=numbered -v x/f y/f d",
        "x/to y/to d",
        "-L x/to y/to d",
        "x/f to_x/f d",
        "to_x/f to_x/./f d",
        "-r x/within y/within d",
        "-rL x/within y/within d",
        "x/f x//f ./x/f x/../x/f x/./f to_x/./f @/x/f d",
        "--parents x/f y/f to_x/f x/f d",
    ]);
    let stage = stage();
    let outcome = stage.run(&stage.ferry(), "--update=none-fail x/f y/f d", |_| {});
    assert!(outcome.said("cp: not replacing 'd/f'"), "{:?}", outcome.messages());
}

#[test]
fn files_named_twice_are_copied_twice_with_backups() {
    same_as_gnu(&[
        "--backup=numbered -v x/f x/f d",
        "--backup=numbered -v x/f x/f old",
        "-bv x/f x/f d",
        "-bv x/f x/f old",
        "-bl x/f x/f d",
        "-bs @/x/f @/x/f d",
        "-bu x/f x/f d",
        "-br s x/f s x/f d",
        "--backup=numbered -r s x/f s x/f old",
    ]);
}

#[test]
fn folders_met_again_are_copied_again_where_links_are_followed() {
    same_as_gnu(&[
        "-rL to_a/ s d",
        "-rL s/a s d",
        "-rL s s/. d",
        "-rlL s/a s d",
        "-r s/a s d",
        "-rH s/a s d",
        "-rH to_a s d",
        "-rH to_a s/a s d",
        "-rH s to_s d",
        "-rH to_s s d",
        "-rH s s/. d",
        "-rHl s/a s d",
        "-rHs @/s/a @/s d",
        "-rl s/a s d",
        "-r to_s/ s d",
    ]);
}
