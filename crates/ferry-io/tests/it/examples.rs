//! The examples copy a small tree without a difference by `diff -r`.

use std::path::Path;
use std::process::{Command, Output};

use super::place::{folder_of_programs, pattern};

/// A tree with fan-out 3, depth 3, and three files in each folder.
fn make_tree(folder: &Path, depth: usize) {
    std::fs::create_dir(folder).expect("a folder");
    for index in 0..3_usize {
        let size = [0, 4096, 70_001][index] + depth;
        std::fs::write(folder.join(format!("file {index}")), pattern(size)).expect("a file");
        if depth > 0 {
            make_tree(&folder.join(format!("folder {index}")), depth - 1);
        }
    }
}

fn run(example: &str, arguments: &[&str]) -> Output {
    let program = folder_of_programs().join("examples").join(example);
    let output = Command::new(&program).args(arguments).output();
    output
        .unwrap_or_else(|error| panic!("{} is built by `cargo test -p ferry-io`: {error}", program.display()))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in ASCII")
}

/// The backends available here.
fn backends() -> Vec<&'static str> {
    let options = ferry_io::Options { backend: ferry_io::Backend::Uring, ..Default::default() };
    match ferry_io::run(&options, async |_| ()) {
        Ok(_) => vec!["posix", "uring", "auto"],
        Err(error) => {
            println!("SKIP uring: {error}");
            vec!["posix", "auto"]
        }
    }
}

fn check_tree_is_copied(example: &str, more: &[&str]) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let source = home.path().join("source");
    make_tree(&source, 3);
    let program = source.join("folder 1/file 2");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o751)).expect("a mode");
    for backend in backends() {
        let target = home.path().join(format!("target-{backend}"));
        let arguments = [&[text(&source), text(&target), "--backend", backend], more].concat();
        let output = run(example, &arguments);
        assert!(output.status.success(), "{example} {arguments:?}: {output:?}");
        let diff = Command::new("diff").args(["-r", text(&source), text(&target)]).output().expect("diff");
        assert!(diff.status.success(), "{example} on {backend}: {}", String::from_utf8_lossy(&diff.stdout));
        let mode = |file: &Path| {
            let attributes = std::fs::metadata(file).expect("it is there");
            std::os::unix::fs::PermissionsExt::mode(&attributes.permissions())
        };
        assert_eq!(mode(&target.join("folder 1/file 2")), mode(&program), "the mode is kept");
    }
}

#[test]
fn cp_sequential_copies_a_tree() {
    check_tree_is_copied("cp_sequential", &[]);
}

#[test]
fn cp_dfs_copies_a_tree() {
    check_tree_is_copied("cp_dfs", &[]);
    check_tree_is_copied("cp_dfs", &["--max-fibers", "7", "--block-size", "4096"]);
}

#[test]
fn cp_bfs_copies_a_tree() {
    check_tree_is_copied("cp_bfs", &[]);
    check_tree_is_copied("cp_bfs", &["--max-fibers", "3"]);
}

#[test]
fn cp_blocks_copies_a_file() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let source = home.path().join("source");
    for size in [0, 1, 4096, 3_000_001] {
        std::fs::write(&source, pattern(size)).expect("a file");
        for backend in backends() {
            let target = home.path().join(format!("target-{size}-{backend}"));
            let output = run("cp_blocks", &[text(&source), text(&target), "--backend", backend]);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(std::fs::read(&target).expect("a copy"), pattern(size));
        }
    }
}

#[test]
fn examples_refuse_what_they_do_not_copy() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let source = home.path().join("source");
    std::fs::create_dir(&source).expect("a folder");
    std::os::unix::fs::symlink("nothing", source.join("link")).expect("a link");
    for example in ["cp_sequential", "cp_dfs", "cp_bfs"] {
        let target = home.path().join(example);
        let output = run(example, &[text(&source), text(&target), "--backend", "posix"]);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("link"), "{output:?}");
    }
    assert_eq!(run("cp_blocks", &[]).status.code(), Some(2), "wrong use");
}
