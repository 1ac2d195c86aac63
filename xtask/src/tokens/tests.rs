use super::tokens;

fn check(source: &str, expected: &[&str]) {
    let found: Vec<&str> = tokens(source).iter().map(|token| token.text).collect();
    assert_eq!(found, expected, "{source}");
}

#[test]
fn words_in_comments_are_not_code() {
    check("a // unsafe\nb /* unsafe /* nested */ unsafe */ c /// unsafe", &["a", "b", "c"]);
}

#[test]
fn words_in_strings_are_not_code() {
    check(r#"a "unsafe \" unsafe" b b"unsafe" c"unsafe" c"#, &["a", "b", "c"]);
    check(r###"a r"unsafe\" b r#"unsafe " unsafe"# c br##"unsafe "# "## d"###, &["a", "b", "c", "d"]);
}

#[test]
fn characters_are_not_lifetimes() {
    check(r"'a' '\'' '\u{41}' 'é' x", &["x"]);
    check("&'a str", &["&", "a", "str"]);
    check("f('\"'); unsafe", &["f", "(", ")", ";", "unsafe"]);
    check("b'\"' unsafe", &["b", "unsafe"]);
}

#[test]
fn raw_identifiers_are_one_word() {
    check("r#unsafe a::b", &["r#unsafe", "a", "::", "b"]);
}

#[test]
fn lines_are_counted_through_what_is_left_out() {
    let found = tokens("a\n/*\n*/ b \"\n\n\" c");
    let lines: Vec<usize> = found.iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 3, 5]);
}

#[test]
fn unfinished_literal_runs_to_the_end() {
    for source in ["a \"unsafe", "a /* unsafe", "a r#\"unsafe\"", "a '\\", "a r#\"", "a /*/"] {
        check(source, &["a"]);
    }
}
