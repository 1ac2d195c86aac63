use super::{Difference, Mismatch, Side};
use crate::acl::Acl;
use crate::attributes::EntryKind;
use crate::error::Operation;
use rustix::io::Errno;

#[test]
fn each_difference_is_one_line() {
    let check = |mismatch: Mismatch, expect: &str| {
        let line = Difference { path: b"a\nb".to_vec(), mismatch }.to_string();
        assert_eq!(line, format!("'a\\nb': {expect}"));
    };
    check(Mismatch::MissingInTarget(EntryKind::File), "missing in the target (regular file)");
    check(Mismatch::Content { offset: Some(7) }, "content differs from byte 7 on");
    check(Mismatch::Mode { source: 0o4755, target: 0o55 }, "mode is 4755 in the source, 0055 in the target");
    check(
        Mismatch::Owner { source: (0, 1), target: (2, 3) },
        "owner is 0:1 in the source, 2:3 in the target",
    );
    let name = b"user.\xff".to_vec();
    let value = Some(vec![0, b'x']);
    check(
        Mismatch::Xattr { name, source: value, target: None },
        "attribute 'user.\\xFF' is '\\0x' in the source, absent in the target",
    );
    let acl = Some(Acl::from_mode(0o640).encode());
    check(
        Mismatch::Acl { default: true, source: acl, target: Some(vec![1]) },
        "default ACL is u::rw-,g::r--,o::--- in the source, '\\u{1}' in the target",
    );
    let linked = Some(b"x'".to_vec());
    check(
        Mismatch::HardLink { source: linked, target: None },
        "hard link is 'x\\'' in the source, none in the target",
    );
    let unreadable =
        Mismatch::Unreadable { side: Side::Target, operation: Operation::Open, errno: Errno::ACCESS };
    check(unreadable, "cannot open it in the target: Permission denied (os error 13)");
}

#[test]
fn the_root_is_a_dot() {
    let mismatch = Mismatch::Content { offset: None };
    assert_eq!(Difference { path: Vec::new(), mismatch }.to_string(), "'.': content differs");
}
