use super::*;

#[test]
fn a_minimal_acl_says_what_the_mode_says() {
    let acl = minimal_acl(0o754);
    assert_eq!(acl.len(), 4 + 3 * 8);
    assert_eq!(acl[..4], [2, 0, 0, 0]);
    assert_eq!([acl[6], acl[14], acl[22]], [7, 5, 4]);
    assert_eq!([acl[4], acl[12], acl[20]], [1, 4, 0x20]);
}
