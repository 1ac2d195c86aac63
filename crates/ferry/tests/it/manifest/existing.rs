//! Targets that exist already: those that are left alone, and those that the user may not read.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ferry_copy::{Algorithm, Digest};
use tempfile::TempDir;

use super::{Hashes, listed};
use crate::faulty::shell;
use crate::scene::{FERRY, is_root, place_program, text};

const NOBODY: u32 = 65_534;

/// A folder of a user who is not root, with a copy of ferry that this user may run.
struct Own {
    place: TempDir,
}

impl Own {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        place_program(Path::new(FERRY), &place.path().join("ferry"));
        fs::create_dir(place.path().join("own")).unwrap();
        Self { place }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join("own").join(path)
    }

    /// Runs lines of shell, and gives everything to the user.
    #[track_caller]
    fn prepare(&self, script: &str) {
        let owned = if is_root() { "chown -R 65534:65534 ." } else { "" };
        let output = shell(&self.at(""), &format!("{script}\n{owned}"));
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
    }

    /// Runs ferry as the user.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(self.place.path().join("ferry"));
        command.args(line.split_whitespace()).current_dir(self.at(""));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }

    #[track_caller]
    fn succeed(&self, line: &str) {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    }

    /// Runs ferry, which reports one failure.
    #[track_caller]
    fn fail(&self, line: &str, said: &str) {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", text(&output.stderr));
        let failures: Vec<_> = text(&output.stderr).lines().filter(|line| line.contains("denied")).collect();
        assert_eq!(failures.len(), 1, "{line}: {failures:?}");
        assert!(failures[0].ends_with(said), "{line}: {failures:?}");
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.at(path)).unwrap().mode() & 0o7777
    }

    /// Panics unless the manifest `m` has these files, with the hashes of their content.
    #[track_caller]
    fn assert_listed(&self, files: &[(&str, &str)]) {
        let hash = |content: &str| Digest::of(Algorithm::Blake3, content.as_bytes()).to_string();
        let expected: Hashes =
            files.iter().map(|(path, content)| (path.as_bytes().to_vec(), hash(content))).collect();
        assert_eq!(listed(&fs::read(self.at("m")).unwrap()), expected);
    }
}

const LEFT_ALONE: &str = "mkdir source target
    printf older > source/one
    touch -d @1000 source/one
    ln source/one source/two
    ln source/one source/three
    ln source/one source/four
    printf newer > target/one
    ln target/one target/four";

const COPY_LEFT_ALONE: &str = "cp -a -u --manifest m source/one source/two source/three source/four target";

#[test]
fn a_link_to_a_newer_target_has_a_line() {
    let own = Own::new();
    own.prepare(LEFT_ALONE);
    own.succeed(COPY_LEFT_ALONE);
    for name in ["two", "three"] {
        let [link, kept] = [name, "one"].map(|name| fs::metadata(own.at("target").join(name)).unwrap().ino());
        assert_eq!(link, kept, "{name}");
    }
    own.assert_listed(&[("two", "newer"), ("three", "newer")]);
    // Then all are left alone.
    own.succeed(COPY_LEFT_ALONE);
    own.assert_listed(&[]);
}

#[test]
fn a_link_to_a_newer_target_that_can_not_be_read_is_made() {
    let own = Own::new();
    own.prepare(LEFT_ALONE);
    own.prepare("chmod 0200 target/one");
    let line = "cp -a -u --manifest m source/one source/two target";
    own.fail(line, "cannot read 'target/two' for the manifest: Permission denied");
    let [link, kept] = ["two", "one"].map(|name| fs::metadata(own.at("target").join(name)).unwrap().ino());
    assert_eq!(link, kept);
    own.assert_listed(&[]);
}

#[test]
fn a_target_that_can_not_be_read_is_synced_all_the_same() {
    let own = Own::new();
    own.prepare("mkdir source; printf mode > source/mode; printf closed > source/closed");
    own.succeed("sync source target");
    // Without a manifest, equal files are not read.
    own.prepare("chmod 0200 target/mode source/closed target/closed");
    own.fail(
        "sync --manifest m source target",
        "cannot read 'target/closed' for the manifest: Permission denied",
    );
    assert_eq!(own.mode("target/mode"), 0o644);
    own.assert_listed(&[("mode", "mode")]);
    own.prepare("chmod 0200 target/mode; rm source/closed target/closed");
    own.succeed("sync --manifest m source target");
    assert_eq!(own.mode("target/mode"), 0o644);
    own.assert_listed(&[("mode", "mode")]);
}

/// Reading the target for its hash tells nothing of what the source has.
#[test]
fn a_target_that_can_not_be_read_does_not_keep_others_from_being_deleted() {
    let own = Own::new();
    own.prepare("mkdir source; printf closed > source/closed");
    own.succeed("sync source target");
    own.prepare("chmod 0200 source/closed target/closed");
    // It is equal first, and gets another mode then.
    for mode in ["0200", "0220"] {
        own.prepare(&format!("chmod {mode} source/closed; printf extra > target/extra"));
        own.fail(
            "sync --manifest m --delete=now source target",
            "cannot read 'target/closed' for the manifest: Permission denied",
        );
        assert!(!own.at("target/extra").exists(), "{mode}");
        own.assert_listed(&[]);
    }
    assert_eq!(own.mode("target/closed"), 0o220);
}

#[test]
fn a_target_that_can_not_be_read_is_overwritten_all_the_same() {
    let own = Own::new();
    let large = "x".repeat(300_000);
    own.prepare("mkdir source target; printf small > source/small; printf older > target/small");
    fs::write(own.at("source/large"), &large).unwrap();
    fs::write(own.at("target/large"), "older").unwrap();
    own.prepare("chmod 0200 target/*");
    // The mode stays.
    own.fail(
        "cp --manifest m source/large target",
        "cannot read 'target/large' for the manifest: Permission denied",
    );
    assert_eq!((own.mode("target/small"), own.mode("target/large")), (0o200, 0o200));
    assert_eq!(fs::metadata(own.at("target/large")).unwrap().len(), 300_000);
    own.assert_listed(&[]);
    // The mode becomes the source's.
    for command in
        ["cp -p --manifest m source/small source/large target", "sync --inplace --manifest m source target"]
    {
        own.prepare("printf older > target/small; printf older > target/large; chmod 0200 target/*");
        own.succeed(command);
        own.assert_listed(&[("large", large.as_str()), ("small", "small")]);
        assert_eq!(fs::read_to_string(own.at("target/large")).unwrap(), large, "{command}");
    }
}

/// Only listed files are looked at, if others are no difference.
#[test]
fn folders_without_listed_files_are_not_entered_if_extra_files_are_allowed() {
    let own = Own::new();
    own.prepare("mkdir source; printf text > source/file");
    own.succeed("sync --manifest m source target");
    own.prepare("mkdir target/closed; printf text > target/extra; chmod 0 target/closed");
    let output = own.run("verify --all --manifest m target");
    let mut lines: Vec<_> = text(&output.stdout).lines().collect();
    assert_eq!(lines.pop(), Some("different: 2 differences in 2 files: 1 unreadable, 1 extra"));
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("'closed': cannot be read: "), "{lines:?}");
    assert_eq!(lines[1], "'extra': only in the tree");
    own.succeed("verify --allow-extra --manifest m target");
    // So that it can be removed.
    own.prepare("chmod 700 target/closed");
}
