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

use crate::escape::json_name;
use crate::output::Output;
use crate::units::{count, counted};

#[cfg(test)]
mod tests;

/// Maximum number of messages repeated at the end; bounds the memory used.
const KEPT: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Failures {
    kept: Vec<String>,
    count: u64,
    /// Number of messages; a path may cause two.
    messages: u64,
    file: Option<File>,
    write_error: Option<io::Error>,
}

#[derive(Serialize)]
struct Record<'a> {
    source: &'a str,
    target: &'a str,
    message: &'a str,
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

    pub(crate) fn add(&mut self, source: &Path, target: &Path, message: String) {
        self.count += 1;
        self.note(source, target, message);
    }

    /// Adds another message about a failed path.
    pub(crate) fn note(&mut self, source: &Path, target: &Path, message: String) {
        if let Some(file) = &mut self.file
            && self.write_error.is_none()
        {
            self.write_error = record(file, source, target, &message).err();
        }
        self.messages += 1;
        if self.kept.len() < KEPT {
            self.kept.push(message);
        }
    }

    pub(crate) fn print_again(&self, program: &str, output: &Output) {
        let what = counted(self.count, "path failed", "paths failed");
        output.error(&format!("{program}: {what}:"));
        for message in &self.kept {
            output.error(&format!("  {message}"));
        }
        let more = self.messages - u64::try_from(self.kept.len()).unwrap_or(u64::MAX);
        if more > 0 {
            let hint = if self.file.is_some() { "" } else { " (`--errors FILE` records all)" };
            output.error(&format!("  and {} more{hint}", count(more)));
        }
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
pub(super) fn open(path: &Path, named: &[PathBuf]) -> io::Result<File> {
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

fn record(file: &mut File, source: &Path, target: &Path, message: &str) -> io::Result<()> {
    let (source, target) =
        (json_name(source.as_os_str().as_bytes()), json_name(target.as_os_str().as_bytes()));
    let mut line = serde_json::to_vec(&Record { source: &source, target: &target, message })?;
    line.push(b'\n');
    file.write_all(&line)
}
