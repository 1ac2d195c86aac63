use std::fs;

use super::Graph;
use crate::scratch::Scratch;

/// Checks the imports of a crate with these files: `FILE -> FILE`.
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let scratch = Scratch::open().unwrap();
    for (name, content) in files {
        let path = scratch.path().join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let graph = Graph::read(scratch.path()).unwrap();
    let found: Vec<String> = graph
        .imports
        .keys()
        .map(|&(from, to)| format!("{} -> {}", graph.files[from], graph.files[to]))
        .collect();
    assert_eq!(found, expected);
}

const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b;");
const B: (&str, &str) = ("b.rs", "pub struct B; pub fn run() {}");

#[test]
fn every_way_to_name_an_item_of_another_file_is_an_import() {
    for source in [
        "use crate::b::B;",
        "use crate::b::*;",
        "use crate::{b::{self, B}};",
        "use super::b; fn f() { b::run() }",
        "use super::b as other; fn f() { other::run() }",
        "fn f() -> crate::b::B {}",
        "fn f() { super::b::run() }",
        "fn f() { let x = Vec::<super::b::B>::new(); }",
    ] {
        check(&[ROOT, ("a.rs", source), B], &["a.rs -> b.rs"]);
    }
}

#[test]
fn names_that_no_other_file_defines_are_no_imports() {
    for source in [
        "use std::b::B; use crate::b; fn f(b: &str) {}",
        "use ::b::B; use outside::b::B;",
        "// use crate::b::B;\nconst TEXT: &str = \"crate::b::run\";",
        "pub(in crate::b) struct Near;",
        "fn f() -> self::Own {} struct Own; fn g() { Own::new() }",
    ] {
        check(&[ROOT, ("a.rs", source), B], &[]);
    }
}

#[test]
fn code_for_tests_is_left_out() {
    for source in [
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] use crate::b::{B, run};",
        "#[cfg(all(test, not(miri)))] use crate::b::B;",
        "#[cfg(loom)] fn f<A, C>() -> [u8; 3] { crate::b::run() }",
        "struct Own { #[cfg(test)] b: crate::b::B, own: u8 }",
    ] {
        check(&[ROOT, ("a.rs", source), B], &[]);
    }
    check(&[("lib.rs", "#[cfg(test)] mod a; mod b;"), ("a.rs", "use crate::b::B;"), B], &[]);
    check(&[ROOT, ("a.rs", "#[cfg(not(loom))] use crate::b::B;"), B], &["a.rs -> b.rs"]);
}

#[test]
fn a_module_that_stands_in_for_another_is_left_out() {
    let root = r#"#[cfg(feature = "x")] mod a; #[cfg(not(feature = "x"))] #[path = "b.rs"] mod a; mod b;"#;
    check(&[("lib.rs", root), ("a.rs", "use crate::b::B;"), B], &["a.rs -> b.rs"]);
}

#[test]
fn an_item_after_code_for_tests_counts() {
    check(&[ROOT, ("a.rs", "#[cfg(test)] use std::fs; use crate::b::B;"), B], &["a.rs -> b.rs"]);
    check(&[ROOT, ("a.rs", "#[cfg(test)] mod tests; fn f() { crate::b::run() }"), B], &["a.rs -> b.rs"]);
}

#[test]
fn a_re_export_leads_to_the_file_that_defines() {
    check(
        &[("lib.rs", "mod a; mod b; pub use b::B;"), ("a.rs", "use crate::B;"), B],
        &["a.rs -> b.rs", "lib.rs -> b.rs"],
    );
    check(
        &[("lib.rs", "mod a; mod b; use b::*;"), ("a.rs", "fn f() { super::run::<u8>() }"), B],
        &["a.rs -> b.rs", "lib.rs -> b.rs"],
    );
}

#[test]
fn modules_in_folders_are_found() {
    check(
        &[
            ROOT,
            ("a.rs", "mod c; mod d { fn f() { super::c::run() } } fn f() { c::run() }"),
            ("a/c.rs", "pub fn run() { super::super::b::run() }"),
            B,
        ],
        &["a.rs -> a/c.rs", "a/c.rs -> b.rs"],
    );
}

#[test]
fn a_circle_of_re_exports_ends() {
    check(&[("lib.rs", "mod a; mod b; use a::x;"), ("a.rs", "use crate::x;"), B], &[]);
}
