//! What becomes of every kind of target under every kind of source, beside GNU cp: each pair with each option.

use ferry_tree::{Node, Tree};

use crate::scene::{OLD, Stage, compare_in, comparison};

/// Files of each kind twice, as sources and as targets; then one file by all the names that it can have.
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

/// Each source onto each target, except where `without` says otherwise.
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
    // Here GNU cp loses the link.
    let without = ["--rem -T lreg lreg"];
    check(&options, &["reg", "lreg"], &names, &without);
}

#[test]
fn one_file_is_linked_to_itself_by_every_name() {
    let names = ["reg", "hreg", "lreg", "lreg2", "hlreg", "lhreg", "hldang"];
    let options = ["-l", "-lf", "-lP", "-lPf", "-l --rem", "-s", "-sf", "-sP", "-sPf", "-s --rem"];
    // Here GNU cp loses the link, or makes it lead to itself.
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
