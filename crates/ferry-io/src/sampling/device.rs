//! Requests of block devices: kinds, as the kernel writes them, and names of devices.

use std::path::Path;

/// Bits of the lower part of a device number within the kernel.
const MINOR_BITS: u32 = 20;

/// Kind of a block device's request.
///
/// ```
/// use ferry_io::sampling::DeviceKind;
///
/// assert_eq!(DeviceKind::ALL.map(DeviceKind::name), ["read", "write", "discard", "flush", "other"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeviceKind {
    /// Reads sectors.
    Read,
    /// Writes sectors.
    Write,
    /// Releases sectors, or erases them.
    Discard,
    /// Writes the device's own cache to its medium.
    Flush,
    /// Anything else, such as commands of a device and of its zones.
    Other,
}

impl DeviceKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Discard, Self::Flush, Self::Other];

    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Flush => "flush",
            Self::Other => "other",
        }
    }

    /// Reads the kernel's letters (`blk_fill_rwbs`). An `F` before another operation is a flush that precedes it.
    pub(super) fn of(letters: &[u8]) -> Self {
        match letters {
            [b'F', b'R', ..] | [b'R', ..] => Self::Read,
            [b'F', b'W', ..] | [b'W', ..] => Self::Write,
            [b'F', b'D', ..] | [b'D', ..] => Self::Discard,
            [b'F', ..] => Self::Flush,
            _ => Self::Other,
        }
    }

    /// Returns the kind with this index in [`DeviceKind::ALL`].
    pub(super) fn at(index: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(index).ok()?).copied()
    }
}

/// Returns a device's name, such as `nvme0n1`, or else its numbers.
pub(super) fn name(number: u32) -> String {
    let numbers = format!("{}:{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1));
    let link = std::fs::read_link(Path::new("/sys/dev/block").join(&numbers));
    let name = link.ok().and_then(|target| target.file_name()?.to_str().map(str::to_owned));
    name.unwrap_or(numbers)
}
