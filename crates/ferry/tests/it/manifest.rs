//! `--manifest`: what it has, beside the target, `sha256sum -c` and `b3sum -c`, and `ferry verify --manifest`.

mod checked;
mod existing;
mod holes;
mod refused;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use ferry_copy::{Algorithm, Digest};
use serde_json::Value;

use crate::faulty::BACKENDS;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{ferry, is_installed, skip, text};

/// Hashes by path.
pub(crate) type Hashes = BTreeMap<Vec<u8>, String>;

const SIZES: [usize; 8] = [0, 1, 4095, 4096, 262_144, 262_145, 5 << 20, 40 << 20];

/// Makes a tree of files of all sizes and odd names, with hard links and holes.
fn make_source(root: &Path) {
    fs::create_dir_all(root.join("folder/deep")).unwrap();
    for (index, size) in SIZES.into_iter().enumerate() {
        let mut bytes = vec![0; size];
        ferry_tree::fill::fill(index as u64 + 1, 0, &mut bytes);
        fs::write(root.join(format!("folder/{size}")), bytes).unwrap();
    }
    let names: [&[u8]; 6] = [b"new\nline", b"back\\slash", b"cr\r", b"bad\xff", b"sp ace ", b"*star"];
    for name in names {
        fs::write(root.join("folder/deep").join(OsStr::from_bytes(name)), name).unwrap();
    }
    let holey = File::create(root.join("holey")).unwrap();
    holey.write_all_at(&[7; 300_000], 1 << 20).unwrap();
    holey.write_all_at(&[8; 20 << 20], 30 << 20).unwrap();
    holey.set_len(64 << 20).unwrap();
    fs::hard_link(root.join("folder/5242880"), root.join("folder/twin")).unwrap();
    fs::hard_link(root.join("folder/1"), root.join("another")).unwrap();
    symlink("folder/1", root.join("link")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
}

/// Returns the hashes of all regular files of a tree.
pub(crate) fn hashes(root: &Path, algorithm: Algorithm) -> Hashes {
    let mut found = Hashes::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.file_name() != ".ferry-trash" {
                folders.push(entry.path());
            } else if kind.is_file() {
                let digest = Digest::of(algorithm, &fs::read(entry.path()).unwrap());
                let path = entry.path().strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
                found.insert(path, digest.to_string());
            }
        }
    }
    found
}

/// Parses lines of sha256sum or b3sum, which have to be sorted.
pub(crate) fn listed(manifest: &[u8]) -> Hashes {
    let mut found = Hashes::new();
    let mut last = Vec::new();
    for line in manifest.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let (is_escaped, line) = line.strip_prefix(b"\\").map_or((false, line), |line| (true, line));
        let mut path = line[66..].to_vec();
        if is_escaped {
            let text = String::from_utf8(path).unwrap().replace("\\\\", "\0");
            path = text.replace("\\n", "\n").replace("\\r", "\r").replace('\0', "\\").into_bytes();
        }
        assert!(found.is_empty() || last < path, "{} is not sorted", path.escape_ascii());
        last.clone_from(&path);
        found.insert(path, text(&line[..64]).to_owned());
    }
    found
}

/// Parses a manifest in JSON, and checks it against the schema and the files.
fn described(manifest: &[u8], root: &Path) -> Hashes {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/manifest.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines: Vec<Value> = text(manifest).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut found = Hashes::new();
    for line in &lines {
        let errors: Vec<_> = validator.iter_errors(line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
        let Some(file) = line.get("file") else { continue };
        let path: Vec<u8> = match file["path"].as_str() {
            Some(path) => path.as_bytes().to_vec(),
            None => serde_json::from_value(file["path"]["bytes"].clone()).unwrap(),
        };
        let facts = fs::symlink_metadata(root.join(OsStr::from_bytes(&path))).unwrap();
        let mode = format!("{:04o}", facts.mode() & 0o7777);
        let expected = serde_json::json!([facts.size(), mode, [facts.mtime(), facts.mtime_nsec()]]);
        let listed = serde_json::json!([file["size"], file["mode"], file["modified"]]);
        assert_eq!(listed, expected, "{file}");
        found.insert(path, file["hash"].as_str().unwrap().to_owned());
    }
    assert!(lines[0].get("manifest").is_some(), "{}", lines[0]);
    assert_eq!(lines.last().unwrap()["end"]["files"], Value::from(found.len()));
    found
}

fn run(folder: &Path, line: &str) -> Output {
    ferry(folder, &line.split_whitespace().collect::<Vec<_>>())
}

#[track_caller]
fn succeed(folder: &Path, line: &str) -> Output {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Panics unless a manifest beside the target has its hashes, by all programs that are here.
#[track_caller]
fn assert_right(folder: &Path, manifest: &str, algorithm: Algorithm, line: &str) {
    let bytes = fs::read(folder.join(manifest)).unwrap();
    let target = folder.join("target");
    let found = if manifest.ends_with("json") { described(&bytes, &target) } else { listed(&bytes) };
    let expected = hashes(&target, algorithm);
    assert!(found == expected, "{line}: {found:#?} instead of {expected:#?}");
    let output = succeed(folder, &format!("verify --manifest {manifest} target"));
    let verdict = format!("equal: {} file", expected.len());
    assert!(text(&output.stdout).starts_with(&verdict), "{line}: {}", text(&output.stdout));
    if algorithm == Algorithm::Sha256 && !manifest.ends_with("json") {
        let mut check = Command::new("sha256sum");
        check.args(["--check", "--strict", "--quiet"]).arg(format!("../{manifest}")).current_dir(&target);
        let output = check.output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
}

/// Manifests of copies are those of their targets, however the bytes got there.
fn check(filesystem: &Filesystem) {
    let folder = filesystem.path();
    make_source(&folder.join("source"));
    let manifests = [
        ("m.b3", "", Algorithm::Blake3),
        ("m.sha256", "--hash sha256", Algorithm::Sha256),
        ("m.json", "--hash=sha256", Algorithm::Sha256),
    ];
    let commands = [
        "cp -aT",
        "cp -rT --reflink=never",
        "cp -aT --sparse=always",
        "cp -aT --sparse=never --direct=always",
        "cp -aT --atomic --fsync",
        "cp -aT --verify",
        "sync",
        "sync --verify",
    ];
    for (index, command) in commands.into_iter().enumerate() {
        for backend in BACKENDS {
            let (manifest, hash, algorithm) = manifests[index % 3];
            let line = format!("{command} {backend} --manifest {manifest} {hash} source target");
            succeed(folder, &line);
            assert_right(folder, manifest, algorithm, &line);
            fs::remove_dir_all(folder.join("target")).unwrap();
        }
    }
}

#[test]
fn manifests_are_those_of_the_target_on_tmpfs() {
    check(&Filesystem::memory());
}

#[test]
fn manifests_are_those_of_the_target_on_ext4() {
    within("manifest::manifests_are_those_of_the_target_on_ext4", "ext4", check);
}

#[test]
fn manifests_are_those_of_the_target_on_xfs() {
    within("manifest::manifests_are_those_of_the_target_on_xfs", "xfs", check);
}

#[test]
fn manifests_are_those_of_the_target_on_btrfs() {
    within("manifest::manifests_are_those_of_the_target_on_btrfs", "btrfs", check);
}

#[test]
fn b3sum_checks_a_manifest() {
    if !is_installed("b3sum") {
        skip::<()>("b3sum is not here");
        return;
    }
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    make_source(&folder.join("source"));
    // It ends at a name that is not UTF-8, and has no escape for a carriage return.
    let names: [&[u8]; 2] = [b"bad\xff", b"cr\r"];
    for name in names {
        fs::remove_file(folder.join("source/folder/deep").join(OsStr::from_bytes(name))).unwrap();
    }
    succeed(folder, "sync --manifest m.b3 source target");
    let target = folder.join("target");
    let check = || Command::new("b3sum").args(["--check", "../m.b3"]).current_dir(&target).output().unwrap();
    let output = check();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let right = text(&output.stdout).lines().filter(|line| line.ends_with(": OK")).count();
    assert_eq!(right, hashes(&target, Algorithm::Blake3).len(), "{}", text(&output.stdout));
    fs::write(target.join("folder/4095"), "changed").unwrap();
    let output = check();
    assert!(!output.status.success(), "{}", text(&output.stdout));
}

/// Files that are equal, changed, kept, linked anew and deleted.
fn check_changes(filesystem: &Filesystem) {
    let folder = filesystem.path();
    let at = |path: &str| folder.join(path);
    make_source(&at("source"));
    succeed(folder, "sync source target");
    for (index, words) in ["", "--inplace", "--checksum", "--delete --verify", "--newer"].iter().enumerate() {
        // Equal but for attributes, one of them with several names.
        for path in ["target/folder/4096", "target/folder/twin"] {
            fs::set_permissions(at(path), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        fs::write(at("source/folder/4095"), format!("changed {index}")).unwrap();
        fs::write(at("target/folder/deep/sp ace "), "older").unwrap();
        File::open(at("target/folder/deep/sp ace ")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        fs::hard_link(at("source/folder/262144"), at(&format!("source/linked {index}"))).unwrap();
        fs::create_dir_all(at(&format!("source/new {index}"))).unwrap();
        fs::hard_link(at("source/folder/4096"), at(&format!("source/new {index}/linked"))).unwrap();
        fs::write(at(&format!("source/new {index}/file")), "new").unwrap();
        let line = format!("sync {words} --manifest m.json source target");
        succeed(folder, &line);
        assert_right(folder, "m.json", Algorithm::Blake3, &line);
        let again = format!("sync {words} --manifest m.sha256 --hash sha256 source target");
        succeed(folder, &again);
        assert_right(folder, "m.sha256", Algorithm::Sha256, &again);
    }
}

#[test]
fn a_manifest_has_what_is_equal_changed_and_linked() {
    check_changes(&Filesystem::memory());
}

#[test]
fn a_manifest_has_what_is_equal_changed_and_linked_on_ext4() {
    within("manifest::a_manifest_has_what_is_equal_changed_and_linked_on_ext4", "ext4", check_changes);
}

#[test]
fn paths_of_copies_are_below_their_target() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("a/b")).unwrap();
    fs::create_dir(folder.join("there")).unwrap();
    fs::write(folder.join("a/b/c"), "c").unwrap();
    fs::write(folder.join("one"), "one").unwrap();
    for (line, paths) in [
        ("-r a new", &["b/c"][..]),
        ("-r a there", &["a/b/c"]),
        ("-r a/. there", &["b/c"]),
        ("-rT a there", &["b/c"]),
        ("-r a one -t there", &["a/b/c", "one"]),
        ("one there/two", &["two"]),
        ("one two", &["two"]),
        ("--parents a/b/c there", &["a/b/c"]),
    ] {
        succeed(folder, &format!("cp --manifest m {line}"));
        let found: Vec<_> = listed(&fs::read(folder.join("m")).unwrap()).into_keys().collect();
        assert_eq!(found, paths.iter().map(|path| path.as_bytes().to_vec()).collect::<Vec<_>>(), "{line}");
    }
}

#[test]
fn a_resumed_file_has_the_hash_of_all_its_bytes() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("source")).unwrap();
    let mut bytes = vec![0; (200 << 20) + 4321];
    ferry_tree::fill::fill(5, 0, &mut bytes);
    fs::write(folder.join("source/large"), bytes).unwrap();
    fs::write(folder.join("m"), "older").unwrap();
    let line = "sync --bwlimit=64M --time-limit=2500ms --manifest m source target";
    let stopped = run(folder, line);
    assert_eq!(stopped.status.code(), Some(124), "{}", text(&stopped.stderr));
    let said = "ferry sync: the manifest 'm' was not written, because the run was stopped\n";
    assert!(text(&stopped.stderr).contains(said), "{}", text(&stopped.stderr));
    assert_eq!(fs::read(folder.join("m")).unwrap(), b"older");
    let resumed = succeed(folder, "sync --manifest m source target");
    assert!(text(&resumed.stderr).contains("'target/large': continuing after"), "{}", text(&resumed.stderr));
    assert_right(folder, "m", Algorithm::Blake3, line);
}

#[test]
fn what_fails_is_not_in_the_manifest() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    for path in ["source", "target/taken/file", "target/stays"] {
        fs::create_dir_all(folder.join(path)).unwrap();
    }
    for path in ["source/one", "source/taken"] {
        fs::write(folder.join(path), path).unwrap();
    }
    for command in ["cp -rT", "sync"] {
        let output = run(folder, &format!("{command} --manifest m source target"));
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let found: Vec<_> = listed(&fs::read(folder.join("m")).unwrap()).into_keys().collect();
        assert_eq!(found, [b"one"], "{command}");
    }
}

/// Ends a thread, also if the test fails.
struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Ranges of data in a file with holes.
const RANGES: u64 = 1_000;

#[test]
fn a_file_that_changes_while_it_is_copied_has_the_hash_of_its_copy() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("source")).unwrap();
    let file = File::create(folder.join("source/large")).unwrap();
    file.write_all_at(&vec![1; 64 << 20], 0).unwrap();
    // Ranges of 4 KiB with holes between them.
    let holey = File::create(folder.join("source/holey")).unwrap();
    (0..RANGES).for_each(|index| holey.write_all_at(&[1; 4_096], index * 16_384).unwrap());
    holey.set_len(RANGES * 16_384).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                file.write_all_at(&number.to_le_bytes(), number * 7_654_321 % (64 << 20)).unwrap();
                holey.write_all_at(&number.to_le_bytes(), number % RANGES * 16_384 + number % 4_000).unwrap();
                if number.is_multiple_of(5_000) {
                    file.set_len((40 << 20) + number).unwrap();
                    file.set_len(64 << 20).unwrap();
                    // Some holes are filled, and holes come back.
                    holey.write_all_at(&[2; 4_096], number / 5_000 % RANGES * 16_384 + 8_192).unwrap();
                    holey.set_len((number % RANGES) * 8_192 + 5).unwrap();
                    holey.set_len(RANGES * 16_384).unwrap();
                }
            }
        });
        let _stop = Stop(&stop);
        let commands =
            ["cp -rT", "cp -rT --sparse=never", "cp -rT --sparse=always", "cp -rT --direct=always"];
        for command in commands {
            for backend in BACKENDS {
                let line = format!("{command} {backend} --manifest m source target");
                succeed(folder, &line);
                assert_right(folder, "m", Algorithm::Blake3, &line);
            }
        }
    });
}

#[test]
fn a_manifest_without_room_is_reported() {
    within("manifest::a_manifest_without_room_is_reported", "tmpfs", |tmpfs| {
        let folder = tmpfs.path();
        fs::create_dir(folder.join("small")).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=16k", "tmpfs", "small"];
        assert!(Command::new("mount").args(mount).current_dir(folder).status().unwrap().success());
        fs::write(folder.join("small/m"), "older").unwrap();
        fs::create_dir(folder.join("source")).unwrap();
        (0..1_000).for_each(|index| fs::write(folder.join(format!("source/{index}")), "").unwrap());
        for command in ["cp -rT", "sync"] {
            let output = run(folder, &format!("{command} --manifest small/m source target"));
            assert_eq!(output.status.code(), Some(1));
            let said = "cannot write the manifest 'small/m': No space left on device\n";
            assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
            assert_eq!(fs::read(folder.join("small/m")).unwrap(), b"older");
            assert_eq!(fs::read_dir(folder.join("small")).unwrap().count(), 1);
            succeed(folder, "verify --ignore=times source target");
            fs::remove_dir_all(folder.join("target")).unwrap();
        }
        Command::new("umount").arg(folder.join("small")).status().unwrap();
    });
}
