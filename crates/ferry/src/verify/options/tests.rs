use std::ffi::OsString;

use ferry_tree::compare::Holes;

use super::{Request, Task, parse};
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
    assert_eq!((options.threads, request.json, request.progress), (3, true, When::Always));
    assert_eq!(request.task, Task::Trees("a".into(), "b".into()));
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
