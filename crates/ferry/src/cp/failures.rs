//! Failures of a run: counted, partly kept for the summary, and written to the file of `--errors`.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;

use serde::Serialize;

use crate::errno;
use crate::escape::json_name;
use crate::layout::Screen;
use crate::output::Output;
use crate::units::{count, counted};

#[cfg(test)]
mod tests;

/// Maximum number of messages repeated at the end; bounds the memory used.
const KEPT: usize = 1000;
/// Rows of the screen that repeated messages leave to the lines around them: heading, remainder, and the shell's prompt.
const OTHER_ROWS: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Failures {
    kept: Vec<String>,
    count: u64,
    /// Number of messages; a path may cause two.
    messages: u64,
    /// Rows that had been printed on the terminal before the first message.
    first_row: Option<usize>,
    file: Option<File>,
    write_error: Option<io::Error>,
}

/// Message about a failed path.
#[derive(Debug, Clone)]
pub(super) struct Message<'a> {
    pub(super) source: &'a Path,
    pub(super) target: &'a Path,
    pub(super) text: String,
    /// The kernel's answer, if it is the reason.
    pub(super) errno: Option<Errno>,
}

#[derive(Serialize)]
struct Record<'a> {
    source: &'a str,
    target: &'a str,
    message: &'a str,
    /// Number of the system call's error; missing if none failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    /// Name of that error, such as `ENOENT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

impl Failures {
    /// Opens `file`, if any, for the failures of a run.
    ///
    /// # Errors
    /// An error of opening it; [`io::ErrorKind::AlreadyExists`] if it is one of the `named` files to copy or
    /// write.
    pub(crate) fn new(file: Option<&Path>, named: &[PathBuf]) -> io::Result<Self> {
        Ok(Self { file: file.map(|path| open(path, named)).transpose()?, ..Self::default() })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Notes that a message is about to be printed after so many rows. Only the first call has an effect.
    pub(super) fn begin_at(&mut self, row: usize) {
        self.first_row.get_or_insert(row);
    }

    /// Adds a failed path.
    pub(super) fn add(&mut self, message: Message<'_>) {
        self.count += 1;
        self.note(message);
    }

    /// Adds another message about a failed path.
    pub(super) fn note(&mut self, message: Message<'_>) {
        if let Some(file) = &mut self.file
            && self.write_error.is_none()
        {
            self.write_error = record(file, &message).err();
        }
        self.messages += 1;
        if self.kept.len() < KEPT {
            self.kept.push(message.text);
        }
    }

    /// Repeats the messages on a terminal whose screen the first one has left.
    pub(crate) fn repeat(&self, program: &str, output: &Output) {
        if let Some(screen) = output.screen()
            && self.has_left(screen, output.rows())
        {
            self.again(program, screen).iter().for_each(|line| output.error(line));
        }
    }

    /// Returns true if the first message has left the screen once so many rows were printed.
    fn has_left(&self, screen: Screen, rows: usize) -> bool {
        // The cursor's row is one of the screen's.
        self.first_row.is_some_and(|first| rows.saturating_sub(first) >= screen.rows)
    }

    /// Returns the lines that repeat as many messages as the screen has room for.
    fn again(&self, program: &str, screen: Screen) -> Vec<String> {
        let what = counted(self.count, "path failed", "paths failed");
        let mut lines = vec![format!("{program}: {what}:")];
        let mut room = screen.rows.saturating_sub(OTHER_ROWS);
        for message in &self.kept {
            let line = format!("  {message}");
            let Some(left) = room.checked_sub(screen.rows_of(&line)) else { break };
            room = left;
            lines.push(line);
        }
        let more = self.messages.saturating_sub(u64::try_from(lines.len() - 1).unwrap_or(u64::MAX));
        if more > 0 {
            let hint = if self.file.is_some() { "" } else { " (`--errors FILE` records all)" };
            lines.push(format!("  and {} more{hint}", count(more)));
        }
        lines
    }

    /// First error of writing the file.
    pub(crate) fn write_error(&self) -> Option<&io::Error> {
        self.write_error.as_ref()
    }
}

/// End of a chain of symbolic links.
struct LinkEnd {
    path: PathBuf,
    owners: Vec<u32>,
    /// True for a link of proc(5), which only the kernel can resolve.
    is_open: bool,
}

/// Resolves the links in the last component one by one, to learn their owners.
fn follow(path: &Path) -> io::Result<LinkEnd> {
    /// The kernel's limit (path_resolution(7)).
    const MOST_LINKS: u32 = 40;
    /// Filesystem type of proc (statfs(2)).
    const PROC: i64 = 0x9fa0;
    let mut end = LinkEnd { path: path.to_owned(), owners: Vec::new(), is_open: false };
    for _ in 0..MOST_LINKS {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = match openat(CWD, &end.path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(end),
            entry => entry?,
        };
        let found = fstat(&entry)?;
        if !FileType::from_raw_mode(found.st_mode).is_symlink() {
            return Ok(end);
        }
        end.owners.push(found.st_uid);
        if fstatfs(&entry)?.f_type == PROC {
            end.is_open = true;
            return Ok(end);
        }
        let says = readlinkat(&entry, "", Vec::new())?;
        let folder = end.path.parent().unwrap_or(Path::new(""));
        end.path = folder.join(OsStr::from_bytes(says.as_bytes()));
    }
    Err(Errno::LOOP.into())
}

/// Opens and empties the file unless it is one of the `named` files.
///
/// Each link on the way must belong to the user, to root or to the file's owner. Otherwise another user could
/// have an unrelated file emptied.
pub(crate) fn open(path: &Path, named: &[PathBuf]) -> io::Result<File> {
    let end = follow(path)?;
    let (path, user) = (&end.path, rustix::process::geteuid().as_raw());
    let follows_none = if end.is_open { OFlags::empty() } else { OFlags::NOFOLLOW };
    let existing = File::options().write(true).custom_flags(follows_none.bits().cast_signed()).open(path);
    let is_made = existing.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let counts = |owned: Option<u32>| {
        end.owners.iter().all(|&owner| owner == 0 || owner == user || Some(owner) == owned)
    };
    if is_made && !counts(None) {
        return Err(Errno::LOOP.into());
    }
    let file = if is_made { File::options().write(true).create_new(true).open(path)? } else { existing? };
    let record = file.metadata()?;
    if !counts(Some(record.uid())) {
        return Err(Errno::LOOP.into());
    }
    if !record.is_file() {
        // Pipes and terminals hold nothing to empty.
        return Ok(file);
    }
    let is_record = |found: Metadata| (found.dev(), found.ino()) == (record.dev(), record.ino());
    if named.iter().any(|path| std::fs::metadata(path).is_ok_and(is_record)) {
        if is_made {
            std::fs::remove_file(path)?;
        }
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    file.set_len(0)?;
    Ok(file)
}

fn record(file: &mut File, message: &Message<'_>) -> io::Result<()> {
    file.write_all(&line((message.source, message.target), &message.text, message.errno))
}

/// Returns the line of the file about a failed path.
pub(crate) fn line((source, target): (&Path, &Path), message: &str, errno: Option<Errno>) -> Vec<u8> {
    let [source, target] = [source, target].map(|path| json_name(path.as_os_str().as_bytes()));
    let record = Record {
        source: &source,
        target: &target,
        message,
        errno: errno.map(Errno::raw_os_error),
        error: errno.and_then(errno::name),
    };
    // Serialization to memory cannot fail here.
    let mut line = serde_json::to_vec(&record).unwrap_or_default();
    line.push(b'\n');
    line
}
