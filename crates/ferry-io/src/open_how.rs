//! Ways of opening a file.

use rustix::fs::OFlags;

/// The way in which a file is opened. The default is for reading.
///
/// ```
/// use ferry_io::{Error, Name, OpenHow, Options, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     # let temporary = tempfile::tempdir().expect("a folder");
///     let name = Name::new(b"file").expect("one component of a path");
///     let folder = io.open_dir(temporary.path())?;
///     let create = OpenHow::create(0o644).also_reading();
///     folder.open(&name, create).await?;
///     assert!(folder.open(&name, create).await.is_err(), "the name is taken");
///     // The same file once more, however it was made.
///     folder.open(&name, create.again()).await?;
///     folder.open(&name, OpenHow::create_through(0o644)).await?;
///     folder.open(&name, OpenHow::write().truncated()).await?;
///     folder.open(&name, OpenHow::read().following()).await?;
///     assert!(create.writes() && !OpenHow::read().waiting().direct().writes());
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHow {
    pub(crate) flags: OFlags,
    pub(crate) mode: u32,
    pub(crate) follow: bool,
}

impl OpenHow {
    /// For reading (O_RDONLY). Never waits for a FIFO's writer or a terminal's line (O_NONBLOCK, O_NOCTTY).
    #[must_use]
    pub fn read() -> Self {
        Self { flags: OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, mode: 0, follow: false }
    }

    /// For writing an existing file.
    #[must_use]
    pub fn write() -> Self {
        Self { flags: OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY, mode: 0, follow: false }
    }

    /// A new file with `mode` less the umask; EEXIST if the name is taken (O_CREAT, O_EXCL).
    #[must_use]
    pub fn create(mode: u32) -> Self {
        Self { flags: OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode, follow: false }
    }

    /// The file that the name leads to, created with `mode` less the umask if there is none (O_CREAT).
    #[must_use]
    pub fn create_through(mode: u32) -> Self {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
        Self { flags, mode, follow: true }
    }

    /// Also truncates the file (O_TRUNC).
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.flags |= OFlags::TRUNC;
        self
    }

    /// Follows the name if it is a symbolic link.
    #[must_use]
    pub fn following(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Waits for the other end of a FIFO (no O_NONBLOCK).
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.flags -= OFlags::NONBLOCK;
        self
    }

    /// Also for reading, if it is for writing (O_RDWR).
    #[must_use]
    pub fn also_reading(mut self) -> Self {
        if self.writes() {
            self.flags = (self.flags - OFlags::ACCMODE) | OFlags::RDWR;
        }
        self
    }

    /// Returns true if it opens for writing.
    #[must_use]
    pub fn writes(self) -> bool {
        self.flags.intersects(OFlags::WRONLY | OFlags::RDWR)
    }

    /// For opening the same, existing file again.
    #[must_use]
    pub fn again(self) -> Self {
        let access = if self.writes() { OFlags::RDWR } else { OFlags::RDONLY };
        Self { flags: access | OFlags::NONBLOCK | OFlags::NOCTTY, mode: 0, follow: self.follow }
    }

    /// Past the page cache (O_DIRECT); blocks, offsets and sizes must be aligned as the device requires.
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.flags |= OFlags::DIRECT;
        self
    }
}
