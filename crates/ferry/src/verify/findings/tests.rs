use ferry_tree::attributes::EntryKind;
use ferry_tree::compare::{Difference, Mismatch};

use super::*;

fn missing(path: &str) -> Difference {
    Difference { path: path.into(), mismatch: Mismatch::MissingInTarget(EntryKind::File) }
}

fn content(path: &str, offset: u64) -> Difference {
    Difference { path: path.into(), mismatch: Mismatch::Content { offset: Some(offset) } }
}

#[test]
fn many_differences_leave_the_first_paths_of_each_kind() {
    const MOST: u64 = 100_000;
    let mut findings = Findings::default();
    // Each path once, in no particular order.
    for index in 0..MOST {
        findings.keep(&missing(&format!("{:06}", index * 7 % MOST)));
    }
    findings.keep(&content("z", 0));
    assert_eq!((findings.total(), findings.of(Kind::Missing)), (MOST + 1, MOST));
    let kept: Vec<_> = findings.0[&Kind::Missing].sample.iter().map(|line| line.path.clone()).collect();
    assert_eq!(kept, (0..SAMPLE).map(|index| format!("{index:06}").into_bytes()).collect::<Vec<_>>());
    let paragraphs = findings.paragraphs(80);
    assert!(
        paragraphs[0].starts_with("missing: 100,000\n  '000000': missing in the target (regular file)\n")
    );
    assert!(paragraphs[0].ends_with("\n  and 99,980 more (--all prints all)"), "{}", paragraphs[0]);
    assert_eq!(paragraphs[1], "content: 1\n  'z': content differs from byte 0 on");
    assert_eq!(paragraphs.len(), 2);
}

#[test]
fn differences_of_one_path_are_kept_beside_each_other() {
    let mut findings = Findings::default();
    findings.keep(&content("a", 2));
    findings.keep(&content("a", 1));
    let expected = "content: 2\n  'a': content differs from byte 1 on\n  'a': content differs from byte 2 on";
    assert_eq!(findings.paragraphs(80), [expected]);
}

#[test]
fn what_is_only_counted_has_no_paragraph() {
    let mut findings = Findings::default();
    findings.count(Kind::Times);
    assert_eq!((findings.total(), findings.of(Kind::Times), findings.of(Kind::Mode)), (1, 1, 0));
    assert!(findings.paragraphs(80).is_empty());
}
