use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::quote;

/// Each pair as GNU cp prints it in a UTF-8 locale.
#[test]
fn names_are_quoted_as_gnu_quotes_them() {
    let pairs: &[(&[u8], &str)] = &[
        (b"a", "'a'"),
        (b"", "''"),
        (b"sp ace", "'sp ace'"),
        (b"a$b", "'a$b'"),
        (b"it's", "\"it's\""),
        (b"'", "\"'\""),
        (b"it's -", "\"it's -\""),
        ("é'".as_bytes(), "\"é'\""),
        (b"#'zz", "\"#'zz\""),
        (b"z'#", "'z'\\''#'"),
        (b"mi\"s's", "'mi\"s'\\''s'"),
        (b"a!b'", "'a!b'\\'''"),
        (b"mi\nss", "'mi'$'\\n''ss'"),
        (b"\n", "''$'\\n'"),
        (b"\n'x", "''$'\\n'\\''x'"),
        (b"\x011", "''$'\\001''1'"),
        (b"t\tb\x1b", "'t'$'\\t''b'$'\\033'"),
        (b"mi\xffss", "'mi'$'\\377''ss'"),
        (b"\xff'", "''$'\\377'\\'''"),
        (b"a\xffb\xfe\xfdc", "'a'$'\\377''b'$'\\376\\375''c'"),
        ("\u{85}".as_bytes(), "''$'\\302\\205'"),
        ("\u{200b}".as_bytes(), "'\u{200b}'"),
    ];
    for (name, expected) in pairs {
        assert_eq!(&quote(OsStr::from_bytes(name)), expected, "{:?}", OsStr::from_bytes(name));
    }
}
