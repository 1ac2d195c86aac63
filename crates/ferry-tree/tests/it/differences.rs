//! One change on disk is reported as exactly one difference of its kind.

use crate::support::{Place, is_root, verify};
use ferry_tree::compare::{Holes, Options, snapshots};
use ferry_tree::random::Knobs;
use ferry_tree::{Acl, Node, Tree, acl, capture, make};
use rustix::fs::{XattrFlags, lsetxattr};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

const MIB: u64 = 1 << 20;

fn tree() -> Tree {
    Tree::new()
        .with("d/e/f", Node::seeded(700_000, 1).mode(0o640).mtime(1_000_000_000, 7))
        .with("d/g", Node::file("hello"))
        .with("d/link", Node::symlink("g"))
        .with("d/fifo", Node::fifo())
        .with("one", Node::file("same"))
        .with("two", Node::hard_link("one"))
        .with("three", Node::file("same"))
        .with("sparse", Node::sparse(10 * MIB, 3, [(MIB, MIB)]))
}

/// Makes a tree twice, changes the second one, and compares both ways; times only if `times`.
fn check_tree(tree: &Tree, options: &Options, change: impl Fn(&Path), expect: &[&str]) {
    let place = Place::new();
    let (source, target) = (place.join("source"), place.join("target"));
    make::make(tree, &source).unwrap();
    make::make(tree, &target).unwrap();
    change(&target);
    let (lines, _) = verify(&source, &target, options);
    assert_eq!(lines, expect);
    let (before, after) = (capture::capture(&source).unwrap(), capture::capture(&target).unwrap());
    let found = snapshots(&before, &after, options);
    let mut lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.sort_unstable();
    let without_offset = |line: &&str| line.split(" from byte").next().unwrap_or_default().to_owned();
    assert_eq!(lines, expect.iter().map(without_offset).collect::<Vec<_>>());
}

fn check(change: impl Fn(&Path), expect: &[&str]) {
    check_tree(&tree(), &Options { mtime: false, ..Options::all() }, change, expect);
}

fn write_at(path: &Path, bytes: &[u8], offset: u64) {
    fs::File::options().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

#[test]
fn nothing_changed_is_no_difference() {
    check(|_| {}, &[]);
}

#[test]
fn missing_directory_is_one_difference() {
    check(
        |target| fs::remove_dir_all(target.join("d")).unwrap(),
        &["'d': missing in the target (directory)"],
    );
}

#[test]
fn extra_entries_are_found() {
    let change = |target: &Path| {
        fs::create_dir_all(target.join("d/new/deeper")).unwrap();
        fs::write(target.join("d/a\nb"), "").unwrap();
    };
    let expect = ["'d/a\\nb': only in the target (regular file)", "'d/new': only in the target (directory)"];
    check(change, &expect);
}

#[test]
fn other_type_is_the_only_difference() {
    let change = |target: &Path| {
        fs::remove_dir_all(target.join("d/e")).unwrap();
        symlink("/", target.join("d/e")).unwrap();
    };
    check(change, &["'d/e': type is directory in the source, symbolic link in the target"]);
}

#[test]
fn content_is_named_by_its_first_byte() {
    let byte = |path: &Path| fs::read(path).unwrap()[300_000];
    let change = |target: &Path| {
        let path = target.join("d/e/f");
        write_at(&path, &[!byte(&path)], 300_000);
        write_at(&path, &[0; 10], 600_000);
    };
    check(change, &["'d/e/f': content differs from byte 300000 on"]);
}

#[test]
fn content_in_a_hole_is_found() {
    let change = |target: &Path| write_at(&target.join("sparse"), b"x", 5 * MIB + 5);
    check(change, &["'sparse': content differs from byte 5242885 on"]);
}

#[test]
fn size_hides_content() {
    let change = |target: &Path| fs::write(target.join("d/g"), "hell").unwrap();
    check(change, &["'d/g': size is 5 bytes in the source, 4 in the target"]);
}

#[test]
fn mode_is_found() {
    let change = |target: &Path| {
        fs::set_permissions(target.join("d/g"), fs::Permissions::from_mode(0o4755)).unwrap();
        fs::set_permissions(target.join("d"), fs::Permissions::from_mode(0o1755)).unwrap();
    };
    let expect = [
        "'d': mode is 0755 in the source, 1755 in the target",
        "'d/g': mode is 0644 in the source, 4755 in the target",
    ];
    check(change, &expect);
}

#[test]
fn owner_is_found_even_of_a_link() {
    if !is_root("changing owners") {
        return;
    }
    let change =
        |target: &Path| std::os::unix::fs::lchown(target.join("d/link"), Some(12), Some(34)).unwrap();
    check(change, &["'d/link': owner is 0:0 in the source, 12:34 in the target"]);
}

#[test]
fn time_is_found_to_the_nanosecond() {
    let all = |node: Node| node.mtime(1_000_000_000, 7);
    let tree = Tree::new().root(all(Node::directory())).with("f", all(Node::file("x")));
    let change = |target: &Path| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 8);
        fs::File::open(target.join("f")).unwrap().set_modified(time).unwrap();
    };
    let expect = "'f': time of change is 2001-09-09 01:46:40.000000007 UTC in the source, \
                  2001-09-09 01:46:40.000000008 UTC in the target";
    check_tree(&tree, &Options::all(), change, &[expect]);
    check_tree(&tree, &Options::plain(), change, &[]);
}

#[test]
fn link_target_is_found() {
    let change = |target: &Path| {
        fs::remove_file(target.join("d/link")).unwrap();
        symlink("it's", target.join("d/link")).unwrap();
    };
    check(change, &["'d/link': link target is 'g' in the source, 'it\\'s' in the target"]);
}

#[test]
fn device_number_is_found() {
    if !is_root("making devices") {
        return;
    }
    let place = Place::new();
    for (name, minor) in [("source", 3), ("target", 5)] {
        make::make(&Tree::new().with("c", Node::character_device(1, minor)), &place.join(name)).unwrap();
    }
    let options = Options { mtime: false, ..Options::all() };
    let (lines, _) = verify(&place.join("source"), &place.join("target"), &options);
    assert_eq!(lines, ["'c': device is 1:3 in the source, 1:5 in the target"]);
}

#[test]
fn attributes_are_found() {
    let place = Place::new();
    let knobs = Knobs::possible_in(place.path());
    if !(knobs.user_xattrs && knobs.acls) {
        println!("SKIP: no user attributes or no ACLs at {}", place.path().display());
        return;
    }
    let tree = Tree::new().with("d/f", Node::file("x").xattr("user.gone", "1").xattr("user.kept", "2"));
    let change = |target: &Path| {
        let (file, directory) = (target.join("d/f"), target.join("d"));
        rustix::fs::lremovexattr(&file, "user.gone").unwrap();
        lsetxattr(&file, "user.kept", b"3", XattrFlags::empty()).unwrap();
        lsetxattr(&directory, "user.new", b"", XattrFlags::empty()).unwrap();
        let default = Acl::from_mode(0o750).user(7, 4).encode();
        lsetxattr(&directory, acl::DEFAULT_XATTR, &default, XattrFlags::empty()).unwrap();
        let access = Acl::from_mode(0o644).user(7, 4).encode();
        lsetxattr(&file, acl::ACCESS_XATTR, &access, XattrFlags::empty()).unwrap();
    };
    let expect = [
        "'d': attribute 'user.new' is absent in the source, '' in the target",
        "'d': default ACL is absent in the source, u::rwx,u:7:r--,g::r-x,m::r-x,o::--- in the target",
        "'d/f': ACL is absent in the source, u::rw-,u:7:r--,g::r--,m::r--,o::r-- in the target",
        "'d/f': attribute 'user.gone' is '1' in the source, absent in the target",
        "'d/f': attribute 'user.kept' is '2' in the source, '3' in the target",
    ];
    let options = Options { mtime: false, ..Options::all() };
    check_tree(&tree, &options, change, &expect);
    check_tree(&tree, &Options { xattrs: false, ..options.clone() }, change, &expect[1..3]);
    check_tree(&tree, &Options { xattrs: false, acls: false, ..options }, change, &[]);
}

#[test]
fn hard_links_are_found() {
    let split = |target: &Path| {
        fs::remove_file(target.join("two")).unwrap();
        fs::write(target.join("two"), "same").unwrap();
        fs::set_permissions(target.join("two"), fs::Permissions::from_mode(0o644)).unwrap();
    };
    check(split, &["'two': hard link is 'one' in the source, none in the target"]);
    let joined = |target: &Path| {
        fs::remove_file(target.join("three")).unwrap();
        fs::hard_link(target.join("one"), target.join("three")).unwrap();
    };
    check(joined, &["'three': hard link is none in the source, 'one' in the target"]);
    check_tree(&tree(), &Options::plain(), joined, &[]);
}

#[test]
fn filled_holes_are_found() {
    let fill = |target: &Path| write_at(&target.join("sparse"), &vec![0; 4 << 20], 4 * MIB);
    for options in [Options::all(), Options { content: false, ..Options::all() }] {
        let place = Place::new();
        let (source, target) = (place.join("source"), place.join("target"));
        make::make(&tree(), &source).unwrap();
        make::make(&tree(), &target).unwrap();
        fill(&target);
        let options = Options { mtime: false, ..options };
        let (lines, _) = verify(&source, &target, &options);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("'sparse': holes differ: it occupies 1"), "{lines:?}");
        // In the other direction it is only a better copy.
        assert_eq!(verify(&target, &source, &options).0, Vec::<String>::new());
        let same = Options { holes: Holes::Same, ..options };
        assert_eq!(verify(&target, &source, &same).0.len(), 1);
    }
}

#[test]
fn holes_are_found_where_blocks_lie_behind_the_end() {
    let place = Place::new();
    let (source, target) = (place.join("source"), place.join("target"));
    make::make(&tree(), &source).unwrap();
    make::make(&tree(), &target).unwrap();
    let sparse = fs::File::options().write(true).open(source.join("sparse")).unwrap();
    let behind = rustix::fs::FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(&sparse, behind, 10 * MIB, 12 * MIB).is_err() {
        println!("SKIP: nothing can be allocated behind the end of a file in {}", place.path().display());
        return;
    }
    let options = Options { mtime: false, ..Options::all() };
    assert_eq!(verify(&source, &target, &options).0, Vec::<String>::new());
    write_at(&target.join("sparse"), &vec![0; 4 << 20], 4 * MIB);
    let (lines, _) = verify(&source, &target, &options);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("'sparse': holes differ: "), "{lines:?}");
    let found = snapshots(&capture::capture(&source).unwrap(), &capture::capture(&target).unwrap(), &options);
    assert_eq!(found.len(), 1);
}

#[test]
fn times_of_access_are_captured_before_anything_is_read() {
    let place = Place::new();
    let old = |node: Node| node.atime(1_000_000_000, 5).mtime(1_000_000_000, 7);
    let tree = Tree::new()
        .root(old(Node::directory()))
        .with("d", old(Node::directory()))
        .with("d/f", old(Node::seeded(300_000, 1)))
        .with("d/l", old(Node::symlink("f")));
    make::make(&tree, &place.join("tree")).unwrap();
    let found = capture::capture(&place.join("tree")).unwrap();
    for (path, facts) in &found.entries {
        let atime = facts.attributes.atime;
        assert_eq!((atime.seconds, atime.nanoseconds), (1_000_000_000, 5), "{}", path.escape_ascii());
    }
}

#[test]
fn single_files_are_compared() {
    let place = Place::new();
    fs::write(place.join("a"), "one").unwrap();
    fs::write(place.join("b"), "onE").unwrap();
    let (lines, summary) = verify(&place.join("a"), &place.join("b"), &Options::plain());
    assert_eq!(lines, ["'.': content differs from byte 2 on"]);
    assert_eq!((summary.entries, summary.files, summary.differences), (1, 1, 1));
    let (lines, _) = verify(&place.join("a"), place.path(), &Options::plain());
    assert_eq!(lines, ["'.': type is regular file in the source, directory in the target"]);
}
