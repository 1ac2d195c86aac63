use std::collections::BTreeMap;
use std::path::PathBuf;

use ferry_tree::fill::SplitMix64;

use super::*;

fn read(text: &[u8], end: u8) -> Result<Cursor, BadList> {
    Ok(Cursor::new(Arc::new(List::read(text, end)?)).expect("it is read"))
}

/// Returns the names of each folder, with `*` before those that are only on the way; `/` marks a whole folder.
fn groups(text: &[u8], end: u8) -> Vec<(String, Vec<String>)> {
    let mut cursor = read(text, end).expect("a list");
    let mut found = Vec::new();
    while let Some(mut group) = cursor.next_before(None).expect("it is read") {
        let folder: PathBuf = group.folder().map(|name| name.as_os_str().to_owned()).collect();
        let mut names = Vec::new();
        while let Some(InGroup { name, is_asked_for }) = group.next().expect("it is read") {
            let star = if is_asked_for { "" } else { "*" };
            let name = name.map_or("/".into(), |name| name.as_os_str().to_string_lossy().into_owned());
            names.push(format!("{star}{name}"));
        }
        found.push((folder.to_string_lossy().into_owned(), names));
    }
    found
}

#[test]
fn names_are_grouped_by_their_folders_in_the_order_of_the_walk() {
    let text = b"./b/c/one\n\nb/two\nb/c\na!\na/x\nwhole/\na/x\n.\nb/c/one";
    let expected = [
        ("", &["*a", "a!", "*b", "whole"][..]),
        ("a", &["x"]),
        ("b", &["c", "two"]),
        ("b/c", &["one"]),
        ("whole", &["/"]),
    ];
    let expected: Vec<(String, Vec<String>)> = expected
        .into_iter()
        .map(|(folder, names)| (folder.into(), names.iter().map(|&name| name.into()).collect()))
        .collect();
    assert_eq!(groups(text, b'\n'), expected);
    let nul: Vec<u8> = text.iter().map(|&byte| if byte == b'\n' { 0 } else { byte }).collect();
    assert_eq!(groups(&nul, 0), expected);
    assert_eq!(groups(b"./", b'\n'), [(String::new(), vec!["/".to_owned()])]);
    assert_eq!(groups(b"a\nb\0c", 0), [(String::new(), vec!["a\nb".to_owned(), "c".to_owned()])]);
    assert_eq!(groups(b"", b'\n'), []);
}

#[test]
fn a_name_that_can_not_be_in_the_source_is_refused_with_its_number() {
    let long = vec![b'x'; LONGEST + 1];
    let component = vec![b'x'; 70_000];
    for (name, problem) in [
        (&b"/etc"[..], "it is absolute, and names are relative to SOURCE"),
        (b"a/../b", "it has a component '..'"),
        (b"a\0b", "it has a NUL byte; --null is for names that end with one"),
        (&long, "it is longer than 1 MiB"),
        (&component, "one of its components is too long"),
    ] {
        let text = [b"first\n\n", name].concat();
        let Err(refused) = read(&text, b'\n') else { panic!("{problem}") };
        assert_eq!(refused.to_string(), format!("name 3: {problem}"));
    }
}

/// The groups of 40,000 random names are those that a map gives, however many are sorted at a time.
#[test]
fn many_names_are_grouped_as_by_a_map() {
    let mut numbers = SplitMix64::new(15);
    let (mut text, mut expected) = (Vec::new(), BTreeMap::<Vec<String>, BTreeMap<String, bool>>::new());
    for _ in 0..40_000 {
        let depth = 1 + numbers.index(4);
        let component = |numbers: &mut SplitMix64| {
            let word = ["a", "b", "a!", "c0", "zz"][numbers.index(5)];
            format!("{word}{}", "x".repeat(numbers.index(200)))
        };
        let path: Vec<String> = (0..depth).map(|_| component(&mut numbers)).collect();
        text.extend(path.join("/").bytes().chain([b'\n']));
        for end in 1..=depth {
            let group = expected.entry(path[..end - 1].to_vec()).or_default();
            *group.entry(path[end - 1].clone()).or_default() |= end == depth;
        }
    }
    let star = |(name, is_asked_for)| if is_asked_for { name } else { format!("*{name}") };
    let expected: Vec<(String, Vec<String>)> = expected
        .into_iter()
        .map(|(folder, names)| (folder.join("/"), names.into_iter().map(star).collect()))
        .collect();
    assert!(groups(&text, b'\n') == expected, "the groups differ");
}

#[test]
fn a_folder_is_found_behind_those_before_it() {
    let mut cursor = read(b"a/one\nb/two\nb/deep/three", b'\n').expect("a list");
    let mut passed = Vec::new();
    while let Some(group) = cursor.next_before(Some(Path::new("b"))).expect("it is read") {
        passed.push(group.folder().count());
    }
    assert_eq!(passed, [0, 1]);
    assert!(cursor.group_of(Path::new("b")).expect("it is read").is_some());
    assert!(cursor.next_before(Some(Path::new("b/c"))).expect("it is read").is_none());
    assert!(cursor.group_of(Path::new("b/c")).expect("it is read").is_none());
    assert!(cursor.group_of(Path::new("b/deep")).expect("it is read").is_some());
    assert!(cursor.next_before(None).expect("it is read").is_none());
}
