//! The journal's file: read at the start, appended to before anything that depends on a record is sent.
//!
//! It is locked, so that two jobs never fill one target. A line that a kill has cut off is removed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use ferry_cluster::{Header, Line, parse_header, parse_line, write_header, write_line};

use crate::wording::cannot;

/// An open journal.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    fsync: bool,
    /// Set after a failed write: a later line would follow a gap.
    is_broken: bool,
}

/// A line that could not be written.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// A message for the user.
    pub(crate) why: String,
    /// Set if the filesystem of the journal is full, or the quota used up.
    pub(crate) is_full: bool,
}

impl From<Unwritten> for String {
    fn from(unwritten: Unwritten) -> Self {
        unwritten.why
    }
}

/// A journal as it was found.
pub(crate) struct Found {
    pub(crate) journal: Journal,
    /// Header of the interrupted job, if there is one.
    pub(crate) header: Option<Header>,
}

/// Returns the header of a journal that can be read.
pub(crate) fn header(path: &Path) -> Option<Header> {
    let mut first = Vec::new();
    BufReader::new(File::open(path).ok()?).read_until(b'\n', &mut first).ok()?;
    parse_header(&first).ok()
}

impl Journal {
    /// Opens the journal, or makes one. With `anew` an interrupted job is forgotten.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn open(path: &Path, anew: bool, fsync: bool) -> Result<Found, String> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = file.map_err(cannot("open the journal", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another job has the journal '{}'", path.display()));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock the journal", path)(error)),
        }
        let mut first = Vec::new();
        if !anew {
            let read = BufReader::new(&file).read_until(b'\n', &mut first);
            read.map_err(cannot("read the journal", path))?;
        }
        let header = match first.last() {
            // A job that was killed before its first line was whole has done nothing.
            None => None,
            Some(b'\n') => Some(parse_header(&first).map_err(|_| {
                format!("'{}' is no journal of this version: see --restart and --journal", path.display())
            })?),
            Some(_) => None,
        };
        if header.is_none() {
            file.set_len(0).map_err(cannot("empty the journal", path))?;
        }
        Ok(Found { journal: Self { file, path: path.to_owned(), fsync, is_broken: false }, header })
    }

    /// Passes each whole line after the header, and cuts off what follows the last.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn replay(&self, mut take: impl FnMut(&Line) -> Result<(), String>) -> Result<(), String> {
        let failed = || cannot("read the journal", &self.path);
        let file = File::open(&self.path).map_err(failed())?;
        let mut reader = BufReader::new(file);
        let (mut whole, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let size = reader.read_until(b'\n', &mut line).map_err(failed())?;
            if whole > 0 {
                match parse_line(&line) {
                    Ok(line) => take(&line)?,
                    Err(_) => break,
                }
            }
            whole += u64::try_from(size).unwrap_or(0);
        }
        self.file.set_len(whole).map_err(cannot("shorten the journal", &self.path))
    }

    /// Writes the header of a new job.
    ///
    /// # Errors
    /// The line was not written.
    pub(crate) fn begin(&mut self, header: &Header) -> Result<(), Unwritten> {
        self.append(write_header(header).map_err(io::Error::from))
    }

    /// Adds a line. After a line that was not written it does nothing: the next job repeats what the line would have said.
    ///
    /// # Errors
    /// The line was not written.
    pub(crate) fn add(&mut self, line: &Line) -> Result<(), Unwritten> {
        if self.is_broken {
            return Ok(());
        }
        self.append(write_line(line).map_err(io::Error::from))
    }

    /// Returns true after a line that was not written.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn append(&mut self, line: io::Result<Vec<u8>>) -> Result<(), Unwritten> {
        let written = line.and_then(|line| self.file.write_all(&line));
        let durable = written.and_then(|()| if self.fsync { self.file.sync_data() } else { Ok(()) });
        self.is_broken = durable.is_err();
        durable.map_err(|error| Unwritten {
            is_full: matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded),
            why: cannot("write the journal", &self.path)(error),
        })
    }

    /// Removes the journal of a job that is complete.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn remove(self) -> Result<(), String> {
        std::fs::remove_file(&self.path).map_err(cannot("remove the journal", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use ferry_cluster::Settings;

    use super::*;

    #[test]
    fn a_journal_that_was_cut_off_goes_on_after_its_last_whole_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let header = Header::new("cp", ("a".into(), "b".into()), (1, 2), Settings::new(3));
        let Found { mut journal, header: found } = Journal::open(&path, false, true).unwrap();
        assert_eq!(found, None);
        journal.begin(&header).unwrap();
        journal.add(&Line::Resumed).unwrap();
        assert!(Journal::open(&path, false, false).is_err(), "another job has it");
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..20]].concat()).unwrap();
        let Found { mut journal, header: found } = Journal::open(&path, false, false).unwrap();
        assert_eq!(found, Some(header));
        let mut lines = 0;
        let count = |_: &Line| {
            lines += 1;
            Ok(())
        };
        journal.replay(count).unwrap();
        assert_eq!(lines, 1);
        journal.add(&Line::Resumed).unwrap();
        let line = whole.split_inclusive(|&byte| byte == b'\n').nth(1).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [&whole[..], line].concat());
        journal.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_journal_that_is_none_is_refused_and_one_without_a_whole_line_is_begun_anew() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        std::fs::write(&path, "some notes\n").unwrap();
        assert!(Journal::open(&path, false, false).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"some notes\n", "it stays");
        std::fs::write(&path, "0123456789abcdef {\"for").unwrap();
        assert!(Journal::open(&path, false, false).is_ok_and(|found| found.header.is_none()));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}
