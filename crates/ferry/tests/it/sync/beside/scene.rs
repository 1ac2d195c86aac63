//! Pairs of trees with further hard links, owners, read-only folders and mount points.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_tree::Tree;
use ferry_tree::describe::NodeKind;
use ferry_tree::fill::SplitMix64;

use crate::random::filesystem;

/// Links some names of a tree that is made to each other, whatever they were linked to before.
pub(super) fn relink(root: &Path, tree: &Tree, seed: u64) {
    let mut numbers = SplitMix64::new(seed ^ 0x6c69_6e6b);
    let is_name = |(path, node): (&[u8], &ferry_tree::Node)| {
        (node.kind != NodeKind::Directory).then(|| root.join(OsStr::from_bytes(path)))
    };
    let names: Vec<PathBuf> = tree.nodes().filter_map(is_name).collect();
    let count = if names.is_empty() { 0 } else { numbers.below(7) };
    for _ in 0..count {
        let [one, other] = [&names[numbers.index(names.len())], &names[numbers.index(names.len())]];
        if one != other {
            std::fs::remove_file(other).unwrap();
            std::fs::hard_link(one, other).unwrap();
        }
    }
}

/// Makes some folders and files of a normal user read-only. With `gives` some of these files get another owner.
pub(super) fn restrict(root: &Path, tree: &Tree, seed: u64, gives: bool) {
    let mut numbers = SplitMix64::new(seed ^ 0x7265_6164);
    for (path, _) in tree.nodes() {
        let (is_drawn, is_foreign) = (numbers.percent(15), numbers.percent(30) && gives);
        let path = root.join(OsStr::from_bytes(path));
        // A file may have become a link, which is not followed.
        let kind = path.symlink_metadata().unwrap().file_type();
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        if is_drawn && kind.is_dir() {
            mode(0o555);
        }
        if is_drawn && kind.is_file() {
            if is_foreign {
                lchown(&path, Some(1000), Some(1000)).unwrap();
            }
            mode(0o444);
        }
    }
}

/// A filesystem with one file, mounted in a tree; unmounted on drop.
pub(super) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it, if the test has mounts of its own.
    pub(super) fn at(path: PathBuf) -> Option<Self> {
        if !filesystem::has_own_mounts() {
            return None;
        }
        std::fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "mode=755", "tmpfs"]).arg(&path);
        assert!(mount.status().unwrap().success());
        std::fs::write(path.join("inside"), "on another filesystem").unwrap();
        Some(Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        assert!(status.unwrap().success() || std::thread::panicking());
    }
}
