//! The directory of lists: what the steps tell each other.
//!
//! | file | content |
//! |---|---|
//! | `split.json` | the trees and the number of parts; written last |
//! | `directories` | names of the directories that the target lacks |
//! | `part-K` | names of part K, each followed by a NUL byte |
//! | `ranges-K` | ranges of large files of part K, a line of JSON each |
//! | `opened` | made by the opening step: the inode number of the target |
//! | `copied-K`, `done-K` | made when all ranges of part K are copied, and when the part has succeeded |

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use ferry_sync::plan::PathText;
use serde::{Deserialize, Serialize};

use crate::complete_file::CompleteFile;
use crate::output::describe;
use crate::quote::quote;

/// Version of the layout.
const SCHEMA: u32 = 2;

/// Bytes of a list that are written at once.
const PIECE: usize = 16 << 10;

/// Ranges begin at multiples of this. Machines that write to one page of a network filesystem would lose bytes.
pub(super) const ALIGNMENT: u64 = 1 << 20;

/// The trees and the number of parts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    schema: u32,
    made_by: String,
    /// The source, as an absolute path.
    pub(super) source: PathText,
    /// The target, as an absolute path.
    pub(super) target: PathText,
    /// Inode number of the source.
    pub(super) source_inode: u64,
    pub(super) parts: u32,
}

/// A range of a large file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// Path below the trees.
    pub(super) path: PathText,
    /// Name of the file that gets the ranges, in the same directory of the target.
    pub(super) hidden: String,
    /// Inode number, size, and time of the last change of the source.
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) changed: (i64, u32),
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Beginning of the names of files that get ranges.
pub(super) const HIDDEN: &str = ".ferry-plan-";

impl Range {
    /// Returns true if the range lies within its file, and both names within the trees.
    fn is_possible(&self) -> bool {
        let path = &self.path.0;
        let is_within = path.components().all(|component| matches!(component, Component::Normal(_)));
        let is_hidden = self.hidden.starts_with(HIDDEN) && !self.hidden.contains(['/', '\0']);
        let is_aligned = |offset: u64| offset.is_multiple_of(ALIGNMENT);
        let is_range = self.start < self.end
            && self.end <= self.size
            && is_aligned(self.start)
            && (self.end == self.size || is_aligned(self.end));
        is_within && path.file_name().is_some() && is_hidden && is_range
    }
}

/// A directory of lists.
#[derive(Debug)]
pub(super) struct Lists {
    folder: PathBuf,
}

impl Lists {
    pub(super) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Makes the directory; an empty one may be there.
    pub(super) fn make(&self) -> Result<(), String> {
        match fs::create_dir(&self.folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("make directory", &self.folder, &error)),
        }
        let mut entries = fs::read_dir(&self.folder).map_err(|error| cannot("read", &self.folder, &error))?;
        match entries.next() {
            None => Ok(()),
            Some(_) => {
                Err(format!("{} is not empty: name a new directory for the lists", quote(&self.folder)))
            }
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn names(&self, part: u32) -> PathBuf {
        self.path(&format!("part-{part}"))
    }

    pub(super) fn directories(&self) -> PathBuf {
        self.path("directories")
    }

    /// Writes the header, which completes the lists.
    pub(super) fn complete(
        &self,
        (source, target): (&Path, &Path),
        source_inode: u64,
        parts: u32,
    ) -> Result<(), String> {
        let header = Header {
            schema: SCHEMA,
            made_by: format!("ferry {}", env!("CARGO_PKG_VERSION")),
            source: source.into(),
            target: target.into(),
            source_inode,
            parts,
        };
        let path = self.path("split.json");
        let write = || -> io::Result<()> {
            let complete = CompleteFile::create(&path)?;
            let mut text = serde_json::to_vec(&header)?;
            text.push(b'\n');
            complete.file()?.write_all(&text)?;
            // The lists before: bytes that are missing in them would be missing in the target. Some filesystems tell only now.
            rustix::fs::syncfs(File::open(&self.folder)?)?;
            complete.keep()
        };
        write().map_err(|error| cannot("write", &path, &error))
    }

    pub(super) fn header(&self) -> Result<Header, String> {
        let path = self.path("split.json");
        let text = fs::read(&path).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                format!("{} has no complete lists: make them by 'ferry plan --split'", quote(&self.folder))
            } else {
                cannot("read", &path, &error)
            }
        })?;
        let header: Header =
            serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", quote(&path)))?;
        if header.schema != SCHEMA {
            return Err(format!("{} has layout {}; this ferry reads {SCHEMA}", quote(&path), header.schema));
        }
        Ok(header)
    }

    /// Reads the ranges of a part.
    pub(super) fn ranges(&self, part: u32) -> Result<impl Iterator<Item = Result<Range, String>>, String> {
        let path = self.path(&format!("ranges-{part}"));
        let file = File::open(&path).map_err(|error| cannot("open", &path, &error))?;
        let lines = serde_json::Deserializer::from_reader(BufReader::new(file)).into_iter::<Range>();
        Ok(lines.map(move |line| match line {
            Ok(range) if range.is_possible() => Ok(range),
            Ok(range) => {
                Err(format!("{}: {} has a range that no plan has", quote(&path), quote(&range.path.0)))
            }
            Err(error) => Err(format!("{}: {error}", quote(&path))),
        }))
    }

    /// Returns the inode number of the target, if the opening step was done.
    pub(super) fn opened(&self) -> Result<Option<u64>, String> {
        let path = self.path("opened");
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim_end().parse() {
                Ok(inode) => Ok(Some(inode)),
                Err(_) => Err(format!("{} has no inode number", quote(&path))),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("read", &path, &error)),
        }
    }

    /// Returns true if all ranges of a part are copied.
    pub(super) fn has_copied_ranges(&self, part: u32) -> Result<bool, String> {
        self.has(&format!("copied-{part}"))
    }

    pub(super) fn is_done(&self, part: u32) -> Result<bool, String> {
        self.has(&format!("done-{part}"))
    }

    fn has(&self, name: &str) -> Result<bool, String> {
        let path = self.path(name);
        path.try_exists().map_err(|error| cannot("examine", &path, &error))
    }

    pub(super) fn note_opened(&self, target: u64) -> Result<(), String> {
        self.note("opened", &format!("{target}\n"))
    }

    pub(super) fn note_copied_ranges(&self, part: u32) -> Result<(), String> {
        self.note(&format!("copied-{part}"), "")
    }

    /// Forgets that the ranges of a part are copied: the opening step makes files for them that have no bytes.
    pub(super) fn forget_copied_ranges(&self, part: u32) -> Result<(), String> {
        let path = self.path(&format!("copied-{part}"));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", &path, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn note_done(&self, part: u32) -> Result<(), String> {
        self.note(&format!("done-{part}"), "")
    }

    fn note(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path(name);
        let write = || -> io::Result<()> {
            let complete = CompleteFile::create(&path)?;
            complete.file()?.write_all(text.as_bytes())?;
            complete.keep()
        };
        write().map_err(|error| cannot("create", &path, &error))
    }
}

/// Reads the names of a list.
pub(super) fn read_names(path: PathBuf) -> Result<impl Iterator<Item = Result<PathBuf, String>>, String> {
    let file = File::open(&path).map_err(|error| cannot("open", &path, &error))?;
    let names = BufReader::new(file).split(0);
    Ok(names.map(move |name| match name {
        Ok(name) => Ok(PathBuf::from(OsString::from_vec(name))),
        Err(error) => Err(cannot("read", &path, &error)),
    }))
}

pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {}", quote(path), describe(error))
}

/// Writes the lists. Each file is open only while a piece is written: there may be more than descriptors.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    lists: &'a Lists,
    /// Pieces of `part-K`, of `ranges-K`, and of `directories`.
    names: Vec<Vec<u8>>,
    ranges: Vec<Vec<u8>>,
    directories: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(lists: &'a Lists, parts: usize) -> Self {
        let empty = vec![Vec::new(); parts];
        Self { lists, names: empty.clone(), ranges: empty, directories: Vec::new() }
    }

    /// Adds a name to a part, which counts from 0.
    pub(super) fn name(&mut self, part: usize, path: &Path) -> Result<(), String> {
        let Some(piece) = self.names.get_mut(part) else { return Ok(()) };
        add_name(piece, path);
        flush(self.lists, &format!("part-{}", part + 1), piece, PIECE)
    }

    pub(super) fn directory(&mut self, path: &Path) -> Result<(), String> {
        add_name(&mut self.directories, path);
        flush(self.lists, "directories", &mut self.directories, PIECE)
    }

    pub(super) fn range(&mut self, part: usize, range: &Range) -> Result<(), String> {
        let Some(piece) = self.ranges.get_mut(part) else { return Ok(()) };
        let name = format!("ranges-{}", part + 1);
        serde_json::to_writer(&mut *piece, range).map_err(|error| format!("{name}: {error}"))?;
        piece.push(b'\n');
        flush(self.lists, &name, piece, PIECE)
    }

    /// Writes what is left; each file exists then.
    pub(super) fn end(mut self) -> Result<(), String> {
        flush(self.lists, "directories", &mut self.directories, 0)?;
        for (number, (names, ranges)) in self.names.iter_mut().zip(&mut self.ranges).enumerate() {
            flush(self.lists, &format!("part-{}", number + 1), names, 0)?;
            flush(self.lists, &format!("ranges-{}", number + 1), ranges, 0)?;
        }
        Ok(())
    }
}

fn add_name(piece: &mut Vec<u8>, path: &Path) {
    piece.extend(path.as_os_str().as_bytes());
    piece.push(0);
}

/// Appends a piece to its file if it has at least this size.
fn flush(lists: &Lists, name: &str, piece: &mut Vec<u8>, least: usize) -> Result<(), String> {
    if piece.len() < least {
        return Ok(());
    }
    let path = lists.path(name);
    let appended =
        OpenOptions::new().append(true).create(true).open(&path).and_then(|mut file| file.write_all(piece));
    piece.clear();
    appended.map_err(|error| cannot("write", &path, &error))
}
