//! Where profiles are kept: a file for each filesystem, named by its identity.
//!
//! | who | folders, the first that has a profile counts |
//! |---|---|
//! | anyone, if `FERRY_PROFILES` is set and not empty | the folder that it names, alone |
//! | root | `/etc/ferry/profiles` |
//! | others | `$XDG_CONFIG_HOME/ferry/profiles` (else `~/.config/ferry/profiles`), `/etc/ferry/profiles` |
//!
//! A profile is believed only if it belongs to who reads it or to root and nobody else may write to it: what it says decides
//! what a copy by root does. It is read without waiting, up to [`LARGEST`] bytes, and not through a link.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use rustix::io::Errno;

use super::{Malformed, Profile};

/// Where root's are, for all.
const SYSTEM: &str = "/etc/ferry/profiles";
/// Bytes of a profile at most.
pub const LARGEST: u64 = 64 * 1024;
/// Bytes of a file's name before its suffix; identities that are alike so far share a file, which then is of another one.
const LONGEST_NAME: usize = 200;

/// A profile that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub profile: Profile,
}

/// Why a profile that is there is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A call failed.
    #[error("{}", words(.0))]
    Unreadable(io::Error),
    /// A folder, a FIFO, a device.
    #[error("it is no file")]
    NotAFile,
    /// Larger than any profile.
    #[error("it has more than {LARGEST} bytes")]
    TooLarge,
    /// Others might have written it.
    #[error("it belongs to somebody else, or others may write to it")]
    NotTrusted,
    /// It can't be understood.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Its figures contradict each other.
    #[error("it is not plausible: {0}")]
    Implausible(String),
    /// It is another filesystem's.
    #[error("it is of another filesystem, {0}")]
    Foreign(String),
}

/// Why a profile could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Its figures contradict each other.
    #[error("what was measured is not plausible: {0}")]
    Implausible(String),
    /// It can't be written as TOML.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Neither `XDG_CONFIG_HOME` nor `HOME` says where.
    #[error("there is no folder for profiles: HOME is not set")]
    NoFolder,
    /// A call failed.
    #[error("cannot write {}: {}", .0.display(), words(.1))]
    File(PathBuf, io::Error),
}

/// The C library's words, without Rust's number behind them.
fn words(error: &io::Error) -> String {
    let errno = Errno::from_io_error(error);
    errno.map_or_else(|| error.to_string(), |errno| ferry_io::Cause::Errno(errno).to_string())
}

/// The folders that are looked in, the first first.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    folders_of(ferry_io::is_superuser(), |name| std::env::var_os(name))
}

fn folders_of(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let is_alone = variable("FERRY_PROFILES").is_some_and(|value| !value.is_empty());
    let system = (!is_alone && !is_root).then(|| PathBuf::from(SYSTEM));
    written_of(is_root, variable).into_iter().chain(system).collect()
}

/// The folder that is written to, if there is one.
fn written_of(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(only) = set("FERRY_PROFILES") {
        return Some(only);
    }
    if is_root {
        return Some(PathBuf::from(SYSTEM));
    }
    // The XDG specification: a path that is not absolute is to be ignored.
    let absolute = |path: &PathBuf| path.is_absolute();
    let own = set("XDG_CONFIG_HOME").filter(absolute);
    let own = own.or_else(|| set("HOME").filter(absolute).map(|home| home.join(".config")));
    own.map(|folder| folder.join("ferry/profiles"))
}

/// Whether a profile could be kept, as far as can be told without making anything: asked before measuring for minutes.
///
/// # Errors
/// Why not.
pub fn may_write() -> Result<(), NotKept> {
    let folder = written()?;
    reachable(&folder).map_err(|error| NotKept::File(folder, error))
}

fn written() -> Result<PathBuf, NotKept> {
    written_of(ferry_io::is_superuser(), |name| std::env::var_os(name)).ok_or(NotKept::NoFolder)
}

/// Whether the folder, or else the one that it would be made in, may be written to.
fn reachable(folder: &Path) -> io::Result<()> {
    for path in folder.ancestors() {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) if !found.is_dir() => return Err(Errno::NOTDIR.into()),
            Ok(_) => {
                let access = Access::WRITE_OK | Access::EXEC_OK;
                return Ok(accessat(CWD, path, access, AtFlags::EACCESS)?);
            }
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Whether there is any of these folders: who has never kept a profile is spared looking for the filesystem's identity. One
/// that can't be looked at is taken to be there, and told of when it is looked in.
#[must_use]
pub fn is_there(folders: &[PathBuf]) -> bool {
    let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    folders.iter().any(|folder| !folder.symlink_metadata().is_err_and(is_missing))
}

/// The name of the file with the profile of that identity: other characters than letters, digits, `-` and `_` stand as
/// `%` and two digits.
#[must_use]
pub fn file_name(identity: &str) -> String {
    let mut name = String::new();
    for byte in identity.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            other => name += &format!("%{other:02x}"),
        }
    }
    name.truncate(LONGEST_NAME);
    name + ".toml"
}

/// The profile of that filesystem in the first of the folders that has one. Where a folder can't be entered, or is none, no
/// profile is known to be: most of those who copy have never made one.
///
/// # Errors
/// Where there is one that is not to be used, and why; the folders after it are not looked in.
pub fn find(folders: &[PathBuf], identity: &str) -> Result<Option<Stored>, (PathBuf, Refused)> {
    let name = file_name(identity);
    for path in folders.iter().map(|folder| folder.join(&name)) {
        match read(&path, identity) {
            Err(Refused::Unreadable(_)) if path.symlink_metadata().is_err() => {}
            Err(refused) => return Err((path, refused)),
            Ok(profile) => return Ok(Some(Stored { path, profile })),
        }
    }
    Ok(None)
}

/// Every profile in the folders, in the order of their names; of one that is not used, why.
#[must_use]
pub fn all(folders: &[PathBuf]) -> Vec<(PathBuf, Result<Profile, Refused>)> {
    let mut found = Vec::new();
    for folder in folders {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                found.push((folder.clone(), Err(Refused::Unreadable(error))));
                continue;
            }
        };
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
        paths.sort();
        found.extend(paths.into_iter().map(|path| {
            let read = read_any(&path).and_then(|profile| {
                let is_its =
                    path.file_name().is_some_and(|name| name == &*file_name(&profile.place.identity));
                if is_its { Ok(profile) } else { Err(Refused::Foreign(profile.place.identity)) }
            });
            (path, read)
        }));
    }
    found
}

fn read(path: &Path, identity: &str) -> Result<Profile, Refused> {
    let profile = read_any(path)?;
    if profile.place.identity != identity {
        return Err(Refused::Foreign(profile.place.identity));
    }
    Ok(profile)
}

/// A profile, whichever filesystem's it is.
fn read_any(path: &Path) -> Result<Profile, Refused> {
    let text = bytes(path)?;
    let text = String::from_utf8(text)
        .map_err(|_| Refused::Malformed(Malformed::Syntax("it is not UTF-8".to_owned())))?;
    let profile = Profile::parse(&text)?;
    profile.check().map_err(Refused::Implausible)?;
    Ok(profile)
}

/// A FIFO in its place would be waited for without end, but for O_NONBLOCK.
fn bytes(path: &Path) -> Result<Vec<u8>, Refused> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(|_| Refused::NotAFile)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(Refused::Unreadable)?;
    let found = file.metadata().map_err(Refused::Unreadable)?;
    if !found.is_file() {
        return Err(Refused::NotAFile);
    }
    let is_owned = found.uid() == 0 || found.uid() == ferry_io::user();
    if !is_owned || found.mode() & 0o022 != 0 {
        return Err(Refused::NotTrusted);
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Refused::Unreadable)?;
    if bytes.len() as u64 > LARGEST { Err(Refused::TooLarge) } else { Ok(bytes) }
}

/// Keeps a profile in this user's folder, which is made if need be; one that is there is replaced in one step. Gives
/// the file's path.
///
/// # Errors
/// A profile that [`Profile::check`] refuses, and what the kernel refuses; then what was there is still there.
pub fn write(profile: &Profile) -> Result<PathBuf, NotKept> {
    profile.check().map_err(NotKept::Implausible)?;
    let text = profile.to_toml()?;
    let folder = written()?;
    let path = folder.join(file_name(&profile.place.identity));
    match replace(&folder, &path, &text) {
        Ok(()) => Ok(path),
        Err(error) => Err(NotKept::File(path, error)),
    }
}

/// The text has another name until it is whole and durable. What is at the path is replaced, not followed.
fn replace(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mode = if ferry_io::is_superuser() { 0o755 } else { 0o700 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    let hidden = folder.join(format!(".ferry-{}.new", std::process::id()));
    let create = || OpenOptions::new().write(true).create_new(true).mode(0o644).open(&hidden);
    let file = match create() {
        // One killed run had this number.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&hidden)?;
            create()?
        }
        other => other?,
    };
    let done = fill(file, text).and_then(|()| std::fs::rename(&hidden, path));
    if done.is_err() {
        // What failed first is told.
        std::fs::remove_file(&hidden).ok();
        return done;
    }
    File::open(folder)?.sync_all()
}

fn fill(mut file: File, text: &str) -> io::Result<()> {
    // Whatever the umask: readers refuse what others may write to.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
