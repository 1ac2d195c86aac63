//! Large files: what an interrupted run has copied is gone on with, if it is sound and its source is the same.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::{Node, Tree};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::events::events;
use super::{Pair, assert_listed, said, struck};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::{FERRY, is_root, skip};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 200 * MIB + 4321;
const RANGE: u64 = 32 * MIB;

fn fill(path: &Path, holes: bool) {
    let file = File::create(path).unwrap();
    let mut content = vec![0; 8 << 20];
    for at in (0..SIZE).step_by(8 << 20).filter(|at| !holes || !(at / (8 << 20)).is_multiple_of(3)) {
        ferry_tree::fill::fill(at + 1, 0, &mut content);
        let size = usize::try_from((SIZE - at).min(8 << 20)).unwrap();
        file.write_all_at(&content[..size], at).unwrap();
    }
    file.set_len(SIZE).unwrap();
}

/// Two trees; the source has a large file.
fn pair(filesystem: &Path, holes: bool) -> Pair {
    let pair = Pair::new(filesystem, 0, &Tree::new(), &Tree::new());
    fill(&pair.path().join("source/large"), holes);
    pair
}

/// Starts a run that takes three seconds.
fn begin(pair: &Pair, words: &[&str]) -> Child {
    let mut command = Command::new(FERRY);
    command.args(["sync", "--bwlimit=64M"]).args(words).args(["source", "target"]).current_dir(pair.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the hidden files in the target with this end of their names.
fn hidden(pair: &Pair, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(pair.path().join("target")).unwrap().map(|entry| entry.unwrap().path());
    let is_hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(".ferry-") && name.ends_with(end)
    };
    entries.filter(is_hidden).collect()
}

/// Waits until a journal has some ranges, then ends the run with a signal.
fn interrupt(pair: &Pair, run: Child, signal: Signal, ranges: usize) -> Output {
    let begun = Instant::now();
    loop {
        let lines = hidden(pair, ".journal").first().and_then(|path| fs::read(path).ok()).unwrap_or_default();
        if lines.iter().filter(|&&byte| byte == b'\n').count() > ranges {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no range was noted");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&run), signal).unwrap();
    run.wait_with_output().unwrap()
}

/// Runs again, and returns the number of bytes copied and the output. Both trees are equal then, and nothing hidden is left.
fn finish(pair: &Pair, words: &[&str]) -> (u64, Output) {
    let output = pair.sync(&[&["--events"], words].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    pair.assert_equal("source", "target", &output);
    assert_eq!(hidden(pair, ""), Vec::<PathBuf>::new(), "{}", said(&output));
    if words.contains(&"--manifest=m") {
        assert_listed(pair, "m", &output);
    }
    let found: Vec<Value> = events(&output.stdout);
    (found.last().unwrap()["end"]["bytes"].as_u64().unwrap(), output)
}

fn check(filesystem: &Path, words: &[&str], signal: Signal) {
    for holes in [false, true] {
        let pair = pair(filesystem, holes);
        let manifest: &[&str] = if holes { &["--manifest=m"] } else { &[] };
        let words = &[words, manifest].concat()[..];
        fs::write(pair.path().join("target/large"), "older").unwrap();
        let output = interrupt(&pair, begin(&pair, words), signal, 2);
        assert!(!output.status.success());
        assert_eq!(fs::read(pair.path().join("target/large")).unwrap(), b"older");
        if signal == Signal::INT {
            assert!(said(&output).contains("'target/large': "), "{}", said(&output));
            assert!(
                said(&output).contains(" are kept, and the next run continues there"),
                "{}",
                said(&output)
            );
        }
        let (copied, output) = finish(&pair, words);
        let part = events(&output.stdout).into_iter().find_map(|event| event.get("part").cloned()).unwrap();
        assert_eq!(
            (part["state"].as_str(), part["target"].as_str()),
            (Some("continued"), Some("target/large"))
        );
        let stored = fs::metadata(pair.path().join("source/large")).unwrap().blocks() * 512;
        assert!(copied + RANGE <= stored, "{copied} bytes of {stored} were copied: {}", said(&output));
        assert!(said(&output).contains("ferry sync: 'target/large': continuing after "), "{}", said(&output));
    }
}

#[test]
fn a_killed_run_is_continued() {
    check(Filesystem::memory().path(), &["--backend=posix"], Signal::KILL);
}

#[test]
fn an_interrupted_run_is_continued() {
    check(Filesystem::memory().path(), &["--checksum"], Signal::INT);
}

#[test]
fn a_run_that_verifies_is_continued_on_ext4() {
    filesystem::within("sync::resumed::a_run_that_verifies_is_continued_on_ext4", "ext4", |ext4| {
        check(ext4.path(), &["--verify", "--fsync"], Signal::KILL);
    });
}

#[test]
fn what_is_not_sound_is_copied_again() {
    let memory = Filesystem::memory();
    let change = |path: &Path, at: u64| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    };
    let unused = "'target/large': what an interrupted run has copied is not used: ";
    let continuing = "'target/large': continuing after 34 MB that an interrupted run has copied; ";
    for (file, at, reason, least) in [
        (".part", RANGE + 5, format!("{continuing}other bytes are not those of the source"), SIZE - RANGE),
        (".part", 5, format!("{unused}its bytes are not those of the source"), SIZE),
        (".journal", 0, format!("{unused}its journal is damaged"), SIZE),
        (".journal", 1, "; its journal is damaged\n".to_owned(), 0),
        (".journal", 2, format!("{unused}its journal is missing"), SIZE),
        ("source/large", 5, format!("{unused}the source is another file, or has changed"), SIZE),
    ] {
        let pair = pair(memory.path(), false);
        interrupt(&pair, begin(&pair, &[]), Signal::KILL, 2);
        match (file, at) {
            // Of another version.
            (".journal", 0) => fs::write(&hidden(&pair, file)[0], "ferry-journal 0 source\n").unwrap(),
            (".journal", 1) => {
                let mut journal = fs::read(&hidden(&pair, file)[0]).unwrap();
                journal.extend([0; 100]);
                fs::write(&hidden(&pair, file)[0], journal).unwrap();
            }
            (".journal", _) => fs::remove_file(&hidden(&pair, file)[0]).unwrap(),
            (".part", at) => change(&hidden(&pair, file)[0], at),
            (source, at) => change(&pair.path().join(source), at),
        }
        let (copied, output) = finish(&pair, &[]);
        assert!(copied == least || least == 0 && copied + RANGE < SIZE, "{file}: {}", said(&output));
        assert!(said(&output).contains(&reason), "{file}: {}", said(&output));
        let lines = String::from_utf8_lossy(&output.stderr).matches("interrupted").count();
        assert_eq!(lines, 1, "{file}: {}", said(&output));
    }
}

/// Regression: a run that was killed before it had noted a range lost all that it had copied.
#[test]
fn a_run_that_is_killed_in_its_first_second_is_continued() {
    let memory = Filesystem::memory();
    let pair = pair(memory.path(), false);
    let run = begin(&pair, &[]);
    let size = || {
        hidden(&pair, ".part").first().and_then(|part| fs::metadata(part).ok()).map_or(0, |part| part.len())
    };
    while size() < 20 * MIB {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    run.wait_with_output().unwrap();
    let (copied, output) = finish(&pair, &[]);
    assert!(copied <= SIZE - 20 * MIB, "{copied}: {}", said(&output));
}

/// Regression: a run that was killed in one of the last calls before a file had its name lost all that it had copied of it.
#[test]
fn a_run_that_is_killed_before_a_file_has_its_name_is_continued() {
    filesystem::within(
        "sync::resumed::a_run_that_is_killed_before_a_file_has_its_name_is_continued",
        "ext4",
        |ext4| {
            for (replaces, call) in [
                (false, "fchown:signal=KILL:when=1"),
                (false, "fchmod:signal=KILL:when=1"),
                (false, "renameat2:signal=KILL:when=1"),
                (false, "unlinkat:signal=KILL:when=2"),
                (true, "renameat2:signal=KILL:when=1"),
                (true, "renameat2:signal=KILL:when=2"),
                (true, "renameat2:signal=KILL:when=3"),
            ] {
                let pair = pair(ext4.path(), true);
                let large = pair.path().join("source/large");
                if is_root() {
                    std::os::unix::fs::chown(&large, Some(1), None).unwrap();
                }
                fs::set_permissions(&large, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
                // Older than parts may become.
                File::open(&large).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
                if replaces {
                    fs::write(pair.path().join("target/large"), "older").unwrap();
                }
                let Some(output) = struck(pair.path(), &format!("inject={call}"), &["source", "target"])
                else {
                    return;
                };
                assert!(!output.status.success(), "{call}: {}", said(&output));
                assert!(!hidden(&pair, "").is_empty(), "{call}");
                let (copied, output) = finish(&pair, &[]);
                assert_eq!(copied, 0, "{call}: {}", said(&output));
            }
        },
    );
}

/// Regression: the old version of a file that was replaced stayed aside for ever, unless entries were deleted.
#[test]
fn entries_that_a_killed_run_has_left_aside_are_seen_to() {
    filesystem::within(
        "sync::resumed::entries_that_a_killed_run_has_left_aside_are_seen_to",
        "ext4",
        |ext4| {
            for (call, trash) in [
                ("renameat2:signal=KILL:when=2", false),
                ("unlinkat:signal=KILL:when=1", false),
                ("renameat2:signal=KILL:when=3", true),
            ] {
                let source =
                    Tree::new().with("folder/file", Node::file("new")).with("folder/other", Node::file(""));
                let target =
                    Tree::new().with("folder/file", Node::file("older")).with("folder/other", Node::file(""));
                let pair = Pair::new(ext4.path(), 0, &source, &target);
                let words: &[&str] =
                    if trash { &["--trash", "source", "target"] } else { &["source", "target"] };
                let Some(output) = struck(pair.path(), &format!("inject={call}"), words) else { return };
                assert!(!output.status.success(), "{call}: {}", said(&output));
                let names = || {
                    let entries = fs::read_dir(pair.path().join("target/folder")).unwrap();
                    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                    names.filter(|name| name.starts_with(".ferry-")).collect::<Vec<_>>()
                };
                assert!(
                    names().iter().any(|name| name.starts_with(".ferry-aside-")),
                    "{call}: {:?}",
                    names()
                );
                let output = pair.sync(if trash { &["--trash"] } else { &[] });
                assert!(output.status.success(), "{call}: {}", said(&output));
                assert_eq!(names(), Vec::<String>::new(), "{call}");
                pair.assert_equal("source", "target", &output);
                if trash {
                    let trashes = fs::read_dir(pair.path().join("target/.ferry-trash")).unwrap();
                    let kept =
                        trashes.filter_map(|trash| fs::read(trash.unwrap().path().join("folder/file")).ok());
                    assert_eq!(kept.collect::<Vec<_>>(), [b"older"], "{call}");
                }
            }
        },
    );
}

/// A file that another program has put in the place of the one that was to be replaced gets its name back, or stays.
#[test]
fn foreign_entries_that_a_killed_run_has_left_aside_are_not_lost() {
    filesystem::within(
        "sync::resumed::foreign_entries_that_a_killed_run_has_left_aside_are_not_lost",
        "ext4",
        |ext4| {
            for is_free in [true, false] {
                let tree = |text| Tree::new().with("file", Node::file(text));
                let pair = Pair::new(ext4.path(), 0, &tree("new"), &tree("older"));
                let inject = "inject=unlinkat:signal=KILL:when=1";
                if struck(pair.path(), inject, &["source", "target"]).is_none() {
                    return;
                }
                let aside = hidden(&pair, "-file").remove(0);
                // As if it had taken the name just before.
                fs::remove_file(&aside).unwrap();
                fs::write(&aside, "foreign").unwrap();
                let at = pair.path().join("target/file");
                if is_free {
                    fs::remove_file(&at).unwrap();
                    fs::remove_file(pair.path().join("source/file")).unwrap();
                    fs::write(pair.path().join("source/another"), "").unwrap();
                }
                let output = pair.sync(&[]);
                let line = format!(
                    "cannot give '{}' its name 'target/file' back",
                    aside.strip_prefix(pair.path()).unwrap().display()
                );
                assert_eq!(said(&output).contains(&line), !is_free, "{}", said(&output));
                assert_eq!(output.status.success(), is_free, "{}", said(&output));
                let kept = if is_free { &at } else { &aside };
                assert_eq!(fs::read(kept).unwrap(), b"foreign");
            }
        },
    );
}

/// Puts an entry into a folder of the target as if a killed run had left it aside, though it had seen another at the name.
fn put_foreign_aside(folder: &Path, name: &str) {
    let inode = fs::metadata(folder).unwrap().ino();
    fs::write(folder.join(format!(".ferry-aside-{inode:x}-1-0-1-1-{name}")), format!("foreign {name}"))
        .unwrap();
}

/// Regression: such an entry was seen to first. Its name was then in use when the source's file was to be made, and its place
/// in the trash when the target's file was to go there.
#[test]
fn entries_that_a_killed_run_has_left_aside_are_seen_to_after_all_others() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("folder/created", Node::file("new"));
    let target = Tree::new().with("folder/deleted", Node::file("old"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    let folder = pair.path().join("target/folder");
    ["created", "deleted", "free"].iter().for_each(|name| put_foreign_aside(&folder, name));
    let output = pair.sync(&["--delete"]);
    assert!(output.status.success(), "{}", said(&output));
    let files = |folder: &Path| {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let texts = paths.map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let end = name.rsplit('-').next().unwrap();
            let aside = if name.starts_with(".ferry-aside-") { "aside " } else { "" };
            format!("{aside}{end}: {}", fs::read_to_string(&path).unwrap())
        });
        texts.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(files(&folder), ["created: new", "free: foreign free"].map(String::from).into());
    let trash =
        fs::read_dir(pair.path().join("target/.ferry-trash")).unwrap().next().unwrap().unwrap().path();
    let taken = ["aside deleted: foreign deleted", "created: foreign created", "deleted: old"];
    assert_eq!(files(&trash.join("folder")), taken.map(String::from).into());
}

/// Returns the entries that were left aside for this name in a folder.
fn asides_of(folder: &Path, name: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_aside = |path: &PathBuf| {
        let found = path.file_name().unwrap().to_str().unwrap();
        found.starts_with(".ferry-aside-") && found.ends_with(&format!("-{name}"))
    };
    paths.filter(is_aside).collect()
}

/// An entry that was left aside does not take the place in the trash of a folder that gives way to a file, or of an excluded
/// entry that is deleted.
#[test]
fn entries_left_aside_leave_their_places_in_the_trash_to_others() {
    let file = |path: &str, text: &str| Tree::new().with(path, Node::file(text));
    let cases: [(Tree, Tree, &[&str], &str); 2] = [
        (file("x", "new"), file("x/inner", "old"), &["--delete"], "x/inner"),
        (file("x", "new"), file("x", "old"), &["--delete", "--delete-excluded", "--exclude=x"], "x"),
    ];
    for (source, target, words, path) in cases {
        let memory = Filesystem::memory();
        // An empty source deletes nothing.
        let pair = Pair::new(memory.path(), 0, &source.with("other", Node::file("")), &target);
        put_foreign_aside(&pair.path().join("target"), "x");
        let output = pair.sync(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        assert_eq!(asides_of(&pair.path().join("target"), "x"), Vec::<PathBuf>::new(), "{words:?}");
        let trashes = fs::read_dir(pair.path().join("target/.ferry-trash")).unwrap();
        let trash = trashes.map(|entry| entry.unwrap().path()).next().unwrap();
        assert_eq!(fs::read(trash.join(path)).unwrap(), b"old", "{words:?}");
        assert_eq!(fs::read(&asides_of(&trash, "x")[0]).unwrap(), b"foreign x", "{words:?}");
    }
}

/// Foreign entries that were left aside are not removed either if deletions are called off.
#[test]
fn entries_left_aside_stay_where_deletions_are_called_off() {
    let memory = Filesystem::memory();
    let target = ["x", "y", "z"].iter().fold(Tree::new(), |tree, name| tree.with(name, Node::file("old")));
    let pair = Pair::new(memory.path(), 0, &Tree::new().with("other", Node::file("")), &target);
    let folder = pair.path().join("target");
    put_foreign_aside(&folder, "x");
    let output = pair.sync(&["--delete=now", "--max-delete=1"]);
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(fs::read(&asides_of(&folder, "x")[0]).unwrap(), b"foreign x");
    assert_eq!(fs::read(folder.join("x")).unwrap(), b"old");
    let output = pair.sync(&["--delete=now"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(asides_of(&folder, "x"), Vec::<PathBuf>::new());
    pair.assert_equal("source", "target", &output);
}

/// One run sees to 4,096 entries that were left aside, and to 256 in one folder.
#[test]
fn entries_that_killed_runs_have_left_aside_are_seen_to_in_bounds() {
    const FOLDERS: usize = 17;
    const EACH: usize = 257;
    let memory = Filesystem::memory();
    let tree =
        (0..FOLDERS).fold(Tree::new(), |tree, folder| tree.with(format!("{folder}"), Node::directory()));
    let pair = Pair::new(memory.path(), 0, &tree, &tree);
    let folders: Vec<PathBuf> =
        (0..FOLDERS).map(|folder| pair.path().join(format!("target/{folder}"))).collect();
    for folder in &folders {
        (0..EACH).for_each(|name| put_foreign_aside(folder, &name.to_string()));
    }
    let aside = || {
        let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with(".ferry-aside-")).count()
    };
    assert_eq!(aside(), FOLDERS * EACH);
    for left in [FOLDERS * EACH - 4096, 1, 0] {
        let output = pair.sync(&[]);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(aside(), left);
    }
}

/// Regression: a file that a killed run had overwritten in part counted as newer, or with the same size as equal.
#[test]
fn a_file_that_a_killed_run_has_overwritten_in_part_is_copied_again() {
    let memory = Filesystem::memory();
    for words in [&["--inplace", "--newer"][..], &["--inplace", "--size-only"]] {
        let pair = pair(memory.path(), false);
        let at = pair.path().join("target/large");
        fs::write(&at, "older").unwrap();
        File::options()
            .write(true)
            .open(&at)
            .unwrap()
            .set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        let run = begin(&pair, words);
        while fs::metadata(&at).unwrap().len() < 20 * MIB {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
        run.wait_with_output().unwrap();
        // As if it had been written in another order.
        File::options().write(true).open(&at).unwrap().set_len(SIZE).unwrap();
        // A run that is stopped before it has replaced the file leaves it as it is.
        for stopped in [&words[1..], words] {
            let run = begin(&pair, stopped);
            std::thread::sleep(Duration::from_millis(500));
            kill_process(Pid::from_child(&run), Signal::INT).unwrap();
            let output = run.wait_with_output().unwrap();
            assert!(!output.status.success(), "{}", said(&output));
        }
        finish(&pair, &words[1..]);
    }
}

#[test]
fn foreign_parts_are_left_alone() {
    if !is_root() {
        skip::<()>("giving files away needs root");
        return;
    }
    let memory = Filesystem::memory();
    for is_linked in [false, true] {
        let pair = pair(memory.path(), false);
        interrupt(&pair, begin(&pair, &[]), Signal::KILL, 2);
        let part = hidden(&pair, ".part").remove(0);
        if is_linked {
            fs::hard_link(&part, pair.path().join("elsewhere")).unwrap();
        } else {
            std::os::unix::fs::chown(&part, Some(1), None).unwrap();
        }
        let before = fs::metadata(&part).unwrap();
        let output = pair.sync(&[]);
        assert!(output.status.success(), "{}", said(&output));
        let line = "'target/large': what an interrupted run has copied is not used: its temporary file is not a regular \
                    file of this user alone\n";
        assert_eq!(said(&output).matches(line).count(), 1, "{}", said(&output));
        let after = fs::metadata(&part).unwrap();
        assert_eq!((before.size(), before.mtime_nsec()), (after.size(), after.mtime_nsec()));
        assert!(
            fs::read(pair.path().join("source/large")).unwrap()
                == fs::read(pair.path().join("target/large")).unwrap()
        );
    }
}

#[test]
fn two_runs_at_once_do_not_fill_one_part() {
    let memory = Filesystem::memory();
    let pair = pair(memory.path(), false);
    let first = begin(&pair, &[]);
    while hidden(&pair, ".part").is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The second run ends first; the first one finds its file.
    let output = pair.sync(&[]);
    assert!(output.status.success(), "{}", said(&output));
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("'target/large'"), "{}", said(&output));
    finish(&pair, &[]);
}

/// Regression: the lock was given up when the file was closed, before it was renamed. Another run could empty the file
/// in between.
#[test]
fn a_part_is_locked_until_it_has_left_its_name() {
    let memory = Filesystem::memory();
    let pair = pair(memory.path(), false);
    let inject = "inject=renameat2:delay_enter=2000000";
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| struck(pair.path(), inject, &["source", "target"]));
        while hidden(&pair, ".part").is_empty() && !slow.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // It is copied by then, and about to be renamed.
        std::thread::sleep(Duration::from_millis(1500));
        let second = begin(&pair, &[]);
        let output = slow.join().unwrap();
        let copied = fs::read(pair.path().join("target/large"));
        second.wait_with_output().unwrap();
        let Some(output) = output else { return };
        // The second run may have been faster.
        let source = fs::read(pair.path().join("source/large")).unwrap();
        let is_whole = copied.is_ok_and(|copied| copied == source);
        assert!(is_whole || !output.status.success(), "{}", said(&output));
    });
    finish(&pair, &[]);
}

#[test]
fn a_full_filesystem_keeps_what_was_copied() {
    filesystem::within("sync::resumed::a_full_filesystem_keeps_what_was_copied", "ext4", |ext4| {
        let pair = pair(ext4.path(), false);
        let filler = File::create(pair.path().join("filler")).unwrap();
        rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, 120 * MIB).unwrap();
        let output = begin(&pair, &[]).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        for part in ["No space left on device", " are kept, and the next run continues there"] {
            assert!(said(&output).contains(part), "{}", said(&output));
        }
        filler.set_len(0).unwrap();
        let (copied, output) = finish(&pair, &[]);
        assert!(copied + RANGE <= SIZE, "{copied}: {}", said(&output));
    });
}

#[test]
fn parts_of_long_ago_are_cleared_away() {
    let memory = Filesystem::memory();
    let pair = pair(memory.path(), false);
    interrupt(&pair, begin(&pair, &[]), Signal::KILL, 2);
    fs::remove_file(pair.path().join("source/large")).unwrap();
    assert!(pair.sync(&["--delete", "--allow-empty"]).status.success());
    assert_eq!(hidden(&pair, "").len(), 2, "they are kept for a week");
    for path in hidden(&pair, "") {
        let week = Duration::from_secs(7 * 24 * 3600 + 60);
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::now() - week).unwrap();
    }
    let output = pair.sync(&["--delete", "--allow-empty"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(hidden(&pair, ""), Vec::<PathBuf>::new());
}

#[test]
fn parts_go_with_their_folder() {
    let memory = Filesystem::memory();
    for delete in ["--delete", "--delete=now"] {
        let pair = Pair::new(memory.path(), 0, &Tree::new().with("stays", Node::file("")), &Tree::new());
        for tree in ["source", "target"] {
            fs::create_dir(pair.path().join(tree).join("folder")).unwrap();
        }
        fill(&pair.path().join("source/folder/large"), false);
        let run = begin(&pair, &[]);
        let folder = pair.path().join("target/folder");
        while fs::read_dir(&folder).unwrap().count() < 2 {
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
        run.wait_with_output().unwrap();
        fs::remove_dir_all(pair.path().join("source/folder")).unwrap();
        let output = pair.sync(&[delete]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(!folder.exists(), "{}", said(&output));
    }
}
