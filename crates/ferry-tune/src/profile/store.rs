//! Files of profiles: one for each filesystem, named by its identity.
//!
//! | user | folders; the first one with a profile counts |
//! |---|---|
//! | any, if `FERRY_PROFILES` is set and not empty | only the folder that it names |
//! | root | `/etc/ferry/profiles` |
//! | others | `$XDG_CONFIG_HOME/ferry/profiles` (else `~/.config/ferry/profiles`), `/etc/ferry/profiles` |
//!
//! A profile influences what a copy by root does. So it is used only if it is owned by the reader or root and
//! writable by nobody else. At most [`LARGEST`] bytes of it are read, without blocking and without following a
//! link.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use rustix::io::Errno;

use super::figures::Profile;
use super::format::Malformed;

/// Profiles of root, used by all.
const SYSTEM: &str = "/etc/ferry/profiles";
/// Maximum size of a profile in bytes.
pub const LARGEST: u64 = 64 * 1024;
/// Maximum length of a file name without its suffix. Identities with a longer common prefix share a file, which
/// then belongs to only one of them.
const LONGEST_NAME: usize = 200;

/// A profile that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Path of its file.
    pub path: PathBuf,
    /// Its content.
    pub profile: Profile,
}

/// Reason why an existing profile is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A call failed.
    #[error("{}", words(.0))]
    Unreadable(io::Error),
    /// It is a folder, a FIFO or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is larger than [`LARGEST`].
    #[error("it has more than {LARGEST} bytes")]
    TooLarge,
    /// Other users may have written it.
    #[error("it is owned by another user, or others may write to it")]
    NotTrusted,
    /// It cannot be parsed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Its figures are impossible or inconsistent.
    #[error("it is not plausible: {0}")]
    Implausible(String),
    /// It belongs to another filesystem.
    #[error("it belongs to another filesystem: {0}")]
    Foreign(String),
}

/// Reason why a profile was not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Its figures are impossible or inconsistent.
    #[error("the measured figures are not plausible: {0}")]
    Implausible(String),
    /// It cannot be written as TOML.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Neither `XDG_CONFIG_HOME` nor `HOME` is set.
    #[error("there is no folder for profiles: HOME is not set")]
    NoFolder,
    /// A call failed.
    #[error("cannot write {}: {}", .0.display(), words(.1))]
    File(PathBuf, io::Error),
}

/// The C library's message, without the number that Rust appends.
fn words(error: &io::Error) -> String {
    let errno = Errno::from_io_error(error);
    errno.map_or_else(|| error.to_string(), |errno| ferry_io::Cause::Errno(errno).to_string())
}

/// Folders to search for profiles, in this order.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    folders_of(ferry_io::is_superuser(), |name| std::env::var_os(name))
}

fn folders_of(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let is_alone = variable("FERRY_PROFILES").is_some_and(|value| !value.is_empty());
    let system = (!is_alone && !is_root).then(|| PathBuf::from(SYSTEM));
    written_of(is_root, variable).into_iter().chain(system).collect()
}

/// Folder to write profiles to, if there is one.
fn written_of(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(only) = set("FERRY_PROFILES") {
        return Some(only);
    }
    if is_root {
        return Some(PathBuf::from(SYSTEM));
    }
    // The XDG specification demands that relative paths are ignored.
    let absolute = |path: &PathBuf| path.is_absolute();
    let own = set("XDG_CONFIG_HOME").filter(absolute);
    let own = own.or_else(|| set("HOME").filter(absolute).map(|home| home.join(".config")));
    own.map(|folder| folder.join("ferry/profiles"))
}

/// Checks whether a profile could be written, without creating anything. Called before a measurement of minutes.
///
/// # Errors
/// The reason why not.
pub fn may_write() -> Result<(), NotKept> {
    let folder = written()?;
    reachable(&folder).map_err(|error| NotKept::File(folder, error))
}

fn written() -> Result<PathBuf, NotKept> {
    written_of(ferry_io::is_superuser(), |name| std::env::var_os(name)).ok_or(NotKept::NoFolder)
}

/// Checks that the folder is writable, or else the one in which it would be created.
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

/// Returns true if one of the folders exists. Without any, the filesystem need not be identified. A folder that
/// cannot be examined counts as existing, so that the search reports it.
#[must_use]
pub fn is_there(folders: &[PathBuf]) -> bool {
    let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    folders.iter().any(|folder| !folder.symlink_metadata().is_err_and(is_missing))
}

/// Name of the profile's file for an identity. Characters other than letters, digits, `-` and `_` become `%` and
/// two digits.
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

/// Returns the profile of a filesystem from the first folder that has one. A missing or inaccessible folder counts
/// as empty, because most users have no profiles.
///
/// # Errors
/// The first profile found that cannot be used, with the reason; later folders are not searched.
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

/// Returns every profile in the folders in the order of their names, or the reason why it is not used.
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

fn read_any(path: &Path) -> Result<Profile, Refused> {
    let text = bytes(path)?;
    let text = String::from_utf8(text)
        .map_err(|_| Refused::Malformed(Malformed::Syntax("it is not UTF-8".to_owned())))?;
    let profile = Profile::parse(&text)?;
    profile.check().map_err(Refused::Implausible)?;
    Ok(profile)
}

/// Reads a regular file. O_NONBLOCK keeps open(2) from blocking on a FIFO.
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

/// Writes a profile to this user's folder, which is created if necessary. An existing profile is replaced
/// atomically. Returns the path of the file.
///
/// # Errors
/// [`Profile::check`] refuses the profile, or a call fails; then an existing profile is unchanged.
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

/// Writes under another name until the text is complete and durable, then renames. A link at the path is replaced,
/// not followed.
fn replace(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mode = if ferry_io::is_superuser() { 0o755 } else { 0o700 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    let hidden = folder.join(format!(".ferry-{}.new", std::process::id()));
    let create = || OpenOptions::new().write(true).create_new(true).mode(0o644).open(&hidden);
    let file = match create() {
        // Left by a killed run with the same process number.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&hidden)?;
            create()?
        }
        other => other?,
    };
    let done = fill(file, text).and_then(|()| std::fs::rename(&hidden, path));
    if done.is_err() {
        // The first failure is the one to report.
        std::fs::remove_file(&hidden).ok();
        return done;
    }
    File::open(folder)?.sync_all()
}

fn fill(mut file: File, text: &str) -> io::Result<()> {
    // Independent of the umask, because readers refuse a file that others may write to.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
