//! Identity of a file: device and inode number.

use ferry_io::Stat;

/// Device and inode number. The number of a removed file is given to a later one (`links.rs`).
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(stat: &Stat) -> Identity {
    (stat.device, stat.inode)
}
