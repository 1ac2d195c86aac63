use std::fs;

use super::breaches;
use crate::scratch::Scratch;

const COPY: &str =
    "pub fn run() { for job in jobs { walk(job) } }\nfn walk(job: Job) -> [u8; 2] { file::copy(&job) }\n";
const FILE: &str =
    "use io::Dir;\npub fn copy() { let moved = |dir: &Dir| dir.transfer(); finish() }\nfn finish() {}\n";
const DIR: &str = "impl Dir {\n pub fn transfer(&self) -> impl Future { submit() }\n}\nimpl Other { fn open() {} }\nfn submit() {}\n";

/// Two crates, and a document with this way.
fn check(way: &str, expected: &[&str]) {
    let scratch = Scratch::open().unwrap();
    for (name, content) in
        [("ferry-copy/src/copy.rs", COPY), ("ferry-copy/src/file.rs", FILE), ("ferry-io/src/dir.rs", DIR)]
    {
        let path = scratch.path().join("crates").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let found = breaches(scratch.path(), &format!("# Title\n```way\n{way}```\n")).unwrap();
    let found: Vec<String> = found.into_iter().map(|(line, breach)| format!("{line}: {breach}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_way_that_the_code_takes_is_right() {
    check(
        "ferry-copy/copy.rs run     opens the folders\n\
         \x20 ferry-copy/copy.rs walk\n\
         \x20   ferry-copy/file.rs copy\n\
         \x20     ferry-io/dir.rs Dir::transfer  reads\n\
         \x20       ferry-io/dir.rs submit\n\
         \x20     ferry-copy/file.rs finish\n",
        &[],
    );
}

#[test]
fn a_function_that_is_not_in_its_file_is_a_breach() {
    check(
        "ferry-copy/copy.rs start\n\
         ferry-copy/lost.rs run\n\
         ferry-io/dir.rs Dir::open\n",
        &[
            "3: ferry-copy/copy.rs has no function start",
            "4: ferry-copy/lost.rs has no function run",
            "5: ferry-io/dir.rs has no function Dir::open",
        ],
    );
}

#[test]
fn a_caller_that_does_not_name_the_function_is_a_breach() {
    check(
        "ferry-copy/copy.rs run\n  ferry-copy/file.rs copy\n    ferry-io/dir.rs Dir::transfer\n",
        &["4: run of line 3 does not name copy"],
    );
    check("ferry-copy/copy.rs run\n  ~ ferry-copy/file.rs copy  by a job\n", &[]);
}

#[test]
fn a_file_that_is_entered_twice_is_a_breach() {
    check(
        "ferry-copy/copy.rs walk\n  ferry-copy/file.rs copy\n    ~ ferry-copy/copy.rs run\n",
        &["5: ferry-copy/copy.rs is entered twice"],
    );
}

#[test]
fn a_line_without_a_function_is_a_breach() {
    check("ferry-copy/copy.rs\n", &["3: this is not CRATE/FILE FUNCTION"]);
    check("copy.rs run\n", &["3: this is not CRATE/FILE FUNCTION"]);
}

#[test]
fn a_document_without_the_list_is_a_breach() {
    let scratch = Scratch::open().unwrap();
    let found = breaches(scratch.path(), "# Title\n").unwrap();
    assert_eq!(found, [(1, "no fenced block that begins with '```way'".to_owned())]);
}
