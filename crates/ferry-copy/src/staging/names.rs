//! Hidden names: those of unfinished files, of parts and of their journals, of entries that were moved aside, and of marks.

use std::sync::atomic::{AtomicU64, Ordering};

use ferry_io::{FileKind, Name, Stat};

/// Start of a hidden name.
const PREFIX: &str = ".ferry-";
/// Ends of the names of parts and of their journals.
const PART: &str = ".part";
const JOURNAL: &str = ".journal";
/// Start of the name of an entry that was moved aside.
const ASIDE: &str = ".ferry-aside-";
/// End of the name of a mark.
const MARK: &str = ".inplace";
/// Maximum size of a name.
const MOST: usize = 255;
/// Hexadecimal digits of the hash of a name.
const DIGITS: usize = 32;

/// Counter in the next hidden name, shared by all runs of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns a hidden name for this folder that this process has not used before.
pub(crate) fn next_hidden_name(folder: u64) -> Name {
    hidden_name(folder, std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn hidden_name(folder: u64, process: u32, number: u64) -> Name {
    let name = format!("{PREFIX}{folder:x}-{process:x}-{number:x}");
    Name::new(name.as_bytes()).unwrap_or_else(|| unreachable!("hexadecimal digits are a name"))
}

/// Returns true if [`hidden_name`] gives this name in this folder.
pub(super) fn is_hidden_name(name: &Name, folder: u64) -> bool {
    let number = |part: &str| {
        let is_plain = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let value = u64::from_str_radix(part, 16).ok().filter(|_| is_plain)?;
        // In its shortest form only.
        (format!("{value:x}") == part).then_some(value)
    };
    let text = std::str::from_utf8(name.as_bytes()).ok();
    let Some(rest) = text.and_then(|text| text.strip_prefix(PREFIX)) else { return false };
    let parts: Vec<_> = rest.split('-').map(number).collect();
    matches!(parts[..], [Some(inode), Some(_), Some(_)] if inode == folder)
}

/// Returns the names of a file's part and of its journal in this folder.
pub(super) fn part_names(folder: u64, name: &Name) -> (Name, Name) {
    let hash = hash_of(name);
    let of = |end| {
        let text = format!("{PREFIX}{folder:x}-{hash}{end}");
        Name::new(text.as_bytes()).unwrap_or_else(|| unreachable!("digits and letters are a name"))
    };
    (of(PART), of(JOURNAL))
}

/// Returns true if [`part_names`] can give this name in this folder.
pub(super) fn is_part_name(name: &Name, folder: u64) -> bool {
    let Ok(text) = std::str::from_utf8(name.as_bytes()) else { return false };
    let start = format!("{PREFIX}{folder:x}-");
    let hash = text.strip_prefix(&start);
    let hash = hash.and_then(|rest| rest.strip_suffix(PART).or_else(|| rest.strip_suffix(JOURNAL)));
    hash.is_some_and(is_hash)
}

/// Returns the name of the part that a journal belongs to; `None` for any other name.
pub(super) fn part_of(journal: &Name) -> Option<Name> {
    with_other_end(journal, JOURNAL, PART)
}

/// Returns the name of a part's journal; `None` for any other name.
pub(super) fn journal_of(part: &Name) -> Option<Name> {
    with_other_end(part, PART, JOURNAL)
}

fn with_other_end(name: &Name, end: &str, other: &str) -> Option<Name> {
    let start = name.as_bytes().strip_suffix(end.as_bytes())?;
    Name::new(&[start, other.as_bytes()].concat())
}

/// A mark of a file that a run overwrites in place. Until it is removed, the file may be incomplete, whatever its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// First digits of the hash of the file's name.
    hash: String,
    /// The file's inode number.
    pub inode: u64,
}

impl Mark {
    /// Returns the mark that a name in the folder with this inode number stands for; `None` for other names.
    #[must_use]
    pub fn of(name: &Name, folder: u64) -> Option<Self> {
        let text = std::str::from_utf8(name.as_bytes()).ok()?;
        let rest = text.strip_prefix(&format!("{PREFIX}{folder:x}-"))?.strip_suffix(MARK)?;
        let (hash, inode) = rest.split_once('-')?;
        let mark = Self { hash: hash.to_owned(), inode: u64::from_str_radix(inode, 16).ok()? };
        (is_hash(hash) && mark.name(folder) == *name).then_some(mark)
    }

    /// Returns the mark of a file.
    pub(super) fn new(name: &Name, inode: u64) -> Self {
        Self { hash: hash_of(name), inode }
    }

    /// Returns the marks of files with this name.
    pub fn all_of<'a>(marks: &'a [Self], name: &Name) -> impl Iterator<Item = &'a Self> {
        let hash = (!marks.is_empty()).then(|| hash_of(name));
        marks.iter().filter(move |mark| hash.as_ref() == Some(&mark.hash))
    }

    /// Returns true if it is the mark of a file with this name.
    #[must_use]
    pub fn is_of(&self, name: &Name) -> bool {
        self.hash == hash_of(name)
    }

    /// Returns its own name.
    pub(super) fn name(&self, folder: u64) -> Name {
        let text = format!("{PREFIX}{folder:x}-{}-{:x}{MARK}", self.hash, self.inode);
        Name::new(text.as_bytes()).unwrap_or_else(|| unreachable!("digits and letters are a name"))
    }
}

/// Returns the first digits of the hash of a name.
fn hash_of(name: &Name) -> String {
    blake3::hash(name.as_bytes()).to_hex()[..DIGITS].to_owned()
}

/// Returns true for what [`hash_of`] can give.
fn is_hash(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// An entry that was moved aside, as its name describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aside {
    /// Key of a file that the run has made ([`made_key`]); 0 if it has made none.
    pub(super) made: u64,
    /// Key of the entry that the run was to take away ([`seen_key`]); 0 if there is none.
    pub(super) seen: u64,
    /// The name that it had, or was to get.
    pub(crate) name: Name,
}

impl Aside {
    /// Returns true if an entry is the file that the run had made.
    pub(crate) fn is_made(&self, found: &Stat) -> bool {
        found.kind != FileKind::Directory && self.made == made_key(found)
    }

    /// Returns true if an entry is the one that was to lose its name, and nothing was written to it since.
    pub(crate) fn is_seen(&self, found: &Stat) -> bool {
        // It may have had other names, and so another time.
        [1, 2].into_iter().any(|links| self.seen == seen_key(&Stat { links, ..*found }))
    }
}

/// Returns the key by which a file that a run has made is recognised in its folder.
pub(super) fn made_key(made: &Stat) -> u64 {
    key(&format!("made {}", made.inode))
}

/// Returns the key by which an entry that a run was to take away is recognised, unless it was written to since. The run
/// may set the time of a file with several names.
pub(super) fn seen_key(seen: &Stat) -> u64 {
    let modified = seen.times.modified;
    let version = match seen.kind {
        // Emptying a folder changes the other facts.
        FileKind::Directory => String::new(),
        FileKind::Regular if seen.links > 1 => seen.size.to_string(),
        FileKind::Regular
        | FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice => format!("{} {}.{}", seen.size, modified.seconds, modified.nanoseconds),
    };
    key(&format!("seen {} {:?} {version}", seen.inode, seen.kind))
}

/// Returns a key of a text, never 0.
fn key(text: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(text.as_bytes()).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h]).max(1)
}

/// Returns a name for an entry that is moved aside in this folder. It describes nothing if there is no description, or
/// if it would be too long.
pub(super) fn aside_name(folder: u64, process: u32, number: u64, aside: Option<&Aside>) -> Name {
    let start = format!("{ASIDE}{folder:x}-{process:x}-{number:x}");
    let full = aside.map(|aside| {
        let facts = format!("-{:x}-{:x}-", aside.made, aside.seen);
        [start.as_bytes(), facts.as_bytes(), aside.name.as_bytes()].concat()
    });
    let text = full.filter(|full| full.len() <= MOST).unwrap_or_else(|| start.into_bytes());
    Name::new(&text).unwrap_or_else(|| unreachable!("a name with a start is a name"))
}

/// Returns the description in a name that [`aside_name`] gives in this folder; `None` for other names, and for those that
/// describe nothing.
pub(crate) fn aside_of(name: &Name, folder: u64) -> Option<Aside> {
    let rest = name.as_bytes().strip_prefix(ASIDE.as_bytes())?;
    let mut fields = rest.splitn(6, |&byte| byte == b'-');
    let mut number = || u64::from_str_radix(std::str::from_utf8(fields.next()?).ok()?, 16).ok();
    let (found, _process, _number, made, seen) = (number()?, number()?, number()?, number()?, number()?);
    let name = Name::new(fields.next()?)?;
    (found == folder).then_some(Aside { made, seen, name })
}

#[cfg(test)]
mod tests;
