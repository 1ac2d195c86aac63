//! Modes and ACLs of new entries without preservation equal GNU cp's, for each umask and inherited ACL.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use ferry_tree::compare::{Holes, Mismatch, Options, snapshots};
use ferry_tree::{Acl, Node, Snapshot, Tree, capture, make, remove};

use crate::random::filesystem::within;
use crate::scene::{FERRY, gnu, text};

const UMASKS: [&str; 6] = ["000", "002", "020", "027", "077", "277"];

/// Files and directories of all modes, and parents of operands.
fn source() -> Tree {
    let mut tree = Tree::new().root(Node::directory().mode(0o777));
    for mode in [0o000, 0o070, 0o444, 0o600, 0o644, 0o666, 0o755, 0o777, 0o1777, 0o2755, 0o4755] {
        tree = tree.with(format!("f{mode:04o}"), Node::file("text").mode(mode));
    }
    for mode in [0o070, 0o500, 0o700, 0o755, 0o777, 0o1777, 0o2755] {
        let folder = format!("d{mode:04o}");
        tree = tree.with(&folder, Node::directory().mode(mode));
        tree = tree.with(format!("{folder}/f"), Node::file("text").mode(0o664));
        tree = tree.with(format!("{folder}/d"), Node::directory().mode(0o775));
    }
    tree.with("fifo", Node::fifo().mode(0o640))
        .with("socket", Node::socket().mode(0o755))
        .with("link", Node::symlink("f0644"))
}

/// Default ACLs of the target directory: none, minimal, and with a named user.
fn acls() -> [Option<Acl>; 5] {
    let denying = Acl { mask: Some(0), ..Acl::from_mode(0o700).user(1000, 0) };
    [
        None,
        Some(Acl::from_mode(0o777)),
        Some(Acl::from_mode(0o555)),
        Some(Acl::from_mode(0o750).user(1000, 5)),
        Some(denying),
    ]
}

/// Result and messages of a program.
fn copied(place: &Path, program: &str, umask: &str, line: &str, acl: Option<&Acl>) -> (Snapshot, String) {
    let target = place.join("target");
    let mut root = Node::directory().mode(0o2777).owner(0, 1000);
    if let Some(acl) = acl {
        root = root.default_acl(acl.clone());
    }
    let existing = Node::file("what was there").mode(0o604);
    make::make(&Tree::new().root(root).with("f0666", existing.clone()).with("d0755/f", existing), &target)
        .unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("umask {umask}; exec -a cp {program} {line}")]);
    let output = command.current_dir(place).env("LC_ALL", "C").output().unwrap();
    let left = capture::capture(&target).unwrap();
    remove::remove(&target).unwrap();
    (left, format!("{:?} {}", output.status.code(), text(&output.stderr)))
}

#[track_caller]
fn compare(place: &Path, lines: &[&str]) {
    let Some(gnu) = gnu() else { return };
    make::make(&source(), &place.join("source")).unwrap();
    let compared = Options { mtime: false, threads: 1, holes: Holes::Ignore, ..Options::all() };
    let mut report = String::new();
    for line in lines {
        for acl in &acls() {
            for umask in UMASKS {
                let copied = |program| copied(place, program, umask, line, acl.as_ref());
                let (expected, should_say) = copied(gnu.to_str().unwrap());
                let (actual, says) = copied(FERRY);
                if says != should_say {
                    writeln!(report, "umask {umask}, cp {line}: {says}, should be {should_say}").unwrap();
                }
                // GNU cp loses the sticky bit below a setgid directory.
                let is_meant = |what: &Mismatch| {
                    matches!(what, Mismatch::Mode { source, target }
                        if target & !source == 0o1000 && source & !target == 0 && source & 0o2000 != 0)
                };
                let differences = snapshots(&expected, &actual, &compared);
                for difference in differences.iter().filter(|found| !is_meant(&found.mismatch)) {
                    let acl = acl.as_ref().map(ToString::to_string).unwrap_or_default();
                    writeln!(report, "ACL {acl}, umask {umask}, cp {line}: {difference}").unwrap();
                }
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn new_entries_have_gnu_modes_beneath_any_acl() {
    within("modes::new_entries_have_gnu_modes_beneath_any_acl", "ext4", |ext4| {
        let lines = [
            "-rT source target",
            "-rT --no-preserve=mode source target",
            "-rT --preserve=ownership source target",
            "-rpT --no-preserve=mode source target",
            "-rT --remove-destination --no-preserve=mode source target",
            "source/f0777 source/f0600 target",
        ];
        compare(ext4.path(), &lines);
    });
}

#[test]
fn folders_on_the_way_have_gnu_modes_beneath_any_acl() {
    within("modes::folders_on_the_way_have_gnu_modes_beneath_any_acl", "ext4", |ext4| {
        let lines = [
            "--parents source/d0777/f source/d0700/f source/d1777/f source/d0070/f target",
            "--parents --no-preserve=mode source/d0777/f source/d0700/f source/d1777/f target",
            "--parents --preserve=ownership source/d0777/f source/d0700/f source/d1777/f target",
            "--parents -p --no-preserve=mode source/d0777/f source/d0700/f source/d0070/f target",
        ];
        compare(ext4.path(), &lines);
    });
}

/// cp writes to an existing target and keeps its owner, mode and ACL.
#[test]
fn an_atomic_copy_keeps_of_an_existing_target_what_cp_keeps() {
    const LINES: [&str; 9] = [
        "-rT source target",
        "-rfT source target",
        "-rpT source target",
        "-aT source target",
        "-rT --preserve=timestamps source target",
        "-rT --preserve=ownership source target",
        "-rT --preserve=mode source target",
        "-rT --no-preserve=mode source target",
        "-rT -u source target",
    ];
    within("modes::an_atomic_copy_keeps_of_an_existing_target_what_cp_keeps", "ext4", |ext4| {
        let Some(gnu) = gnu() else { return };
        let place = ext4.path();
        let source = |mode| Node::file("the source's text").mode(mode).owner(1, 2);
        let old = |mode| Node::file("what was there").mode(mode).owner(1234, 1235).mtime(1_000, 0);
        let (mut sources, mut existing) = (Tree::new(), Tree::new());
        for (index, mode) in [0o600, 0o640, 0o444, 0o666, 0o755, 0o4755].into_iter().enumerate() {
            let named = Acl::from_mode(mode).user(1300, 4);
            for (name, there) in [("plain", old(mode)), ("named", old(mode).acl(named))] {
                let name = format!("{name}{mode:o}");
                sources = sources.with(&name, source([0o644, 0o600, 0o664][index % 3]));
                existing = existing.with(&name, there);
            }
        }
        make::make(&sources, &place.join("source")).unwrap();
        let compared = Options { mtime: false, threads: 1, holes: Holes::Ignore, ..Options::all() };
        let copied = |program: &Path, options: &str, line: &str| {
            make::make(&existing, &place.join("target")).unwrap();
            let script = format!("umask 022; exec {} {options} {line}", program.display());
            let output = Command::new("sh").args(["-c", &script]).current_dir(place).output().unwrap();
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            let left = capture::capture(&place.join("target")).unwrap();
            remove::remove(&place.join("target")).unwrap();
            left
        };
        let mut report = String::new();
        for line in LINES {
            let expected = copied(&gnu, "", line);
            let actual = copied(FERRY.as_ref(), "cp --atomic", line);
            // When preserving permissions, GNU cp leaves an ACL that the source lacks.
            let keeps_mode = ["-rpT", "-aT", "--preserve=mode"].iter().any(|word| line.contains(word));
            let is_left = |what: &Mismatch| {
                keeps_mode && matches!(what, Mismatch::Acl { source: Some(_), target: None, .. })
            };
            let differences = snapshots(&expected, &actual, &compared);
            for difference in differences.iter().filter(|difference| !is_left(&difference.mismatch)) {
                writeln!(report, "cp --atomic {line}: {difference}").unwrap();
            }
        }
        assert!(report.is_empty(), "\n{report}");
    });
}
