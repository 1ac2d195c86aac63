use super::Quoted;

#[test]
fn names_are_quoted_on_one_line() {
    let check = |name: &[u8], expect: &str| assert_eq!(Quoted(name).to_string(), expect);
    check(b"a/b c", "'a/b c'");
    check(b"it's \"x\"", "'it\\'s \"x\"'");
    check(b"a\nb\\", "'a\\nb\\\\'");
    check(b"\xffz", "'\\xFFz'");
    check("é\u{202e}\u{1b}".as_bytes(), "'é\\u{202e}\\u{1b}'");
}
