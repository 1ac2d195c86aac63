//! The ways to move bytes.

/// Calls that move bytes from one file to another.
///
/// ```
/// use ferry_io::Way;
///
/// assert_eq!(Way::ALL[0], Way::Kernel);
/// assert_eq!((Way::Mapped64.name(), Way::Mapped64.write_bytes()), ("mapped_64k", Some(65_536)));
/// assert_eq!(Way::Mapped64.calls(), "writes of 64 KiB from a mapping");
/// assert_eq!(Way::Buffered256.calls(), "reads and writes of 256 KiB");
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
    /// read(2) and write(2) of 256 KiB.
    Buffered256,
    /// read(2) and write(2) of 64 KiB.
    Buffered64,
}

/// Kind of a way, with the bytes of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    Kernel,
    Mapped(usize),
    Buffered(usize),
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
    /// All ways in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Kernel, Self::Mapped128, Self::Mapped64, Self::Mapped256, Self::Buffered256, Self::Buffered64];

    /// Name in `--stats=json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "copy_file_range",
            Self::Mapped64 => "mapped_64k",
            Self::Mapped128 => "mapped_128k",
            Self::Mapped256 => "mapped_256k",
            Self::Buffered256 => "read_write_256k",
            Self::Buffered64 => "read_write_64k",
        }
    }

    /// Description in tables and messages.
    #[must_use]
    pub fn calls(self) -> String {
        match self.means() {
            Means::Kernel => "copy_file_range".to_owned(),
            Means::Mapped(size) => format!("writes of {} KiB from a mapping", size >> 10),
            Means::Buffered(size) => format!("reads and writes of {} KiB", size >> 10),
        }
    }

    /// Bytes of one write; `None` for the kernel's own way.
    #[must_use]
    pub fn write_bytes(self) -> Option<usize> {
        match self.means() {
            Means::Kernel => None,
            Means::Mapped(size) | Means::Buffered(size) => Some(size),
        }
    }

    pub(crate) fn means(self) -> Means {
        match self {
            Self::Kernel => Means::Kernel,
            Self::Mapped64 => Means::Mapped(64 << 10),
            Self::Mapped128 => Means::Mapped(128 << 10),
            Self::Mapped256 => Means::Mapped(256 << 10),
            Self::Buffered64 => Means::Buffered(64 << 10),
            Self::Buffered256 => Means::Buffered(256 << 10),
        }
    }
}
