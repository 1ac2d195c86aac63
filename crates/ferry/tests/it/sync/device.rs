//! A device that stops at a chosen moment: a loop device on a file of another filesystem, which is shut down.
//!
//! The loop device reads and writes past the page cache (direct I/O) in blocks that the file has already. So every write that
//! the device has completed is in the file, and after the shutdown each request fails. For the filesystem on the device this
//! is a lost connection, and after a new mount it is a power loss: only completed writes are left.
//!
//! Limit: a device with a volatile cache may also lose completed writes that were not flushed. This one does not.

use std::path::{Path, PathBuf};

use crate::faulty::shell;
use crate::random::filesystem;
use crate::scene::{is_installed, skip};

/// Makes the outer filesystem, and the file that holds the device's bytes.
const BEGIN: &str =
    "mkdir outer disk; truncate -s 800M outer.image; mkfs.xfs -q outer.image; mount -o loop outer.image outer
    dd if=/dev/zero of=outer/image bs=1M count=500 status=none; sync -f outer";
/// Attaches the device.
const ATTACH: &str = "losetup --direct-io=on -f --show outer/image > loop";
const SHUT_DOWN: &str = "xfs_io -x -c shutdown outer";
/// Detaches the device. The kernel may hold the filesystems for a moment.
const DETACH: &str = "for try in 1 2 3 4 5 6 7 8 9 10; do umount disk && break; sleep 0.2; done
    losetup -d $(cat loop)
    for try in 1 2 3 4 5 6 7 8 9 10; do umount outer && break; sleep 0.2; done";
/// Mounts the outer filesystem again, which replays its log.
const REOPEN: &str = "mount -o loop outer.image outer";
const END: &str = "umount --lazy disk; losetup -d $(cat loop); umount --lazy outer";

/// The device and the filesystem on it, mounted at `disk`; unmounted on drop.
pub(super) struct Device {
    place: PathBuf,
}

impl Device {
    /// Performs a test with a device in an empty folder in memory, or says why it can't.
    pub(super) fn within(test: &str, perform: impl FnOnce(&Path, &Self)) {
        filesystem::within(test, "tmpfs", |memory| match Self::new(memory.path()) {
            Ok(device) => perform(memory.path(), &device),
            Err(why) => drop(skip::<()>(&why)),
        });
    }

    /// Makes a device in an empty folder, or returns the reason why it can't.
    fn new(place: &Path) -> Result<Self, String> {
        if !is_installed("xfs_io") {
            return Err("xfs_io is not installed".to_owned());
        }
        let device = Self { place: place.to_owned() };
        let made = shell(place, &format!("{BEGIN}\n{ATTACH}"));
        if made.status.success() {
            Ok(device)
        } else {
            Err(String::from_utf8_lossy(&made.stderr).into_owned())
        }
    }

    fn perform(&self, script: &str) {
        let output = shell(&self.place, script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a new filesystem on the device and mounts it.
    pub(super) fn make(&self, kind: &str) {
        let force = if kind == "ext4" { "-F" } else { "-f" };
        self.perform("umount disk 2> errors || true");
        self.perform(&format!("mkfs.{kind} -q {force} $(cat loop); mount $(cat loop) disk"));
    }

    /// Stops the device: each request fails from now on.
    pub(super) fn cut(&self) {
        self.perform(SHUT_DOWN);
    }

    /// Brings the device back with the writes that it had completed, and mounts its filesystem, which replays its log.
    pub(super) fn restore(&self) {
        self.perform(&format!("{DETACH}\n{REOPEN}\n{ATTACH}\nmount $(cat loop) disk"));
    }

    pub(super) fn path(&self) -> PathBuf {
        self.place.join("disk")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Set-up may have failed, and a step of a test, too.
        for step in END.split("; ") {
            shell(&self.place, step);
        }
    }
}
