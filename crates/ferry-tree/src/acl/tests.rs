use super::Acl;

#[test]
fn encoding_is_reversible() {
    let acl = Acl::from_mode(0o640).user(7, 6).user(3, 1).named_group(9, 4);
    assert_eq!(Acl::decode(&acl.encode()), Some(acl.clone()));
    assert_eq!(acl.to_string(), "u::rw-,u:3:--x,u:7:rw-,g::r--,g:9:r--,m::rwx,o::---");
}

#[test]
fn bytes_are_those_of_the_kernel() {
    let bytes = Acl::from_mode(0o754).encode();
    let expect = [2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 5, 0, 255, 255, 255, 255, 32, 0, 4, 0];
    assert_eq!(bytes[..24], expect);
    assert_eq!(bytes.len(), 28);
}

#[test]
fn mode_sets_the_mask_once_there_is_one() {
    let mut acl = Acl::from_mode(0o750).user(1, 7);
    acl.set_mode(0o640);
    assert_eq!((acl.group, acl.mask, acl.mode()), (5, Some(4), 0o640));
}

#[test]
fn garbage_is_no_acl() {
    for bytes in [&b""[..], b"\x02\0\0", b"\x03\0\0\0", b"\x02\0\0\0\x01", b"\x02\0\0\0\x99\0\0\0\0\0\0\0"] {
        assert_eq!(Acl::decode(bytes), None);
    }
}
