//! Targets that are like a source, with changes of every kind.

use ferry_tree::acl::Acl;
use ferry_tree::describe::NodeKind;
use ferry_tree::fill::SplitMix64;
use ferry_tree::random::Knobs;
use ferry_tree::{Node, Tree};

/// Returns a tree like `source`: half of it is equal; the rest is missing, changed, of another kind, or linked to other
/// names. It also has entries of its own.
pub(super) fn changed(source: &Tree, seed: u64, knobs: &Knobs) -> Tree {
    let mut numbers = SplitMix64::new(seed ^ 0x7379_6e63);
    let mut tree = Tree::new().root(Node::directory());
    for (path, node) in source.nodes().filter(|(path, _)| !path.is_empty()) {
        let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let above = tree.get(&path[..cut]);
        if !above.is_some_and(|above| above.kind == NodeKind::Directory) {
            continue;
        }
        let there = match &node.kind {
            NodeKind::HardLink(first) if !is_file(tree.get(first)) => Node::file("alone"),
            NodeKind::HardLink(_)
            | NodeKind::Directory
            | NodeKind::File(_)
            | NodeKind::Symlink(_)
            | NodeKind::Fifo
            | NodeKind::Socket
            | NodeKind::CharacterDevice(..)
            | NodeKind::BlockDevice(..) => node.clone(),
        };
        let is_link = matches!(there.kind, NodeKind::HardLink(_));
        let other = match numbers.below(23) {
            0..=9 => there,
            10 | 11 => continue,
            12 => Node::directory().mode(0o755),
            13 => Node::symlink("elsewhere"),
            14 => Node::seeded(numbers.below(20_000), numbers.next_u64()).mtime(5, 7),
            15 if !is_link => there.mode(0o700),
            16 if !is_link => there.mtime(77, 8),
            17 => Node::fifo(),
            18 if is_file(tree.get(b"twin")) => Node::hard_link("twin"),
            // Differences that stat(2) does not show.
            20 | 21 if knobs.user_xattrs && may_have_user_xattrs(&there) => there.xattr("user.changed", "x"),
            22 if knobs.acls && there.kind == NodeKind::Directory => {
                there.default_acl(Acl::from_mode(0o750).user(4711, 5))
            }
            _ => there,
        };
        let is_folder = other.kind == NodeKind::Directory;
        tree.insert(path, other);
        if is_folder && numbers.percent(40) {
            let name = |text: &str| [path, b"/", text.as_bytes()].concat();
            tree.insert(&name("own"), Node::directory());
            tree.insert(&name("own/file"), Node::seeded(numbers.below(5_000), numbers.next_u64()));
            tree.insert(&name("own/link"), Node::symlink("file"));
        }
        if tree.get(b"twin").is_none() && source.get(b"twin").is_none() {
            tree.insert(b"twin", Node::file("twin"));
        }
    }
    tree
}

fn may_have_user_xattrs(node: &Node) -> bool {
    matches!(node.kind, NodeKind::File(_) | NodeKind::Directory)
}

fn is_file(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.kind, NodeKind::File(_)))
}
