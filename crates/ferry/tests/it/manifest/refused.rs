//! Manifests that can't be had, and lists that are none.

use std::fs;

use super::{run, succeed};
use crate::random::filesystem::Filesystem;
use crate::scene::text;

#[test]
fn options_that_make_no_manifest_are_refused() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("source/inner")).unwrap();
    fs::create_dir(folder.join("target")).unwrap();
    let tree = "the copy reads or writes";
    let both = "it would be copied or compared, too";
    for (line, code, message) in [
        ("sync -n --manifest m source target", 2, "--dry-run and --manifest exclude each other".to_owned()),
        (
            "sync --plan p --manifest m source target",
            2,
            "--plan and --manifest exclude each other".to_owned(),
        ),
        ("sync --apply p --manifest m", 2, "--apply and --manifest exclude each other".to_owned()),
        ("sync --undo t --manifest m target", 2, "--undo and --manifest exclude each other".to_owned()),
        ("sync --hash sha256 source target", 2, "--hash needs --manifest".to_owned()),
        ("sync --hash md5 --manifest m source target", 2, "invalid argument".to_owned()),
        ("sync --manifest source/m source target", 1, format!("'source/m' is in 'source': {both}")),
        ("sync --manifest target/m source target", 1, format!("'target/m' is in 'target': {both}")),
        ("sync --manifest no/m source target", 1, "cannot create 'no/m': No such file".to_owned()),
        ("sync --manifest m --events=m source target", 1, "'m' is the file of the events, too".to_owned()),
        ("cp -l --manifest m source target", 1, "--manifest has hashes of copies, and --link".to_owned()),
        ("cp --attributes-only --manifest m a b", 1, "and --attributes-only makes none".to_owned()),
        (
            "cp -r --backup=numbered --manifest m source target",
            1,
            "--backup and --manifest exclude each other: a copy may become a backup".to_owned(),
        ),
        ("cp --hash sha256 a b", 1, "--hash needs --manifest".to_owned()),
        ("cp -r --manifest source/m source target", 1, format!("{tree} 'source'")),
        ("cp -rT --manifest target/m source target", 1, format!("{tree} 'target'")),
        ("cp -r --manifest m --errors=m source target", 1, format!("{tree} 'm'")),
        ("cp -r --manifest no/m source target", 1, "cannot create 'no/m'".to_owned()),
    ] {
        let output = run(folder, line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(&message), "{line}: {}", text(&output.stderr));
        assert!(!folder.join("target/source").exists() && !folder.join("target/inner").exists(), "{line}");
        assert!(!folder.join("m").exists() && !folder.join("source/m").exists(), "{line}");
    }
}

#[test]
fn lines_that_are_none_are_named() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("tree")).unwrap();
    fs::write(folder.join("tree/one"), "one").unwrap();
    let hash = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    let header = "{\"manifest\":{\"schema\":1,\"made_by\":\"x\",\"algorithm\":\"sha256\"}}";
    for (list, code, message) in [
        (format!("{hash}  one\n"), 0, "equal: 1 file, "),
        (format!("{hash} *./one\n"), 0, "equal: 1 file, "),
        (format!("# a comment\n\n{hash}  one"), 0, "equal: 1 file, "),
        (format!("SHA256 (one) = {hash}\n"), 0, "equal: 1 file, "),
        (format!("BLAKE3 (one) = {hash}\n"), 1, "different: 1 difference in 1 file: 1 content"),
        (String::new(), 1, "different: 1 difference in 1 file: 1 extra"),
        (format!("{hash}  one\n{hash}\n"), 2, "'list': line 2: no two spaces follow the hash"),
        (format!("{}  one\n", &hash[1..]), 2, "'list': line 1: its hash has other characters"),
        ("short\n".to_owned(), 2, "'list': line 1: it has no hash of 64 digits"),
        (format!("{hash}  /etc/passwd\n"), 2, "'list': line 1: its path is absolute"),
        (format!("{hash}  a/../../one\n"), 2, "'list': line 1: its path has a component '..'"),
        (format!("\\{hash}  a\\x\n"), 2, "'list': line 1: its path has an unknown escape"),
        (format!("{hash}  \n"), 2, "'list': line 1: its path names no file"),
        (format!("{header}\n"), 2, "'list': line 2: the last line is missing"),
        (
            format!("{header}\n{{\"end\":{{\"files\":1}}}}\n"),
            2,
            "'list': line 2: it counts 1 files, and 0 lines",
        ),
        (format!("{header}\n{{\"file\":{{}}}}\n"), 2, "'list': line 2: it is no line of a manifest"),
        (header.replace('1', "7"), 2, "'list': line 1: the manifest has layout 7"),
    ] {
        fs::write(folder.join("list"), &list).unwrap();
        let output = run(folder, "verify --manifest list tree");
        assert_eq!(output.status.code(), Some(code), "{list}: {}", text(&output.stderr));
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(said.contains(message), "{list}: {said}");
    }
}

#[test]
fn a_list_in_its_tree_is_no_extra_file() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("tree/.ferry-trash")).unwrap();
    fs::write(folder.join("tree/.ferry-trash/old"), "old").unwrap();
    fs::write(folder.join("tree/list"), "").unwrap();
    succeed(folder, "verify --manifest tree/list tree");
    fs::write(folder.join("tree/extra"), "").unwrap();
    let output = run(folder, "verify --all --manifest tree/list tree");
    let said = "'extra': only in the tree\ndifferent: 1 difference in 1 file: 1 extra; 1 trash passed over\n";
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), said));
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    fs::write(folder.join("tree/list"), format!("{hash}  extra\n")).unwrap();
    fs::write(folder.join("tree/more"), "").unwrap();
    succeed(folder, "verify --allow-extra --manifest tree/list tree");
}

#[test]
fn a_list_without_files_is_refused_if_extra_files_are_allowed() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    for name in ["source", "tree"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    for manifest in ["m", "m.json"] {
        succeed(folder, &format!("sync --manifest {manifest} source tree"));
        succeed(folder, &format!("verify --manifest {manifest} tree"));
    }
    fs::write(folder.join("comment"), "# a comment\n\n").unwrap();
    fs::write(folder.join("tree/extra"), "").unwrap();
    for manifest in ["m", "comment"] {
        let output = run(folder, &format!("verify --allow-extra --manifest {manifest} tree"));
        let said = format!(
            "ferry verify: '{manifest}': it lists no file, so that with --allow-extra nothing is compared\n"
        );
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), said.as_str()));
    }
    // This one says that there was no file.
    succeed(folder, "verify --allow-extra --manifest m.json tree");
}
