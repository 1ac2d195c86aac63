//! The time for which a filesystem has been mounted.
//!
//! Bytes that were written in an earlier session are in its files only if the device has them: the page cache that held the
//! others is gone, after a crash of the machine or after the device was unplugged.

use rustix::fs::{AtFlags, StatxFlags};

use crate::descriptor::{Descriptor, Dir};
use crate::sys::call;

/// Number that the kernel draws when it boots (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// STATX_MNT_ID_UNIQUE (statx(2), Linux 6.8): a number of the mount that is not used again.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The time from a mount of a filesystem to its end, or to that of the kernel.
///
/// ```
/// use ferry_io::Session;
///
/// let session = Session { boot: 1, mount: 7 };
/// assert_ne!(session, Session { mount: 8, ..session });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Number of the kernel's boot.
    pub boot: u128,
    /// Number of the mount in it; 0 before Linux 6.8. Then a filesystem that is mounted anew stays in its session.
    pub mount: u64,
}

impl Dir {
    /// Returns the session of this folder's filesystem; `None` where the kernel does not tell. A simulation has one session.
    ///
    /// ```
    /// use ferry_io::{Dir, Options, Paths, run};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let (is_equal, _) = run(&Options::default(), async |io| {
    ///     let open = || io.folder(&Paths::new(), folder.path());
    ///     let (first, second): (Dir, Dir) = (open()?, open()?);
    ///     Ok::<_, ferry_io::Error>(first.session() == second.session())
    /// })?;
    /// assert!(is_equal?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        let Descriptor::Real(handle) = &*self.fd else { return Some(Session { boot: 0, mount: 0 }) };
        let boot = boot(&std::fs::read_to_string(BOOT_ID).ok()?)?;
        let found = call(|| rustix::fs::statx(handle.fd(), c"", AtFlags::EMPTY_PATH, UNIQUE));
        let mount = found.ok().filter(|found| found.stx_mask & UNIQUE.bits() != 0);
        Some(Session { boot, mount: mount.map_or(0, |found| found.stx_mnt_id) })
    }
}

/// Returns the number that a UUID stands for.
fn boot(uuid: &str) -> Option<u128> {
    u128::from_str_radix(&uuid.trim().replace('-', ""), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::boot;

    #[test]
    fn a_boot_is_told_by_its_uuid() {
        assert_eq!(boot("00000000-0000-0000-0000-0000000000ff\n"), Some(255));
        assert_eq!(boot(""), None);
        assert_eq!(boot("no uuid"), None);
    }
}
