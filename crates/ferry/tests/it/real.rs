//! Real trees and access times, compared by rsync and with descriptions.

use std::path::Path;
use std::process::Command;

use ferry_tree::{Node, Tree, capture, make};

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, gnu, is_root, skip, text};

/// Present on every machine with C headers; other users can't read or keep all of it.
const REAL: &str = "/usr/include";

#[test]
fn a_real_tree_is_the_same_to_rsync_and_to_verify() {
    if !is_root() || !Path::new(REAL).is_dir() {
        skip::<()>("copying a real tree whole needs root, and /usr/include");
        return;
    }
    for options in [&["--backend=uring"][..], &["--backend=posix", "--workers=16"]] {
        let memory = Filesystem::memory();
        let target = memory.path().join("copy");
        let mut command = Command::new(FERRY);
        let output = command.args(["cp", "-a"]).args(options).arg(REAL).arg(&target).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut command = Command::new("rsync");
        command.args(["-aHAXn", "-@-1", "--checksum", "--delete", "--itemize-changes"]);
        let found = command.arg(format!("{REAL}/")).arg(format!("{}/", target.display())).output();
        let Ok(found) = found else {
            skip::<()>("there is no rsync");
            return;
        };
        assert!(found.status.success() && found.stdout.is_empty(), "{found:?}");
        let found = Command::new(FERRY).args(["verify", REAL]).arg(&target).output().unwrap();
        let (code, said) = (found.status.code(), text(&found.stdout));
        assert!(
            code == Some(0) && said.starts_with("equal: ") && said.lines().count() == 1,
            "{options:?}: {said}"
        );
    }
}

#[test]
fn times_of_access_are_those_from_before_the_copy() {
    let Some(gnu) = gnu() else { return };
    // Older than the modification time, so that relatime would update it on every read.
    let old = |node: Node| node.atime(1_000_000_000, 123_456_789).mtime(1_500_000_000, 5);
    let tree = Tree::new()
        .root(old(Node::directory()))
        .with("d", old(Node::directory()))
        .with("d/small", old(Node::file("text")))
        .with("d/large", old(Node::seeded(3 << 20, 1)))
        .with("d/sparse", old(Node::sparse(3 << 20, 1, [(1 << 20, 1 << 16)])))
        .with("d/empty", old(Node::file("")))
        .with("d/same", Node::hard_link("d/small"))
        .with("d/pipe", old(Node::fifo()))
        .with("d/link", old(Node::symlink("small")));
    let ferry = Path::new(FERRY);
    for (program, options) in [
        (gnu.as_path(), &["-a"][..]),
        (ferry, &["cp", "-a", "--backend=uring"]),
        (ferry, &["cp", "-a", "--backend=posix"]),
        (ferry, &["cp", "-a", "--backend=uring", "--route=ring", "--reflink=never"]),
    ] {
        // Temporary directories keep access times, unlike the tests' own filesystems.
        let place = tempfile::tempdir().unwrap();
        make::make(&tree, &place.path().join("source")).unwrap();
        let mut command = Command::new(program);
        let output =
            command.args(options).args(["source", "copy"]).current_dir(place.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        for (path, facts) in capture::capture(&place.path().join("copy")).unwrap().entries {
            let atime = facts.attributes.atime;
            let found = (atime.seconds, atime.nanoseconds);
            assert_eq!(found, (1_000_000_000, 123_456_789), "{options:?}: {}", path.escape_ascii());
        }
    }
}
