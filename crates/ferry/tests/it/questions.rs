//! Questions of `-i` and the answers' effect, compared with GNU cp. On a pipe, questions share a line.

use std::fs::{File, set_permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::{Node, Tree, make};

use crate::scene::{FERRY, OLD, Stage, compare_in, comparison, is_root, same_as_gnu_with, skip, text};

fn answered(answers: &str, table: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("answers");
    std::fs::write(&path, answers).unwrap();
    same_as_gnu_with(table, &comparison(), |command| {
        command.stdin(File::open(&path).unwrap());
    });
}

const TABLE: &[&str] = &[
    "-i f g",
    "-i f new",
    "-iv f g",
    "-in f g",
    "-ni f g",
    "-if f g",
    "-i --remove-destination f g",
    "-iu f newer",
    "-iu newer f",
    "-iuv f g",
    "-i --debug f newer",
    "-iu --debug f newer",
    "--update=older -i f newer",
    "--update=older -i newer g",
    "--update=none -i f g",
    "-i --update=none f g",
    "-i --update=none-fail f g",
    "-i --update=all f g",
    "-il f hard",
    "-ilu f hard",
    "-ru -i src full",
    "-rib src/. full/src",
    "-i f empty",
    "-iT f empty",
    "-iT f full/exec",
    "-i f f",
    "-i f to_f",
    "-i g to_f",
    "-i f dangling",
    "-iP dangling f",
    "-il f g",
    "-is f g",
    "-ib f g",
    "-i f other/f full",
    "-i f other/f empty",
    "-ri src/. full/src",
    "-ri src full",
    "-ai src full",
    "-ri src g",
    "-i missing g",
    "-i @it @sp",
];

#[test]
fn yes_replaces() {
    answered("y\nyes\nY\nyellow\ny\ny\ny\ny\n", TABLE);
}

#[test]
fn no_leaves() {
    answered("n\n\n y\nno\noui\n", TABLE);
}

#[test]
fn answers_differ() {
    answered("n\ny\nn\ny\nn\ny\n", TABLE);
    answered("y\nn\ny\nn\n", TABLE);
}

#[test]
fn the_end_of_the_input_is_a_no() {
    answered("", TABLE);
    answered("y", TABLE);
}

/// Copies in the order of inodes, directories where they are listed. The source is made once, because a
/// second one would have other inodes.
#[test]
fn questions_come_in_the_order_of_gnu() {
    let names = ["q", "w", "e", "d/z", "d/b", "d/a/x", "d/a/c", "r", "a", "s/m", "s/l", "b"];
    let old = Node::file("old").mtime(OLD, 0);
    let tree = names.iter().fold(Tree::new(), |tree, name| tree.with(*name, old.clone()));
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    make::make(&tree, &source).unwrap();
    let stage = Stage::with(
        names.iter().fold(Tree::new(), |tree, name| tree.with(format!("target/{name}"), old.clone())),
    );
    let path = place.path().join("answers");
    std::fs::write(&path, "y\nn\n".repeat(12)).unwrap();
    let line = format!("-ri {}/. target", source.display());
    compare_in(&stage, &[&line], Some(&comparison()), |command| {
        command.stdin(File::open(&path).unwrap());
    });
}

#[test]
fn what_may_not_be_written_is_told_in_the_question() {
    if !is_root() {
        skip::<()>("becoming nobody needs root");
        return;
    }
    let old = |text: &str| Node::file(text).mtime(OLD, 0);
    let tree = Tree::new().root(Node::directory().mode(0o777)).with("f", old("f"));
    let tree = tree.with("x", old("x").mode(0o444)).with("set", old("set").mode(0o6511));
    let stage = Stage::with(tree.with("sticky", old("s").mode(0o1604)).with("to_x", Node::symlink("x")));
    let place = tempfile::tempdir().unwrap();
    set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = place.path().join("answers");
    for answer in ["y\n", "n\n"] {
        std::fs::write(&path, answer).unwrap();
        let table = [
            "-i f x",
            "-if f x",
            "-i --remove-destination f x",
            "-ib f x",
            "-i f set",
            "-if f set",
            "-i f sticky",
            "-i f to_x",
            "-if f to_x",
            "-il f x",
            "-is f x",
        ];
        compare_in(&stage, &table, Some(&comparison()), |command| {
            use std::os::unix::process::CommandExt;
            chown(stage.root(), Some(65_534), Some(65_534)).unwrap();
            command.stdin(File::open(&path).unwrap()).uid(65_534).gid(65_534);
        });
    }
}

#[test]
fn what_follows_an_answer_is_left_to_others() {
    let stage = Stage::new();
    stage.set();
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(b"y\nnext").unwrap();
    drop(write);
    let mut command = Command::new(FERRY);
    command.current_dir(stage.root()).args(["cp", "-i", "f", "g"]);
    let output = command.stdin(read.try_clone().unwrap()).output().unwrap();
    assert_eq!(text(&output.stderr), "ferry cp: overwrite 'g'? ");
    let mut rest = [0; 8];
    assert_eq!(rustix::io::read(&read, &mut rest).unwrap(), 4);
    assert_eq!(&rest[..4], b"next");
}

#[test]
fn a_signal_ends_the_waiting_for_an_answer() {
    let stage = Stage::new();
    stage.set();
    let mut command = Command::new(FERRY);
    command.current_dir(stage.root()).args(["cp", "-i", "f", "g"]).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 8];
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut first).unwrap();
    let begun = Instant::now();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ended = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(2));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(std::fs::read_to_string(stage.root().join("g")).unwrap(), "g's text, longer");
}
