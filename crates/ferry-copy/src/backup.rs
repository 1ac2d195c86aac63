//! Backups of what is at the target: what they are called, and how they are made and taken back.
//!
//! What is there gets another name by rename(2), whatever it is; a copy that fails afterwards gives it its name back.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use ferry_io::{Cause, Dir, Errno, Error, Name, Operation, protect};

use crate::copier::{Copier, Place};
use crate::entry::names;
use crate::report::{FailureKind, Verb};

#[cfg(test)]
mod tests;

/// Longer names are cut, as cp cuts them: one less than NAME_MAX of limits.h.
const LONGEST: usize = 254;
/// How often a name that somebody else has taken meanwhile is looked for anew.
const ATTEMPTS: u32 = 100;

/// How what is replaced is kept (`--backup`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Which names backups get.
    pub control: Control,
    /// What simple ones end with; not empty, without a slash.
    pub suffix: OsString,
}

/// Which names backups get (`VERSION_CONTROL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The suffix, whatever has that name.
    Simple,
    /// Numbered where there is a numbered one already, else simple.
    Existing,
    /// `.~1~` and so on, one more than the highest there.
    Numbered,
}

/// A backup's name while the names beside the original are looked through.
pub struct Naming<'a> {
    backup: &'a Backup,
    original: &'a [u8],
    /// Of the numbered ones; its digits, without zeros in front.
    highest: Vec<u8>,
}

impl Backup {
    /// Begins to look for a name.
    #[must_use]
    pub fn of<'a>(&'a self, original: &'a OsStr) -> Naming<'a> {
        Naming { backup: self, original: original.as_bytes(), highest: Vec::new() }
    }

    fn simple(&self, original: &[u8]) -> Vec<u8> {
        let name = [original, self.suffix.as_bytes()].concat();
        if name.len() <= LONGEST {
            return name;
        }
        cut(original)
    }
}

/// The name of a backup whose own would be too long.
fn cut(original: &[u8]) -> Vec<u8> {
    [&original[..original.len().min(LONGEST - 1)], b"~"].concat()
}

impl Naming<'_> {
    /// Takes a name of the same folder into account.
    pub fn see(&mut self, name: &OsStr) {
        let number = name.as_bytes().strip_prefix(self.original).and_then(|rest| rest.strip_prefix(b".~"));
        let Some(digits) = number.and_then(|rest| rest.strip_suffix(b"~")) else { return };
        let is_number = digits.first().is_some_and(|first| *first != b'0')
            && digits.iter().all(u8::is_ascii_digit)
            && digits.len() < LONGEST;
        let highest = &self.highest;
        if is_number && (digits.len(), digits) > (highest.len(), highest.as_slice()) {
            self.highest = digits.to_vec();
        }
    }

    /// Whether the name depends on what is in the folder.
    #[must_use]
    pub fn looks_around(&self) -> bool {
        self.backup.control != Control::Simple
    }

    /// Whether the name is that of no backup before it.
    fn is_numbered(&self) -> bool {
        match self.backup.control {
            Control::Simple => false,
            Control::Existing => !self.highest.is_empty(),
            Control::Numbered => true,
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> OsString {
        if !self.is_numbered() {
            return OsString::from_vec(self.backup.simple(self.original));
        }
        let name = [self.original, b".~", &next(&self.highest), b"~"].concat();
        OsString::from_vec(if name.len() <= LONGEST { name } else { cut(self.original) })
    }
}

/// One more, in decimal digits.
fn next(digits: &[u8]) -> Vec<u8> {
    let mut digits = digits.to_vec();
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return digits;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    digits
}

fn io(error: Error) -> FailureKind {
    FailureKind::Io { verb: Verb::BackUp, error }
}

/// Looks for the name of an entry's backup; the name, and whether it is a numbered one.
async fn find(dir: &Dir, backup: &Backup, original: &Name) -> ferry_io::Result<(OsString, bool)> {
    let mut naming = backup.of(original.as_os_str());
    // From the start, and then from the descriptor's own position.
    let mut from = Some(0);
    let mut is_over = !naming.looks_around();
    while !is_over {
        is_over = match dir.list(from).await {
            Ok(found) => {
                found.entries.iter().for_each(|entry| naming.see(entry.name.as_os_str()));
                found.next.is_none()
            }
            // It may be searched, but not listed.
            Err(error) if error.is(Errno::BADF) => true,
            Err(error) => return Err(error),
        };
        from = None;
    }
    Ok((naming.name(), naming.is_numbered()))
}

/// Whether the source is what the backup would take the place of.
pub(crate) async fn destroys_source(
    copier: &Copier,
    place: Place<'_>,
    backup: &Backup,
) -> Result<bool, FailureKind> {
    let (source_dir, target_dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let (source, target) = names(&place);
    if backup.control == Control::Numbered {
        return Ok(false);
    }
    let Some(lost) = Name::new(&backup.simple(target.as_bytes())) else { return Ok(false) };
    let Ok(lost_stat) = target_dir.stat_entry(&lost, false).await else { return Ok(false) };
    let is_led_to = match source_dir.stat_entry(source, false).await {
        Ok(itself) if itself.kind == ferry_io::FileKind::Symlink => {
            source_dir.stat_entry(source, true).await.is_ok_and(|led| led.is_same_file(&lost_stat))
        }
        Ok(itself) => source.as_bytes() == lost.as_bytes() && itself.is_same_file(&lost_stat),
        Err(_) => false,
    };
    if !is_led_to || backup.control == Control::Simple {
        return Ok(is_led_to);
    }
    // Numbered ones take no name that is taken.
    let _turn = copier.backing_up.acquire().await.map_err(io)?;
    find(&target_dir, backup, target).await.map(|(_, is_numbered)| !is_numbered).map_err(io)
}

/// Gives what is at the target its backup's name, which is given back; `None` if nothing is there any more.
pub(crate) async fn make(copier: &Copier, place: Place<'_>) -> Result<Option<Name>, FailureKind> {
    let Some(backup) = &copier.options.backup else { return Ok(None) };
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io)?;
    let original = names(&place).1;
    // A listing has one position, and two would find the same number free.
    let _turn = copier.backing_up.acquire().await.map_err(io)?;
    let mut last = Errno::EXIST;
    for _ in 0..ATTEMPTS {
        let (found, is_numbered) = find(&dir, backup, original).await.map_err(io)?;
        let Some(name) = Name::new(found.as_bytes()) else {
            last = Errno::NAMETOOLONG;
            break;
        };
        match protect(dir.rename(original, &dir, &name, !is_numbered)).await {
            Ok(()) => {
                if !is_numbered {
                    // rename(2) leaves both where they are names of one file.
                    leave_name(&dir, original, &name).await.map_err(io)?;
                }
                return Ok(Some(name));
            }
            Err(error) if error.is(Errno::NOENT) => return Ok(None),
            // A name that was cut is the same the next time.
            Err(error) if is_numbered && error.is(Errno::EXIST) && !is_cut(original, &name) => {}
            Err(error) => return Err(io(error)),
        }
    }
    Err(io(Error { operation: Operation::Rename, cause: Cause::Errno(last) }))
}

fn is_cut(original: &Name, backup: &Name) -> bool {
    backup.as_bytes() == cut(original.as_bytes())
}

async fn leave_name(dir: &Dir, original: &Name, backup: &Name) -> ferry_io::Result<()> {
    let (Ok(left), Ok(made)) = (dir.stat_entry(original, false).await, dir.stat_entry(backup, false).await)
    else {
        return Ok(());
    };
    if left.is_same_file(&made) { dir.unlink(original).await } else { Ok(()) }
}

/// The path of a backup.
pub(crate) fn path(place: &Place<'_>, backup: &Name) -> PathBuf {
    place.folder.target_path().join(backup.as_os_str())
}

/// Gives a backup the name back that it had, because the copy has failed; what can't be given back is told.
pub(crate) async fn take_back(copier: &Copier, place: Place<'_>, backup: Option<&Name>) {
    let Some(backup) = backup else { return };
    let taken_back = protect(async {
        let (_, dir) = place.folder.dirs(&copier.open_folders).await?;
        dir.rename(backup, &dir, names(&place).1, false).await
    });
    match taken_back.await {
        Ok(()) if copier.options.verbose => {
            copier.observer.taken_back(&path(&place, backup), &place.target_path());
        }
        Ok(()) => {}
        Err(error) => copier.fail_io(&place, Verb::TakeBack, error),
    }
}
