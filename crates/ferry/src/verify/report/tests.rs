use ferry_tree::attributes::{EntryKind, Time};
use ferry_tree::compare::{Difference, Mismatch, Side};
use rustix::io::Errno;
use serde_json::json;

use super::*;

fn findings() -> Findings {
    let mut findings = Findings::default();
    for (path, seconds) in [("b", 1_700_000_000), ("a name of some length", 0)] {
        let (source, target) = (Time::new(seconds, 5), Time::new(1_800_000_000, 0));
        findings.keep(&Difference { path: path.into(), mismatch: Mismatch::Mtime { source, target } });
    }
    findings
}

fn totals() -> Totals {
    let summary = Summary { entries: 12, directories: 3, files: 5, bytes: 300_000, ..Summary::default() };
    Totals { summary, trashes: None, content: true, took: None }
}

#[test]
fn the_end_fits_the_terminal() {
    let narrow = "\
times: 2
  'a name of some length': time of
      change is 1970-01-01
      00:00:00.000000005 UTC in the
      source, 2027-01-15
      08:00:00.000000000 UTC in the
      target
  'b': time of change is 2023-11-14
      22:13:20.000000005 UTC in the
      source, 2027-01-15
      08:00:00.000000000 UTC in the
      target
Only modification times differ: was the
copy made without -a or -p? `ferry cp
-a` keeps them, and `ferry verify
--ignore=times` does not compare them.

different: 2 differences in 12 entries:
  2 times";
    let usual = "\
times: 2
  'a name of some length': time of change is 1970-01-01 00:00:00.000000005 UTC
      in the source, 2027-01-15 08:00:00.000000000 UTC in the target
  'b': time of change is 2023-11-14 22:13:20.000000005 UTC in the source,
      2027-01-15 08:00:00.000000000 UTC in the target
Only modification times differ: was the copy made without -a or -p? `ferry cp
-a` keeps them, and `ferry verify --ignore=times` does not compare them.

different: 2 differences in 12 entries: 2 times";
    let wide = "\
times: 2
  'a name of some length': time of change is 1970-01-01 00:00:00.000000005 UTC in the source, \
2027-01-15 08:00:00.000000000 UTC in the target
  'b': time of change is 2023-11-14 22:13:20.000000005 UTC in the source, \
2027-01-15 08:00:00.000000000 UTC in the target
Only modification times differ: was the copy made without -a or -p? `ferry cp -a` keeps them, and \
`ferry verify --ignore=times` does not compare them.

different: 2 differences in 12 entries: 2 times";
    for (columns, expected) in [(40, narrow), (80, usual), (200, wide)] {
        assert_eq!(ending(&totals(), &findings(), columns), expected, "{columns} columns");
    }
}

#[test]
fn what_is_equal_is_one_line() {
    let expected = "equal: 5 files, 3 directories, 4 other entries, 300 kB of content";
    assert_eq!(ending(&totals(), &Findings::default(), 80), expected);
}

#[test]
fn objects_have_the_values_of_both_sides() {
    let time = Mismatch::Mtime { source: Time::new(-1, 5), target: Time::new(1_700_000_000, 0) };
    let (name, value) = (b"user.\xff".to_vec(), b"a\\b".to_vec());
    let (side, operation, errno) = (Side::Target, ferry_tree::error::Operation::Open, Errno::ACCESS);
    let unreadable = Mismatch::Unreadable { side, operation, errno };
    for (mismatch, kind, values) in [
        (time, "times", json!({ "source": [-1, 5], "target": [1_700_000_000, 0] })),
        (
            Mismatch::Mode { source: 0o4755, target: 0o55 },
            "mode",
            json!({ "source": "4755", "target": "0055" }),
        ),
        (Mismatch::Size { source: 7, target: 0 }, "size", json!({ "source": 7, "target": 0 })),
        (
            Mismatch::Owner { source: (0, 1), target: (2, 3) },
            "owner",
            json!({ "source": { "uid": 0, "gid": 1 }, "target": { "uid": 2, "gid": 3 } }),
        ),
        (
            Mismatch::MissingInTarget(EntryKind::Directory),
            "missing",
            json!({ "source": "directory", "target": null }),
        ),
        (Mismatch::Content { offset: Some(9) }, "content", json!({ "offset": 9 })),
        (
            Mismatch::Xattr { name, source: Some(value), target: None },
            "xattr",
            json!({ "name": "user.\\xff", "source": "a\\\\b", "target": null }),
        ),
        (
            Mismatch::Acl {
                default: false,
                source: None,
                target: Some(ferry_tree::Acl::from_mode(0o640).encode()),
            },
            "acl",
            json!({ "default": false, "source": null, "target": "u::rw-,g::r--,o::---" }),
        ),
        (unreadable, "unreadable", json!({ "side": "target", "errno": 13, "error": "EACCES" })),
    ] {
        let found = Difference { path: b"a\xff".to_vec(), mismatch };
        let mut object: Value = serde_json::from_str(&difference(&found)).unwrap();
        let members = object.as_object_mut().unwrap();
        assert_eq!(members.remove("path"), Some("a\\xff".into()));
        assert_eq!(members.remove("kind"), Some(kind.into()));
        assert_eq!(members.remove("message"), Some(found.message().into()));
        assert_eq!(object, values);
    }
}

#[test]
fn the_last_object_has_the_verdict() {
    let object: Value = serde_json::from_str(&last(&totals(), &findings())).unwrap();
    assert_eq!((&object["verdict"], &object["same"]), (&"different".into(), &false.into()));
    assert_eq!(object["kinds"], json!({ "times": 2 }));
    assert_eq!((&object["summary"]["entries"], object["summary"].get("trashes")), (&12.into(), None));
    let listed = Totals { trashes: Some(1), ..totals() };
    let object: Value = serde_json::from_str(&last(&listed, &Findings::default())).unwrap();
    assert_eq!((&object["verdict"], &object["same"]), (&"equal".into(), &true.into()));
    assert_eq!((&object["kinds"], &object["summary"]["trashes"]), (&json!({}), &1.into()));
}
