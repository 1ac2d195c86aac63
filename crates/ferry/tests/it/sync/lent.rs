//! Folders of TARGET whose modes deny their owner to write: runs that are killed while the permission is lent, ACLs, and folders
//! of another owner.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ferry_tree::acl::Acl;
use ferry_tree::xattr::Xattrs;
use ferry_tree::{Node, Tree, capture};
use rustix::process::{Pid, Signal, kill_process};

use super::calls::contents;
use super::deletion::trashes;
use super::killed::stored;
use super::user::{NOBODY, give_entries_to_user, mode, run_as_user, sync_as_user};
use super::{Pair, said};
use crate::faulty::shell;
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_installed, is_root, place_program, skip};

/// Calls before which a run is killed.
const CALLS: [&str; 6] = ["renameat2", "mkdirat", "unlinkat", "fchmod", "utimensat", "openat2"];
/// Most calls of a kind that are tried; a run makes fewer.
const MOST: u64 = 200;

/// Prepares a test as root with a program that every user may run; `None` for other users.
fn prepared() -> Option<(Filesystem, PathBuf)> {
    if !is_root() {
        return skip("giving folders to a user needs root");
    }
    let memory = Filesystem::memory();
    let ferry = memory.path().join("ferry");
    place_program(Path::new(FERRY), &ferry);
    Some((memory, ferry))
}

fn closed() -> Node {
    Node::directory().mode(0o555)
}

fn file(text: &str) -> Node {
    Node::file(text).mtime(1_000, 1)
}

/// Returns trees whose folders deny writing on both sides. Each file of the target has bytes that no other has.
fn trees() -> (Tree, Tree) {
    let source = Tree::new()
        .root(closed())
        .with("top", file("new"))
        .with("a", closed())
        .with("a/file", file("new"))
        .with("a/made", file("new"))
        .with("a/b", closed())
        .with("a/b/file", file("new"))
        .with("a/new/file", file("new"))
        .with("kind", file("no folder"));
    let target = Tree::new()
        .root(closed())
        .with("top", file("old 0"))
        .with("a", closed())
        .with("a/file", file("old 1"))
        .with("a/b", closed())
        .with("a/b/file", file("old 2"))
        .with("a/b/gone", file("old 3"))
        .with("gone", closed())
        .with("gone/gone", closed())
        .with("gone/gone/file", file("old 4"))
        .with("kind", closed())
        .with("kind/file", file("old 5"));
    (source, target)
}

/// Old files of the target, by the number that each holds.
const OLD_FILES: [&str; 6] = ["top", "a/file", "a/b/file", "a/b/gone", "gone/gone/file", "kind/file"];
const CLOSED: [&str; 6] = ["", "a", "a/b", "gone", "gone/gone", "kind"];

/// Runs `ferry sync` as the user, and kills it before a call. Returns true if it was killed.
fn kill_at(program: &Path, pair: &Pair, (call, when): (&str, u64), words: &[&str]) -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=KILL:when={when}")]).arg(program);
    command.args(["sync", "--backend=posix", "--workers=1"]).args(words).current_dir(pair.path());
    let output = command.uid(NOBODY).gid(NOBODY).output().unwrap();
    let is_killed = !output.status.success();
    assert!(!is_killed || output.stderr.is_empty(), "{call} {when}: {}", said(&output));
    is_killed
}

/// Returns the number of folders of the target that have the permission, and had not.
fn lent(target: &Path) -> usize {
    CLOSED.iter().map(|path| target.join(path)).filter(|path| path.is_dir() && mode(path) == 0o755).count()
}

#[track_caller]
fn assert_nothing_lost(pair: &Pair, round: &str) {
    let mut found = BTreeSet::new();
    contents(&pair.path().join("target"), &mut found);
    for number in 0..OLD_FILES.len() {
        assert!(found.contains(format!("old {number}").as_bytes()), "{round}: old {number} is lost");
    }
}

#[test]
fn after_a_kill_the_next_run_gives_folders_their_modes() {
    let Some((memory, ferry)) = prepared() else { return };
    if !is_installed("strace") {
        skip::<()>("strace is not here");
        return;
    }
    let (source, target) = trees();
    let words = ["--delete", "source", "target"];
    let (mut kills, mut lent_modes) = (0, 0);
    for call in CALLS {
        for when in 1..MOST {
            let pair = Pair::new(memory.path(), when, &source, &target);
            give_entries_to_user(&pair);
            let round = format!("{call} {when}");
            let is_killed = kill_at(&ferry, &pair, (call, when), &words);
            kills += usize::from(is_killed);
            lent_modes += lent(&pair.path().join("target"));
            assert_nothing_lost(&pair, &round);
            let output = sync_as_user(&ferry, &pair, &words);
            assert!(output.status.success(), "{round}: {}", said(&output));
            pair.assert_equal("source", "target", &output);
            assert_nothing_lost(&pair, &round);
            if !is_killed {
                break;
            }
            assert!(when + 1 < MOST, "{round}: a run makes more calls");
        }
    }
    assert!(kills > 50 && lent_modes > 50, "{kills} kills, {lent_modes} lent modes");
    eprintln!("SEEDS: kills={kills} lent_modes={lent_modes}");
}

/// The folders that a killed undo has lent keep the permission: the next undo does not know their modes. A sync gives them back.
#[test]
fn after_a_kill_an_undo_is_continued_and_the_next_run_gives_folders_their_modes() {
    let Some((memory, ferry)) = prepared() else { return };
    if !is_installed("strace") {
        skip::<()>("strace is not here");
        return;
    }
    let (source, target) = trees();
    let words = ["--delete", "source", "target"];
    let (mut kills, mut lent_modes) = (0, 0);
    for call in ["renameat2", "mkdirat", "fchmod"] {
        for when in 1..MOST {
            let pair = Pair::new(memory.path(), when, &source, &target);
            give_entries_to_user(&pair);
            assert!(sync_as_user(&ferry, &pair, &words).status.success());
            let round = format!("{call} {when}");
            let target = pair.path().join("target");
            let trash = trashes(&target).remove(0);
            let undo = ["--undo", trash.to_str().unwrap()];
            let is_killed = kill_at(&ferry, &pair, (call, when), &undo);
            kills += usize::from(is_killed);
            lent_modes += lent(&target);
            if trash.exists() {
                let undone = sync_as_user(&ferry, &pair, &undo);
                assert!(undone.status.success(), "{round}: {}", said(&undone));
            }
            for (number, path) in OLD_FILES.iter().enumerate() {
                let found = fs::read(target.join(path)).ok();
                assert_eq!(found, Some(format!("old {number}").into_bytes()), "{round}: {path}");
            }
            let output = sync_as_user(&ferry, &pair, &words);
            assert!(output.status.success(), "{round}: {}", said(&output));
            pair.assert_equal("source", "target", &output);
            if !is_killed {
                break;
            }
            assert!(when + 1 < MOST, "{round}: a run makes more calls");
        }
    }
    assert!(kills > 20 && lent_modes > 20, "{kills} kills, {lent_modes} lent modes");
    eprintln!("SEEDS: kills={kills} lent_modes={lent_modes}");
}

/// Regression: a folder whose mode denies writing could not be moved to another one, whose entry `..` that changes.
#[test]
fn an_undo_moves_folders_out_of_the_way_whose_modes_deny_it() {
    let Some((memory, ferry)) = prepared() else { return };
    let source = Tree::new().with("x", closed()).with("x/y", closed()).with("x/y/file", file("new"));
    let target = Tree::new().with("x", file("old"));
    for backend in ["--backend=uring", "--backend=posix"] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        give_entries_to_user(&pair);
        let output = sync_as_user(&ferry, &pair, &["--delete", backend, "source", "target"]);
        assert!(output.status.success(), "{}", said(&output));
        let target = pair.path().join("target");
        for text in ["old", "new"] {
            // The trash of the first undo has the folder.
            let trash = trashes(&target).remove(0);
            let undone = sync_as_user(&ferry, &pair, &[backend, "--undo", trash.to_str().unwrap()]);
            assert!(undone.status.success() && !trash.exists(), "{}", said(&undone));
            let path = target.join(if text == "old" { "x" } else { "x/y/file" });
            assert_eq!(fs::read(path).unwrap(), text.as_bytes(), "{}", said(&undone));
        }
        assert_eq!([mode(&target.join("x")), mode(&target.join("x/y"))], [0o555; 2]);
    }
}

/// Regression: partial files in such a folder kept it from being removed.
#[test]
fn an_interrupted_run_gives_modes_back_and_partial_files_go_with_their_folder() {
    let Some((memory, ferry)) = prepared() else { return };
    let trees = || Tree::new().with("folder", closed()).with("stays", file(""));
    let pair = Pair::new(memory.path(), 0, &trees(), &trees());
    fs::write(pair.path().join("source/folder/large"), vec![7; 120 << 20]).unwrap();
    give_entries_to_user(&pair);
    let mut command = Command::new(&ferry);
    command.args(["sync", "--bwlimit=40M", "source", "target"]).current_dir(pair.path());
    let run = command.uid(NOBODY).gid(NOBODY).stderr(Stdio::piped()).spawn().unwrap();
    let folder = pair.path().join("target/folder");
    while stored(&folder) < 40 << 20 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(mode(&folder), 0o755);
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(!output.status.success(), "it was not interrupted: {}", said(&output));
    assert_eq!(mode(&folder), 0o555, "{}", said(&output));
    assert!(fs::read_dir(&folder).unwrap().count() > 0, "it keeps what was copied: {}", said(&output));
    fs::remove_dir_all(pair.path().join("source/folder")).unwrap();
    let output = sync_as_user(&ferry, &pair, &["--delete", "source", "target"]);
    assert!(output.status.success() && !folder.exists(), "{}", said(&output));
}

#[test]
fn folders_with_acls_that_deny_it_keep_them() {
    let Some((memory, ferry)) = prepared() else { return };
    let others = || Acl::from_mode(0o555).user(1, 5).named_group(5, 4);
    // New entries inherit it; the folder made by the run can't be written to by its owner before it has its own mode.
    let inherited = || Acl::from_mode(0o550).user(2, 7);
    let folder = || closed().acl(others()).default_acl(inherited());
    let source = Tree::new()
        .with("a", folder())
        .with("a/file", file("new"))
        .with("a/made/file", file("new"))
        .with("b", closed())
        .with("b/file", file("new"));
    let target = Tree::new()
        .with("a", folder())
        .with("a/file", file("older"))
        .with("a/gone", folder())
        .with("a/gone/file", file("gone"))
        .with("b", folder())
        .with("b/file", file("older"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    give_entries_to_user(&pair);
    let own = acls(&pair, "target/a");
    if own.len() != 2 {
        skip::<()>("this filesystem has no ACLs");
        return;
    }
    for backend in ["--backend=uring", "--backend=posix"] {
        for path in ["source/a/file", "source/b/file"] {
            fs::write(pair.path().join(path), backend).unwrap();
        }
        let output = sync_as_user(&ferry, &pair, &["--delete", backend, "source", "target"]);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        assert_eq!(acls(&pair, "target/a"), own);
    }
    let mut trashes = trashes(&pair.path().join("target"));
    trashes.sort();
    let undone = sync_as_user(&ferry, &pair, &["--undo", trashes[0].to_str().unwrap()]);
    assert!(undone.status.success(), "{}", said(&undone));
    assert_eq!(fs::read(pair.path().join("target/a/gone/file")).unwrap(), b"gone");
    for path in ["target/a", "target/a/gone"] {
        assert_eq!(acls(&pair, path), own, "{path}");
    }
}

/// Returns the ACLs of an entry; none on a filesystem without ACLs.
fn acls(pair: &Pair, path: &str) -> Xattrs {
    capture::capture(&pair.path().join(path)).unwrap().entries.remove(&b""[..]).unwrap().xattrs
}

#[test]
fn folders_of_another_owner_stay_as_they_are_and_are_reported() {
    let Some((memory, ferry)) = prepared() else { return };
    let source = Tree::new()
        .with("theirs/file", file("new"))
        .with("theirs/made", file("new"))
        .with("theirs/mine", closed())
        .with("theirs/mine/file", file("new"))
        .with("group", closed().mode(0o2555))
        .with("group/file", file("new"))
        .with("mine", closed())
        .with("mine/file", file("new"));
    let target = Tree::new()
        .with("theirs/file", file("older"))
        .with("theirs/gone", file("gone"))
        .with("theirs/mine", closed())
        .with("theirs/mine/file", file("older"))
        .with("group", closed().mode(0o2555))
        .with("group/file", file("older"))
        .with("mine", closed())
        .with("mine/file", file("older"));
    for backend in ["--backend=uring", "--backend=posix"] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        give_entries_to_user(&pair);
        let [theirs, of_group] = ["theirs", "group"].map(|name| pair.path().join("target").join(name));
        std::os::unix::fs::chown(&theirs, Some(1), Some(1)).unwrap();
        fs::set_permissions(&theirs, PermissionsExt::from_mode(0o555)).unwrap();
        // A user outside its group who changes its mode would clear the set-group-ID bit.
        for folder in [&of_group, &pair.path().join("source/group")] {
            std::os::unix::fs::chown(folder, None, Some(1)).unwrap();
            fs::set_permissions(folder, PermissionsExt::from_mode(0o2555)).unwrap();
        }
        let before = [&theirs, &of_group].map(|path| fs::metadata(path).unwrap());
        let output = sync_as_user(&ferry, &pair, &["--delete", backend, "source", "target"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        for (path, before) in [&theirs, &of_group].into_iter().zip(&before) {
            let now = fs::metadata(path).unwrap();
            let facts = |found: &fs::Metadata| (found.mode(), found.uid(), found.gid());
            assert_eq!(facts(&now), facts(before), "{}: {}", path.display(), said(&output));
        }
        for (path, message) in [
            ("theirs/file", "cannot create regular file"),
            ("theirs/made", "cannot create regular file"),
            ("theirs/gone", "cannot remove"),
            ("group/file", "cannot create regular file"),
        ] {
            let line = format!("{message} 'target/{path}': Permission denied");
            assert_eq!(said(&output).matches(&line).count(), 1, "{line}: {}", said(&output));
        }
        let found = |path: &str| fs::read_to_string(pair.path().join("target").join(path)).unwrap();
        for path in ["theirs/file", "group/file"] {
            assert_eq!(found(path), "older", "{path}");
        }
        assert_eq!(found("theirs/gone"), "gone");
        for path in ["theirs/mine", "mine"] {
            assert_eq!(found(&format!("{path}/file")), "new", "{path}: {}", said(&output));
            assert_eq!(mode(&pair.path().join("target").join(path)), 0o555, "{path}");
        }
    }
}

/// Regression: setting the mode that the folder had already cleared the bit, and no later run could set it.
#[test]
fn a_folder_of_another_group_keeps_its_set_group_id_bit() {
    let Some((memory, ferry)) = prepared() else { return };
    let tree = |text: &str| Tree::new().with("group/file", file(text));
    let pair = Pair::new(memory.path(), 0, &tree("new"), &tree("older"));
    give_entries_to_user(&pair);
    for folder in ["source/group", "target/group"].map(|path| pair.path().join(path)) {
        std::os::unix::fs::chown(&folder, None, Some(1)).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o2775)).unwrap();
    }
    for is_first in [true, false] {
        let output = sync_as_user(&ferry, &pair, &["-v", "source", "target"]);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        assert_eq!(mode(&pair.path().join("target/group")), 0o2775);
        assert!(is_first || output.stdout.is_empty(), "{}", said(&output));
    }
}

/// Regression: the bit was lost, because the ACL was set once more. `cp -a` loses it.
#[test]
fn a_folder_of_another_group_keeps_its_set_group_id_bit_beside_an_acl() {
    let Some((memory, ferry)) = prepared() else { return };
    if !is_installed("setfacl") {
        skip::<()>("setfacl is not installed");
        return;
    }
    let tree = |text: &str| {
        ["access", "default", "both", "new"]
            .iter()
            .fold(Tree::new(), |tree, name| tree.with(format!("{name}/file"), file(text)))
    };
    for words in [&["sync", "-v"][..], &["cp", "-aT"]] {
        let pair = Pair::new(memory.path(), 0, &tree("new"), &tree("older"));
        give_entries_to_user(&pair);
        for side in ["source", "target"] {
            let set = format!(
                "chgrp 1 */; setfacl -m u:1234:rwx access both; setfacl -d -m u:1234:rwx default both
                chmod 2775 */; {}",
                if side == "source" { "setfacl -d -m u:4321:rx new" } else { "true" }
            );
            assert!(shell(&pair.path().join(side), &set).status.success());
        }
        let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        for name in ["access", "default", "both", "new"] {
            fs::File::open(pair.path().join("source").join(name)).unwrap().set_times(times).unwrap();
        }
        let output = run_as_user(&ferry, &pair, &[words, &["source", "target"]].concat());
        assert!(output.status.success(), "{}", said(&output));
        for name in ["access", "default", "both", "new"] {
            let [source, target] = ["source", "target"].map(|side| format!("{side}/{name}"));
            assert_eq!(mode(&pair.path().join(&target)), 0o2775, "{words:?} {name}: {}", said(&output));
            assert_eq!(acls(&pair, &target), acls(&pair, &source), "{words:?} {name}");
            let modified = fs::metadata(pair.path().join(&target)).unwrap().mtime();
            assert_eq!(modified, 0, "{words:?} {name}");
        }
        if words[0] == "sync" {
            let output = run_as_user(&ferry, &pair, &["sync", "-v", "source", "target"]);
            assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
        }
    }
}

/// Regression: only folders of the user's own group were opened.
#[test]
fn a_closed_folder_of_a_supplementary_group_is_changed_and_keeps_its_set_group_id_bit() {
    let Some((memory, ferry)) = prepared() else { return };
    if !is_installed("setpriv") {
        skip::<()>("setpriv is not installed");
        return;
    }
    let tree = |text: &str| {
        Tree::new().with("group", closed()).with("group/file", file(text)).with("group/new", file(text))
    };
    let pair = Pair::new(memory.path(), 0, &tree("new"), &tree("older"));
    fs::remove_file(pair.path().join("target/group/new")).unwrap();
    give_entries_to_user(&pair);
    for folder in ["source/group", "target/group"].map(|path| pair.path().join(path)) {
        std::os::unix::fs::chown(&folder, None, Some(1)).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o2555)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--groups=1"])
        .arg(&ferry)
        .args(["sync", "source", "target"]);
    let output = command.current_dir(pair.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for name in ["file", "new"] {
        assert_eq!(fs::read_to_string(pair.path().join("target/group").join(name)).unwrap(), "new");
    }
    assert_eq!(mode(&pair.path().join("target/group")), 0o2555);
}
