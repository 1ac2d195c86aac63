use super::{distinct, is_followed};

#[test]
fn newer_versions_are_followed() {
    for (version, expected) in [
        ("9.10", true),
        ("9.11", true),
        ("9.10.5-a1b2", true),
        ("10.0", true),
        ("9.9", false),
        ("9.1", false),
        ("8.32", false),
        ("9", false),
        ("", false),
        ("new", false),
    ] {
        assert_eq!(is_followed(version), expected, "{version}");
    }
}

#[test]
fn each_archive_is_asked_once() {
    let text = "one/\none/\n\ntwo/\none/\n";
    assert_eq!(distinct(text), ["one/", "two/"]);
}
