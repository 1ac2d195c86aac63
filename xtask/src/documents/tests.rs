use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Outcome, blocks, run_all};
use crate::scratch::Scratch;

/// Runs a README with this text. Its `ferry` is on PATH but never started: a program that was just written may be busy,
/// because a child of another test holds it open.
fn outcome(readme: &str) -> Outcome {
    let scratch = Scratch::open().unwrap();
    let root = scratch.path();
    let ferry = root.join("ferry");
    fs::write(&ferry, "never started").unwrap();
    fs::set_permissions(&ferry, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("ARCHITECTURE.md"), "").unwrap();
    fs::write(root.join("README.md"), readme).unwrap();
    run_all(root, root, true).unwrap()
}

fn check_passes(readme: &str, commands: usize) {
    let expected = Outcome { commands_run: commands, ..Outcome::default() };
    assert_eq!(outcome(readme), expected, "{readme}");
}

fn check_fails(readme: &str, expected: &[&str]) {
    let breaches = outcome(readme).breaches;
    assert_eq!(breaches.len(), 1, "{readme}: {breaches:?}");
    for part in expected {
        assert!(breaches[0].contains(part), "{part} is not in {}", breaches[0]);
    }
}

#[test]
fn commands_run_with_ferry_on_the_path() {
    let found = "command -v ferry > said\n\ngrep -q 'ferry-xtask-.*/ferry$' said";
    check_passes(&format!("text\n```sh\n# finds it\n{found}\n```\n"), 2);
}

#[test]
fn one_block_is_one_session() {
    check_passes("```sh\nmkdir a\ncd a\nx=1\n[ \"$x\" = 1 ] && touch b\n[ -e ../a/b ]\n```\n", 5);
}

#[test]
fn each_block_starts_in_an_empty_folder() {
    check_passes("```sh\ntouch a\n```\n```sh\n[ -z \"$(ls)\" ]\n```\n", 2);
}

#[test]
fn line_ending_in_a_backslash_goes_on() {
    check_passes("```sh\n[ 1 = \\\n  1 ]\n```\n", 1);
}

#[test]
fn failing_line_is_named_with_its_output() {
    check_fails(
        "```sh\ntrue\necho said\nfalse && true\ntrue\n```\n",
        &["README.md:1:", "said", "README.md:4: exit status 1"],
    );
}

#[test]
fn command_that_is_not_there_fails() {
    check_fails("```sh\nno-such-command-here\n```\n", &["README.md:2: exit status 127"]);
}

#[test]
fn line_cannot_swallow_those_after_it() {
    check_fails("```sh\ncat <<END\nfalse\n```\n", &["README.md:3: exit status 1"]);
    check_fails("```sh\necho \"open\nfalse\n```\n", &["README.md:1: block failed"]);
    check_fails("```sh\nexit 0\nfalse\n```\n", &["ended before its last line"]);
}

#[test]
fn block_not_to_be_run_has_a_reason() {
    let found = outcome("```sh no-run needs a disk\nfalse\n```\n");
    assert_eq!(found.not_run, ["README.md:1: needs a disk"]);
    assert_eq!((found.commands_run, found.breaches.len()), (0, 0));
    check_fails("```sh no-run\nfalse\n```\n", &["README.md:1: `sh no-run` without a reason"]);
}

#[test]
fn block_of_the_checkout_is_run_where_the_sources_are() {
    check_passes(
        "```sh checkout\ntest -f ARCHITECTURE.md\ntouch /tmp/ferry-xtask-made\ntest ! -e ferry-xtask-made\n```\n",
        3,
    );
    assert!(!std::path::Path::new("/tmp/ferry-xtask-made").exists());
    check_fails("```sh checkout\nfalse\n```\n", &["README.md:2: exit status 1"]);
    let scratch = Scratch::open().unwrap();
    fs::write(scratch.path().join("ARCHITECTURE.md"), "").unwrap();
    fs::write(scratch.path().join("README.md"), "```sh checkout\nfalse\n```\n").unwrap();
    let found = run_all(scratch.path(), scratch.path(), false).unwrap();
    assert_eq!(found.not_run, ["README.md:1: builds in the checkout"]);
}

#[test]
fn commands_cannot_hide_under_another_tag() {
    check_fails("```bash\ntrue\n```\n", &["README.md:1: block tagged `bash`"]);
    check_fails("```sh norun\ntrue\n```\n", &["unknown tag `sh norun`"]);
    check_passes("```text\nfalse\n```\n```\nfalse\n```\n```rust\nfalse\n```\n", 0);
}

#[test]
fn missing_document_is_a_breach() {
    let scratch = Scratch::open().unwrap();
    let found = run_all(scratch.path(), scratch.path(), true).unwrap();
    assert_eq!(found.breaches, ["README.md: missing", "ARCHITECTURE.md: missing"]);
}

#[test]
fn pages_of_docs_are_run() {
    let scratch = Scratch::open().unwrap();
    let root = scratch.path();
    fs::create_dir(root.join("docs")).unwrap();
    fs::write(root.join("README.md"), "").unwrap();
    fs::write(root.join("ARCHITECTURE.md"), "").unwrap();
    fs::write(root.join("docs/page.md"), "```sh\nfalse\n```\n").unwrap();
    let breaches = run_all(root, root, true).unwrap().breaches;
    assert!(breaches[0].contains("docs/page.md:2: exit status 1"), "{breaches:?}");
}

#[test]
fn longer_fence_holds_a_shorter_one() {
    let found = blocks("````text\n```sh\nfalse\n```\n````\n  ```sh\n  true\n  ```\n~~~sh\nopen");
    let tags: Vec<(&str, usize)> = found.iter().map(|block| (block.tag.as_str(), block.line)).collect();
    assert_eq!(tags, [("text", 1), ("sh", 6), ("sh", 9)]);
}
