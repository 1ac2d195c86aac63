//! The failures of a run: counted, some kept to be told again at the end, all recorded with `--errors`.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;

use serde::Serialize;

use crate::escape::escaped;
use crate::output::Output;
use crate::units::{count, counted};

#[cfg(test)]
mod tests;

/// How many are told again; memory stays bounded however much goes wrong.
const KEPT: usize = 1000;

/// What went wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    kept: Vec<String>,
    count: u64,
    /// Messages, of which a path may have two.
    messages: u64,
    file: Option<File>,
    write_error: Option<io::Error>,
}

/// One line of the file.
#[derive(Serialize)]
struct Record<'a> {
    source: &'a str,
    target: &'a str,
    message: &'a str,
}

impl Failures {
    /// None yet; they will be recorded in `file` if there is one.
    ///
    /// # Errors
    /// Whatever opening the file fails with; [`io::ErrorKind::AlreadyExists`] if it is one of the `named`, which are to
    /// be copied or written.
    pub(crate) fn new(file: Option<&Path>, named: &[PathBuf]) -> io::Result<Self> {
        Ok(Self { file: file.map(|path| open(path, named)).transpose()?, ..Self::default() })
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the failure of one path.
    pub(crate) fn add(&mut self, source: &Path, target: &Path, message: String) {
        self.count += 1;
        self.note(source, target, message);
    }

    /// Adds a further message about a path whose failure was added.
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

    /// Tells them again.
    pub(crate) fn tell(&self, program: &str, output: &Output) {
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

    /// Why the record is not complete, if it isn't.
    pub(crate) fn write_error(&self) -> Option<&io::Error> {
        self.write_error.as_ref()
    }
}

/// Where a path leads whose last component may be a link.
struct Led {
    path: PathBuf,
    /// Those of the links.
    owners: Vec<u32>,
    /// Whether it is a link of proc(5), which only the kernel can follow.
    is_open: bool,
}

/// Follows the links that a path's last component is, one by one, so that it is known whose they are.
fn follow(path: &Path) -> io::Result<Led> {
    /// As the kernel has it (path_resolution(7)).
    const MOST_LINKS: u32 = 40;
    /// statfs(2).
    const PROC: i64 = 0x9fa0;
    let mut led = Led { path: path.to_owned(), owners: Vec::new(), is_open: false };
    for _ in 0..MOST_LINKS {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = match openat(CWD, &led.path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(led),
            entry => entry?,
        };
        let found = fstat(&entry)?;
        if !FileType::from_raw_mode(found.st_mode).is_symlink() {
            return Ok(led);
        }
        led.owners.push(found.st_uid);
        if fstatfs(&entry)?.f_type == PROC {
            led.is_open = true;
            return Ok(led);
        }
        let says = readlinkat(&entry, "", Vec::new())?;
        let folder = led.path.parent().unwrap_or(Path::new(""));
        led.path = folder.join(OsStr::from_bytes(says.as_bytes()));
    }
    Err(Errno::LOOP.into())
}

/// Opens the record and empties it, unless that would empty a file that somebody wants. A link to it counts only if it is
/// the user's own or root's, or leads to what belongs to its own owner: another could have a file elsewhere emptied.
fn open(path: &Path, named: &[PathBuf]) -> io::Result<File> {
    let led = follow(path)?;
    let (path, user) = (&led.path, rustix::process::geteuid().as_raw());
    let follows_none = if led.is_open { OFlags::empty() } else { OFlags::NOFOLLOW };
    let existing = File::options().write(true).custom_flags(follows_none.bits().cast_signed()).open(path);
    let is_made = existing.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let counts = |owned: Option<u32>| {
        led.owners.iter().all(|&owner| owner == 0 || owner == user || Some(owner) == owned)
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
        // A pipe or a terminal holds nothing.
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
    let (source, target) = (escaped(source.as_os_str().as_bytes()), escaped(target.as_os_str().as_bytes()));
    let mut line = serde_json::to_vec(&Record { source: &source, target: &target, message })?;
    line.push(b'\n');
    file.write_all(&line)
}
