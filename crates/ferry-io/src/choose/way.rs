//! The ways to move bytes.

/// Calls that move bytes from one file to another.
///
/// ```
/// use ferry_io::Way;
///
/// assert_eq!(Way::ALL[0], Way::Kernel);
/// assert_eq!((Way::Mapped64.name(), Way::Mapped64.write_bytes()), ("mapped_64k", Some(65_536)));
/// assert_eq!(Way::Mapped64.calls(), "writes of 64 KiB from a mapping");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// copy_file_range(2).
    Kernel,
    /// write(2) of 128 KiB from a mapping of the source.
    Mapped128,
    /// write(2) of 64 KiB from a mapping of the source.
    Mapped64,
    /// write(2) of 256 KiB from a mapping of the source.
    Mapped256,
}

/// Recordings and races count the ways by these positions.
const _: () = {
    let mut at = 0;
    while at < Way::ALL.len() {
        assert!(Way::ALL[at] as usize == at);
        at += 1;
    }
};

impl Way {
    /// All ways in the order of their declaration; the first is the leader at the start.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Mapped128, Self::Mapped64, Self::Mapped256];

    /// Name in `--stats=json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "copy_file_range",
            Self::Mapped64 => "mapped_64k",
            Self::Mapped128 => "mapped_128k",
            Self::Mapped256 => "mapped_256k",
        }
    }

    /// Description in tables and messages.
    #[must_use]
    pub fn calls(self) -> String {
        self.write_bytes().map_or_else(
            || "copy_file_range".to_owned(),
            |size| format!("writes of {} KiB from a mapping", size >> 10),
        )
    }

    /// Bytes of one write from the mapping; `None` for the kernel's own way.
    #[must_use]
    pub fn write_bytes(self) -> Option<usize> {
        match self {
            Self::Kernel => None,
            Self::Mapped64 => Some(64 << 10),
            Self::Mapped128 => Some(128 << 10),
            Self::Mapped256 => Some(256 << 10),
        }
    }
}
