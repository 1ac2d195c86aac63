//! Every type of source onto every type of target with each option, compared with GNU cp.

use ferry_tree::{Node, Tree};

use crate::scene::{OLD, Stage, compare_in, comparison};

/// Two files of each type, and one file with names of every kind.
fn tree() -> Tree {
    let old = |node: Node| node.mtime(OLD, 1);
    let link = |target: &str| Node::symlink(target).mtime(OLD, 1);
    Tree::new()
        .root(old(Node::directory()))
        .with("reg", old(Node::file("of reg")))
        .with("other", Node::file("of other").mtime(OLD + 5, 1))
        .with("two", old(Node::file("of two")))
        .with("two2", Node::hard_link("two"))
        .with("fifo", old(Node::fifo()))
        .with("fifo2", old(Node::fifo().mode(0o600)))
        .with("lfifo", link("fifo"))
        .with("hfifo", Node::hard_link("fifo"))
        .with("dir/in", old(Node::file("in dir")))
        .with("dir", old(Node::directory()))
        .with("edir", Node::directory().mtime(OLD + 5, 1))
        .with("lother", link("other"))
        .with("ldir", link("dir"))
        .with("loop", link("loop"))
        .with("hreg", Node::hard_link("reg"))
        .with("lreg", link("reg"))
        .with("lreg2", link("reg"))
        .with("hlreg", Node::hard_link("lreg"))
        .with("lhreg", link("hreg"))
        .with("ldang", link("nowhere"))
        .with("hldang", Node::hard_link("ldang"))
}

/// Compares each source and target, except the lines in `without`.
fn check(options: &[&str], sources: &[&str], targets: &[&str], without: &[&str]) {
    let mut table = Vec::new();
    for (option, source, target) in pairs(options, sources, targets) {
        let line = format!("{option} -T {source} {target}");
        if !without.contains(&line.as_str()) {
            table.push(line);
        }
    }
    let table: Vec<&str> = table.iter().map(String::as_str).collect();
    compare_in(&Stage::with(tree()), &table, Some(&comparison()), |_| {});
}

fn pairs<'a>(
    options: &'a [&'a str],
    sources: &'a [&'a str],
    targets: &'a [&'a str],
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let of = move |option: &'a str| {
        sources.iter().flat_map(move |&source| targets.iter().map(move |&target| (option, source, target)))
    };
    options.iter().flat_map(move |&option| of(option))
}

#[test]
fn files_and_links_meet_every_kind() {
    let targets = ["new", "other", "two", "lother", "ldang", "edir", "ldir", "loop"];
    let options = ["", "-f", "-n", "-u", "-P", "-fP", "--rem", "-a", "-af", "-l", "-lf", "-lP", "-s", "-sf"];
    check(&options, &["reg", "lreg"], &targets, &[]);
}

#[test]
fn folders_and_special_files_meet_every_kind() {
    let targets =
        ["new", "other", "two", "lother", "ldang", "fifo2", "edir", "ldir", "loop", "fifo", "hfifo"];
    let options = ["-r", "-rf", "-rn", "-ru", "-r --rem", "-a", "-rl", "-rlf", "-rs"];
    check(&options, &["fifo", "ldang", "dir"], &targets, &[]);
    check(&["-r", "-a", "-r --rem", "-rl"], &["lfifo"], &["fifo", "hfifo", "lfifo", "fifo2"], &[]);
}

#[test]
fn one_file_meets_itself_by_every_name() {
    let names = ["reg", "hreg", "lreg", "lreg2", "hlreg", "lhreg", "hldang"];
    let options = ["", "-f", "-n", "-u", "-P", "-fP", "--rem", "--rem -P", "-a", "-au", "-an"];
    // GNU cp loses the link.
    let without = ["--rem -T lreg lreg"];
    check(&options, &["reg", "lreg"], &names, &without);
}

#[test]
fn one_file_is_linked_to_itself_by_every_name() {
    let names = ["reg", "hreg", "lreg", "lreg2", "hlreg", "lhreg", "hldang"];
    let options = ["-l", "-lf", "-lP", "-lPf", "-l --rem", "-s", "-sf", "-sP", "-sPf", "-s --rem"];
    // GNU cp loses the link, or makes it lead to itself.
    let without = ["-l --rem -T lreg lreg", "-sf -T lreg lreg", "-s --rem -T lreg lreg"];
    check(&options, &["reg", "lreg"], &names, &without);
    check(&["-lP", "-sP", "-P"], &["ldang"], &["reg", "lreg", "ldang", "hldang"], &[]);
}

#[test]
fn a_link_that_would_be_lost_is_kept() {
    let stage = Stage::with(tree());
    for line in ["--rem -T lreg lreg", "-l --rem -T lreg lreg", "-sf -T lreg lreg", "-s --rem -T lreg lreg"] {
        let outcome = stage.run(&stage.ferry(), line, |_| {});
        assert!(outcome.said("cp: 'lreg' and 'lreg' are the same file"), "{line}");
        assert_eq!(std::fs::read_link(stage.root().join("lreg")).unwrap().to_str(), Some("reg"), "{line}");
    }
}

/// Two directories with the same names and different types.
fn twins() -> Tree {
    let old = |node: Node| node.mtime(OLD, 1);
    let link = |target: &str| Node::symlink(target).mtime(OLD, 1);
    Tree::new()
        .root(old(Node::directory()))
        .with("a/x", old(Node::file("x of a")))
        .with("b/x", Node::file("x of b").mtime(OLD + 5, 1))
        .with("a/d/x", old(Node::file("x of a/d")))
        .with("b/d/x", old(Node::file("x of b/d")))
        .with("a/d/only", old(Node::file("only in a/d")))
        .with("a/d/e/x", old(Node::file("x of a/d/e")))
        .with("a/d", old(Node::directory().mode(0o751)))
        .with("a", old(Node::directory().mode(0o715)))
        .with("a/l", link("x"))
        .with("b/l", link("../b/x"))
        .with("a/m", link("target"))
        .with("b/m", old(Node::file("m of b")))
        .with("a/p", old(Node::fifo()))
        .with("b/p", old(Node::fifo()))
        .with("a/ld", link("d"))
        .with("b/ld/i", old(Node::file("i")))
        .with("dest/target", old(Node::file("target")))
        .with("reg", old(Node::file("reg")))
        .with("hreg", Node::hard_link("reg"))
        .with("old/reg", Node::file("older reg").mtime(OLD - 5, 1))
        .with("new/reg", Node::file("newer reg").mtime(OLD + 5, 1))
        .with("way/a/d", Node::directory().mode(0o700).mtime(OLD + 9, 9))
        .with("way/reg", old(Node::file("no folder")))
}

#[test]
fn operands_meet_at_one_name() {
    let table = [
        "a/x b/x dest",
        "-f a/x b/x dest",
        "-n a/x b/x dest",
        "-u a/x b/x dest",
        "-u b/x a/x dest",
        "--rem a/x b/x dest",
        "-l a/x b/x dest",
        "-lf a/x b/x dest",
        "-s @/a/x @/b/x dest",
        "-sf @/a/x @/b/x dest",
        "-P a/l b/l dest",
        "-P a/m b/m dest",
        "-fP a/m b/m dest",
        "--rem -P a/m b/m dest",
        "-lP a/m b/m dest",
        "-r a/p b/p dest",
        "-r a/d b/d dest",
        "-r a/ld b/ld dest",
        "-rv b/ld a/ld dest",
        "-rvH a/ld b/ld dest",
        "-rv --rem a/. b/. dest",
        "-rv a/d a/d dest",
        "-rv a/d a/d/ dest",
        "-av a/d a/d/only dest",
        "-v a/x a/d/../x dest",
        "-v b/x a/x dest/x dest",
        "-d a/x a/x dest",
        "-r --parents a/d/only a/d dest",
    ];
    compare_in(&Stage::with(twins()), &table, Some(&comparison()), |_| {});
}

#[test]
fn names_of_one_file_meet_older_and_newer_ones() {
    let table = [
        "-a reg hreg dest",
        "-a reg hreg old",
        "-a hreg reg new",
        "-au reg hreg old",
        "-au reg hreg new",
        "-an reg hreg old",
        "-an hreg reg old",
        "-a --rem reg hreg old",
        "-l reg hreg old",
        "-alf reg hreg old",
        "--preserve=links reg hreg new",
    ];
    compare_in(&Stage::with(twins()), &table, Some(&comparison()), |_| {});
}

#[test]
fn folders_on_the_way_are_made_or_taken_over() {
    let table = [
        "--parents a/d/x way",
        "--parents -p a/d/x way",
        "--parents -p a/d/e/x way",
        "--parents --preserve=mode a/d/e/x a/d/x way",
        "--parents a/d/e/x way",
        "--parents -a a/d way",
        "--parents a/d/ way",
        "--parents -r a/d/ way",
        "--parents -r a/d/ dest",
        "--parents -r a//d// dest",
        "--parents ./a/../a/x dest",
        "--parents none/x dest",
        "--parents reg/x dest",
        "--parents a/none dest",
        "--parents a/x b/none b/x dest",
        "--parents -a a/d/x b/d/x dest/../way",
    ];
    compare_in(&Stage::with(twins()), &table, Some(&comparison()), |_| {});
}

#[test]
fn relative_links_are_made_where_they_mean_the_same() {
    let table =
        ["-s reg @/new2", "-s reg dest/../new2", "-s a/x ./new2", "-s a/x dest", "-s reg old", "-sf reg new"];
    compare_in(&Stage::with(twins()), &table, Some(&comparison()), |_| {});
}
