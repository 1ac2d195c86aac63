use super::{Difference, Linked, Links, Mismatch};
use crate::attributes::{Attributes, EntryKind, Inode, Time};

fn attributes(number: u64, link_count: u64) -> Attributes {
    Attributes {
        kind: EntryKind::File,
        mode: 0,
        uid: 0,
        gid: 0,
        atime: Time::default(),
        mtime: Time::default(),
        size: 0,
        inode: Inode { device: 1, number },
        link_count,
        device: (0, 0),
        allocated: 0,
        block_bytes: 4096,
    }
}

/// A name, and number and link count of its inode in the source and in the target.
type Named<'a> = (&'a str, (u64, u64), (u64, u64));

/// Adds names in this order and in reverse.
fn check(names: &[Named<'_>], expect: &[(&str, Option<&str>, Option<&str>)]) {
    let add = |links: &mut Links, (path, source, target): &Named<'_>| {
        let (source, target) = (attributes(source.0, source.1), attributes(target.0, target.1));
        Linked::new(path.as_bytes().to_vec(), &source, &target).into_iter().for_each(|name| links.add(name));
    };
    let bytes = |path: &Option<&str>| path.map(|path| path.as_bytes().to_vec());
    let expect = expect.iter().map(|(path, source, target)| Difference {
        path: path.as_bytes().to_vec(),
        mismatch: Mismatch::HardLink { source: bytes(source), target: bytes(target) },
    });
    let expect: Vec<_> = expect.collect();
    let (mut forth, mut back) = (Links::default(), Links::default());
    names.iter().for_each(|name| add(&mut forth, name));
    names.iter().rev().for_each(|name| add(&mut back, name));
    assert_eq!(forth.finish(), expect);
    assert_eq!(back.finish(), expect);
}

#[test]
fn the_same_grouping_is_no_difference() {
    check(&[("a", (1, 2), (8, 2)), ("b", (2, 2), (9, 2)), ("c", (2, 2), (9, 2)), ("d", (1, 2), (8, 2))], &[]);
}

#[test]
fn names_that_agree_are_forgotten() {
    let mut links = Links::default();
    links.add(Linked::new(b"a".to_vec(), &attributes(1, 2), &attributes(7, 2)).unwrap());
    links.add(Linked::new(b"b".to_vec(), &attributes(1, 2), &attributes(7, 2)).unwrap());
    assert!(links.groups.is_empty());
}

#[test]
fn a_link_that_became_a_copy_is_found() {
    check(&[("a", (1, 2), (8, 1)), ("b", (1, 2), (9, 1))], &[("b", Some("a"), None)]);
}

#[test]
fn copies_that_became_links_are_found() {
    check(&[("a", (1, 1), (8, 2)), ("b", (2, 1), (8, 2))], &[("b", None, Some("a"))]);
}

#[test]
fn a_link_to_another_file_is_found() {
    let names = [("a", (1, 2), (7, 1)), ("b", (2, 1), (8, 2)), ("c", (1, 2), (8, 2))];
    check(&names, &[("c", Some("a"), Some("b"))]);
}

#[test]
fn names_out_of_the_tree_are_no_difference() {
    check(&[("a", (1, 5), (8, 2)), ("b", (1, 5), (8, 2))], &[]);
}
