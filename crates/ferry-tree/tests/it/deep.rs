//! Trees too deep for a path, for the stack, and for a descriptor a level.

use crate::support::{Place, again_with_few_descriptors, differences, is_again, verify};
use ferry_tree::compare::{Options, snapshots};
use ferry_tree::workload::{self, Preset};
use ferry_tree::{Node, Tree, capture, make};

#[test]
fn deep_trees_need_few_descriptors() {
    const LEVELS: u64 = 5000;
    if !is_again() {
        return again_with_few_descriptors("deep::deep_trees_need_few_descriptors", 48);
    }
    let place = Place::new();
    let shape = Preset::Deep { levels: LEVELS }.workload(1);
    workload::make(&shape, &place.join("source"), 8).unwrap();
    workload::make(&shape, &place.join("target"), 1).unwrap();
    let options = Options { mtime: false, ..Options::all() };
    let (lines, summary) = verify(&place.join("source"), &place.join("target"), &options);
    assert_eq!(lines, Vec::<String>::new());
    assert_eq!((summary.entries, summary.files), (2 * (LEVELS + 1), LEVELS + 1));
    let found = capture::capture(&place.join("target")).unwrap();
    assert_eq!(u64::try_from(found.entries.len()).unwrap(), 2 * (LEVELS + 1));
    assert!(found.unreadable.is_empty());
}

#[test]
fn bushy_deep_trees_need_few_descriptors() {
    const LEVELS: usize = 600;
    if !is_again() {
        return again_with_few_descriptors("deep::bushy_deep_trees_need_few_descriptors", 48);
    }
    // Each level has one more pending directory, none of which is kept open.
    let mut tree = Tree::new();
    let mut path = Vec::new();
    for _ in 0..LEVELS {
        tree.insert(&[&path, &b"a/file"[..]].concat(), Node::file("x"));
        path.extend_from_slice(b"z/");
    }
    let name = [b'n'; 255];
    tree.insert(&[&path, &name[..]].concat(), Node::file("the end"));
    let place = Place::new();
    make::make(&tree, &place.join("source")).unwrap();
    make::make(&tree, &place.join("target")).unwrap();
    let options = Options { mtime: false, ..Options::all() };
    let (lines, summary) = verify(&place.join("source"), &place.join("target"), &options);
    assert_eq!(lines, Vec::<String>::new());
    assert_eq!(usize::try_from(summary.entries).unwrap(), tree.count());
}

#[test]
fn described_trees_may_be_deep() {
    let mut path = Vec::new();
    for _ in 0..1500 {
        path.extend_from_slice(b"level\xff/");
    }
    path.extend_from_slice(b"end");
    let tree = Tree::new().with(&path, Node::file("x").mtime(5, 6));
    let place = Place::new();
    make::make(&tree, &place.join("source")).unwrap();
    let found = capture::capture(&place.join("source")).unwrap();
    assert_eq!(tree.differences(&found), []);
    make::make(&tree.clone().with(&path, Node::file("y").mtime(5, 6)), &place.join("target")).unwrap();
    let options = Options { mtime: false, ..Options::all() };
    let (on_disk, _) = differences(&place.join("source"), &place.join("target"), &options);
    assert_eq!((on_disk.len(), &on_disk[0].path), (1, &path));
    let after = capture::capture(&place.join("target")).unwrap();
    assert_eq!(snapshots(&found, &after, &options).len(), 1);
}

#[test]
fn long_names_are_opened_from_the_root() {
    let name = vec![b'n'; 255];
    let path = vec![name; 100].join(&b'/');
    let file = [&path[..], b"/f"].concat();
    let place = Place::new();
    make::make(&Tree::new().with(&file, Node::file("x")), &place.join("source")).unwrap();
    make::make(&Tree::new().with(&file, Node::file("y")), &place.join("target")).unwrap();
    let options = Options { threads: 1, ..Options::plain() };
    let (found, _) = differences(&place.join("source"), &place.join("target"), &options);
    assert_eq!((found.len(), &found[0].path), (1, &file));
}
