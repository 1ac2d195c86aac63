use super::*;
use crate::request::{Acting, MaxDelete};
use crate::select::{Rule, Selection};

fn request(selection: Selection) -> Request {
    Request {
        source: "source".into(),
        target: "target".into(),
        comparison: Comparison::SizeAndTime,
        keeps_newer: false,
        deletes: false,
        allows_empty: false,
        max_delete: MaxDelete::Half,
        selection,
        list: None,
        each_entry: false,
        acting: Acting::default(),
    }
}

fn version(size: u64, seconds: i64) -> Version {
    Version { size, modified: Time { seconds, nanoseconds: 5 } }
}

#[test]
fn files_stay_as_the_comparison_says() {
    let preview = |comparison, keeps_newer| {
        Preview::new(&Request { comparison, keeps_newer, ..request(Selection::default()) }).unwrap()
    };
    for (comparison, keeps_newer, target, expected) in [
        (Comparison::SizeAndTime, false, version(9, 100), true),
        (Comparison::SizeAndTime, false, version(9, 101), false),
        (Comparison::SizeAndTime, false, version(8, 100), false),
        (Comparison::SizeAndTime, true, version(8, 101), true),
        (Comparison::SizeAndTime, true, version(8, 99), false),
        (Comparison::Size, false, version(9, 5), true),
        (Comparison::Content, false, version(9, 100), false),
    ] {
        let stays = preview(comparison, keeps_newer).stays(version(9, 100), target);
        assert_eq!(stays, expected, "{comparison:?} {target:?}");
    }
    // A filesystem may store seconds only.
    let whole = Version { size: 9, modified: Time { seconds: 100, nanoseconds: 0 } };
    assert!(preview(Comparison::SizeAndTime, false).stays(version(9, 100), whole));
}

#[test]
fn patterns_of_the_nearest_folder_decide_first() {
    let rule = Rule { pattern: "*.o".into(), origin: "--exclude".into() };
    let selection =
        Selection { rules: vec![rule], gitignore: true, min_size: Some(10), ..Selection::default() };
    let preview = Preview::new(&request(selection)).unwrap();
    assert!(preview.reads_patterns());
    let top = preview.patterns(Path::new(""), b"build/\n*.log\n", None);
    let inner = preview.patterns(Path::new("a"), b"!kept.log\n", top.clone());
    for (path, is_folder, patterns, expected) in [
        ("x.o", false, &top, false),
        ("build", true, &top, false),
        ("build", false, &top, true),
        ("a/kept.log", false, &inner, true),
        ("a/other.log", false, &inner, false),
        ("kept.log", false, &top, false),
    ] {
        assert_eq!(preview.takes(Path::new(path), is_folder, patterns.as_ref()), expected, "{path}");
    }
    assert!(preview.takes_file(version(10, 0)) && !preview.takes_file(version(9, 0)));
}

#[test]
fn a_whole_folder_is_listed_once() {
    let list = List::read(&b"a/x\nb/\nb/c/y\nd\n"[..], b'\n').unwrap();
    let list = Some(Arc::new(list));
    let preview = Preview::new(&Request { list, ..request(Selection::default()) }).unwrap();
    let mut found = Vec::new();
    let mut take = |Listed { path, is_whole }| {
        found.push((path.to_str().unwrap().to_owned(), is_whole));
        true
    };
    preview.each_listed(&mut take).unwrap();
    let found: Vec<(&str, bool)> = found.iter().map(|(path, is_whole)| (&**path, *is_whole)).collect();
    assert_eq!(found, [("a", false), ("b", false), ("d", false), ("a/x", false), ("b", true)]);
}
