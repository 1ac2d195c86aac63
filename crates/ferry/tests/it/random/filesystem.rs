//! Filesystems for a test: on tmpfs, or in an image mounted in the test's own namespace.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::scene::{is_root, skip};

/// A filesystem; unmounted on drop.
pub(crate) struct Filesystem {
    path: PathBuf,
    /// Type of the mounted filesystem, if any.
    mounted: Option<String>,
    /// Holds the image and the mount point.
    place: TempDir,
}

impl Filesystem {
    /// A directory on tmpfs; without tmpfs, prints SKIP and uses the disk.
    pub(crate) fn memory() -> Self {
        let place = place();
        let path = place.path().to_owned();
        Self { path, mounted: None, place }
    }

    /// Makes and mounts a filesystem with options of mkfs(8), without access times; or returns the reason why
    /// it can't.
    fn mount(kind: &str) -> Result<Self, String> {
        // XFS needs 300 MB. The image is sparse.
        const BYTES: u64 = 512 << 20;
        let place = place();
        // /dev/shm may be too small.
        let tmpfs = ["-t", "tmpfs", "-o", "size=2g,mode=755,noatime", "tmpfs"];
        succeed(Command::new("mount").args(tmpfs).arg(place.path()))?;
        let filesystem = Self { path: place.path().join("mounted"), mounted: Some(kind.to_owned()), place };
        std::fs::create_dir(&filesystem.path).unwrap();
        if kind != "tmpfs" {
            let image = filesystem.place.path().join("image");
            std::fs::File::create(&image).and_then(|file| file.set_len(BYTES)).unwrap();
            let mut words = kind.split(' ');
            let make = format!("mkfs.{}", words.next().unwrap_or(kind));
            succeed(Command::new(make).arg("-q").args(words).arg(&image))?;
            succeed(Command::new("mount").args(["-o", "loop,noatime"]).args([&image, &filesystem.path]))?;
        }
        std::fs::set_permissions(&filesystem.path, PermissionsExt::from_mode(0o755)).unwrap();
        Ok(filesystem)
    }

    /// Returns true if reading does not change access times.
    pub(crate) fn keeps_access_times(&self) -> bool {
        self.mounted.is_some()
    }

    pub(crate) fn kind(&self) -> &str {
        self.mounted.as_deref().unwrap_or("tmpfs")
    }

    /// A directory on tmpfs beside it.
    pub(crate) fn beside(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        if self.mounted.is_some() {
            // The mount may have failed.
            succeed(Command::new("umount").arg("--lazy").arg(&self.path)).ok();
            succeed(Command::new("umount").arg("--lazy").arg(self.place.path())).unwrap();
        }
    }
}

/// A directory that every user may enter.
fn place() -> TempDir {
    /// See statfs(2).
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    let memory = Path::new("/dev/shm");
    let magic = rustix::fs::statfs(memory).ok().and_then(|found| u64::try_from(found.f_type).ok());
    let beneath = if magic == Some(TMPFS_MAGIC) {
        memory.to_owned()
    } else {
        skip::<()>("no tmpfs at /dev/shm: this runs on the disk instead");
        std::env::temp_dir()
    };
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

/// Returns true if the test runs in a mount namespace of its own.
pub(crate) fn has_own_mounts() -> bool {
    std::env::var_os(WITHIN).is_some()
}

/// Runs a test's body on a new filesystem, in a process with its own mount namespace.
pub(crate) fn within(test: &str, kind: &str, body: impl FnOnce(&Filesystem)) {
    if std::env::var_os(WITHIN).is_some() {
        match Filesystem::mount(kind) {
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
            // A wrong test name would run nothing and succeed.
            assert!(output.status.success() && said.contains("\ntest result: ok. 1 passed"), "{said}");
            let is_told = |line: &&str| line.starts_with("SKIP: ") || line.starts_with("SEEDS: ");
            said.lines().filter(is_told).for_each(|line| eprintln!("{line}"));
        }
        Err(error) => drop(skip::<()>(&format!("no mount namespace: {error}"))),
    }
}
