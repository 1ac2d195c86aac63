//! A list of the names that take part, in bounded memory.
//!
//! The walk enters folders in the order of their paths, component by component, and each before what is in it. So the
//! names are sorted into groups, one for each folder, in that order, and the walk reads the groups one after another. The
//! groups are in an unnamed temporary file. A folder on the way to a listed name is in its folder's group, too.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use ferry_io::Name;

use crate::sorted::{Record, Sorter};

#[cfg(test)]
mod tests;

/// Longest name in a list, in bytes.
const LONGEST: usize = 1 << 20;

/// Bytes read of a group at a time: each level of the walk has a group of its own.
const PIECE: u64 = 4 << 10;

/// Between the components of a path in memory: no name has this byte, and none is less, so that paths as text have the order of
/// their components.
const SEPARATOR: u8 = 0;

/// Names that take part, relative to the source.
#[derive(Debug)]
pub struct List {
    groups: File,
    size: u64,
}

/// A list that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum BadList {
    /// A name that can't be in the source.
    #[error("name {number}: {problem}")]
    Name {
        /// Its number in the list, from 1; it counts empty ones.
        number: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The list could not be read.
    #[error("{0}")]
    Read(io::Error),
    /// The temporary file could not be written or read.
    #[error("{0}")]
    Keep(io::Error),
}

impl List {
    /// Reads names that each end with `end`, or with the text. A name that ends in a slash stands for the folder with all
    /// that is in it. Empty names count for nothing.
    ///
    /// # Errors
    /// [`BadList`]: of a name, of reading, or of the temporary file.
    pub fn read(mut text: impl BufRead, end: u8) -> Result<Self, BadList> {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new();
        let mut last = Vec::new();
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let limit = LONGEST as u64 + 1;
            let count = text.by_ref().take(limit).read_until(end, &mut line).map_err(BadList::Read)?;
            if count == 0 {
                break;
            }
            line.pop_if(|byte| *byte == end);
            let path = path_of(&line).map_err(|problem| BadList::Name { number, problem })?;
            sorter.add(records(&path, &last, line.ends_with(b"/")), &folder).map_err(BadList::Keep)?;
            last = path;
        }
        let mut sorted = sorter.finish(&folder).map_err(BadList::Keep)?;
        let mut groups = Groups::new(&folder).map_err(BadList::Keep)?;
        while let Some(listed) = sorted.next().map_err(BadList::Keep)? {
            groups.add(listed).map_err(BadList::Keep)?;
        }
        groups.finish().map_err(BadList::Keep)
    }
}

/// Returns the components of a listed name, joined by [`SEPARATOR`].
fn path_of(line: &[u8]) -> Result<Vec<u8>, &'static str> {
    if line.len() > LONGEST {
        return Err("it is longer than 1 MiB");
    }
    if line.first() == Some(&b'/') {
        return Err("it is absolute, and names are relative to SOURCE");
    }
    let mut path = Vec::with_capacity(line.len());
    for component in line.split(|&byte| byte == b'/') {
        if matches!(component, b"" | b".") {
            continue;
        }
        if component == b".." {
            return Err("it has a component '..'");
        }
        if component.contains(&0) {
            return Err("it has a NUL byte; --null is for names that end with one");
        }
        if Name::new(component).is_none() {
            return Err("one of its components is too long");
        }
        if !path.is_empty() {
            path.push(SEPARATOR);
        }
        path.extend(component);
    }
    Ok(path)
}

/// Returns the records of a path: itself, the folders on the way to it that the last path did not have, and, for a whole
/// folder, the mark in its group.
fn records(path: &[u8], last: &[u8], is_whole: bool) -> Vec<Listed> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == SEPARATOR).map(|(at, _)| at);
    let is_new = |end: &usize| last.get(..=*end) != Some(&path[..=*end]);
    let mut records: Vec<Listed> = ends.filter(is_new).map(|end| Listed::new(&path[..end], false)).collect();
    if !path.is_empty() {
        records.push(Listed::new(path, true));
    }
    if is_whole {
        records.push(Listed { path: path.into(), split: path.len(), is_asked_for: true });
    }
    records
}

/// A name in a folder's group.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    /// Path of the folder, and the name.
    path: Box<[u8]>,
    /// Length of the folder's path. The mark of a whole folder has no name, and thus comes first.
    split: usize,
    /// False for a folder that is only on the way to a listed name.
    is_asked_for: bool,
}

impl Listed {
    fn new(path: &[u8], is_asked_for: bool) -> Self {
        let split = path.iter().rposition(|&byte| byte == SEPARATOR).unwrap_or(0);
        Self { path: path.into(), split, is_asked_for }
    }

    fn folder(&self) -> &[u8] {
        &self.path[..self.split]
    }

    fn name(&self) -> &[u8] {
        let name = &self.path[self.split..];
        name.strip_prefix(&[SEPARATOR]).unwrap_or(name)
    }
}

impl Record for Listed {
    fn order(&self, other: &Self) -> Ordering {
        self.folder().cmp(other.folder()).then_with(|| self.name().cmp(other.name()))
    }

    fn text_bytes(&self) -> usize {
        self.path.len()
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.path.len() as u64).to_le_bytes());
        bytes.extend((self.split as u64).to_le_bytes());
        bytes.push(u8::from(self.is_asked_for));
        bytes.extend(&self.path);
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (size, rest) = read_number(bytes)?;
        let (split, rest) = read_number(rest)?;
        let (is_asked_for, rest) = rest.split_first()?;
        let path = rest.get(..size)?;
        Some((Self { path: path.into(), split, is_asked_for: *is_asked_for == 1 }, 17 + size))
    }
}

fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((usize::try_from(u64::from_le_bytes(*number)).ok()?, rest))
}

/// The file of groups while it is written. A group is: size of the folder's path, size of its names, the path, the names. A name
/// is: its size in two bytes, one for whether it was asked for, the bytes.
struct Groups {
    file: BufWriter<File>,
    size: u64,
    /// Path of the group being written, and where it begins.
    folder: Option<(Vec<u8>, u64)>,
    /// Last name, which may be listed several times.
    name: Option<(Vec<u8>, bool)>,
}

/// Bytes of a group before the folder's path.
const HEAD: usize = 16;

impl Groups {
    fn new(folder: &Path) -> io::Result<Self> {
        let file = BufWriter::new(tempfile::tempfile_in(folder)?);
        Ok(Self { file, size: 0, folder: None, name: None })
    }

    fn add(&mut self, listed: Listed) -> io::Result<()> {
        if self.folder.as_ref().is_none_or(|(folder, _)| folder != listed.folder()) {
            self.end_group()?;
            self.folder = Some((listed.folder().to_vec(), self.size));
            self.put(&[0; HEAD])?;
            self.put(listed.folder())?;
        }
        match &mut self.name {
            Some((name, is_asked_for)) if name == listed.name() => *is_asked_for |= listed.is_asked_for,
            Some(_) | None => {
                self.put_name()?;
                self.name = Some((listed.name().to_vec(), listed.is_asked_for));
            }
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn put_name(&mut self) -> io::Result<()> {
        let Some((name, is_asked_for)) = self.name.take() else { return Ok(()) };
        self.put(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes())?;
        self.put(&[u8::from(is_asked_for)])?;
        self.put(&name)
    }

    fn end_group(&mut self) -> io::Result<()> {
        self.put_name()?;
        let Some((folder, begin)) = self.folder.take() else { return Ok(()) };
        self.file.flush()?;
        let path_size = folder.len() as u64;
        let names_size = self.size - begin - HEAD as u64 - path_size;
        let head = [path_size.to_le_bytes(), names_size.to_le_bytes()].concat();
        self.file.get_ref().write_all_at(&head, begin)
    }

    fn finish(mut self) -> io::Result<List> {
        self.end_group()?;
        let mut groups = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        groups.rewind()?;
        Ok(List { groups, size: self.size })
    }
}

/// A position among the groups.
pub(crate) struct Cursor {
    list: Arc<List>,
    /// Where the group behind the next begins.
    behind: u64,
    next: Option<Group>,
}

impl Cursor {
    /// # Errors
    /// Those of reading the temporary file.
    pub(crate) fn new(list: Arc<List>) -> io::Result<Self> {
        let mut cursor = Self { list, behind: 0, next: None };
        cursor.read()?;
        Ok(cursor)
    }

    /// Reads the next group's head.
    fn read(&mut self) -> io::Result<()> {
        self.next = None;
        if self.behind >= self.list.size {
            return Ok(());
        }
        let mut head = [0; HEAD];
        self.list.groups.read_exact_at(&mut head, self.behind)?;
        let Some((path_size, rest)) = read_number(&head) else { return Ok(()) };
        let Some((names_size, _)) = read_number(rest) else { return Ok(()) };
        let mut folder = vec![0; path_size];
        self.list.groups.read_exact_at(&mut folder, self.behind + HEAD as u64)?;
        let begin = self.behind + (HEAD + path_size) as u64;
        let end = begin + names_size as u64;
        self.behind = end;
        let list = Arc::clone(&self.list);
        self.next = Some(Group { list, folder, next: begin, end, bytes: Vec::new(), taken: 0 });
        Ok(())
    }

    /// Returns the next group, if its folder comes before `folder`; with `None`, whatever it is.
    ///
    /// # Errors
    /// Those of reading the temporary file.
    pub(crate) fn next_before(&mut self, folder: Option<&Path>) -> io::Result<Option<Group>> {
        let key = folder.map(key_of);
        let Some(group) = self.next.take_if(|next| key.as_ref().is_none_or(|key| next.folder < *key)) else {
            return Ok(None);
        };
        self.read()?;
        Ok(Some(group))
    }

    /// Returns the group of a folder; `None` if nothing in it is listed. What comes before it has been taken.
    ///
    /// # Errors
    /// Those of reading the temporary file.
    pub(crate) fn group_of(&mut self, folder: &Path) -> io::Result<Option<Group>> {
        let key = key_of(folder);
        let Some(group) = self.next.take_if(|next| next.folder == key) else { return Ok(None) };
        self.read()?;
        Ok(Some(group))
    }
}

/// Returns a path's text as it is in the list.
fn key_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().iter().map(|&byte| if byte == b'/' { SEPARATOR } else { byte }).collect()
}

/// Names of one folder in order.
pub(crate) struct Group {
    list: Arc<List>,
    folder: Vec<u8>,
    next: u64,
    end: u64,
    bytes: Vec<u8>,
    /// Number of those bytes that were taken.
    taken: usize,
}

/// One name of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InGroup {
    /// `None` for the mark of a whole folder, which comes first.
    pub(crate) name: Option<Name>,
    pub(crate) is_asked_for: bool,
}

impl Group {
    /// Returns the components of the folder's path.
    pub(crate) fn folder(&self) -> impl Iterator<Item = Name> {
        self.folder.split(|&byte| byte == SEPARATOR).filter_map(Name::new)
    }

    /// Returns the next name.
    ///
    /// # Errors
    /// Those of reading the temporary file.
    pub(crate) fn next(&mut self) -> io::Result<Option<InGroup>> {
        loop {
            let left = self.bytes.get(self.taken..).unwrap_or_default();
            if let Some((found, size)) = read_name(left) {
                self.taken += size;
                return Ok(Some(found));
            }
            if self.next == self.end {
                return Ok(None);
            }
            self.bytes.drain(..self.taken);
            self.taken = 0;
            let kept = self.bytes.len();
            let piece = (self.end - self.next).min(PIECE);
            self.bytes.resize(kept + usize::try_from(piece).unwrap_or(0), 0);
            self.list.groups.read_exact_at(&mut self.bytes[kept..], self.next)?;
            self.next += piece;
        }
    }
}

fn read_name(bytes: &[u8]) -> Option<(InGroup, usize)> {
    let (head, rest) = bytes.split_first_chunk::<3>()?;
    let size = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let name = rest.get(..size)?;
    Some((InGroup { name: Name::new(name), is_asked_for: head[2] == 1 }, 3 + size))
}
