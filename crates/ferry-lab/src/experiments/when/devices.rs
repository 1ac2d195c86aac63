//! Filesystems on loop devices, and two of them that count as two devices.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::held::Held;
use super::throttle::Throttle;
use crate::command::{Stranger, time};
use crate::error::Failure;
use crate::needs::Unmet;
use crate::search_path::find_program;
use crate::stop::Stop;

/// Space for a filesystem's own structures.
pub(super) const SLACK_BYTES: u64 = 96 << 20;

/// Unmounts the folder `$2`: now, or as soon as nobody uses it. The loop device goes with the mount.
const UNMOUNT: &str = "umount \"$2\" 2> /dev/null || umount -l \"$2\"";

/// A filesystem in an image in the work folder.
#[derive(Debug)]
pub(in crate::experiments) struct Image {
    folder: PathBuf,
    mount: Held,
}

impl Image {
    /// Makes a filesystem of this kind (ext4, xfs or btrfs) and mounts it. Space is allocated as it is used.
    ///
    /// # Errors
    /// [`Failure::Run`] with what is missing: root, a program, or loop devices.
    pub(in crate::experiments) fn make(
        work: &Path,
        name: &str,
        kind: &str,
        bytes: u64,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        if !ferry_io::is_superuser() {
            return Err(Failure::Run("loop devices need root".to_owned()));
        }
        let mkfs = format!("mkfs.{kind}");
        for program in [mkfs.as_str(), "mount", "umount"] {
            find_program(program.as_ref())
                .ok_or_else(|| Failure::Run(Unmet::Program(program.into()).to_string()))?;
        }
        let image = work.join(format!("{name}.image"));
        let failed = |error: std::io::Error| Failure::file("create", &image, &error);
        let file = File::create_new(&image).map_err(failed)?;
        file.set_len(bytes).map_err(failed)?;
        drop(file);
        let mut command = Command::new(mkfs);
        let at_once = ["-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        command.arg("-q").args(at_once.iter().filter(|_| kind == "ext4")).arg(&image);
        time(&mut command, stop)?;
        let folder = work.join(name);
        std::fs::create_dir(&folder).map_err(|error| Failure::file("create", &folder, &error))?;
        let mount = format!("mount -t {kind} -o loop,noatime,nodiscard \"$1\" \"$2\"");
        let mount = Held::make("a loop device", &mount, UNMOUNT, &[&image, &folder])?;
        Ok(Self { folder, mount })
    }

    /// Mount point.
    pub(in crate::experiments) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// If that fails.
    pub(in crate::experiments) fn remove(self) -> Result<(), Failure> {
        self.mount.undo()
    }

    /// Number of its device: `7:0`.
    fn device(&self) -> Result<String, Failure> {
        let facts = rustix::fs::stat(&self.folder);
        let facts = facts.map_err(|errno| Failure::file("stat", &self.folder, &errno.into()))?;
        let (major, minor) = (rustix::fs::major(facts.st_dev), rustix::fs::minor(facts.st_dev));
        Ok(format!("{major}:{minor}"))
    }
}

/// Two filesystems on loop devices, each with a throughput of its own. Both images are on one disk.
#[derive(Debug)]
pub(super) struct Devices {
    /// Dropped first: the limits are lifted by the devices' numbers, which must not be another's by then.
    throttle: Throttle,
    first: Image,
    second: Image,
}

impl Devices {
    /// Makes both, each with room for `bytes`, and limits each of them to `rate` bytes a second in each direction.
    ///
    /// # Errors
    /// [`Failure::Run`] with what is missing: root, a program, loop devices, or limits.
    pub(super) fn make(work: &Path, bytes: u64, rate: u64, stop: &Stop) -> Result<Self, Failure> {
        let size = bytes.saturating_add(bytes / 8).saturating_add(SLACK_BYTES);
        let first = Image::make(work, "device-1", "ext4", size, stop)?;
        let second = Image::make(work, "device-2", "ext4", size, stop)?;
        let numbers = [first.device()?, second.device()?];
        let throttle = Throttle::make([&numbers[0], &numbers[1]], rate)?;
        Ok(Self { throttle, first, second })
    }

    /// Mount point of the first filesystem.
    pub(super) fn first(&self) -> &Path {
        self.first.folder()
    }

    /// Mount point of the second filesystem.
    pub(super) fn second(&self) -> &Path {
        self.second.folder()
    }

    /// Wraps a command so that the limits hold for it.
    pub(super) fn around(&self, command: &Stranger) -> Stranger {
        self.throttle.around(command)
    }

    /// Removes both.
    ///
    /// # Errors
    /// The first thing that can't be removed.
    pub(super) fn remove(self) -> Result<(), Failure> {
        let Self { throttle, first, second } = self;
        let outcomes = [throttle.remove(), second.remove(), first.remove()];
        outcomes.into_iter().collect()
    }
}
