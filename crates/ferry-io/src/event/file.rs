//! The file format of a recording: a magic number, a version, and chunks. The first chunk explains the numbers in the
//! others; the last one lists the expected totals.
//!
//! A file without its [`ChunkKind::End`] chunk is incomplete: its writer did not finish.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Magic number at the start of a recording.
pub const MARK: [u8; 8] = *b"FERRYTRC";
/// Version that is written, and the only one that is read.
pub const VERSION: u32 = 4;
/// Bytes before the first chunk: magic number and version.
const PREAMBLE: usize = 12;
/// Size of a chunk's header in bytes.
pub const CHUNK_HEADER: usize = 32;
/// Largest size of a chunk in bytes.
pub const LARGEST_CHUNK: u32 = 16 << 20;

/// Content of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// [`Fields`]: the recorded run, and the names that events refer to by number. The first chunk.
    Header,
    /// Events of one thread of the program, in order.
    Events,
    /// Events of the kernel, as in [`crate::sampling`].
    Kernel,
    /// [`Fields`]: names for the kernel's events, after the last of them.
    KernelEnd,
    /// [`Fields`]: totals, threads and counters. The last chunk.
    End,
}

impl ChunkKind {
    fn number(self) -> u32 {
        match self {
            Self::Header => 1,
            Self::Events => 2,
            Self::Kernel => 3,
            Self::End => 4,
            Self::KernelEnd => 5,
        }
    }

    fn of(number: u32) -> Option<Self> {
        let all = [Self::Header, Self::Events, Self::Kernel, Self::KernelEnd, Self::End];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

/// Header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Content of the chunk.
    pub kind: ChunkKind,
    /// Number of the thread in the end's list, or 0.
    pub thread: u32,
    /// Number of events.
    pub events: u32,
    /// Events of the same thread lost since its last chunk.
    pub lost: u64,
    /// Time that the first event's time is relative to, in nanoseconds.
    pub base: u64,
}

impl Chunk {
    /// A chunk of no thread, without events.
    #[must_use]
    pub fn plain(kind: ChunkKind) -> Self {
        Self { kind, thread: 0, events: 0, lost: 0, base: 0 }
    }

    /// Encodes the header of a chunk of `size` bytes.
    pub(super) fn to_bytes(self, size: u32) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        for (at, number) in [self.kind.number(), size, self.thread, self.events].into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..24].copy_from_slice(&self.lost.to_le_bytes());
        bytes[24..].copy_from_slice(&self.base.to_le_bytes());
        bytes
    }

    /// Decodes a header into the chunk and its size.
    fn of_bytes(bytes: &[u8; CHUNK_HEADER]) -> Result<(Self, u32), Broken> {
        let short = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 4)) << u32::BITS;
        let kind = ChunkKind::of(short(0)).ok_or(Broken::Damaged)?;
        let size = short(4);
        if size > LARGEST_CHUNK {
            return Err(Broken::Damaged);
        }
        Ok((Self { kind, thread: short(8), events: short(12), lost: long(16), base: long(24) }, size))
    }
}

/// Named lists of values: content of the first and last chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Vec<Vec<u8>>)>);

impl Fields {
    /// Adds a list.
    pub fn add<V: AsRef<[u8]>>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        let values = values.into_iter().map(|value| value.as_ref().to_vec()).collect();
        self.0.push((name.to_owned(), values));
    }

    /// Adds a single value.
    pub fn add_one(&mut self, name: &str, value: impl ToString) {
        self.add(name, [value.to_string()]);
    }

    /// Returns the list of that name, or an empty one.
    #[must_use]
    pub fn list(&self, name: &str) -> &[Vec<u8>] {
        self.0.iter().find(|(known, _)| known == name).map_or(&[], |(_, values)| values)
    }

    /// Returns the list of that name as text; bytes that are not UTF-8 are replaced.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = String> {
        self.list(name).iter().map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Returns the first value of that name as text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.texts(name).next()
    }

    /// Returns the first value of that name, if it is a number.
    #[must_use]
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.text(name)?.parse().ok()
    }

    /// Encodes the fields.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let size = |size: usize| u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
        for (name, values) in &self.0 {
            bytes.extend(size(name.len()));
            bytes.extend(name.as_bytes());
            bytes.extend(size(values.len()));
            for value in values {
                bytes.extend(size(value.len()));
                bytes.extend(value);
            }
        }
        bytes
    }

    /// Decodes fields; `None` if the bytes are malformed.
    #[must_use]
    pub fn of_bytes(mut bytes: &[u8]) -> Option<Self> {
        fn size(bytes: &mut &[u8]) -> Option<usize> {
            let (number, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            usize::try_from(u32::from_le_bytes(*number)).ok()
        }
        fn text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
            let size = size(bytes)?;
            let (text, rest) = bytes.split_at_checked(size)?;
            *bytes = rest;
            Some(text.to_vec())
        }
        let mut fields = Self::default();
        while !bytes.is_empty() {
            let name = String::from_utf8(text(&mut bytes)?).ok()?;
            let mut values = Vec::new();
            for _ in 0..size(&mut bytes)? {
                values.push(text(&mut bytes)?);
            }
            fields.0.push((name, values));
        }
        Some(fields)
    }
}

/// Reason why a recording can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The file is empty.
    #[error("it is empty")]
    Empty,
    /// The file is no recording.
    #[error("it is no recording")]
    Foreign,
    /// Another version of the program wrote the file.
    #[error("it is of version {0}, and only version {VERSION} is understood here")]
    Version(u32),
    /// The file ends early.
    #[error("it is truncated")]
    Truncated,
    /// The content is malformed.
    #[error("it is damaged")]
    Damaged,
    /// This program lacks an operation, a route, a reason or a way that the recording names.
    #[error("it names {0:?}, which is not known here: another version of ferry recorded it")]
    Unknown(String),
    /// Reading failed.
    #[error("{0}")]
    Unreadable(crate::Cause),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::Truncated;
        }
        Self::Unreadable(crate::Cause::Errno(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }
}

/// Reads a recording chunk by chunk.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    bytes: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Begins to read a source; checks magic number and version.
    ///
    /// # Errors
    /// If one of them is wrong.
    pub fn new(mut source: R) -> Result<Self, Broken> {
        let mut preamble = Vec::with_capacity(PREAMBLE);
        source.by_ref().take(PREAMBLE as u64).read_to_end(&mut preamble)?;
        if preamble.is_empty() {
            return Err(Broken::Empty);
        }
        let mark = &preamble[..preamble.len().min(MARK.len())];
        if !MARK.starts_with(mark) {
            return Err(Broken::Foreign);
        }
        let Some((_, version)) = preamble.split_last_chunk() else { return Err(Broken::Truncated) };
        if preamble.len() < PREAMBLE {
            return Err(Broken::Truncated);
        }
        match u32::from_le_bytes(*version) {
            0 => Err(Broken::Damaged),
            VERSION => Ok(Self { source, bytes: Vec::new() }),
            other => Err(Broken::Version(other)),
        }
    }

    /// Returns the next chunk.
    ///
    /// # Errors
    /// If there is none, or it is malformed.
    pub fn next_chunk(&mut self) -> Result<(Chunk, &[u8]), Broken> {
        let mut header = [0; CHUNK_HEADER];
        self.source.read_exact(&mut header)?;
        let (chunk, size) = Chunk::of_bytes(&header)?;
        self.bytes.clear();
        // The header's size is not trusted: memory grows only as bytes arrive.
        let read = self.source.by_ref().take(size.into()).read_to_end(&mut self.bytes)?;
        if read as u64 != u64::from(size) {
            return Err(Broken::Truncated);
        }
        Ok((chunk, &self.bytes))
    }

    /// Returns true if no byte follows.
    ///
    /// # Errors
    /// If reading fails.
    pub fn is_at_end(&mut self) -> Result<bool, Broken> {
        let mut byte = [0];
        Ok(self.source.read(&mut byte)? == 0)
    }
}

/// Writes a recording.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Start and end of the last complete chunk, which the end may have to replace.
    last: (u64, u64),
}

impl Writer {
    /// Begins a recording in an empty file.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn new(mut file: File) -> io::Result<Self> {
        let mut preamble = MARK.to_vec();
        preamble.extend(VERSION.to_le_bytes());
        check_limit(PREAMBLE as u64)?;
        file.write_all(&preamble)?;
        Ok(Self { file, last: (PREAMBLE as u64, PREAMBLE as u64) })
    }

    /// Returns the file.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Adds a chunk whose content follows `CHUNK_HEADER` bytes, which are filled in.
    ///
    /// # Errors
    /// Those of write(2); a partly written chunk is removed.
    pub fn add(&mut self, chunk: Chunk, bytes: &mut [u8]) -> io::Result<()> {
        let size = u32::try_from(bytes.len() - CHUNK_HEADER).unwrap_or(u32::MAX);
        bytes[..CHUNK_HEADER].copy_from_slice(&chunk.to_bytes(size));
        let begins = self.last.1;
        let ends = begins + bytes.len() as u64;
        check_limit(ends)?;
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.last = (begins, ends);
                Ok(())
            }
            Err(error) => {
                self.go_back_to(begins)?;
                Err(error)
            }
        }
    }

    /// Adds a chunk of fields.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub fn add_fields(&mut self, kind: ChunkKind, fields: &Fields) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK_HEADER];
        bytes.extend(fields.to_bytes());
        self.add(Chunk::plain(kind), &mut bytes)
    }

    /// Removes the last chunk, to make room for another.
    ///
    /// # Errors
    /// Those of lseek(2) and ftruncate(2).
    pub fn take_back(&mut self) -> io::Result<()> {
        self.last.1 = self.last.0;
        self.go_back_to(self.last.0)
    }

    fn go_back_to(&mut self, at: u64) -> io::Result<()> {
        self.file.set_len(at)?;
        self.file.seek(SeekFrom::Start(at)).map(drop)
    }
}

/// Fails for a size beyond the limit (RLIMIT_FSIZE): writing there would end the process by SIGXFSZ.
fn check_limit(size: u64) -> Result<(), Errno> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if size > limit => Err(Errno::FBIG),
        _room => Ok(()),
    }
}

/// Returns true for a recording or an empty file, which a new recording may replace.
pub(super) fn is_replaceable(file: &mut File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut mark = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut mark)?;
    Ok(mark.is_empty() || mark == MARK)
}
