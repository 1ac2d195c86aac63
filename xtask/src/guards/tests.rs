use super::{Known, in_document, in_source};

fn known() -> Known {
    let mut known = Known::default();
    known.add("crates/a/src/walk/tests.rs", "#[test]\nfn folders_are_entered() {}\nfn generic<T>() {}");
    known.add("crates/a/tests/it/stress.rs", "    pub(crate) fn inner(&self) {}");
    known
}

#[test]
fn guards_of_paragraphs_are_found_up_to_their_end() {
    let text = "- `not` a guard. Guard: `one`,\n  `two`, words.\n- `not` one\n\nGuard: `three`\n# `not`\n";
    let found = in_document(text);
    assert_eq!(found, [(1, "one".to_owned()), (2, "two".to_owned()), (5, "three".to_owned())]);
}

#[test]
fn guards_of_tables_are_found_by_their_column() {
    let text = "| what | guard |\n|---|---|\n| `a` | `b`, `c` |\n\n| x | y |\n| `d` | `e` |\n";
    assert_eq!(in_document(text), [(3, "b".to_owned()), (3, "c".to_owned())]);
}

#[test]
fn guards_of_comments_are_found_if_they_may_be_functions() {
    let source = "//! text (guard: `one_thing`), and\n/// Guard: `two_…`, guard: `Tree::with`\nlet x = \"(guard: `no`\";\n";
    assert_eq!(in_source(source), [(1, "one_thing".to_owned())]);
}

#[test]
fn what_is_there_is_known() {
    let known = known();
    for name in [
        "folders_are_entered",
        "walk::folders_are_entered",
        "generic",
        "inner",
        "stress.rs",
        "tests/it/stress.rs",
        "crates/a/tests/it",
        "a/src/walk",
        "cargo xtask check-guards",
    ] {
        assert!(known.has(name), "{name}");
    }
}

#[test]
fn what_is_not_there_is_not_known() {
    let known = known();
    for name in ["folders_are_left", "stress::folders_are_entered", "ess.rs", "crates/b", "tests/i", "fn", ""]
    {
        assert!(!known.has(name), "{name}");
    }
}
