use super::*;

/// Returns the names of items in a file that no example in it shows; `included` is the text of each included file.
fn bare(source: &str, included: &str) -> Vec<String> {
    let found = read(source, |_| Ok(included.to_owned())).unwrap();
    let bare = found.items.iter().filter(|item| !is_shown(item, &found.examples));
    bare.map(|item| item.name.clone()).collect()
}

#[test]
fn an_item_without_an_example_is_found() {
    assert_eq!(bare("/// Text.\npub fn run() {}\n", ""), ["run"]);
    assert_eq!(bare("/// ```\n/// run();\n/// ```\n#[inline]\npub async fn run() {}\n", ""), [""; 0]);
    assert_eq!(
        bare("//! ```\n//! run();\n//! ```\n\nuse x;\n\npub fn run() {}\npub struct Run;\n", ""),
        ["Run"]
    );
}

#[test]
fn only_code_that_is_run_counts() {
    for source in [
        "/// ```text\n/// run();\n/// ```\npub fn run() {}\n",
        "/// ```no_run\n/// run();\n/// ```\npub fn run() {}\n",
        "/// ```\n/// // run\n/// rerun();\n/// ```\n/// run();\npub fn run() {}\n",
    ] {
        assert_eq!(bare(source, ""), ["run"], "{source}");
    }
}

#[test]
fn a_method_is_shown_with_its_type() {
    let source = "#[doc = include_str!(\"x.md\")]\npub struct A;\n\nimpl<'a, T: B> A<'a, T> {\n    pub fn f(&self) {}\n}\n";
    assert_eq!(bare(source, "```\nx.f();\n```"), ["A"; 0], "in the type's own documentation");
    assert_eq!(bare(source, ""), ["A", "f"]);
    let source = "//! ```\n//! let a: A = x.g();\n//! y.f();\n//! ```\n\npub struct A;\nimpl A {\n    pub fn f() {}\n}\nimpl B for C {\n    pub fn f() {}\n}\n";
    assert_eq!(bare(source, ""), ["f"], "that of C");
}

#[test]
fn what_users_cannot_reach_is_left_out() {
    assert_eq!(
        bare("pub(crate) fn a() {}\nfn b() {}\nstruct C;\nconst D: u8 = 1;\npub const E: u8 = 1;\n", ""),
        [""; 0]
    );
}
