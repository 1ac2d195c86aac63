//! A described tree that is made and captured equals its description.

use crate::support::{self, Place, is_root};
use ferry_tree::random::{self, Knobs};
use ferry_tree::{Acl, Node, Tree, capture, make};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn check(place: &Place, tree: &Tree) {
    let path = place.join("tree");
    make::make(tree, &path).unwrap();
    let found = capture::capture(&path).unwrap();
    assert_eq!(tree.differences(&found), []);
    assert_eq!(found.entries.len(), tree.count());
    ferry_tree::remove::remove(&path).unwrap();
}

#[test]
fn simple_kinds_are_as_described() {
    let tree = Tree::new()
        .root(Node::directory().mode(0o2750).mtime(1_000_000_000, 1))
        .with("empty", Node::file(""))
        .with("text", Node::file("hello").mode(0o4711).mtime(1_234_567_890, 987_654_321))
        .with("locked/secret", Node::seeded(100_000, 7).mode(0o400))
        .with("locked", Node::directory().mode(0o500).mtime(5, 0))
        .with("sticky", Node::directory().mode(0o1777).mtime(1_500_000_000, 999_999_999))
        .with("sticky/inner/file", Node::seeded(3_000_000, 1))
        .with("link", Node::symlink("text").mtime(77, 77))
        .with("broken", Node::symlink("no/such/\u{ff}"))
        .with(b"bytes \xff\n", Node::file("x"))
        .with("fifo", Node::fifo().mode(0o640))
        .with("socket", Node::socket().mode(0o600))
        .with("a-link-before-its-file", Node::hard_link("text"))
        .with("sticky/link", Node::hard_link("link"))
        .with("text2", Node::hard_link("text"));
    Place::everywhere().iter().for_each(|place| check(place, &tree));
}

#[test]
fn holes_are_as_described() {
    let mib = 1 << 20;
    let tree = Tree::new()
        .with("only-hole", Node::sparse(1 << 40, 1, []))
        .with("middle", Node::sparse(10 * mib, 2, [(0, mib), (8 * mib, 2 * mib)]))
        .with("end", Node::sparse(10 * mib, 3, [(0, mib)]))
        .with("start", Node::sparse(10 * mib + 1, 4, [(9 * mib, mib + 1)]))
        .with("unaligned", Node::sparse(10_000, 5, [(10, 20), (100, 5), (9000, 10)]));
    for place in Place::everywhere() {
        let path = place.join("tree");
        make::make(&tree, &path).unwrap();
        assert_eq!(tree.differences(&capture::capture(&path).unwrap()), []);
        let occupied = std::fs::metadata(path.join("only-hole")).unwrap().blocks();
        assert_eq!(occupied, 0);
        let bytes = std::fs::read(path.join("unaligned")).unwrap();
        assert!(bytes[..10].iter().chain(&bytes[30..100]).chain(&bytes[9010..]).all(|byte| *byte == 0));
        assert!(bytes[10..30].iter().any(|byte| *byte != 0));
    }
}

#[test]
fn attributes_are_as_described() {
    let place = Place::new();
    let knobs = Knobs::possible_in(place.path());
    if !(knobs.user_xattrs && knobs.acls) {
        println!("SKIP: no user attributes or no ACLs at {}", place.path().display());
        return;
    }
    let acl = Acl::from_mode(0o750).user(12, 6).named_group(34, 4);
    let tree = Tree::new()
        .with("d", Node::directory().default_acl(acl.clone()).xattr("user.d", ""))
        .with("d/inherits-nothing", Node::file("x").mode(0o600))
        .with("d/e", Node::directory().acl(acl.clone()).mode(0o2711))
        .with("f", Node::file("x").mode(0o4000).acl(acl).xattr("user.\u{ff}", [0, 1, 2]).mode(0o444))
        .with("minimal", Node::file("x").acl(Acl::from_mode(0o604)));
    check(&place, &tree);
}

#[test]
fn owners_are_as_described() {
    if !is_root("changing owners") {
        return;
    }
    let tree = Tree::new()
        .with("d", Node::directory().owner(1, 2).mode(0o6755))
        .with("d/f", Node::file("x").owner(3, 4).mode(0o6755).xattr("trusted.t", "1").xattr("user.u", "2"))
        .with("d/l", Node::symlink("f").owner(5, 6).xattr("trusted.l", "3"))
        .with("d/p", Node::fifo().owner(7, 8).mode(0o6666))
        .with("d/c", Node::character_device(1, 3).owner(9, 10))
        .with("d/b", Node::block_device(511, 262_143));
    Place::everywhere().iter().for_each(|place| check(place, &tree));
}

#[test]
fn random_trees_are_as_described() {
    for place in Place::everywhere() {
        let knobs = support::knobs(&place);
        for seed in 0..100 {
            println!("seed {seed} in {}", place.path().display());
            check(&place, &random::tree(seed, &knobs));
        }
    }
}

#[test]
fn what_is_possible_leaves_nothing_behind() {
    let place = Place::new();
    let knobs = Knobs::possible_in(place.path());
    println!("{knobs:?}");
    assert!(knobs.hard_links && knobs.special);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn making_fails_where_something_is() {
    let place = Place::new();
    std::fs::write(place.join("tree"), "x").unwrap();
    let error = make::make(&Tree::new(), &place.join("tree")).unwrap_err();
    assert!(error.to_string().ends_with("tree': File exists (os error 17)"), "{error}");
    let error =
        make::make(&Tree::new().with("l", Node::hard_link("none")), &place.join("other")).unwrap_err();
    assert_eq!(error.to_string(), "cannot link 'l': No such file or directory (os error 2)");
}

#[test]
fn single_entries_are_captured() {
    let place = Place::new();
    std::fs::write(place.join("file"), "x").unwrap();
    std::fs::set_permissions(place.join("file"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(".", place.join("link")).unwrap();
    let found = capture::capture(&place.join("file")).unwrap();
    assert_eq!((found.entries.len(), found.entries[&b""[..]].attributes.mode), (1, 0o600));
    let found = capture::capture(&place.join("link")).unwrap();
    assert_eq!(found.entries[&b""[..]].target.as_deref(), Some(&b"."[..]));
    let found = capture::capture(&place.join("link/")).unwrap();
    assert_eq!(found.entries.len(), 3);
    assert!(capture::capture(&place.join("none")).is_err());
}
