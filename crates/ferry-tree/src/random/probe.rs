//! Probing which features of random trees work for this user on a filesystem.

use super::{CAPABILITY, Knobs};
use crate::acl::Acl;
use crate::capture::capture;
use crate::describe::{Node, Tree};
use crate::make::make;
use crate::remove::remove;
use std::path::Path;

impl Knobs {
    /// Returns all knobs that work in this writable directory. Each is tried, and its tree removed again.
    #[must_use]
    pub fn possible_in(directory: &Path) -> Self {
        let works = |node: Node| keeps(directory, Tree::new().with("probe", node));
        let file = || Node::file("x");
        let label = |name: &str| file().xattr(name, "x");
        let odd_name = Tree::new().with(b"\xff\n", file());
        Self {
            odd_names: keeps(directory, odd_name),
            holes: works(Node::sparse(1 << 20, 1, [(0, 1 << 16)])),
            hard_links: keeps(directory, Tree::new().with("a", file()).with("b", Node::hard_link("a"))),
            special: works(Node::fifo()) && works(Node::socket()),
            devices: works(Node::character_device(1, 3)) && works(Node::block_device(7, 1000)),
            owners: works(file().owner(4_000_000_000, 4_000_000_000)),
            unreadable: keeps(
                directory,
                Tree::new().with("d", Node::directory().mode(0)).with("d/f", file().mode(0)),
            ),
            user_xattrs: works(label("user.x")),
            trusted_xattrs: works(label("trusted.x").xattr("security.capability", CAPABILITY)),
            acls: works(file().acl(Acl::from_mode(0o640).user(1000, 4))),
            far_times: works(file().mtime(3_000_000_000, 1))
                && works(file().mtime(-1_000_000_000, 999_999_999)),
            ..Self::all()
        }
    }

    /// Returns the names of disabled features. Tests print them, so that no gap in their coverage goes unnoticed.
    #[must_use]
    pub fn without(&self) -> Vec<&'static str> {
        let all = [
            (self.odd_names, "odd names"),
            (self.holes, "holes"),
            (self.hard_links, "hard links"),
            (self.special, "pipes and sockets"),
            (self.devices, "devices"),
            (self.owners, "other owners"),
            (self.unreadable, "modes that lock out the owner"),
            (self.user_xattrs, "attributes user.*"),
            (self.trusted_xattrs, "attributes trusted.* and capabilities"),
            (self.acls, "ACLs"),
            (self.far_times, "times before 1970 and after 2038"),
        ];
        all.into_iter().filter(|(is_on, _)| !is_on).map(|(_, name)| name).collect()
    }
}

/// Returns true if the tree can be made and captured unchanged.
fn keeps(directory: &Path, tree: Tree) -> bool {
    let path = directory.join(format!(".ferry-probe-{}", std::process::id()));
    let made = make(&tree, &path).is_ok();
    let kept = made && capture(&path).is_ok_and(|found| tree.differences(&found).is_empty());
    // A tree that could not be made need not be removed.
    remove(&path).ok();
    kept
}
