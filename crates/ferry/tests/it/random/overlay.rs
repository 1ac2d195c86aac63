//! Existing targets: trees with names of the source, but other types.

use std::collections::HashSet;

use ferry_tree::describe::NodeKind;
use ferry_tree::fill::SplitMix64;
use ferry_tree::{Node, Tree};

/// Makes a tree with about half of the names of `source`.
///
/// No two names lead to the same file, because the order of copies would matter. FIFOs are only where nothing
/// is written, which would block. Where the source has several names of one file, existing targets are
/// replaced in any case.
pub(crate) fn over(source: &Tree, seed: u64) -> Tree {
    let mut numbers = SplitMix64::new(seed ^ 0x6f76_6572);
    let time = |numbers: &mut SplitMix64| i64::try_from(numbers.below(1 << 31)).unwrap();
    let linked: HashSet<&[u8]> =
        source
            .nodes()
            .filter_map(|(_, node)| {
                if let NodeKind::HardLink(first) = &node.kind { Some(first.as_slice()) } else { None }
            })
            .collect();
    let mut tree = Tree::new().root(Node::directory());
    for (path, node) in source.nodes().filter(|(path, _)| !path.is_empty()) {
        let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let above = tree.get(&path[..cut]);
        if !above.is_some_and(|above| above.kind == NodeKind::Directory) || numbers.percent(40) {
            continue;
        }
        let is_linked = linked.contains(path) || matches!(node.kind, NodeKind::HardLink(_));
        let is_folder = node.kind == NodeKind::Directory;
        let is_written =
            matches!(node.kind, NodeKind::File(_) | NodeKind::HardLink(_) | NodeKind::Symlink(_));
        let there = match numbers.below(10) {
            _ if is_folder && numbers.percent(80) => Node::directory(),
            0..=2 if is_linked => Node::file("old"),
            0 => Node::directory(),
            1 => Node::symlink(format!("nowhere {}", tree.count())),
            2 => Node::symlink(aside_of(path, &tree)),
            3 if !is_written => Node::fifo(),
            4 => Node::file("").mode(0o4755),
            5 => Node::sparse(1 << 20, numbers.next_u64(), [(0, 4096)]),
            _ => Node::seeded(numbers.below(20_000), numbers.next_u64()),
        };
        let time = if is_linked { -2_000_000_000 } else { time(&mut numbers) };
        tree.insert(path, there.mtime(time, 7));
    }
    tree
}

/// Path from a link in the copy to its own file beside the copy.
fn aside_of(path: &[u8], tree: &Tree) -> String {
    let levels = path.iter().filter(|&&byte| byte == b'/').count() + 1;
    format!("{}aside/{}", "../".repeat(levels), tree.count())
}

/// Files beside the copy that links lead to, relative to the common directory.
pub(crate) fn aside(tree: &Tree) -> impl Iterator<Item = Vec<u8>> {
    tree.nodes().filter_map(|(_, node)| {
        let NodeKind::Symlink(target) = &node.kind else { return None };
        let start = target.windows(6).position(|window| window == b"aside/")?;
        Some(target[start..].to_vec())
    })
}
