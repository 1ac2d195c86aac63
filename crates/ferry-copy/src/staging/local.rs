//! Filesystems that one kernel alone writes to.

use ferry_io::Dir;

/// Filesystems that one kernel alone writes to, by magic number (statfs(2)): a lock there excludes every other run. In
/// this order: ext2 to ext4, XFS, btrfs, tmpfs, ramfs, overlayfs, F2FS, bcachefs, ZFS, UBIFS, JFS, NILFS, FAT, exFAT,
/// NTFS.
const LOCKS_REACH: [u64; 15] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x2405_1905,
    0x3153_464a,
    0x3434,
    0x4d44,
    0x2011_bab0,
    0x7366_746e,
];

/// Of these, those that store no time of the last change (FAT and exFAT): after a new mount nothing tells which files a run has
/// written.
const WITHOUT_CHANGE_TIME: [u64; 2] = [0x4d44, 0x2011_bab0];

/// Returns true if leftovers on a folder's filesystem can be told from the names of other runs.
#[must_use]
pub fn is_cleared(dir: &Dir) -> bool {
    dir.filesystem_magic().is_some_and(|magic| LOCKS_REACH.contains(&magic))
}

/// Returns true if runs are marked on a folder's filesystem.
pub(super) fn is_marked(dir: &Dir) -> bool {
    let is_marked = |magic| LOCKS_REACH.contains(&magic) && !WITHOUT_CHANGE_TIME.contains(&magic);
    dir.filesystem_magic().is_some_and(is_marked)
}
