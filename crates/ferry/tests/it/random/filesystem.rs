//! Filesystems made for a test: in memory, or in an image that is mounted where only this test sees it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::scene::{is_root, skip};

/// A filesystem of a test's own, gone with it.
pub(crate) struct Filesystem {
    path: PathBuf,
    mounted: bool,
    /// Holds the image and the mount point.
    _place: TempDir,
}

impl Filesystem {
    /// A folder in memory, or where temporary files go if there is no tmpfs.
    pub(crate) fn memory() -> Self {
        let place = place();
        let path = place.path().to_owned();
        Self { path, mounted: false, _place: place }
    }

    /// A new filesystem of a kind, or why there is none.
    pub(crate) fn image(kind: &str) -> Result<Self, String> {
        // XFS wants 300 MB at least. Nothing of it is taken until it is written.
        const BYTES: u64 = 512 << 20;
        let place = place();
        let (image, path) = (place.path().join("image"), place.path().join("mounted"));
        std::fs::create_dir(&path).unwrap();
        std::fs::File::create(&image).and_then(|file| file.set_len(BYTES)).unwrap();
        succeed(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))?;
        succeed(Command::new("mount").args(["-o", "loop"]).args([&image, &path]))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Ok(Self { path, mounted: true, _place: place })
    }

    /// Its root.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        if self.mounted {
            succeed(Command::new("umount").arg("--lazy").arg(&self.path)).unwrap();
        }
    }
}

/// A folder that every user may enter.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    let beneath = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let place = tempfile::Builder::new().prefix("ferry-").tempdir_in(beneath).unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    place
}

fn succeed(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

const WITHIN: &str = "FERRY_TEST_WITHIN";

/// Runs a test's body on a new filesystem, in a process that has its mounts to itself: whatever happens to it, they end
/// with it.
pub(crate) fn within(test: &str, kind: &str, body: impl FnOnce(&Filesystem)) {
    if std::env::var_os(WITHIN).is_some() {
        match Filesystem::image(kind) {
            Ok(filesystem) => body(&filesystem),
            Err(why) => drop(skip::<()>(&why)),
        }
        return;
    }
    if !is_root() {
        skip::<()>("mounting needs root");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(WITHIN, "1");
    match command.output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(output.status.success(), "{said}");
            said.lines().filter(|line| line.starts_with("SKIP: ")).for_each(|line| eprintln!("{line}"));
        }
        Err(error) => drop(skip::<()>(&format!("no mount namespace: {error}"))),
    }
}
