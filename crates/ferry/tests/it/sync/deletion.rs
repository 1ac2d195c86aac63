//! Deletion: last of all, only what was asked for, and not without a way back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ferry_tree::compare::{Mismatch, Options, snapshots};
use ferry_tree::{Node, Tree, capture};

use super::{Pair, compared, said, struck, sync};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::{FERRY, is_root, place_program, skip};

fn file(text: &str) -> Node {
    Node::file(text).mtime(1_000, 1)
}

fn pair(memory: &Filesystem) -> Pair {
    let source = Tree::new().with("kept", file("kept")).with("folder/kept", file("kept"));
    let target = Tree::new()
        .with("kept", file("old"))
        .with("folder", Node::directory())
        .with("folder/gone", file("gone"))
        .with("old/deep/file", file("file").mode(0o640))
        .with("old/deep", Node::directory().mode(0o750).mtime(77, 8));
    Pair::new(memory.path(), 0, &source, &target)
}

pub(super) fn trashes(target: &Path) -> Vec<std::path::PathBuf> {
    let found =
        fs::read_dir(target.join(".ferry-trash")).map(|found| found.flatten().map(|entry| entry.path()));
    found.map(Iterator::collect).unwrap_or_default()
}

#[test]
fn without_delete_nothing_is_deleted() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    let output = pair.sync(&[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read(pair.path().join("target/folder/gone")).unwrap(), b"gone");
    assert_eq!(fs::read(pair.path().join("target/old/deep/file")).unwrap(), b"file");
    assert!(trashes(&pair.path().join("target")).is_empty());
}

#[test]
fn what_is_replaced_and_deleted_is_in_the_trash_with_its_attributes() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    let output = pair.sync(&["--delete"]);
    assert!(output.status.success(), "{}", said(&output));
    pair.assert_equal("source", "target", &output);
    let found = trashes(&pair.path().join("target"));
    let [trash] = &found[..] else { panic!("{found:?}") };
    assert_eq!(fs::read(trash.join("kept")).unwrap(), b"old");
    assert_eq!(fs::read(trash.join("folder/gone")).unwrap(), b"gone");
    assert_eq!(fs::read(trash.join("old/deep/file")).unwrap(), b"file");
    let deep = fs::metadata(trash.join("old/deep")).unwrap();
    assert_eq!(deep.permissions().mode() & 0o7777, 0o750);
    assert_eq!(std::os::unix::fs::MetadataExt::mtime(&deep), 77);
    assert_eq!(fs::metadata(trash).unwrap().permissions().mode() & 0o077, 0);
    // The trash is no part of the target.
    let again = pair.sync(&["--delete", "-v"]);
    assert!(again.status.success() && again.stdout.is_empty(), "{}", said(&again));
}

#[test]
fn a_trash_elsewhere_is_used() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    let output = pair.sync(&["--delete", "--trash=bin"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(trashes(&pair.path().join("target")).is_empty());
    let trash = fs::read_dir(pair.path().join("bin")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read(trash.join("folder/gone")).unwrap(), b"gone");
}

/// A folder with entries is not taken away as a whole, not even to the trash.
#[test]
fn a_folder_with_entries_gives_way_to_a_file_only_with_delete() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("full", file("a file")).with("empty", file("a file"));
    let target = Tree::new().with("full/inner", file("inner")).with("empty", Node::directory());
    for words in [&[][..], &["--trash"]] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(fs::read(pair.path().join("target/full/inner")).unwrap(), b"inner", "{}", said(&output));
        assert_eq!(fs::read(pair.path().join("target/empty")).unwrap(), b"a file", "{}", said(&output));
        let output = pair.sync(&["--delete"]);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
    }
}

#[test]
fn a_trash_that_is_made_deep_in_the_target_is_not_deleted() {
    let memory = Filesystem::memory();
    for name in ["target/folder/bin", "target/old/bin"] {
        let pair = pair(&memory);
        for round in 0..2 {
            let output = pair.sync(&["--delete", &format!("--trash={name}")]);
            assert!(output.status.success(), "{name}, round {round}: {}", said(&output));
            let trash = fs::read_dir(pair.path().join(name)).unwrap().next().unwrap().unwrap().path();
            assert_eq!(fs::read(trash.join("folder/gone")).unwrap(), b"gone", "{}", said(&output));
        }
    }
}

/// Regression: what the source has at the path of the trash was copied into it.
#[test]
fn an_entry_of_the_source_at_the_path_of_the_trash_is_reported() {
    let memory = Filesystem::memory();
    for name in ["bin", "folder/bin"] {
        let pair = pair(&memory);
        fs::create_dir_all(pair.path().join("source").join(name)).unwrap();
        fs::write(pair.path().join("source").join(name).join("file"), b"of the source").unwrap();
        for round in 0..2 {
            let output = pair.sync(&["--delete", &format!("--trash=target/{name}")]);
            assert_eq!(output.status.code(), Some(1), "{name}, round {round}: {}", said(&output));
            let message = format!("not replacing 'target/{name}'");
            assert!(said(&output).contains(&message), "{}", said(&output));
            let trash = pair.path().join("target").join(name);
            assert!(!trash.join("file").exists(), "{name}, round {round}");
            assert_eq!(fs::read_dir(&trash).unwrap().count(), 1, "{name}, round {round}");
        }
        let output = pair.sync(&["--delete", "--exclude=bin", &format!("--trash=target/{name}")]);
        assert!(output.status.success(), "it takes no part: {}", said(&output));
    }
}

#[test]
fn an_empty_source_deletes_nothing_unless_it_is_allowed_to() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &Tree::new(), &Tree::new().with("a", file("a")));
    let output = pair.sync(&["--delete"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("is empty"), "{}", said(&output));
    assert!(pair.path().join("target/a").exists());
    assert!(pair.sync(&["--delete=now", "--allow-empty"]).status.success());
    assert!(!pair.path().join("target/a").exists());
}

#[test]
fn more_than_the_limit_is_not_deleted() {
    let memory = Filesystem::memory();
    let mut target = Tree::new();
    for number in 0..10 {
        target.insert(format!("gone {number}").as_bytes(), file("gone"));
    }
    let pair = Pair::new(memory.path(), 0, &Tree::new().with("new", file("new")), &target);
    let output = pair.sync(&["--delete", "--max-delete=9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("nothing was deleted: 10 entries would go"), "{}", said(&output));
    // Copies are made all the same.
    assert_eq!(fs::read_dir(pair.path().join("target")).unwrap().count(), 11);
    assert!(pair.sync(&["--delete=now", "--max-delete=10"]).status.success());
    assert_eq!(fs::read_dir(pair.path().join("target")).unwrap().count(), 1);
}

#[test]
fn nothing_is_deleted_beneath_a_folder_that_cannot_be_listed() {
    if !is_root() && skip::<()>("becoming nobody needs root").is_none() {
        return;
    }
    let memory = Filesystem::memory();
    let source = Tree::new()
        .with("shut", Node::directory().mode(0o700))
        .with("shut/a", file("a"))
        .with("open/b", file("b"));
    let target = Tree::new()
        .with("shut/a", file("a"))
        .with("shut/more/c", file("c"))
        .with("open/b", file("b"))
        .with("open/gone", file("gone"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    let ferry = pair.path().join("ferry");
    place_program(Path::new(FERRY), &ferry);
    fs::set_permissions(pair.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let given = Command::new("chown").args(["-R", "65534:65534"]).arg(pair.path().join("target")).status();
    assert!(given.unwrap().success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(ferry);
    let output =
        command.args(["sync", "--delete", "source", "target"]).current_dir(pair.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(pair.path().join("target/shut/more/c").exists(), "{}", said(&output));
    assert!(!pair.path().join("target/open/gone").exists(), "{}", said(&output));
}

/// What the source has under a new name, and can't be read, is not gone under its old name.
#[test]
fn nothing_is_removed_for_good_after_a_failure() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("renamed", Node::symlink("text")).with("kept", file("kept"));
    let target = Tree::new().with("name", Node::symlink("text")).with("kept", file("kept"));
    for (how, stays) in [("--delete=now", true), ("--delete", false)] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        let words = [how, "source", "target"];
        let Some(output) = struck(pair.path(), "inject=readlinkat:error=EIO", &words) else { return };
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(pair.path().join("target/name").is_symlink(), stays, "{}", said(&output));
        let is_told =
            said(&output).contains("nothing was deleted, because something failed: 1 entry would go");
        assert_eq!(is_told, stays, "{}", said(&output));
    }
}

#[test]
fn nothing_is_deleted_beyond_a_mount_point() {
    filesystem::within("sync::deletion::nothing_is_deleted_beyond_a_mount_point", "tmpfs", |tmpfs| {
        let source = Tree::new().with("kept", file("kept")).with("both/kept", file("kept"));
        let target = Tree::new()
            .with("gone", file("gone"))
            .with("mounted/at", Node::directory())
            .with("mounted/gone", file("gone"))
            .with("both/kept", file("kept"));
        let pair = Pair::new(tmpfs.path(), 0, &source, &target);
        let outside = pair.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("theirs"), "theirs").unwrap();
        // Of the same filesystem: device numbers don't tell it from the target.
        for at in ["target/mounted/at", "target/both"] {
            let mounted =
                Command::new("mount").arg("--bind").arg(&outside).arg(pair.path().join(at)).status();
            assert!(mounted.unwrap().success());
        }
        let output = pair.sync(&["--delete=now"]);
        assert_eq!(fs::read(outside.join("theirs")).unwrap(), b"theirs", "{}", said(&output));
        assert!(!pair.path().join("target/gone").exists());
        assert!(!pair.path().join("target/mounted/gone").exists());
        for at in ["target/mounted/at", "target/both"] {
            assert!(Command::new("umount").arg(pair.path().join(at)).status().unwrap().success());
        }
    });
}

#[test]
fn nothing_is_deleted_without_room_for_the_list_of_deletions() {
    let test = "sync::deletion::nothing_is_deleted_without_room_for_the_list_of_deletions";
    filesystem::within(test, "tmpfs", |tmpfs| {
        let source = Tree::new().with("a", file("a")).with("z", file("z"));
        let mut target = Tree::new().with("m/gone", file("gone"));
        for number in 0..900 {
            target.insert(format!("gone {number}").as_bytes(), file("gone"));
        }
        let pair = Pair::new(tmpfs.path(), 0, &source, &target);
        let full = pair.path().join("full");
        fs::create_dir(&full).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=16k", "tmpfs"];
        assert!(Command::new("mount").args(mount).arg(&full).status().unwrap().success());
        for temporary in ["full", "missing"] {
            let output = Command::new(FERRY)
                .args(["sync", "--delete=now", "source", "target"])
                .current_dir(pair.path())
                .env("TMPDIR", pair.path().join(temporary))
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
            assert!(said(&output).contains("cannot use a temporary file"), "{}", said(&output));
            let count = fs::read_dir(pair.path().join("target")).unwrap().count();
            // Everything else is done.
            assert_eq!(count, 903, "{}", said(&output));
            fs::remove_file(pair.path().join("target/z")).unwrap();
        }
        assert!(Command::new("umount").arg(&full).status().unwrap().success());
    });
}

/// Binds a folder to a place for the time of `body`.
fn bound(within: &Path, folder: &str, at: &str, body: impl FnOnce()) {
    let mounted = Command::new("mount").args(["--bind", folder, at]).current_dir(within).status();
    assert!(mounted.unwrap().success());
    body();
    assert!(Command::new("umount").arg(at).current_dir(within).status().unwrap().success());
}

#[test]
fn trees_that_contain_each_other_by_bind_mounts_keep_what_they_share() {
    let test = "sync::deletion::trees_that_contain_each_other_by_bind_mounts_keep_what_they_share";
    filesystem::within(test, "tmpfs", |tmpfs| {
        let memory = tmpfs.path();
        let names = |pair: &Pair, tree: &str| -> Vec<String> {
            let found = capture::capture(&pair.path().join(tree)).unwrap();
            found.entries.keys().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
        };
        // The source is in the target, by a path that shows nothing of it.
        let target = Tree::new().with("a/x/one", file("one")).with("a/x/in/two", file("two"));
        let pair = Pair::new(memory, 0, &Tree::new(), &target);
        let before = names(&pair, "target/a/x");
        for delete in ["--delete", "--delete=now"] {
            bound(pair.path(), "target/a", "source", || {
                let output = sync(pair.path(), &[delete, "source/x", "target"]);
                assert_eq!(output.status.code(), Some(1), "{}", said(&output));
                assert!(said(&output).contains("are the same file"), "{}", said(&output));
            });
            assert_eq!(names(&pair, "target/a/x"), before);
        }
        // The source is mounted in the target.
        let source = Tree::new().with("sub/file", file("file")).with("sub/sub", Node::directory());
        let pair = Pair::new(memory, 0, &source, &Tree::new().with("sub", Node::directory()));
        let before = names(&pair, "source");
        bound(pair.path(), "source", "target/sub", || {
            let output = pair.sync(&["--delete"]);
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert!(
                said(&output).contains("'source' and 'target/sub' are the same file"),
                "{}",
                said(&output)
            );
        });
        assert_eq!(names(&pair, "source"), before);
        // The target is in the source, and each entry is performed by itself.
        let source = Tree::new().with("in/file", file("file")).with("in/target", Node::directory());
        let pair = Pair::new(memory, 0, &source, &Tree::new());
        bound(pair.path(), "source/in", "target", || {
            for words in [&["--exclude=none"][..], &[]] {
                let output = sync(pair.path(), &[words, &["source", "target/target"]].concat());
                assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            }
        });
        assert!(!pair.path().join("source/in/target/in/target/in").exists());
        // One folder is on both sides.
        let shared =
            Tree::new().with("shared/one", file("one")).with("shared/two", Node::hard_link("shared/one"));
        let pair = Pair::new(memory, 0, &shared, &Tree::new().with("shared", Node::directory()));
        bound(pair.path(), "source/shared", "target/shared", || {
            let output = pair.sync(&["--delete", "-v"]);
            assert!(output.status.success() && !said(&output).contains("shared"), "{}", said(&output));
        });
    });
}

#[test]
fn trees_that_contain_each_other_are_refused() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("inner/a", file("a")).with("b", file("b"));
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    for (source, target) in [("source", "source/inner"), ("source/inner", "source"), ("source", "source/new")]
    {
        let output = sync(pair.path(), &["--delete", source, target]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("a part of itself"), "{}", said(&output));
    }
    let output = sync(pair.path(), &["source", "source/."]);
    assert!(said(&output).contains("the same directory"), "{}", said(&output));
    assert!(pair.path().join("source/b").exists() && !pair.path().join("source/new").exists());
}

#[test]
fn entries_stay_if_no_trash_can_be_made() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    let all = pair.path().join("target/.ferry-trash");
    // All names of this minute and of the next.
    let make = "now=$(date +%s); mkdir .ferry-trash && cd .ferry-trash && for second in $(seq $now $((now + 90))); do \
        name=$(date -u -d @$second +%Y-%m-%dT%H%M%SZ); mkdir $name; (cd .; seq -f \"$name.%g\" 1 99 | xargs mkdir); done";
    let made = Command::new("sh").args(["-c", make]).current_dir(all.parent().unwrap()).status().unwrap();
    assert!(made.success());
    let output = pair.sync(&["--delete"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for (name, text) in [("kept", "old"), ("folder/gone", "gone"), ("old/deep/file", "file")] {
        assert_eq!(fs::read_to_string(pair.path().join("target").join(name)).unwrap(), text);
    }
}

/// Entries that have the names meanwhile are moved to a trash of their own, whatever their type; undoing that restores them.
#[test]
fn entries_with_the_names_of_restored_ones_are_moved_to_another_trash() {
    let memory = Filesystem::memory();
    let source =
        Tree::new().with("a", file("newer a")).with("b", file("newer b")).with("c/in", file("newer in"));
    let target = Tree::new().with("a", file("old a")).with("b/in", file("old in")).with("c", file("old c"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    let was = capture::capture(&pair.path().join("target")).unwrap();
    assert!(pair.sync(&["--delete"]).status.success());
    let is = capture::capture(&pair.path().join("target")).unwrap();
    for expected in [&was, &is, &was] {
        let found = trashes(&pair.path().join("target"));
        let [trash] = &found[..] else { panic!("{found:?}") };
        let undone = sync(pair.path(), &["--undo", trash.to_str().unwrap()]);
        assert!(undone.status.success(), "{}", said(&undone));
        assert!(!trash.exists(), "{}", said(&undone));
        let now = capture::capture(&pair.path().join("target")).unwrap();
        let mut differences = snapshots(expected, &now, &Options { mtime: false, ..compared() });
        differences.retain(|difference| !difference.path.starts_with(b".ferry-trash"));
        assert!(differences.is_empty(), "{differences:?}: {}", said(&undone));
    }
}

/// Between an entry's move to the new trash and the move of its predecessor to its name, the name is free.
#[test]
fn an_undo_that_is_killed_is_continued() {
    let memory = Filesystem::memory();
    let source =
        Tree::new().with("a", file("newer a")).with("b", file("newer b")).with("c/in", file("newer in"));
    let target = Tree::new().with("a", file("old a")).with("b/in", file("old in")).with("c", file("old c"));
    for call in ["renameat2", "mkdirat", "unlinkat"] {
        for when in 1..8 {
            let pair = Pair::new(memory.path(), when, &source, &target);
            let was = capture::capture(&pair.path().join("target")).unwrap();
            assert!(pair.sync(&["--delete"]).status.success());
            let trash = &trashes(&pair.path().join("target"))[0];
            let inject = format!("inject={call}:signal=KILL:when={when}");
            let words = ["--undo", trash.to_str().unwrap()];
            let Some(_) = struck(pair.path(), &inject, &words) else { return };
            // One that is empty is removed after its mark.
            if trash.join(".ferry-is-trash").exists() {
                let undone = sync(pair.path(), &["--undo", trash.to_str().unwrap()]);
                assert!(undone.status.success(), "{inject}: {}", said(&undone));
            }
            let now = capture::capture(&pair.path().join("target")).unwrap();
            let mut differences = snapshots(&was, &now, &Options { mtime: false, ..compared() });
            differences.retain(|difference| !difference.path.starts_with(b".ferry-trash"));
            // A folder that was being filled exists for the second run, which leaves it private.
            differences
                .retain(|difference| !matches!(difference.mismatch, Mismatch::Mode { target: 0o700, .. }));
            assert!(differences.is_empty(), "{inject}: {differences:?}");
            let mut found = std::collections::BTreeSet::new();
            super::calls::contents(&pair.path().join("target"), &mut found);
            for text in ["newer a", "newer b", "newer in"] {
                assert!(found.contains(text.as_bytes()), "{inject}: {text} is lost");
            }
        }
    }
}

#[test]
fn only_a_trash_is_undone_and_no_trash_is_a_target() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    for words in [&["--undo", "source", "target"][..], &["--undo", "target", "source"]] {
        let output = sync(pair.path(), words);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            said(&output).contains("is not a trash of ferry sync: nothing was moved"),
            "{}",
            said(&output)
        );
    }
    assert!(pair.sync(&["--delete"]).status.success());
    let trash = &trashes(&pair.path().join("target"))[0];
    let before = capture::capture(trash).unwrap();
    let output = sync(pair.path(), &["--delete", "source", trash.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("can't be a target"), "{}", said(&output));
    let differences = snapshots(&before, &capture::capture(trash).unwrap(), &compared());
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn a_trash_is_part_of_no_tree_even_if_a_later_run_does_not_name_it() {
    let memory = Filesystem::memory();
    for name in ["target/bin", "target/folder/bin", "target/old/bin"] {
        let pair = pair(&memory);
        let output = pair.sync(&["--delete", &format!("--trash={name}")]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        for words in [&["--delete"][..], &["--delete=now"], &["--delete=now", "--max-delete=any"]] {
            let output = pair.sync(words);
            assert!(output.status.success(), "{name}: {}", said(&output));
            let trash = fs::read_dir(pair.path().join(name)).unwrap().next().unwrap().unwrap().path();
            assert_eq!(fs::read(trash.join("folder/gone")).unwrap(), b"gone", "{}", said(&output));
        }
    }
}

/// A run copies a new folder as a whole, and a plan has each entry of it.
#[test]
fn a_trash_in_a_new_folder_of_the_source_is_copied_and_passed_over_afterwards() {
    let memory = Filesystem::memory();
    let source = Tree::new()
        .with("new/bin/date/.ferry-is-trash", Node::file(""))
        .with("new/bin/date/gone", file("gone"));
    let [run, plan] = [0, 1].map(|seed| Pair::new(memory.path(), seed, &source, &Tree::new()));
    for (pair, words) in [(&run, &["--delete"][..]), (&plan, &["--delete", "--exclude=x"])] {
        let output = pair.sync(words);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        let gone = "new/bin/date/gone";
        fs::remove_file(pair.path().join("source").join(gone)).unwrap();
        let output = pair.sync(words);
        assert!(output.status.success(), "{}", said(&output));
        assert!(pair.path().join("target").join(gone).exists(), "{}", said(&output));
    }
}

#[test]
fn folders_that_exist_keep_their_attributes_when_a_run_is_undone() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    assert!(pair.sync(&["--delete"]).status.success());
    let folder = pair.path().join("target/folder");
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    let trash = &trashes(&pair.path().join("target"))[0];
    let output = sync(pair.path(), &["--undo", trash.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read(folder.join("gone")).unwrap(), b"gone");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o7777, 0o700);
    // One that was made again has its old mode and time.
    let deep = fs::metadata(pair.path().join("target/old/deep")).unwrap();
    assert_eq!(deep.permissions().mode() & 0o7777, 0o750);
    assert_eq!(std::os::unix::fs::MetadataExt::mtime(&deep), 77);
}

#[test]
fn a_trash_on_another_filesystem_is_refused_before_anything_is_copied() {
    filesystem::within(
        "sync::deletion::a_trash_on_another_filesystem_is_refused_before_anything_is_copied",
        "tmpfs",
        |tmpfs| {
            let pair = pair(tmpfs);
            let bin = pair.path().join("bin");
            fs::create_dir(&bin).unwrap();
            let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&bin).status();
            assert!(mounted.unwrap().success());
            for name in ["bin", "bin/new", "/proc/bin"] {
                let output = pair.sync(&["--delete", &format!("--trash={name}")]);
                assert_eq!(output.status.code(), Some(1), "{}", said(&output));
                assert_eq!(fs::read(pair.path().join("target/kept")).unwrap(), b"old", "{}", said(&output));
            }
            assert!(Command::new("umount").arg(&bin).status().unwrap().success());
        },
    );
}

#[test]
fn a_trash_that_gets_nothing_is_removed() {
    if !is_root() {
        skip::<()>("a file that root can't rename needs root");
        return;
    }
    filesystem::within("sync::deletion::a_trash_that_gets_nothing_is_removed", "ext4", |ext4| {
        let source = Tree::new().with("kept", file("kept"));
        let pair = Pair::new(ext4.path(), 0, &source, &Tree::new().with("gone", file("gone")));
        let gone = pair.path().join("target/gone");
        assert!(Command::new("chattr").arg("+i").arg(&gone).status().unwrap().success());
        let output = pair.sync(&["--delete"]);
        assert!(Command::new("chattr").arg("-i").arg(&gone).status().unwrap().success());
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(gone.exists() && trashes(&pair.path().join("target")).is_empty(), "{}", said(&output));
        assert!(!said(&output).contains("taken away are in"), "{}", said(&output));
    });
}
