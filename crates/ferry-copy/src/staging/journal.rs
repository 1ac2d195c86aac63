//! The journal of a part: whose copy it is, and the hash of each range that is complete.
//!
//! It is text. The first line names the source and the part as they were, and the size of a range. Each further line has
//! the number of a range and its hash. A run that is killed may leave the last line incomplete: such a line does not
//! count. Behind any other line that is wrong, nothing counts.

use blake3::Hash;
use ferry_io::Stat;

/// Name and version of the format.
const MAGIC: &str = "ferry-journal 1";
/// Size of a range in bytes, unless there would be more than [`MOST`] of them.
const RANGE: u64 = 32 << 20;
/// Maximum number of ranges: of files beyond 2 TiB, ranges are larger.
pub(super) const MOST: u64 = 1 << 16;
/// Reason for which a damaged journal is not used.
pub(super) const DAMAGED: &str = "its journal is damaged";
/// Size of the line of a range.
const LINE: usize = 8 + 1 + 64 + 1;

/// Maximum size of a journal that is read. Its first line is shorter than 1 KiB.
pub(super) const LARGEST: u64 = 1024 + MOST * LINE as u64;

/// Why a journal is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Useless {
    /// The part has none.
    Missing,
    /// It is none, or not readable.
    Damaged,
    /// It was made for another source, or its source has changed.
    OtherSource,
    /// It was made for another part.
    OtherPart,
}

/// The ranges of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) hashes: Vec<Hash>,
    /// Set if further lines do not count, because they are wrong.
    pub(super) is_damaged: bool,
}

impl Useless {
    /// Returns the reason, for a message.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Missing => "its journal is missing",
            Self::Damaged => DAMAGED,
            Self::OtherSource => "the source is another file, or has changed",
            Self::OtherPart => "its journal belongs to another file",
        }
    }
}

/// Returns the size of a range of a file of this size.
pub(super) fn range_size(size: u64) -> u64 {
    let mut range = RANGE;
    while size.div_ceil(range) > MOST {
        range *= 2;
    }
    range
}

/// Returns the first line, of a copy of `source` in `part`.
pub(super) fn header(source: &Stat, part: &Stat) -> String {
    let (modified, changed) = (source.times.modified, source.changed);
    format!(
        "{MAGIC} source {} {} {}.{:09} {}.{:09} part {} range {}\n",
        source.inode,
        source.size,
        modified.seconds,
        modified.nanoseconds,
        changed.seconds,
        changed.nanoseconds,
        part.inode,
        range_size(source.size)
    )
}

/// Returns the line of a range.
pub(super) fn line(index: u64, hash: &Hash) -> String {
    format!("{index:08x} {}\n", hash.to_hex())
}

/// Returns the size of a journal with so many ranges.
pub(super) fn size(header: &str, ranges: u64) -> u64 {
    header.len() as u64 + ranges * LINE as u64
}

/// Reads the hashes of a journal with this header, up to the first line that is wrong or incomplete.
pub(super) fn parse(bytes: &[u8], header: &str) -> Result<Noted, Useless> {
    let Some(lines) = bytes.strip_prefix(header.as_bytes()) else { return Err(useless(bytes, header)) };
    let hash = |(index, line): (usize, &[u8])| {
        let text = std::str::from_utf8(line).ok()?;
        let (number, hash) = text.strip_suffix('\n')?.split_once(' ')?;
        (number == format!("{index:08x}")).then_some(())?;
        Hash::from_hex(hash).ok()
    };
    let hashes: Vec<_> = lines.chunks(LINE).enumerate().map_while(hash).collect();
    let is_damaged = lines.len() - hashes.len() * LINE >= LINE;
    Ok(Noted { hashes, is_damaged })
}

/// Returns the inode number of the part that a journal belongs to, whatever its source.
pub(super) fn part_inode(bytes: &[u8]) -> Option<u64> {
    let first = bytes.split_inclusive(|&byte| byte == b'\n').next()?;
    let (_, part) = sides(std::str::from_utf8(first).ok()?)?;
    part.split(' ').next()?.parse().ok()
}

/// Splits a first line into its descriptions of the source and of the part.
fn sides(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix(MAGIC)?.strip_suffix('\n')?.split_once(" part ")
}

/// Returns the reason why a journal does not begin with a header.
fn useless(bytes: &[u8], header: &str) -> Useless {
    let first = bytes.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
    let Ok(text) = std::str::from_utf8(first) else { return Useless::Damaged };
    match (sides(text), sides(header)) {
        (Some((found, _)), Some((source, _))) if found != source => Useless::OtherSource,
        (Some(_), Some(_)) => Useless::OtherPart,
        (None, _) | (_, None) => Useless::Damaged,
    }
}

#[cfg(test)]
mod tests;
