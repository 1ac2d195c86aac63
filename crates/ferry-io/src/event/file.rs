//! A recording's file: a mark, a version, and chunks; the first says what the numbers in the others mean, the last one
//! what there should be.
//!
//! A file without its [`Kind::End`] is not whole: whoever wrote it did not come to its end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// What a recording begins with.
pub const MARK: [u8; 8] = *b"FERRYTRC";
/// The version that is written, and the newest that is understood.
pub const VERSION: u32 = 2;
/// Bytes before the first chunk: the mark and the version.
const PREAMBLE: usize = 12;
/// Bytes of a chunk before its own.
pub const CHUNK_HEADER: usize = 32;
/// A chunk is never larger.
pub const LARGEST_CHUNK: u32 = 16 << 20;

/// What a chunk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Fields`]: what was recorded, and the names of what events give by number. The first chunk.
    Header,
    /// Events of one thread of the program, in the order in which it wrote them.
    Events,
    /// What the kernel did, as [`crate::sampling`] has it.
    Kernel,
    /// [`Fields`]: what is needed to read that, once, after all of it.
    KernelEnd,
    /// [`Fields`]: totals, threads and counters. The last chunk.
    End,
}

impl Kind {
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

/// What stands before a chunk's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// What it holds.
    pub kind: Kind,
    /// The number of the thread that it is about, in the end's list; 0 where it is about none.
    pub thread: u32,
    /// Events in it.
    pub events: u32,
    /// Events of the same thread that were lost since its last chunk.
    pub lost: u64,
    /// What the first event's time counts from, in nanoseconds.
    pub base: u64,
}

impl Chunk {
    /// One of no thread and without events.
    #[must_use]
    pub fn plain(kind: Kind) -> Self {
        Self { kind, thread: 0, events: 0, lost: 0, base: 0 }
    }

    /// As it stands before so many bytes.
    pub(super) fn to_bytes(self, size: u32) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        for (at, number) in [self.kind.number(), size, self.thread, self.events].into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..24].copy_from_slice(&self.lost.to_le_bytes());
        bytes[24..].copy_from_slice(&self.base.to_le_bytes());
        bytes
    }

    /// The chunk and how many bytes it has.
    fn of_bytes(bytes: &[u8; CHUNK_HEADER]) -> Result<(Self, u32), Broken> {
        let short = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 4)) << u32::BITS;
        let kind = Kind::of(short(0)).ok_or(Broken::Damaged)?;
        let size = short(4);
        if size > LARGEST_CHUNK {
            return Err(Broken::Damaged);
        }
        Ok((Self { kind, thread: short(8), events: short(12), lost: long(16), base: long(24) }, size))
    }
}

/// Named lists of values, as the first and the last chunk have them.
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

    /// The list of that name; empty if there is none.
    #[must_use]
    pub fn list(&self, name: &str) -> &[Vec<u8>] {
        self.0.iter().find(|(known, _)| known == name).map_or(&[], |(_, values)| values)
    }

    /// The list of that name, as text; bytes that are not UTF-8 are replaced.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = String> {
        self.list(name).iter().map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The first value of that name, as text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.texts(name).next()
    }

    /// The first value of that name, if it is a number.
    #[must_use]
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.text(name)?.parse().ok()
    }

    /// As a chunk has them.
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

    /// From a chunk's bytes; `None` if they are of no fields.
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

/// Why a recording can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Not a byte in it.
    #[error("it is empty")]
    Empty,
    /// Something else.
    #[error("it is no recording")]
    Foreign,
    /// Written by a later program, or an earlier one.
    #[error("it is of version {0}, and only version {VERSION} is understood here")]
    Version(u32),
    /// It ends before its end.
    #[error("it is truncated")]
    Truncated,
    /// What is in it makes no sense.
    #[error("it is damaged")]
    Damaged,
    /// An operation, a route or a reason that this program does not have.
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
    /// Of something that begins as a recording does.
    ///
    /// # Errors
    /// If it does not, or is of a later version.
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

    /// The next chunk.
    ///
    /// # Errors
    /// If there is none, or it makes no sense.
    pub fn next_chunk(&mut self) -> Result<(Chunk, &[u8]), Broken> {
        let mut header = [0; CHUNK_HEADER];
        self.source.read_exact(&mut header)?;
        let (chunk, size) = Chunk::of_bytes(&header)?;
        self.bytes.clear();
        // Not allocated before it is there.
        let read = self.source.by_ref().take(size.into()).read_to_end(&mut self.bytes)?;
        if read as u64 != u64::from(size) {
            return Err(Broken::Truncated);
        }
        Ok((chunk, &self.bytes))
    }

    /// Whether nothing follows.
    ///
    /// # Errors
    /// If that can't be read.
    pub fn is_at_end(&mut self) -> Result<bool, Broken> {
        let mut byte = [0];
        Ok(self.source.read(&mut byte)? == 0)
    }
}

/// Writes a recording.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Where the last whole chunk begins and ends; the end may have to take its place.
    last: (u64, u64),
}

impl Writer {
    /// To a file that is empty.
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

    /// What was written to.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Adds a chunk; what follows `CHUNK_HEADER` bytes, which are filled in, is its own.
    ///
    /// # Errors
    /// Those of write(2); what was written of it is taken away again.
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

    /// The same of fields.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub fn add_fields(&mut self, kind: Kind, fields: &Fields) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK_HEADER];
        bytes.extend(fields.to_bytes());
        self.add(Chunk::plain(kind), &mut bytes)
    }

    /// Takes the last chunk away, so that its place can be another's.
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

/// Refuses what would pass the limit of a file's size (RLIMIT_FSIZE): writing it would end the process by a signal.
fn check_limit(size: u64) -> Result<(), Errno> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if size > limit => Err(Errno::FBIG),
        _room => Ok(()),
    }
}

/// Whether a recording may take the place of this file: it is one, or empty.
pub(super) fn is_replaceable(file: &mut File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut mark = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut mark)?;
    Ok(mark.is_empty() || mark == MARK)
}
