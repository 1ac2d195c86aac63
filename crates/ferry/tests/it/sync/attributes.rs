//! Entries that differ in extended attributes and ACLs alone.

use std::os::unix::fs::MetadataExt;

use ferry_tree::acl::Acl;
use ferry_tree::{Node, Tree};

use super::{Pair, said};
use crate::random::filesystem;

/// More attributes than one request returns: those behind them are examined apart.
#[test]
fn attributes_beyond_the_bound_of_a_request_are_compared() {
    filesystem::within(
        "sync::attributes::attributes_beyond_the_bound_of_a_request_are_compared",
        "xfs",
        |xfs| {
            let tree = |last: u8| {
                (0..4).fold(Tree::new(), |tree, number| {
                    let mut value = vec![b'x'; 40 << 10];
                    value[0] = if number == 3 { last } else { b'x' };
                    tree.with(
                        format!("file {number}"),
                        Node::file("same").mtime(9, 9).xattr("user.large", value),
                    )
                })
            };
            let pair = Pair::new(xfs.path(), 0, &tree(b'a'), &tree(b'b'));
            let output = pair.sync(&["-v"]);
            assert_eq!(said(&output).lines().next(), Some("attributes  'file 3'"), "{}", said(&output));
            pair.assert_equal("source", "target", &output);
            let again = pair.sync(&["-v"]);
            assert!(again.stdout.is_empty() && again.status.success(), "{}", said(&again));
        },
    );
}

#[test]
fn an_acl_that_leaves_the_mode_as_it_is_is_compared() {
    filesystem::within(
        "sync::attributes::an_acl_that_leaves_the_mode_as_it_is_is_compared",
        "ext4",
        |ext4| {
            let tree = |user: u32| {
                let file = Node::file("same").mtime(9, 9).acl(Acl::from_mode(0o640).user(user, 4));
                let folder = Node::directory().mtime(9, 9).default_acl(Acl::from_mode(0o750).user(user, 5));
                Tree::new().with("file", file).with("folder", folder)
            };
            let pair = Pair::new(ext4.path(), 0, &tree(4711), &tree(4712));
            let output = pair.sync(&["-v"]);
            assert!(output.status.success(), "{}", said(&output));
            pair.assert_equal("source", "target", &output);
            for name in ["file", "folder"] {
                assert!(said(&output).contains(&format!("attributes  '{name}'")), "{}", said(&output));
            }
        },
    );
}

/// An older copy may be linked to the files of TARGET: attributes that are set there would be set in it, too.
#[test]
fn names_that_the_source_lacks_do_not_get_its_attributes() {
    let memory = filesystem::Filesystem::memory();
    let tree = |mode| {
        let file = Node::file("same").mtime(9, 9).mode(mode);
        Tree::new().with("a", file).with("b", Node::hard_link("a"))
    };
    let target = tree(0o600).with("older", Node::hard_link("a"));
    for words in [&[][..], &["--exclude=older", "--delete"]] {
        let pair = Pair::new(memory.path(), 0, &tree(0o4755), &target);
        let output = pair.sync(words);
        assert!(output.status.success(), "{}", said(&output));
        let found = |name: &str| pair.path().join("target").join(name).metadata().unwrap();
        assert_eq!(found("a").ino(), found("b").ino());
        assert_eq!([found("a"), found("older")].map(|file| file.mode() & 0o7777), [0o4755, 0o600]);
        assert!(pair.sync(&[words, &["-v"]].concat()).stdout.is_empty());
    }
}
