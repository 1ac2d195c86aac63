use std::ffi::OsString;

use ferry_tree::compare::Holes;

use super::{Request, Shown, Task, parse};
use crate::arguments::{Parsed, Usage};
use crate::progress::When;

fn request(line: &str) -> Result<Request, Usage> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    match parse(&arguments)? {
        Parsed::Run(request) => Ok(*request),
        Parsed::Print(text, _) => panic!("{line}: prints {text:?}"),
    }
}

#[test]
fn parts_may_be_left_out() {
    let request = request("a --ignore=times,ow --ignore holes b --threads 3 --json --progress").unwrap();
    let options = request.options;
    assert!(!options.mtime && !options.owner && options.holes == Holes::Ignore);
    assert!(options.content && options.mode && options.xattrs && options.acls && options.links);
    assert_eq!((options.threads, request.shown, request.progress), (3, Shown::Json, When::Always));
    assert_eq!(request.task, Task::Trees("a".into(), "b".into()));
}

#[test]
fn what_is_printed_follows_from_all_options() {
    for (line, shown, progress) in [
        ("a b", Shown::Sample, When::Auto),
        ("a b --all", Shown::All, When::Auto),
        ("a b --json --all", Shown::Json, When::Auto),
        ("a b -o report.json --all", Shown::Json, When::Auto),
        ("a b -o report.txt --all", Shown::All, When::Auto),
        ("a b -q", Shown::Quiet, When::Never),
        ("a b --quiet --progress=never", Shown::Quiet, When::Never),
    ] {
        let request = request(line).unwrap();
        assert_eq!((request.shown, request.progress), (shown, progress), "{line}");
    }
    for (name, value) in [("--all", ""), ("--json", ""), ("--output", "=report"), ("--progress", "")] {
        let refused = request(&format!("a b -q {name}{value}")).unwrap_err();
        assert_eq!(refused.message, format!("--quiet and {name} exclude each other"));
    }
}

#[test]
fn two_operands_are_needed() {
    let table = [
        ("", "missing operand"),
        ("a", "missing operand after 'a'"),
        ("a b c", "extra operand 'c'"),
        ("--manifest m", "missing operand"),
        ("--manifest m a b", "extra operand 'b'"),
        ("a b --hash sha256", "--hash needs --manifest"),
        ("a b --allow-extra", "--allow-extra needs --manifest"),
        ("a b --threads 0", "invalid number '0' for '--threads'"),
    ];
    for (line, expected) in table {
        assert_eq!(request(line).unwrap_err().message, expected, "{line}");
    }
}
