use super::*;

#[test]
fn lines_break_between_words() {
    let text = "one two three four";
    for (first, indent, columns, expected) in [
        ("", 2, 80, "one two three four"),
        ("", 2, 13, "one two three\n  four"),
        ("", 2, 12, "one two\n  three four"),
        ("name", 5, 12, "name one two\n     three\n     four"),
        // Longer than a line.
        ("a long name", 2, 9, "a long name\n  one two\n  three\n  four"),
        ("", 0, 3, "one\ntwo\nthree\nfour"),
    ] {
        assert_eq!(wrapped(first, text, indent, columns), expected, "{first:?}, {columns} columns");
    }
}

#[test]
fn a_line_longer_than_the_screen_takes_several_rows() {
    let screen = Screen { columns: 10, rows: 24 };
    for (text, rows) in [("", 1), ("0123456789", 1), ("0123456789a", 2), ("a\n\n0123456789a", 4)] {
        assert_eq!(screen.rows_of(text), rows, "{text:?}");
    }
}

#[test]
fn a_file_is_no_screen() {
    assert_eq!(Screen::of(std::fs::File::open("/dev/null").unwrap()), None);
}
