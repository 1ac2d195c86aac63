//! Options that change what is copied or printed, compared with GNU cp.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ferry_tree::{Node, Tree};

use crate::random::filesystem::within;
use crate::scene::{
    FERRY, OLD, Stage, comparison, ferry, gnu, place_program, same_as_gnu, same_as_gnu_with, text,
};

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
        "debug",
        "dereference",
        "force",
        "interactive",
        "keep-directory-symlink",
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
    let mut lines: Vec<String> = names
        .iter()
        .flat_map(|name| (1..=name.len()).map(|size| name[..size].to_owned()))
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

/// Each type of source and target with each option that changes how targets are opened.
#[test]
fn how_files_are_copied_is_told() {
    let options = [
        "",
        "-a",
        "--reflink=never",
        "--sparse=always",
        "--sparse=never",
        "--reflink=never --sparse=always",
        "--reflink=never --sparse=never",
    ];
    let operands = [
        "f new",
        "f g",
        "src/b new",
        "sparse new",
        "sparse g",
        "zeros new",
        "dangling new",
        "to_f new",
        "/dev/null new",
        "/proc/version new",
        "/sys/class/net/lo/mtu new",
        "f /dev/null",
        "sparse /dev/null",
        "-r src new",
        "-r src full",
        "-l f new",
        "-s f new",
        "-b f g",
        "-f f g",
        "-n f g",
        "-u f newer",
        "--update=none f g",
        "--remove-destination f g",
        "--attributes-only f new",
    ];
    // GNU cp sets owner and mode on a device, which here is a shared one.
    let spoils = |option: &str, operands: &str| option == "-a" && operands.ends_with(" /dev/null");
    let lines: Vec<String> = options
        .iter()
        .flat_map(|option| operands.iter().map(move |operands| (*option, *operands)))
        .filter(|(option, operands)| !spoils(option, operands))
        .map(|(option, operands)| format!("--debug {option} {operands}"))
        .collect();
    same_as_gnu(&lines.iter().map(String::as_str).collect::<Vec<_>>());
}

const SOURCES: &str = "mkdir s && : >s/empty && echo x >s/small && yes abc | head -c 1000000 >s/text && \
    head -c 1000000 /dev/zero >s/zeros && truncate -s 1M s/hole && truncate -s 100 s/short && \
    truncate -s 4M s/last && printf x | dd of=s/last bs=1 seek=4000000 conv=notrunc status=none && \
    echo x >s/first && truncate -s 1M s/first && fallocate -l 1M s/reserved && sync";

/// Sources of every shape, with and without reflinks, and to another filesystem.
fn told_in(folder: &Path, elsewhere: &Path) {
    let Some(gnu) = gnu() else { return };
    let made = Command::new("bash").args(["-c", SOURCES]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let told = |program: &Path, options: &[&str], target: &Path| {
        let mut command = Command::new(program);
        command.arg0("cp").current_dir(folder).env("LC_ALL", "C").args(options);
        let output = command.args(["--debug", "-rT", "s"]).arg(target).output().unwrap();
        ferry_tree::remove::remove(target).unwrap();
        let mut lines: Vec<String> =
            text(&output.stdout).trim_end().split("\n'").map(str::to_owned).collect();
        lines.sort_unstable();
        (lines, output.status.code())
    };
    let cp = folder.join("cp");
    place_program(Path::new(FERRY), &cp);
    for sparse in ["--sparse=auto", "--sparse=always", "--sparse=never"] {
        for reflink in ["--reflink=auto", "--reflink=never"] {
            for target in [folder.join("t"), elsewhere.join("t")] {
                let options = [sparse, reflink];
                assert_eq!(told(&cp, &options, &target), told(&gnu, &options, &target), "{options:?}");
            }
        }
    }
}

#[test]
fn how_files_are_copied_is_told_on_ext4() {
    within("options::how_files_are_copied_is_told_on_ext4", "ext4", |ext4| {
        told_in(ext4.path(), ext4.beside());
    });
}

#[test]
fn how_files_are_copied_is_told_on_btrfs() {
    within("options::how_files_are_copied_is_told_on_btrfs", "btrfs", |btrfs| {
        let compress = "btrfs property set . compression zstd";
        let set = Command::new("bash").args(["-c", compress]).current_dir(btrfs.path()).output().unwrap();
        assert!(set.status.success(), "{}", text(&set.stderr));
        told_in(btrfs.path(), btrfs.beside());
    });
}

#[test]
fn how_files_are_copied_is_told_on_xfs() {
    within("options::how_files_are_copied_is_told_on_xfs", "xfs", |xfs| told_in(xfs.path(), xfs.beside()));
}

#[test]
fn updates_are_chosen_as_with_gnu() {
    same_as_gnu(&[
        "--update f newer",
        "--update=all f newer",
        "--update=older newer f",
        "--update=none f g",
        "--update=none-fail f g",
        "--update=none-fail f new",
        "--update=none-fail -v f exec full",
        "-r --update=none-fail src full",
        "-r --update=none src full",
        "-n --update=none-fail f g",
        "--update=none-fail -n f g",
        "--update=none --update=older f g",
        "-u --update=none f g",
        "--update=older --update=all f newer",
        "-n --update=all f g",
        "--update=none -f f g",
        "--update=n f g",
        "--update= f g",
        "--update=x f g",
        "-b --update=none f g",
        "-b --update=none-fail f g",
        "-b -n f g",
        "-b -u newer f",
    ]);
}

/// A directory replaces a backed-up file; a link to a directory is kept.
#[test]
fn folders_replace_what_is_backed_up() {
    same_as_gnu(&[
        "-rbT src g",
        "-rbvT src g",
        "-rvT --backup=t src g",
        "-rbiT src g",
        "-abT src to_f",
        "-rbT src dangling",
        "-rbT src fifo",
        "-rbfT src g",
        "-rb --remove-destination -T src g",
        "-rb --attributes-only -T src g",
        "-rlbT src g",
        "-rb --keep-directory-symlink other/. to_full",
        "-rbT --keep-directory-symlink other to_full",
        "-r --keep-directory-symlink other to_full",
        "-rfT src g",
        "-rnT src g",
    ]);
}

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

/// Newer targets stay; each is a failure.
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

/// The parents are on another filesystem: nothing is copied or printed.
#[test]
fn one_filesystem_is_stayed_on_beneath_parents() {
    same_as_gnu(&["--parents -rx src/sub empty", "--parents -ax src empty", "--parents -x src/a empty"]);
}
