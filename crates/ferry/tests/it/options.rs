//! Options that change what is copied or told, beside GNU cp's.

use std::process::Command;

use ferry_tree::{Node, Tree};

use crate::scene::{OLD, Stage, comparison, ferry, same_as_gnu, same_as_gnu_with, text};

#[test]
fn attributes_are_copied_without_bytes() {
    same_as_gnu(&[
        "--attributes-only f new",
        "--attributes-only exec g",
        "--attributes-only -p exec g",
        "--attributes-only -p g to_f",
        "--attributes-only -a setid g",
        "--attributes-only -a attributed g",
        "--attributes-only -r src new",
        "--attributes-only -a src full",
        "--attributes-only -a g f",
        "--attributes-only -d g hard",
        "--attributes-only --preserve=links g hard",
        "--attributes-only -p g hard",
        "--attributes-only -a to_f g",
        "--attributes-only -aT to_f hard",
        "--attributes-only -a dangling to_f",
        "--attributes-only -a fifo g",
        "--attributes-only -a fifo fifo",
        "--attributes-only -a socket hard",
        "--attributes-only -af to_f g",
        "--attributes-only -af g hard",
        "--attributes-only -af fifo g",
        "--attributes-only -f --preserve=links g hard",
        "--attributes-only -bv f g",
        "--attributes-only --remove-destination f g",
        "--attributes-only --reflink=always f new",
        "--attributes-only --sparse=always zeros new",
        "--attributes-only -u newer f",
        "--attributes-only -l f new",
        "--attributes-only -s f new",
        "--attributes-only f f",
        "--attributes-only missing f",
    ]);
}

#[test]
fn security_contexts_are_ignored_without_selinux() {
    same_as_gnu(&[
        "-Z f new",
        "--context f new",
        "--context=some:label f new",
        "-rZ --context=some:label missing new",
        "-Z --preserve=context f new",
        "--preserve=context f new",
        "--preserve=all f new",
        "-a --no-preserve=context f new",
    ]);
}

#[test]
fn contradictions_are_told() {
    same_as_gnu(&[
        "--reflink=always --sparse=always f g",
        "--sparse=never --reflink f g",
        "-ls f g",
        "-l --backup=zork -s f g",
        "-t empty -t full f",
        "-T -t empty f",
        "--parents f g",
        "--parents=3 f g",
        "-T f g exec",
        "f",
        "-r",
        "--zork",
        "-q f g",
    ]);
}

#[test]
fn long_options_may_be_shortened() {
    let names = [
        "archive",
        "attributes-only",
        "backup",
        "copy-contents",
        "context",
        "dereference",
        "force",
        "interactive",
        "link",
        "no-clobber",
        "no-dereference",
        "no-preserve",
        "no-target-directory",
        "one-file-system",
        "parents",
        "preserve",
        "recursive",
        "remove-destination",
        "reflink",
        "sparse",
        "strip-trailing-slashes",
        "suffix",
        "symbolic-link",
        "target-directory",
        "update",
        "verbose",
    ];
    // Those of which GNU cp 9.1 has another meaning, or none: --debug and --keep-directory-symlink came later;
    // and what can't be cloned leaves an empty file with GNU cp.
    let is_later = |short: &str| "debug".starts_with(short) || "keep-directory-symlink".starts_with(short);
    let mut lines: Vec<String> = names
        .iter()
        .flat_map(|name| (1..=name.len()).map(|size| name[..size].to_owned()))
        .filter(|short| !is_later(short) && !short.starts_with("ref"))
        .map(|short| format!("--{short} f new"))
        .collect();
    lines.sort();
    lines.dedup();
    same_as_gnu(&lines.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn words_that_are_none_are_told_with_those_that_are() {
    same_as_gnu(&[
        "--sparse=x f g",
        "--sparse=a f g",
        "--sparse= f g",
        "--reflink=z f g",
        "--reflink=a f g",
        "--preserve=zork f g",
        "--preserve=mode,y f g",
        "--preserve= f g",
        "--no-preserve=q f g",
        "--no-preserve f",
        "--target-directory",
        "f g -S",
    ]);
}

#[test]
fn posixly_correct_ends_options_at_the_first_operand() {
    let table = [
        "f -v new",
        "-v f new",
        "-v f dangling",
        "f dangling",
        "-p exec dangling",
        "-r src full -v",
        "f loop",
    ];
    same_as_gnu_with(&table, &comparison(), |command| {
        command.env("POSIXLY_CORRECT", "1");
    });
}

/// GNU cp 9.1 has no such option; later ones say these things in these words.
#[test]
fn how_files_are_copied_is_told() {
    let stage = Stage::new();
    let said = |options: &[&str]| {
        stage.set();
        let output = ferry(&stage.root(), &[&["cp", "--debug"], options].concat());
        text(&output.stdout).to_owned()
    };
    let how = said(&["--reflink=never", "f", "new"]);
    assert_eq!(how, "'f' -> 'new'\ncopy offload: avoided, reflink: no, sparse detection: no\n");
    let how = said(&["--reflink=never", "--sparse=always", "zeros", "new"]);
    assert_eq!(how, "'zeros' -> 'new'\ncopy offload: avoided, reflink: no, sparse detection: zeros\n");
    let how = said(&["--reflink=never", "sparse", "new"]);
    assert_eq!(how, "'sparse' -> 'new'\ncopy offload: avoided, reflink: no, sparse detection: SEEK_HOLE\n");
    let how = said(&["/dev/null", "new"]);
    let nothing = "unsupported, reflink: unsupported, sparse detection: no";
    assert_eq!(how, format!("'/dev/null' -> 'new'\ncopy offload: {nothing}\n"));
    assert_eq!(said(&["--attributes-only", "f", "new"]), "'f' -> 'new'\n");
    assert_eq!(said(&["-n", "f", "g"]), "skipped 'g'\n");
    assert_eq!(said(&["-u", "f", "newer"]), "skipped 'newer'\n");
    assert_eq!(said(&["-i", "f", "g"]), "skipped 'g'\n");
}

/// As the manual of later versions has it.
#[test]
fn links_of_the_target_to_folders_are_followed_if_asked_for() {
    let old = |text: &str| Node::file(text).mtime(OLD, 1);
    let mut tree = Tree::new().with("source/d/x", old("x")).with("source/e/y", old("y"));
    tree = tree.with("target/real", Node::directory()).with("target/d", Node::symlink("real"));
    let stage = Stage::with(tree.with("target/e", Node::symlink("nowhere")));
    stage.set();
    let run = |options: &[&str]| ferry(&stage.root(), &[&["cp", "-r"], options].concat());
    let refused = run(&["source/d", "target"]);
    assert!(text(&refused.stderr).contains("cannot overwrite non-directory 'target/d' with directory"));
    let output = run(&["--keep-directory-symlink", "source/.", "target"]);
    let said = "ferry cp: cannot overwrite non-directory 'target/./e' with directory 'source/./e'\n";
    assert_eq!(text(&output.stderr), said);
    assert_eq!(std::fs::read_to_string(stage.root().join("target/real/x")).unwrap(), "x");
    assert!(stage.root().join("target/d").symlink_metadata().unwrap().is_symlink());
}

/// What is later is left as it is, with a failure each.
#[test]
fn targets_that_are_there_fail_if_asked_for() {
    let stage = Stage::new();
    stage.set();
    let mut command = Command::new(crate::scene::FERRY);
    command.current_dir(stage.root()).args(["cp", "--update=none-fail", "f", "g", "exec", "full"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("ferry cp: not replacing 'full/f'\n"),
        "{}",
        text(&output.stderr)
    );
    assert!(stage.root().join("full/g").exists());
    assert_eq!(std::fs::read_to_string(stage.root().join("full/f")).unwrap(), "f of full");
    stage.set();
    let kept = ferry(&stage.root(), &["cp", "--update=none", "f", "g"]);
    assert_eq!((kept.status.code(), text(&kept.stderr)), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(stage.root().join("g")).unwrap(), "g's text, longer");
}

/// The folders on the way are on the filesystem of none: nothing was copied, and nothing said.
#[test]
fn one_filesystem_is_stayed_on_beneath_parents() {
    same_as_gnu(&["--parents -rx src/sub empty", "--parents -ax src empty", "--parents -x src/a empty"]);
}
