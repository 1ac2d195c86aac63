//! Links as sources, as targets, and as what is made.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use ferry_tree::{Node, Tree};

use crate::scene::{Stage, compare_in, comparison, gnu, is_root, same_as_gnu, skip};

#[test]
fn links_of_the_source_are_followed_as_asked() {
    same_as_gnu(&[
        "to_f new",
        "-P to_f new",
        "-d to_f new",
        "-L to_f new",
        "-H to_f new",
        "-P dangling new",
        "-P to_f g",
        "-P to_f dangling",
        "-P to_f empty",
        "-r to_src empty",
        "-rP to_src empty",
        "-rH to_src empty",
        "-rH to_src new",
        "-rL src/sub empty",
        "-rL src/up src/link empty",
        "-aL src/sub/deep src/link empty",
        "-La src new",
        "-rPL src/link new",
        "-rLP src/link new",
        "-RH to_f to_src empty",
    ]);
}

#[test]
fn links_in_the_target_are_written_through_only_where_they_lead_to_files() {
    same_as_gnu(&[
        "f to_full",
        "-r src to_full",
        "-rT src to_full",
        "-rT src to_full/",
        "-T f to_full",
        "f dangling",
        "-f f dangling",
        "-n f dangling",
        "-u f dangling",
        "-r src dangling",
        "-a g to_f",
    ]);
}

#[test]
fn hard_links_are_made_instead_of_copies() {
    same_as_gnu(&[
        "-l f new",
        "-l f empty",
        "-l f g",
        "-lf f g",
        "-l f hard",
        "-l f f",
        "-rl src new",
        "-rlP src new",
        "-al src new",
        "-l to_f new",
        "-lP to_f new",
        "-lv f new",
        "-l src new",
        "-lr src full",
        "-l --remove-destination f g",
    ]);
}

#[test]
fn symbolic_links_are_made_instead_of_copies() {
    same_as_gnu(&[
        "-s f new",
        "-s f g",
        "-sf f g",
        "-s f empty",
        "-s @/f empty",
        "-s src/a new",
        "-s src/a ./new",
        "-rs @/src new",
        "-rs @/src full",
        "-sv f new",
        "-s f f",
        "-s missing new",
        "-s --remove-destination f g",
        "-sp f new",
        "-rs --preserve=timestamps @/src new",
        "-s --preserve=ownership f new",
    ]);
}

#[test]
fn one_file_system_is_not_left() {
    let Some(gnu) = gnu().filter(|_| is_root() || skip::<()>("mounting needs root").is_some()) else {
        return;
    };
    let stage = Stage::new();
    let script = "mount -t tmpfs none src/other_sub && echo x > src/other_sub/x && exec \"$0\" -rx src new";
    let copied = |program| {
        stage.set();
        let mut command = Command::new("unshare");
        let command = command.args(["--mount", "sh", "-c", script]).arg(program).current_dir(stage.root());
        let output = command.output().unwrap();
        let mounted = stage.root().join("new/other_sub");
        (
            output.status.success(),
            mounted.metadata().is_ok_and(|found| found.mode() & 0o777 == 0o777 || found.is_dir()),
            mounted.join("x").exists(),
        )
    };
    let expected = copied(gnu);
    if !expected.0 {
        skip::<()>("nothing can be mounted here");
        return;
    }
    assert_eq!(expected, (true, true, false));
    assert_eq!(copied(stage.ferry()), expected);
}

#[test]
fn links_that_are_followed_become_names_of_one_copy() {
    let tree = Tree::new()
        .with("s/a", Node::file("text"))
        .with("s/b", Node::symlink("a"))
        .with("s/c/d", Node::symlink("../b"))
        .with("la", Node::symlink("s/a"))
        .with("d", Node::directory());
    let table = [
        "-rL --preserve=links s t",
        "-aL s t",
        "-aH s t",
        "-aH s/a la d",
        "-aH la s/a d",
        "-aP s/a la d",
        "--preserve=links s/a la d",
        "-H --preserve=links la s/a d",
        "-P --preserve=links la s/a d",
        "--preserve=links --parents s/a s/b d",
        "-aL s/. la d",
    ];
    compare_in(&Stage::with(tree), &table, Some(&comparison()), |_| {});
}

#[test]
fn a_folder_that_was_copied_already_is_not_linked() {
    same_as_gnu(&[
        "-a src src/. empty",
        "-r src/. src empty",
        "-r src/sub src empty",
        "-r src src/sub empty",
        "-aH src to_src empty",
        "-rL src/sub src/other_sub empty",
    ]);
}

#[test]
fn names_at_the_start_of_a_message_are_quoted_if_a_shell_needs_it() {
    let names = ["a~", "~a", "a#", "#a", "a:b", "a{b}", "]", "%+,-@_.", "a=b", "a b", "a'b", "\u{e9}"];
    let tree = names.iter().fold(Tree::new(), |tree, name| {
        tree.with(format!("src/{name}"), Node::file("")).with(format!("{name}x"), Node::directory())
    });
    let stage = Stage::with(tree.with("dst", Node::directory()).with("it's/f", Node::file("")));
    let table = [
        "--parents -v it's/f dst",
        "-rs src/. dst",
        "-rsT src ~ax",
        "-rsT src #ax",
        "-rsT src a~x",
        "-rsT src a{b}x",
    ];
    compare_in(&stage, &table, None, |_| {});
}
