//! `ferry plan`: parts that run at the same time make the target equal, also after failures and kills.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ferry_tree::fill::SplitMix64;
use ferry_tree::random::{Knobs, tree};
use ferry_tree::{Tree, make};

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, ferry, is_root, place_program, scaled, skip, text};

const MIB: u64 = 1 << 20;

fn plan(place: &Path, words: &[&str]) -> Output {
    ferry(place, &[&["plan"], words].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn succeeds(place: &Path, words: &[&str]) -> String {
    let output = plan(place, words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    said(&output)
}

/// Checks that a step is refused with this reason, and exit code 1.
fn fails(place: &Path, words: &[&str], reason: &str) {
    let output = plan(place, words);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
    assert!(said(&output).contains(reason), "{words:?}: {}", said(&output));
}

fn start(place: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(FERRY);
    command.arg("plan").args(words).current_dir(place).stderr(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Runs all parts at once.
fn parts(place: &Path, count: u32) {
    let running: Vec<Child> =
        (1..=count).map(|part| start(place, &["--part", &part.to_string(), "lists"])).collect();
    for mut part in running {
        assert!(part.wait().unwrap().success());
    }
}

fn assert_equal(place: &Path) {
    let output = ferry(place, &["verify", "source", "target"]);
    assert!(output.status.success(), "{}", said(&output));
}

/// Writes a file whose bytes are all different from those of other seeds.
fn write(path: &Path, size: u64, seed: u64) {
    let mut numbers = SplitMix64::new(seed);
    let bytes: Vec<u8> = (0..size.div_ceil(8)).flat_map(|_| numbers.next_u64().to_le_bytes()).collect();
    fs::write(path, &bytes[..usize::try_from(size).unwrap()]).unwrap();
}

/// Makes a source with a random tree and large files: one with holes, and one with two names.
fn source(place: &Path, seed: u64, knobs: &Knobs) {
    let source = place.join("source");
    make::make(&tree(seed, knobs), &source).unwrap();
    fs::create_dir(source.join("large files")).unwrap();
    write(&source.join("large files/whole"), 5 * MIB + seed, seed);
    fs::write(source.join("large files/small"), b"small").unwrap();
    write(&source.join("large files/two names"), 3 * MIB, seed + 1);
    fs::hard_link(source.join("large files/two names"), source.join("the other name")).unwrap();
    let holes = fs::File::create(source.join("holes")).unwrap();
    holes.set_len(6 * MIB).unwrap();
    std::os::unix::fs::FileExt::write_at(&holes, b"data", 4 * MIB).unwrap();
    fs::set_permissions(source.join("large files"), fs::Permissions::from_mode(0o555)).unwrap();
}

fn knobs(place: &Path) -> Knobs {
    Knobs { entries: 60, unreadable: is_root(), ..Knobs::possible_in(place) }
}

fn names(place: &Path, part: u32) -> Vec<Vec<u8>> {
    let list = fs::read(place.join(format!("lists/part-{part}"))).unwrap();
    let names: Vec<Vec<u8>> = list.split_inclusive(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    assert!(
        names.iter().all(|name| name.ends_with(b"\0") && name.len() > 1),
        "each name ends with a NUL byte"
    );
    names
}

#[test]
fn parts_that_run_at_once_make_the_target_equal() {
    let memory = Filesystem::memory();
    for filesystem in [&std::env::temp_dir(), memory.path()] {
        for seed in 0..scaled(4) {
            let place = tempfile::tempdir_in(filesystem).unwrap();
            let at = place.path();
            source(at, seed, &knobs(at));
            let count = [1, 2, 5, 90][usize::try_from(seed % 4).unwrap()];
            let number = count.to_string();
            succeeds(at, &["--split", &number, "--range=1M", "source", "target", "lists"]);
            assert!(!at.join("target").exists(), "--split changes nothing");
            let listed: Vec<Vec<u8>> = (1..=count).flat_map(|part| names(at, part)).collect();
            let different: BTreeSet<&Vec<u8>> = listed.iter().collect();
            assert_eq!(different.len(), listed.len(), "no name is in two parts");
            succeeds(at, &["--open", "lists"]);
            let at_once = count.min(8);
            parts(at, at_once);
            for part in at_once + 1..=count {
                succeeds(at, &["--part", &part.to_string(), "lists"]);
            }
            succeeds(at, &["--close", "lists"]);
            assert_equal(at);
            assert_eq!(fs::metadata(at.join("target/the other name")).unwrap().nlink(), 2);
            // Nothing is left to be done, and nothing is lost by it.
            succeeds(at, &["--close", "lists"]);
            assert_equal(at);
            ferry_tree::remove::remove(&at.join("source")).unwrap();
            ferry_tree::remove::remove(&at.join("target")).unwrap();
        }
    }
}

#[test]
fn parts_have_about_the_same_number_of_entries() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    for folder in 0..40 {
        let folder = source.join(folder.to_string());
        fs::create_dir_all(&folder).unwrap();
        for file in 0..50 {
            fs::write(folder.join(file.to_string()), b"x").unwrap();
        }
    }
    for file in ["1/linked", "20/linked", "39/linked"] {
        fs::hard_link(source.join("0/0"), source.join(file)).unwrap();
    }
    succeeds(place.path(), &["--split=8", "source", "target", "lists"]);
    let counts: Vec<usize> = (1..=8).map(|part| names(place.path(), part).len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 2_003);
    assert!(counts.iter().all(|count| (230..=270).contains(count)), "{counts:?}");
    let holders = (1..=8).filter(|part| {
        names(place.path(), *part).iter().any(|name| name == b"0/0\0" || name.ends_with(b"/linked\0"))
    });
    assert_eq!(holders.count(), 1, "all names of a file are in one part");
}

#[test]
fn many_parts_need_few_descriptors() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::create_dir(at.join("source")).unwrap();
    fs::write(at.join("source/file"), b"content").unwrap();
    write(&at.join("source/large"), 8 * MIB, 5);
    let line = "ulimit -n 64; exec \"$0\" plan --split=4096 --range=1M source target lists";
    let output = Command::new("sh").args(["-c", line, FERRY]).current_dir(at).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // Those of two files for each part, the directories and the header.
    assert_eq!(fs::read_dir(at.join("lists")).unwrap().count(), 2 * 4_096 + 2);
    let close = "ulimit -n 64; \"$0\" plan --open lists && exec \"$0\" plan --close --rest lists";
    let output = Command::new("sh").args(["-c", close, FERRY]).current_dir(at).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_equal(at);
}

#[test]
fn what_the_target_has_is_not_planned() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    source(at, 1, &knobs(at));
    assert!(ferry(at, &["sync", "source", "target"]).status.success());
    write(&at.join("source/large files/whole"), 4 * MIB, 77);
    fs::write(at.join("source/new"), b"new").unwrap();
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    let listed: Vec<Vec<u8>> = (1..=2).flat_map(|part| names(at, part)).collect();
    assert_eq!(listed, [b"new\0".to_vec()]);
    succeeds(at, &["--open", "lists"]);
    parts(at, 2);
    succeeds(at, &["--close", "lists"]);
    assert_equal(at);
}

#[test]
fn an_unfinished_part_keeps_the_closing_step_back() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    source(at, 2, &knobs(at));
    succeeds(at, &["--split=3", "--range=1M", "source", "target", "lists"]);
    for step in [&["--part=1"][..], &["--close"], &["--close", "--rest"]] {
        fails(at, &[step, &["lists"]].concat(), "run 'ferry plan --open' first");
    }
    assert!(!at.join("target").exists());
    succeeds(at, &["--open", "lists"]);
    succeeds(at, &["--part=2", "lists"]);
    assert!(succeeds(at, &["--part=2", "lists"]).contains("has been copied already"));
    fails(at, &["--open", "lists"], "part 2 has been copied already");
    fails(at, &["--close", "lists"], "parts 1, 3 have not succeeded");
    assert!(!at.join("target/large files/whole").exists(), "an incomplete file has no name");
    succeeds(at, &["--close", "--rest", "lists"]);
    assert_equal(at);
}

#[test]
fn a_file_that_changes_after_the_split_is_copied_by_the_closing_step() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    source(at, 3, &knobs(at));
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    succeeds(at, &["--open", "lists"]);
    succeeds(at, &["--part=1", "lists"]);
    write(&at.join("source/large files/whole"), 5 * MIB + 3, 99);
    fails(at, &["--part=2", "lists"], "whole");
    fails(at, &["--close", "lists"], "part 2 has not succeeded");
    succeeds(at, &["--close", "--rest", "lists"]);
    assert_equal(at);
    // Between the parts and the closing step.
    fs::remove_dir_all(at.join("lists")).unwrap();
    write(&at.join("source/holes"), 4 * MIB, 100);
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    succeeds(at, &["--open", "lists"]);
    parts(at, 2);
    write(&at.join("source/holes"), 4 * MIB, 101);
    succeeds(at, &["--close", "lists"]);
    assert_equal(at);
}

#[test]
fn what_can_not_be_made_keeps_nothing_else_from_being_copied() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    source(at, 5, &knobs(at));
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    fs::remove_dir_all(at.join("source/large files")).unwrap();
    fails(at, &["--open", "lists"], "large files");
    let failed = (1..=2).filter(|part| !plan(at, &[&format!("--part={part}"), "lists"]).status.success());
    assert!(failed.count() > 0, "a part lacks what could not be made");
    fails(at, &["--close", "lists"], "succeeded");
    succeeds(at, &["--close", "--rest", "lists"]);
    assert_equal(at);
}

#[test]
fn a_large_file_whose_ranges_are_not_all_in_the_lists_is_copied_as_a_whole() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::create_dir(at.join("source")).unwrap();
    write(&at.join("source/large"), 8 * MIB, 3);
    for lost in ["ranges-1", "ranges-2"] {
        succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
        let ranges = fs::read(at.join("lists").join(lost)).unwrap();
        assert!(!ranges.is_empty());
        // As on a filesystem that was full when the file was closed.
        fs::write(at.join("lists").join(lost), "").unwrap();
        succeeds(at, &["--open", "lists"]);
        parts(at, 2);
        succeeds(at, &["--close", "lists"]);
        assert_equal(at);
        assert_eq!(fs::read_dir(at.join("target")).unwrap().count(), 1, "no hidden file is left");
        fs::remove_dir_all(at.join("target")).unwrap();
        fs::remove_dir_all(at.join("lists")).unwrap();
    }
}

#[test]
fn trees_that_are_not_those_of_the_lists_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    source(at, 6, &knobs(at));
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    // As where the filesystem of the tree is not mounted.
    let swap = |tree: &str, back: bool| {
        let (from, to) = if back { ("kept", tree) } else { (tree, "kept") };
        if back {
            fs::remove_dir(at.join(tree)).unwrap();
        }
        fs::rename(at.join(from), at.join(to)).unwrap();
        if !back {
            fs::create_dir(at.join(tree)).unwrap();
        }
    };
    swap("source", false);
    fails(at, &["--open", "lists"], "another directory than before");
    swap("source", true);
    succeeds(at, &["--open", "lists"]);
    succeeds(at, &["--part=1", "lists"]);
    for tree in ["source", "target"] {
        swap(tree, false);
        for step in [&["--part=2"][..], &["--close"], &["--close", "--rest"]] {
            fails(at, &[step, &["lists"]].concat(), "another directory than before");
        }
        swap(tree, true);
    }
    succeeds(at, &["--part=2", "lists"]);
    succeeds(at, &["--close", "lists"]);
    assert_equal(at);
}

#[test]
fn a_file_that_has_gone_since_the_split_keeps_no_part_back() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    source(at, 7, &knobs(at));
    fs::create_dir(at.join("source/passing")).unwrap();
    for file in ["one", "two"] {
        fs::write(at.join("source/passing").join(file), b"passing").unwrap();
    }
    fs::write(at.join("source/gone"), b"gone").unwrap();
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    fs::remove_file(at.join("source/gone")).unwrap();
    succeeds(at, &["--open", "lists"]);
    fs::remove_dir_all(at.join("source/passing")).unwrap();
    parts(at, 2);
    // Nothing is deleted, so the directory stays that SOURCE lacks by now.
    fs::remove_dir_all(at.join("target/passing")).unwrap();
    succeeds(at, &["--close", "lists"]);
    assert_equal(at);
}

/// A folder in memory of a normal user, and the program for that user.
struct OfUser {
    program: PathBuf,
    place: tempfile::TempDir,
    _memory: Filesystem,
}

impl OfUser {
    /// Makes it. `None` without the right to become another user.
    fn new() -> Option<Self> {
        if !is_root() {
            return skip("needs root to become another user");
        }
        let memory = Filesystem::memory();
        let program = memory.path().join("ferry");
        place_program(Path::new(FERRY), &program);
        let place = tempfile::tempdir_in(memory.path()).unwrap();
        Some(Self { program, place, _memory: memory })
    }

    /// Gives the user all that is there, after a command.
    fn give(&self, command: &str) {
        let line = format!("{command}; chown -hR 65534:65534 . && chmod u+rwx .");
        let mut shell = Command::new("sh");
        assert!(shell.args(["-euc", &line]).current_dir(self.place.path()).status().unwrap().success());
    }

    fn ferry(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.place.path()).uid(65_534).gid(65_534).output().unwrap()
    }

    fn succeeds(&self, words: &[&str]) {
        let output = self.ferry(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
}

/// Copies the ranges of a large file, in a part that fails afterwards because a small file can't be read. Then it can.
fn copied_ranges_of_a_failed_part() -> Option<OfUser> {
    let user = OfUser::new()?;
    let at = user.place.path();
    fs::create_dir(at.join("source")).unwrap();
    write(&at.join("source/large"), 4 * MIB, 8);
    fs::write(at.join("source/file"), b"file").unwrap();
    user.give("chmod 0 source/file");
    user.succeeds(&["plan", "--split=1", "--range=1M", "source", "target", "lists"]);
    user.succeeds(&["plan", "--open", "lists"]);
    let output = user.ferry(&["plan", "--part=1", "lists"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("source/file'"), "{}", said(&output));
    fs::set_permissions(at.join("source/file"), fs::Permissions::from_mode(0o600)).unwrap();
    Some(user)
}

#[test]
fn ranges_that_are_copied_are_kept_if_the_rest_of_their_part_failed() {
    let Some(user) = copied_ranges_of_a_failed_part() else { return };
    let at = user.place.path();
    let hidden = fs::read_dir(at.join("target")).unwrap().next().unwrap().unwrap();
    assert!(hidden.file_name().to_string_lossy().starts_with(".ferry-plan-"));
    let inode = hidden.metadata().unwrap().ino();
    user.succeeds(&["plan", "--close", "--rest", "lists"]);
    assert_equal(at);
    assert_eq!(fs::metadata(at.join("target/large")).unwrap().ino(), inode, "its ranges were copied before");
}

#[test]
fn ranges_are_copied_again_after_another_opening_step() {
    let Some(user) = copied_ranges_of_a_failed_part() else { return };
    let at = user.place.path();
    // A new hidden file has none of the bytes.
    fs::remove_dir_all(at.join("target")).unwrap();
    user.succeeds(&["plan", "--open", "lists"]);
    user.succeeds(&["plan", "--part=1", "lists"]);
    user.succeeds(&["plan", "--close", "lists"]);
    assert_equal(at);
}

#[test]
fn a_closing_step_that_is_repeated_leaves_changed_files_to_the_sync() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::create_dir(at.join("source")).unwrap();
    write(&at.join("source/large"), 4 * MIB, 9);
    succeeds(at, &["--split=2", "--range=1M", "source", "target", "lists"]);
    succeeds(at, &["--open", "lists"]);
    parts(at, 2);
    succeeds(at, &["--close", "lists"]);
    fs::write(at.join("target/large"), b"changed").unwrap();
    succeeds(at, &["--close", "lists"]);
    assert_equal(at);
    fs::remove_file(at.join("target/large")).unwrap();
    succeeds(at, &["--close", "lists"]);
    assert_equal(at);
}

#[test]
fn a_part_without_room_is_run_again() {
    if !is_root() {
        skip::<()>("needs root to mount a filesystem");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::create_dir(at.join("source")).unwrap();
    write(&at.join("source/large"), 8 * MIB, 6);
    fs::write(at.join("source/small"), b"small").unwrap();
    fs::create_dir(at.join("target")).unwrap();
    // The mount is one of the shell, and ends with it.
    let script = "
        mount -t tmpfs -o size=4m none target
        $0 plan --split=1 --range=1M source target lists
        $0 plan --open lists
        if $0 plan --part=1 lists 2>full; then exit 3; fi
        grep -q 'No space left' full
        ! test -e lists/done-1
        ! test -e target/large
        mount -o remount,size=40m target
        $0 plan --part=1 lists
        $0 plan --close lists
        $0 verify source target
        test $(ls -A target | wc -l) = 2";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-euc", script, FERRY]).current_dir(at);
    let output = command.output().unwrap();
    let full = fs::read_to_string(at.join("full")).unwrap_or_default();
    assert!(output.status.success(), "{:?}: {}\n{full}", output.status, said(&output));
}

#[test]
fn a_part_that_was_killed_is_run_again() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::create_dir_all(at.join("source/folder")).unwrap();
    write(&at.join("source/folder/large"), 40 * MIB, 1);
    for file in 0..2_000 {
        fs::write(at.join(format!("source/folder/{file}")), file.to_string()).unwrap();
    }
    let mut killed = 0;
    for round in 0..scaled(10) {
        succeeds(at, &["--split=2", "--range=4M", "source", "target", "lists"]);
        succeeds(at, &["--open", "lists"]);
        let mut part = start(at, &["--part=1", "lists"]);
        std::thread::sleep(Duration::from_millis(3 + 4 * round));
        part.kill().unwrap();
        killed += usize::from(!part.wait().unwrap().success());
        assert!(!at.join("target/folder/large").exists());
        parts(at, 2);
        succeeds(at, &["--close", "lists"]);
        assert_equal(at);
        let left = fs::read_dir(at.join("target/folder")).unwrap().count();
        assert_eq!(left, 2_001, "no hidden file is left");
        fs::remove_dir_all(at.join("target")).unwrap();
        fs::remove_dir_all(at.join("lists")).unwrap();
    }
    assert!(killed > 0, "no run was killed");
}

#[test]
fn a_normal_user_copies_in_parts() {
    if !is_root() {
        // All other tests are run by this user.
        return;
    }
    let user = OfUser::new().unwrap();
    let at = user.place.path();
    let possible = knobs(at);
    source(
        at,
        4,
        &Knobs { unreadable: false, devices: false, owners: false, trusted_xattrs: false, ..possible },
    );
    // The root of the source, and a directory that the target has, may not be written to.
    user.give(
        "mkdir -p target source/there/new; echo new > source/there/new/file; cp -a source/there target;
         rm -r target/there/new; chmod 555 source source/there",
    );
    for words in [
        &["plan", "--split=2", "--range=1M", "source", "target", "lists"][..],
        &["plan", "--open", "lists"],
        &["plan", "--part=1", "lists"],
        &["plan", "--part=2", "lists"],
        &["plan", "--close", "lists"],
        &["verify", "source", "target"],
    ] {
        user.succeeds(words);
    }
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    make::make(&Tree::new(), &at.join("source")).unwrap();
    fs::create_dir(at.join("full")).unwrap();
    fs::write(at.join("full/file"), b"mine").unwrap();
    fails(at, &["--split=2", "source", "target", "full"], "'full' is not empty");
    fails(at, &["--split=2", "source", "target", "source/lists"], "it would be copied, too");
    fails(at, &["--split=2", "missing", "target", "lists"], "missing");
    fails(at, &["--part=1", "full"], "has no complete lists");
    assert_eq!(fs::read(at.join("full/file")).unwrap(), b"mine");
    fs::remove_dir_all(at.join("lists")).ok();
    succeeds(at, &["--split=2", "source", "target", "lists"]);
    succeeds(at, &["--open", "lists"]);
    fails(at, &["--part=3", "lists"], "no part 3");
    let header = fs::read(at.join("lists/split.json")).unwrap();
    let newer = text(&header).replace("\"schema\":2", "\"schema\":3");
    fs::write(at.join("lists/split.json"), newer).unwrap();
    fails(at, &["--part=1", "lists"], "layout 3");
    fs::write(at.join("lists/split.json"), header).unwrap();
    fs::write(at.join("lists/ranges-1"), b"{\"path\":1}\n").unwrap();
    fails(at, &["--part=1", "lists"], "ranges-1");
    fs::write(at.join("outside"), b"mine").unwrap();
    for (path, hidden, end) in [
        ("../outside", ".ferry-plan-1", 4),
        ("a", "../outside", 4),
        ("a", "outside", 4),
        ("a", ".ferry-plan-1", 9),
        ("a", ".ferry-plan-1", 1),
    ] {
        let range = format!(
            "{{\"path\":\"{path}\",\"hidden\":\"{hidden}\",\"inode\":1,\"size\":4,\"changed\":[0,0],\"start\":0,\"end\":{end}}}\n"
        );
        fs::write(at.join("lists/ranges-1"), range).unwrap();
        fails(at, &["--part=1", "lists"], "a range that no plan has");
        fails(at, &["--close", "--rest", "lists"], "a range that no plan has");
    }
    assert_eq!(fs::read(at.join("outside")).unwrap(), b"mine");
}
