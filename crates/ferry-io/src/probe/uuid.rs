//! The UUID of a file's filesystem, which does not depend on the mount point or the device's name.

use std::fmt::Write as _;

use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd};
use rustix::io::Errno;

/// `struct fsuuid2` (linux/fs.h).
#[repr(C)]
struct Uuid {
    size: u8,
    bytes: [u8; 16],
}

/// `struct btrfs_ioctl_fs_info_args` (linux/btrfs.h), up to the UUID.
#[repr(C)]
struct BtrfsInfo {
    greatest_device: u64,
    devices: u64,
    uuid: [u8; 16],
    rest: [u8; 992],
}

const FS_IOC_GETFSUUID: libc::c_ulong = 0x8011_1500;
const BTRFS_IOC_FS_INFO: libc::c_ulong = 0x8400_941f;

/// Returns the UUID in its usual notation, by FS_IOC_GETFSUUID (Linux 6.9), or for btrfs by BTRFS_IOC_FS_INFO.
///
/// # Errors
/// ENOTTY if the filesystem or the kernel has none.
pub fn filesystem_uuid(file: impl AsFd) -> Result<String, Errno> {
    let file = file.as_fd();
    of_any(file).or_else(|_| of_btrfs(file)).map(|bytes| text(&bytes))
}

fn of_any(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut found = Uuid { size: 0, bytes: [0; 16] };
    // SAFETY: the structure has the kernel's layout and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETFSUUID, &raw mut found) };
    answered(done)?;
    let used = found.bytes.get(..usize::from(found.size)).ok_or(Errno::NOTTY)?;
    told(used)
}

fn of_btrfs(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut found = BtrfsInfo { greatest_device: 0, devices: 0, uuid: [0; 16], rest: [0; 992] };
    // SAFETY: the structure has the kernel's layout and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), BTRFS_IOC_FS_INFO, &raw mut found) };
    answered(done)?;
    told(&found.uuid)
}

fn answered(done: libc::c_int) -> Result<(), Errno> {
    let last = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if done == 0 { Ok(()) } else { Err(last()) }
}

/// Rejects an empty or zero UUID, which identifies no filesystem.
fn told(bytes: &[u8]) -> Result<Vec<u8>, Errno> {
    if bytes.iter().any(|byte| *byte != 0) { Ok(bytes.to_vec()) } else { Err(Errno::NOTTY) }
}

fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a string can't fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::io::Errno;

    use super::{filesystem_uuid, text, told};

    #[test]
    fn a_uuid_is_written_in_five_groups() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(text(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(text(&bytes[..8]), "00010203-0405-0607");
    }

    #[test]
    fn zeros_are_no_uuid() {
        assert_eq!(told(&[0; 16]), Err(Errno::NOTTY));
        assert_eq!(told(&[]), Err(Errno::NOTTY));
    }

    #[test]
    fn all_files_of_a_filesystem_have_its_uuid_and_proc_has_none() {
        let of = |path: &str| filesystem_uuid(File::open(path).unwrap());
        assert_eq!(of("/proc/self/stat"), Err(Errno::NOTTY));
        assert_eq!(of("/proc"), Err(Errno::NOTTY));
        let source = env!("CARGO_MANIFEST_DIR");
        assert_eq!(of(source), of(&format!("{source}/Cargo.toml")));
    }
}
