use std::fs;
use std::path::Path;

use super::{Rule, breaches, cycle_breaches};
use crate::modules::Graph;
use crate::scratch::Scratch;

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Makes a workspace without breaches, then adds the given files.
fn workspace(files: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::open().unwrap();
    let root = scratch.path();
    write(root, "Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
    for (name, dependencies) in [
        ("ferry-io", "[dependencies]\nio-uring = \"0.7\"\n"),
        ("ferry-tree", ""),
        ("ferry-copy", "[dependencies]\nferry-io.workspace = true\n[dev-dependencies]\nferry-tree = \"*\"\n"),
        ("ferry", "[dependencies]\nferry-io = \"*\"\nferry-copy = \"*\"\nferry-tree = \"*\"\n"),
    ] {
        let manifest = format!("[package]\nname = \"{name}\"\n{dependencies}");
        write(root, &format!("crates/{name}/Cargo.toml"), &manifest);
    }
    write(root, "crates/ferry-io/src/lib.rs", "use io_uring::opcode; unsafe fn f() {}");
    write(root, "crates/ferry-copy/src/lib.rs", "use ferry_io::Dir; // unsafe use ferry_tree\n");
    write(root, "crates/ferry/src/main.rs", "use ferry_copy::run; use ferry_tree::Tree;");
    for (name, content) in files {
        write(root, name, content);
    }
    scratch
}

fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(breaches(workspace(files).path()).unwrap(), expected);
}

fn check_source(source: &str, expected: &[&str]) {
    check(&[("crates/ferry-tree/src/a/b.rs", source)], expected);
}

#[test]
fn workspace_that_keeps_the_rules_has_no_breach() {
    check(&[], &[]);
}

#[test]
fn dependency_of_the_workspace_that_no_crate_has_is_a_breach() {
    let manifest = "[workspace]\n[workspace.dependencies]\nio-uring = \"0.7\"\nidle = \"1\"\n";
    check(&[("Cargo.toml", manifest)], &["Cargo.toml: no crate depends on idle"]);
}

#[test]
fn forbidden_dependency_is_a_breach() {
    check(
        &[(
            "crates/ferry-io/Cargo.toml",
            "[package]\nname = \"ferry-io\"\n[dependencies]\nferry-tree = \"*\"",
        )],
        &["crates/ferry-io/Cargo.toml: ferry-io must not import ferry-tree"],
    );
}

#[test]
fn forbidden_dependency_of_tests_is_a_breach() {
    let manifest = "[package]\nname = \"ferry-tree\"\n[dev-dependencies]\nferry-io = \"*\"";
    check(
        &[("crates/ferry-tree/Cargo.toml", manifest)],
        &["crates/ferry-tree/Cargo.toml: ferry-tree must not import ferry-io"],
    );
}

#[test]
fn dependency_allowed_to_tests_is_not_allowed_to_the_crate() {
    let manifest = "[package]\nname = \"ferry-copy\"\n[dependencies]\nferry-tree = \"*\"";
    check(
        &[("crates/ferry-copy/Cargo.toml", manifest)],
        &["crates/ferry-copy/Cargo.toml: ferry-copy must not import ferry-tree"],
    );
}

#[test]
fn dependency_renamed_by_the_workspace_is_a_breach() {
    check(
        &[
            ("Cargo.toml", "[workspace.dependencies]\nio = { path = \"x\", package = \"ferry-io\" }"),
            (
                "crates/ferry-tree/Cargo.toml",
                "[package]\nname = \"ferry-tree\"\n[dependencies]\nio.workspace = true",
            ),
        ],
        &["crates/ferry-tree/Cargo.toml: ferry-tree must not import ferry-io"],
    );
}

#[test]
fn ring_crate_outside_the_runtime_is_a_breach() {
    let manifest = "[package]\nname = \"ferry-tree\"\n[dev-dependencies]\nio-uring = \"*\"";
    check(
        &[("crates/ferry-tree/Cargo.toml", manifest)],
        &["crates/ferry-tree/Cargo.toml: ferry-tree must not name io_uring; only ferry-io may"],
    );
}

#[test]
fn crate_without_a_rule_is_a_breach() {
    check(
        &[("crates/new/Cargo.toml", "[package]\nname = \"new\"")],
        &["crates/new/Cargo.toml: no import rule for new; add one to xtask"],
    );
}

#[test]
fn unsafe_code_outside_the_runtime_is_a_breach() {
    check_source(
        "fn f() {\n    unsafe { g() }\n}\n#[unsafe(no_mangle)]\nfn h() {}",
        &[
            "crates/ferry-tree/src/a/b.rs:2: ferry-tree must not contain unsafe; only ferry-io may",
            "crates/ferry-tree/src/a/b.rs:4: ferry-tree must not contain unsafe; only ferry-io may",
        ],
    );
}

#[test]
fn every_way_to_name_a_crate_is_a_breach() {
    for source in [
        "use ferry_io::Dir;",
        "use ferry_io as io;",
        "use ::ferry_io::Dir;",
        "use {std::fs, ferry_io};",
        "extern crate ferry_io;",
        "fn f() -> ferry_io::Dir {}",
        "fn f() -> ::ferry_io::Dir {}",
    ] {
        check_source(source, &["crates/ferry-tree/src/a/b.rs:1: ferry-tree must not import ferry-io"]);
    }
}

#[test]
fn every_way_to_name_the_ring_is_a_breach() {
    for source in [
        "use io_uring::opcode;",
        "fn f(ring: io_uring::IoUring) {}",
        "use rustix::io_uring;",
        "use rustix::{fs, io_uring};",
        "rustix::io_uring::io_uring_setup();",
        "let flag = libc::IORING_SETUP_SQPOLL;",
        "let number = libc::SYS_io_uring_setup;",
    ] {
        check_source(
            source,
            &["crates/ferry-tree/src/a/b.rs:1: ferry-tree must not name io_uring; only ferry-io may"],
        );
    }
}

#[test]
fn same_word_in_another_role_is_no_breach() {
    for source in [
        "/* use ferry_io; */ // unsafe",
        "let text = \"unsafe ferry_io:: io_uring::\"; let raw = r#\"unsafe\"#;",
        "let io_uring = stats.io_uring; let enters = stats.io_uring_enter;",
        "let ferry = command(\"ferry\"); self::ferry::start();",
        "fn f() -> impl Sized + use<'_> { ferry }",
        "#![allow(unsafe_code)]",
        "use ferry_tree::Tree;",
    ] {
        check_source(source, &[]);
    }
}

#[test]
fn tests_of_a_crate_are_read_too() {
    check(
        &[("crates/ferry-copy/tests/it/main.rs", "use ferry_tree::Tree;\nuse ferry_lab::run;\n")],
        &["crates/ferry-copy/tests/it/main.rs:2: ferry-copy must not import ferry-lab"],
    );
}

#[test]
fn build_folder_is_not_read() {
    check(&[("crates/ferry-tree/target/debug/generated.rs", "unsafe {}")], &[]);
}

#[test]
fn each_cycle_that_is_not_allowed_is_a_breach() {
    let scratch = workspace(&[
        ("crates/ferry-tree/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
        ("crates/ferry-tree/src/a.rs", "use crate::b::{B, run};\npub struct A;"),
        ("crates/ferry-tree/src/b.rs", "pub struct B;\npub fn run(a: crate::A) {}"),
        ("crates/ferry-tree/src/c.rs", "use crate::d::D;\npub struct C;"),
        ("crates/ferry-tree/src/d.rs", "pub struct D;\nuse crate::c::C;"),
    ]);
    let graph = Graph::read(&scratch.path().join("crates/ferry-tree")).unwrap();
    let breaches = |cycles| {
        let rule = Rule { name: "ferry-tree", imports: &[], tests_import: &[], cycles };
        cycle_breaches(&rule, "crates/ferry-tree", &graph)
    };
    let first = [
        "crates/ferry-tree/src: a.rs, b.rs import one another in a circle",
        "crates/ferry-tree/src/b.rs:2 imports a.rs (crate::A), which closes a cycle",
    ];
    let second = [
        "crates/ferry-tree/src: c.rs, d.rs import one another in a circle",
        "crates/ferry-tree/src/d.rs:2 imports c.rs (crate::c::C), which closes a cycle",
    ];
    assert_eq!(breaches(&[]), [first, second].concat());
    assert_eq!(breaches(&[&["a.rs", "b.rs"]]), second);
    assert_eq!(breaches(&[&["d.rs", "c.rs", "other.rs"]]), first);
    assert!(breaches(&[&["a.rs", "b.rs"], &["c.rs", "d.rs"]]).is_empty());
}
