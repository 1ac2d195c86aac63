//! `ferry verify --manifest` finds each fault of a tree.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{run, succeed};
use crate::random::filesystem::Filesystem;
use crate::scene::text;

const FILES: usize = 60;

/// A number that follows from a seed, below a limit.
fn chance(seed: u64, turn: u64, limit: usize) -> usize {
    let mut bytes = [0; 8];
    ferry_tree::fill::fill(seed * 16 + turn + 1, 0, &mut bytes);
    usize::try_from(u64::from_le_bytes(bytes) % limit as u64).unwrap()
}

fn path(index: usize) -> String {
    format!("{}/{index}", index % 7)
}

/// Changes a tree, and returns the paths that differ and a change that takes it back.
fn damage(root: &Path, seed: u64) -> (BTreeSet<String>, Box<dyn FnOnce()>) {
    let at = |path: &str| -> PathBuf { root.join(path) };
    let one = chance(seed, 0, FILES);
    let (name, file) = (path(one), at(&path(one)));
    match seed % 4 {
        0 => {
            let bytes = fs::read(&file).unwrap();
            let mut changed = bytes.clone();
            let bit = chance(seed, 1, bytes.len() * 8);
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, changed).unwrap();
            ([name].into(), Box::new(move || fs::write(file, bytes).unwrap()))
        }
        1 => {
            let aside = at("../aside");
            fs::rename(&file, &aside).unwrap();
            ([name].into(), Box::new(move || fs::rename(aside, file).unwrap()))
        }
        2 => {
            let extra = at(&format!("{name}.extra"));
            fs::copy(&file, &extra).unwrap();
            ([format!("{name}.extra")].into(), Box::new(move || fs::remove_file(extra).unwrap()))
        }
        _ => {
            let other = (one + 1 + chance(seed, 2, FILES - 1)) % FILES;
            let other_file = at(&path(other));
            let swap = move |aside: &Path| {
                fs::rename(&file, aside).unwrap();
                fs::rename(&other_file, &file).unwrap();
                fs::rename(aside, &other_file).unwrap();
            };
            let aside = at("../aside");
            swap(&aside);
            ([name, path(other)].into(), Box::new(move || swap(&aside)))
        }
    }
}

/// Returns the paths whose content differs by `ferry verify --json`. The changes leave other times, too.
fn found(folder: &Path, manifest: &str) -> BTreeSet<String> {
    let output = run(folder, &format!("verify --json --ignore=mode,times --manifest {manifest} tree"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let lines = text(&output.stdout).lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["path"].as_str().map(str::to_owned)).collect()
}

#[test]
fn each_of_a_thousand_faults_is_found() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    for index in 0..FILES {
        let file = folder.join("source").join(path(index));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut bytes = vec![0; 1 + chance(7, index as u64, 9_000)];
        ferry_tree::fill::fill(index as u64 + 1, 0, &mut bytes);
        fs::write(file, bytes).unwrap();
    }
    let manifests = [("m.b3", ""), ("m.sha256", "--hash=sha256"), ("m.json", "")];
    for (manifest, hash) in manifests {
        succeed(folder, &format!("sync --manifest {manifest} {hash} source tree"));
    }
    for seed in 0..1_000 {
        let (expected, undo) = damage(&folder.join("tree"), seed);
        let (manifest, _) = manifests[usize::try_from(seed / 4 % 3).unwrap()];
        assert_eq!(found(folder, manifest), expected, "seed {seed}");
        undo();
    }
    succeed(folder, "verify --manifest m.b3 tree");
}

#[test]
fn sizes_modes_and_times_are_compared_if_the_manifest_has_them() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("source")).unwrap();
    for name in ["longer", "mode", "time", "link", "same"] {
        fs::write(folder.join("source").join(name), name).unwrap();
    }
    succeed(folder, "sync --manifest m.json source tree");
    let tree = folder.join("tree");
    fs::set_permissions(tree.join("mode"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::File::open(tree.join("time")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let was = fs::metadata(tree.join("longer")).unwrap().modified().unwrap();
    fs::write(tree.join("longer"), "longer now").unwrap();
    fs::File::open(tree.join("longer")).unwrap().set_modified(was).unwrap();
    fs::remove_file(tree.join("link")).unwrap();
    symlink("same", tree.join("link")).unwrap();
    let output = run(folder, "verify --all --manifest m.json tree");
    assert_eq!(output.status.code(), Some(1));
    let mut lines: Vec<_> = text(&output.stdout).lines().collect();
    let verdict = "different: 4 differences in 5 files: 1 type, 1 size, 1 mode, 1 times";
    assert_eq!(lines.pop(), Some(verdict));
    lines.sort_unstable();
    assert_eq!(lines[0], "'link': not a regular file in the tree");
    assert_eq!(lines[1], "'longer': size is 6 bytes in the manifest, 10 in the tree");
    assert_eq!(lines[2], "'mode': mode is 0644 in the manifest, 0600 in the tree");
    assert!(lines[3].starts_with("'time': time of change is "), "{lines:?}");
    assert!(
        lines[3].ends_with(" in the manifest, 1970-01-01 00:00:00.000000000 UTC in the tree"),
        "{lines:?}"
    );
    assert_eq!((lines.len(), text(&output.stderr)), (4, ""), "{lines:?}");
    let output = run(folder, "verify --ignore=mode,times --manifest m.json tree");
    let expected = "\
type: 1
  'link': not a regular file in the tree
size: 1
  'longer': size is 6 bytes in the manifest, 10 in the tree

different: 2 differences in 5 files: 1 type, 1 size
";
    assert_eq!(text(&output.stdout), expected);
    let values: BTreeSet<String> = text(&run(folder, "verify --json --manifest m.json tree").stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| format!("{} {} {}", line["kind"], line["manifest"], line["tree"]))
        .collect();
    for values_of_both in ["\"size\" 6 10", "\"mode\" \"0644\" \"0600\""] {
        assert!(values.contains(values_of_both), "{values:?}");
    }
    assert!(values.iter().any(|values| values.ends_with(" [0,0]")), "{values:?}");
}

#[test]
fn links_are_not_followed_out_of_the_tree() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("source/inner")).unwrap();
    fs::write(folder.join("source/inner/file"), "text").unwrap();
    succeed(folder, "sync --manifest m source tree");
    fs::remove_dir_all(folder.join("tree/inner")).unwrap();
    symlink("../source/inner", folder.join("tree/inner")).unwrap();
    let output = run(folder, "verify --all --manifest m tree");
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(1), "'inner/file': missing in the tree\ndifferent: 1 difference in 1 file: 1 missing\n")
    );
}

#[test]
fn a_trash_in_the_tree_is_no_extra_file() {
    let memory = Filesystem::memory();
    let place = tempfile::tempdir_in(memory.path()).unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("source/inner")).unwrap();
    fs::write(folder.join("source/inner/file"), "text").unwrap();
    succeed(folder, "sync source tree");
    for (index, trash) in ["", "--trash=tree/inner/replaced"].into_iter().enumerate() {
        fs::write(folder.join("source/inner/file"), "another text".repeat(index + 1)).unwrap();
        let line = format!("sync --delete --manifest m {trash} source tree");
        succeed(folder, &line);
        let output = succeed(folder, "verify --manifest m tree");
        let passed = ["1 trash", "2 trashes"][index];
        let said = text(&output.stdout);
        assert!(said.ends_with(&format!(" of content; {passed} passed over\n")), "{said}");
    }
    let output = succeed(folder, "verify --json --manifest m tree");
    let summary: Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!((&summary["summary"]["trashes"], &summary["same"]), (&Value::from(2), &Value::from(true)));
    let kept = fs::read_dir(folder.join("tree/inner/replaced")).unwrap().count();
    assert_eq!(kept, 1, "nothing was moved to the trash");
    // A folder of that name without the mark is no trash. The mark is a regular file.
    fs::create_dir(folder.join("tree/inner/replaced/other")).unwrap();
    fs::write(folder.join("tree/inner/replaced/other/file"), "").unwrap();
    symlink("file", folder.join("tree/inner/replaced/other/.ferry-is-trash")).unwrap();
    let output = run(folder, "verify --manifest m tree");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.starts_with("extra: 1\n  'inner/replaced/other/file': only in the tree\n\n"), "{said}");
    assert!(said.ends_with("different: 1 difference in 2 files: 1 extra; 2 trashes passed over\n"), "{said}");
}
