//! Backups, compared with GNU cp's.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use ferry_tree::{Node, Tree};

use crate::scene::{
    FERRY, OLD, Stage, compare_in, comparison, ferry, gnu, same_as_gnu, same_as_gnu_with, same_words_as_gnu,
    skip, text,
};

#[test]
fn what_is_replaced_is_kept() {
    same_as_gnu(&[
        "-b f g",
        "-bv f g",
        "-bv f to_f",
        "-bv f to_full",
        "-bvT f to_full",
        "-bv f dangling",
        "-bv f loop",
        "-bv f fifo",
        "-bv f socket",
        "-rbT src g",
        "-rbv src full",
        "-rbvT src full/src",
        "-rbv src/. full/src",
        "-abv src full",
        "-bv f other",
        "-bv to_f other",
        "-bPv to_f f",
        "-bv --remove-destination f g",
        "-bs f g",
        "-bl f g",
        "-bl f hard",
        "-bdv f hard other",
        "-ab f hard to_f other",
        "-b --parents src/a full",
        "-bv -u f newer",
        "-bv -u newer f",
    ]);
}

#[test]
fn backups_are_named_as_asked() {
    same_as_gnu(&[
        "--backup f g",
        "--backup=none f g",
        "--backup=off -S .z f g",
        "--backup=simple f g",
        "--backup=nev f g",
        "--backup=t f g",
        "--backup=numbered -v f g",
        "--backup=nil f g",
        "--backup=e f g",
        "--backup= f g",
        "-S .y f g",
        "-bS.x f g",
        "--suffix=/x -v f g",
        "--backup=n f g",
        "--backup=zork f g",
        "-bn f g",
        "-bni f g",
    ]);
    let dress = |control: &'static str, suffix: &'static str| {
        move |command: &mut std::process::Command| {
            command.env("VERSION_CONTROL", control).env("SIMPLE_BACKUP_SUFFIX", suffix);
        }
    };
    let table = ["-bv f g", "--backup=simple -v f g", "-S .s -v f g", "f g"];
    for (control, suffix) in [("t", ".q"), ("", ""), ("never", "a/b"), ("zork", ".q"), ("none", "")] {
        same_as_gnu_with(&table, &comparison(), dress(control, suffix));
    }
}

#[test]
fn numbers_go_on_from_the_highest() {
    let old = |text: &str| Node::file(text).mtime(OLD, 1);
    let mut tree = Tree::new().with("f", old("f")).with("g", old("g")).with("g~", old("simple"));
    for name in ["g.~1~", "g.~9~", "g.~010~", "g.~x~", "g.~12", "h", "h.~99999999999999999999999~"] {
        tree = tree.with(name, old(name));
    }
    let whole = "n".repeat(255);
    let (cut, tree) = ("n".repeat(252), tree.with(&whole, old("whole")));
    let tree = tree.with(&cut, old("cut")).with("m", old("m")).with("m~", Node::hard_link("m"));
    let stage = Stage::with(tree);
    let (whole, cut) = (format!("-b f {whole}"), format!("-bS .orig f {cut}"));
    let table = ["-bv f g", "--backup=t -v f g", "-b f h", "--backup=simple f g", "--backup=t f f h"];
    let table: Vec<&str> = table.into_iter().chain([whole.as_str(), cut.as_str()]).collect();
    compare_in(&stage, &table, Some(&comparison()), |_| {});
    // rename(2) does nothing if both names are the same file; GNU cp fails here.
    let outcome = stage.run(&stage.ferry(), "-bv f m", |_| {});
    assert!(outcome.printed("'f' -> 'm' (backup: 'm~')"));
    assert_eq!(std::fs::read_to_string(stage.root().join("m~")).unwrap(), "m");
}

#[test]
fn a_backup_is_no_end_of_the_source() {
    let old = |text: &str| Node::file(text).mtime(OLD, 1);
    let tree = Tree::new().with("f", old("f")).with("f~", old("older")).with("d/f~", Node::hard_link("f~"));
    let stage = Stage::with(tree.with("h", Node::hard_link("f~")).with("to", Node::symlink("f~")));
    let table = ["-bv f~ f", "-b --backup=t f~ f", "-bv h f", "-bv d/f~ f", "-b f f~", "-bf f~ f~"];
    compare_in(&stage, &table, Some(&comparison()), |_| {});
    // GNU cp loses the link: it then leads to the backup.
    stage.set();
    let outcome = stage.run(&stage.ferry(), "-b to f", |_| {});
    assert!(outcome.said("cp: backing up 'f' might destroy source;  'to' not copied"));
    assert_eq!(std::fs::read_to_string(stage.root().join("f~")).unwrap(), "older");
}

#[test]
fn a_file_copied_onto_itself_becomes_its_backup() {
    same_as_gnu(&[
        "-b f f",
        "-bf f f",
        "-bfv f f",
        "-bf f ./f",
        "-bf ./f ././f",
        "-bf f f/",
        "-bf f/ f",
        "-bf f hard",
        "-b f hard",
        "-bf --backup=t f f",
        "-bf full/f full/f",
        "-bf to_f to_f",
        "-bfP to_f to_f",
        "-bf dangling dangling",
        "-bf to_f f",
        "-b to_f f",
        "-bsf f f",
        "-blf f f",
        "-bfu f f",
    ]);
    // The order of the names decides how much of a directory GNU cp copies into itself.
    same_words_as_gnu(&["-rbf src src"]);
}

#[test]
fn numbered_backups_keep_what_this_run_made() {
    same_as_gnu(&[
        "-bv f other/f empty",
        "--backup=t -v f other/f empty",
        "--backup=t -v f other/f full/f empty",
    ]);
}

#[test]
fn a_failed_copy_gives_the_backup_its_name_back() {
    if !crate::scene::is_root() && skip::<()>("a file without rights can be read by root alone").is_none() {
        return;
    }
    same_as_gnu(&["-b --reflink=always f g", "-b /proc/self/mem g", "--backup=t -f /proc/self/mem to_f"]);
}

/// Targets whose names are also names of backups: the result holds the same sources as GNU cp's.
#[test]
fn backups_take_no_copies_place_that_gnu_leaves() {
    let Some(gnu) = gnu() else { return };
    let place = tempfile::tempdir().unwrap();
    let at = |path: &str| place.path().join(path);
    for folder in ["source", "gnu", "ferry"] {
        std::fs::create_dir(at(folder)).unwrap();
    }
    let names: Vec<String> = (0..600).map(|i| format!("{i:0>60}")).collect();
    for name in &names {
        std::fs::write(at(&format!("source/{name}")), "new").unwrap();
        std::fs::write(at(&format!("source/{name}~")), "new").unwrap();
        std::fs::write(at(&format!("gnu/{name}")), "old").unwrap();
        std::fs::write(at(&format!("ferry/{name}")), "old").unwrap();
    }
    for (program, target) in [(gnu.as_path(), "gnu"), (FERRY.as_ref(), "ferry")] {
        let mut command = Command::new(program);
        command.arg0("cp").args(["-rb", "source/.", target]).current_dir(place.path());
        assert!(command.status().unwrap().success(), "{target}");
    }
    let read = |path: String| std::fs::read_to_string(at(&path)).ok();
    let names = names.iter().flat_map(|name| [name.clone(), format!("{name}~"), format!("{name}~~")]);
    let differs = |name: &String| read(format!("gnu/{name}")) != read(format!("ferry/{name}"));
    let others: Vec<String> = names.filter(differs).collect();
    assert!(others.is_empty(), "{} differ: {others:?}", others.len());
}

#[test]
fn folders_too_long_to_be_put_in_order_are_copied_whole() {
    const FILES: u32 = 10_100;
    let place = tempfile::tempdir().unwrap();
    for folder in ["source", "target", "target/source"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    for index in 0..FILES {
        std::fs::write(place.path().join(format!("source/{index}")), index.to_string()).unwrap();
    }
    let output = ferry(place.path(), &["cp", "-rb", "source", "target"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    for index in 0..FILES {
        let found = std::fs::read_to_string(place.path().join(format!("target/source/{index}"))).unwrap();
        assert_eq!(found, index.to_string());
    }
}
