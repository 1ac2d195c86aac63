//! Small files on btrfs: their extents are shared in runs, and a file that can't share is written.

use std::path::Path;
use std::process::Command;

use ferry_tree::compare::snapshots;
use ferry_tree::{Node, Tree, capture, make};

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, OLD, comparison, text};

const FILES: u64 = 60;

fn set(root: &Path) {
    let old = |node: Node| node.mtime(OLD, 123_456_789);
    let mut tree = Tree::new().root(old(Node::directory().mode(0o755)));
    for index in 0..FILES {
        let size = [1, 100, 3000, 4096, 5000][usize::try_from(index % 5).unwrap()];
        let file = old(Node::seeded(size, index).mode([0o644, 0o600][usize::from(index % 7 == 0)]));
        tree = tree.with(format!("f{index:02}"), file);
    }
    tree = tree.with("empty", old(Node::file(""))).with("again", Node::hard_link("f08"));
    make::make(&tree, &root.join("s")).unwrap();
}

/// Copies with one of strace's injections; returns the numbers of files that share extents and that were written.
fn copy(root: &Path, options: &[&str], injection: &str) -> [u64; 2] {
    drop(std::fs::remove_dir_all(root.join("t")));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=ioctl", "-e", injection]).arg(FERRY).arg("cp");
    command.args(["--workers=1", "--backend=posix", "--stats=json"]).args(options).args(["-T", "s", "t"]);
    let output = command.current_dir(root).output().unwrap();
    assert!(output.status.success(), "{injection}: {}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = |method: &str| found["methods"][method]["files"].as_u64().unwrap();
    [files("reflink"), files("whole")]
}

fn check(btrfs: &Filesystem) {
    let root = btrfs.path();
    set(root);
    let expected = capture::capture(&root.join("s")).unwrap();
    for options in [&["-r", "--preserve=timestamps,links"][..], &["-a"]] {
        assert_eq!(copy(root, options, "inject=ioctl:error=EINVAL:when=9999"), [FILES, 0], "{options:?}");
        for error in ["EINVAL", "ENOMEM", "EXDEV"] {
            let (first, each) = (7, 5);
            let injection = format!("inject=ioctl:error={error}:when={first}+{each}");
            let [shared, written] = copy(root, options, &injection);
            assert_eq!(shared + written, FILES, "{options:?} {error}");
            assert!(written > 5, "{options:?} {error}: {written} files were written");
            let found = capture::capture(&root.join("t")).unwrap();
            let differences = snapshots(&expected, &found, &comparison());
            assert!(options != ["-a"] || differences.is_empty(), "{error}: {differences:#?}");
            let same = Command::new("diff").args(["-r", "s", "t"]).current_dir(root).output().unwrap();
            assert!(same.status.success(), "{options:?} {error}: {}", text(&same.stdout));
        }
    }
}

#[test]
fn small_files_that_can_not_share_extents_are_written() {
    within("shared::small_files_that_can_not_share_extents_are_written", "btrfs", check);
}
