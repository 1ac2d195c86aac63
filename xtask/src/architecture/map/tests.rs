use std::fs;

use super::breaches;
use crate::scratch::Scratch;

/// A repository with two crates and a folder of fuzz targets; `map` is the code map of its document.
fn check(map: &str, expected: &[&str]) {
    let scratch = Scratch::open().unwrap();
    for (name, content) in [
        ("crates/ferry-io/Cargo.toml", ""),
        ("crates/ferry-io/src/lib.rs", "mod run; mod ring; #[cfg(test)] mod support;"),
        ("crates/ferry-io/src/run.rs", ""),
        ("crates/ferry-io/src/ring.rs", "mod setup;"),
        ("crates/ferry-io/src/ring/setup.rs", ""),
        ("crates/ferry-io/src/support.rs", ""),
        ("crates/ferry/Cargo.toml", ""),
        ("crates/ferry/src/main.rs", ""),
        ("fuzz/cp.rs", ""),
    ] {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let document = format!("# Title\n## Code map\n```\n{map}```\n");
    let found = breaches(scratch.path(), &document).unwrap();
    let found: Vec<String> = found.into_iter().map(|(line, breach)| format!("{line}: {breach}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_map_that_names_everything_is_right() {
    check(
        "crates/ferry-io  the runtime\n  run.rs  runs: ring.rs, setup.rs\ncrates/ferry  the command\nfuzz\n",
        &[],
    );
    check("crates/ferry-io\n  run.rs  (ring/setup.rs) the ring\ncrates/ferry\n", &[]);
    check("crates/ferry-io\n  run.rs ring/  both\ncrates/ferry\n", &[]);
    check("crates/ferry-io\n  {run,ring}.rs, ring/{setup}.rs\ncrates/ferry\n", &[]);
}

#[test]
fn a_name_that_is_not_in_the_tree_is_a_breach() {
    check(
        "crates/ferry-io\n  run.rs ring.rs lost.rs\n  ring/lost.rs lost/\ncrates/ferry\ncrates/gone\n",
        &[
            "5: crates/ferry-io has no lost.rs",
            "6: crates/ferry-io has no ring/lost.rs",
            "6: crates/ferry-io has no lost/",
            "8: there is no crates/gone",
        ],
    );
}

#[test]
fn a_file_whose_name_only_ends_alike_is_not_the_file() {
    check("crates/ferry-io\n  run.rs ring.rs un.rs\ncrates/ferry\n", &["5: crates/ferry-io has no un.rs"]);
}

#[test]
fn a_module_that_is_not_named_is_a_breach() {
    check("crates/ferry-io\n  run.rs\ncrates/ferry\n", &["4: crates/ferry-io does not name its module ring"]);
}

#[test]
fn a_crate_that_is_not_named_is_a_breach() {
    check("crates/ferry-io\n  run.rs ring.rs\n", &["4: crates/ferry is missing"]);
}

#[test]
fn a_document_without_a_map_is_a_breach() {
    let scratch = Scratch::open().unwrap();
    let found = breaches(scratch.path(), "# Title\n```\ncrates\n```\n").unwrap();
    assert_eq!(found, [(1, "no fenced block beneath '## Code map'".to_owned())]);
}
