//! Links as sources, as targets, and as results of `-l` and `-s`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::{Node, Tree};

use crate::random::filesystem::within;
use crate::scene::{FERRY, Stage, compare_in, comparison, ferry, gnu, is_root, same_as_gnu, skip, text};

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

/// GNU cp links `b` and `c` to another operand's file if that has the name `d/a` by then.
#[test]
fn names_are_linked_to_the_copy_of_their_own_file() {
    for options in [
        &["-a"][..],
        &["-R", "--preserve=links"],
        &["-a", "--backup=numbered"],
        &["-a", "--remove-destination"],
        &["-a", "--atomic"],
        &["-aL"],
        &["-a", "--backend=uring", "--route=ring"],
    ] {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in ["x", "y", "z", "d"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("x/a"), "first").unwrap();
        fs::write(at("y/a"), "another file").unwrap();
        for name in ["z/b", "z/c"] {
            fs::hard_link(at("x/a"), at(name)).unwrap();
        }
        let output = ferry(place.path(), &[&["cp"], options, &["x/.", "y/.", "z/.", "d"]].concat());
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!(
            (read("d/a"), read("d/b"), read("d/c")),
            ("another file".into(), "first".into(), "first".into())
        );
        let number = |name: &str| fs::metadata(at(name)).unwrap().ino();
        assert!(number("d/b") == number("d/c") && number("d/a") != number("d/b"), "{options:?}");
    }
}

#[test]
fn a_link_made_by_an_earlier_operand_is_not_written_through() {
    for options in [&["-r"][..], &["-a"], &["-r", "-f"], &["-r", "--backend=uring", "--route=ring"]] {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in ["x", "y", "d"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("victim"), "theirs").unwrap();
        fs::write(at("y/a"), "planted").unwrap();
        std::os::unix::fs::symlink("../victim", at("x/a")).unwrap();
        ferry(place.path(), &[&["cp"], options, &["x/.", "y/.", "d"]].concat());
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "theirs", "{options:?}");
    }
}

/// ext4 reuses the inode number of a removed file at once.
#[test]
fn a_file_with_the_number_of_a_removed_one_is_another_file() {
    within("links::a_file_with_the_number_of_a_removed_one_is_another_file", "ext4", |ext4| {
        let at = |name: &str| ext4.path().join(name);
        for folder in ["s", "t", "d"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("s/a"), "first").unwrap();
        fs::hard_link(at("s/a"), at("elsewhere")).unwrap();
        // This takes a second and a half; `a` is copied first.
        fs::write(at("s/slow"), vec![7; 600_000]).unwrap();
        let number = fs::metadata(at("s/a")).unwrap().ino();
        let mut command = Command::new(FERRY);
        command.args(["cp", "-a", "--bwlimit=400K", "s/.", "t/.", "d"]).current_dir(ext4.path());
        let copy = command.stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while !fs::read(at("d/a")).is_ok_and(|bytes| bytes == b"first") {
            assert!(start.elapsed() < Duration::from_secs(60), "the first file is not copied");
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::remove_file(at("s/a")).unwrap();
        fs::remove_file(at("elsewhere")).unwrap();
        let made = (0..1000).map(|index| at(&format!("t/{index}"))).find(|path| {
            fs::write(path, "second").unwrap();
            fs::metadata(path).unwrap().ino() == number
        });
        let made = made.expect("the number is given again");
        fs::hard_link(&made, at("t/other name")).unwrap();
        let output = copy.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(fs::read_to_string(at("d/other name")).unwrap(), "second", "{said}");
        assert_eq!(fs::read_to_string(at("d/a")).unwrap(), "first", "{said}");
    });
}
