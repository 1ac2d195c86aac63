use super::{Node, NodeKind, Tree};
use crate::acl::Acl;

#[test]
fn parents_that_are_missing_become_directories() {
    let tree = Tree::new().with("a/b/c", Node::file("x"));
    let paths: Vec<_> = tree.nodes().map(|(path, _)| path).collect();
    assert_eq!(paths, [&b""[..], b"a", b"a/b", b"a/b/c"]);
    assert_eq!(tree.get(b"a/b").unwrap().kind, NodeKind::Directory);
}

#[test]
#[should_panic(expected = "'a' is not a directory")]
fn nothing_lies_beneath_a_file() {
    let _tree = Tree::new().with("a", Node::file("x")).with("a/b", Node::file("y"));
}

#[test]
#[should_panic(expected = "'a/../b' has an impossible name in it")]
fn dot_dot_is_no_name() {
    let _tree = Tree::new().with("a/../b", Node::file("y"));
}

#[test]
fn mode_of_an_acl_is_its_mask() {
    let node = Node::file("x").acl(Acl::from_mode(0o640).user(5, 7));
    assert_eq!(node.meta.mode, 0o670);
    let node = node.mode(0o600);
    assert_eq!(node.meta.access_acl.unwrap().mask, Some(0));
}
