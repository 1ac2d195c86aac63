//! Setting attributes alone: those of the source, and no others.

use std::ffi::CStr;
use std::sync::Arc;

use ferry_io::{Errno, File, FileKind, Stat, Xattr, protect};

use super::own::OwnTimes;
use crate::acl;
use crate::folder::{Dirs, Folder};
use crate::meta;
use crate::mode::TargetMode;
use crate::place::{Entry, Subject};
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Returns true for an extended attribute that a copy takes over, ACLs among them. Others belong to their filesystem.
#[must_use]
pub fn is_kept_xattr(name: &CStr) -> bool {
    !meta::is_of_its_filesystem(name)
}

/// Returns true if a target is as complete as its times say: they are set after its bytes, and only then its mode.
#[must_use]
pub fn is_complete(source: &Stat, target: &Stat) -> bool {
    let (wanted, found) = (source.times.modified, target.times.modified);
    // Some filesystems keep whole seconds only.
    let is_dated = wanted == found || found.nanoseconds == 0 && wanted.seconds == found.seconds;
    let is_sized = source.kind != FileKind::Regular || source.size == target.size;
    source.kind == target.kind && source.special == target.special && is_sized && is_dated
}

/// Returns the mode that the copy of a source gets if its owner can't be kept: without setuid and setgid, and for files
/// without the sticky bit.
#[must_use]
pub fn kept_mode(kind: FileKind, mode: u32) -> u32 {
    match kind {
        FileKind::Directory => mode & 0o1777,
        FileKind::Regular => mode & 0o777,
        FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice => mode,
    }
}

/// Sets the attributes of an entry's target, if both sides are the files that the caller saw and nothing was written to
/// them since: with the times of a later source, an older copy would count as equal.
pub(super) async fn set(
    run: &Run,
    own: &OwnTimes,
    entry: Entry<'_>,
    source: &Stat,
    target: &Stat,
) -> Result<(), FailureKind> {
    let Opened { file, found, itself, xattrs } = open(run, entry).await?;
    if !own.is_version(&found, target) || !own.is_version(&itself, source) {
        return Err(FailureKind::Changed);
    }
    // Not cancellable: a mode that is set without its owner could give access.
    protect(async {
        set_open(run, entry.into(), &file, &itself, &xattrs).await?;
        if found.links > 1 {
            own.note(&file.stat().await.during(Verb::StatTarget)?, itself.times.modified);
        }
        Ok(())
    })
    .await
}

/// Sets the attributes of a target that was overwritten, because it keeps those that its source lacks. Its time is the
/// one that the caller saw: a source that was written to since counts as changed.
pub(super) async fn set_overwritten(
    run: &Run,
    entry: Entry<'_>,
    source: &Stat,
    target: &Stat,
) -> Result<(), FailureKind> {
    let Opened { file, found, mut itself, xattrs } = open(run, entry).await?;
    if !found.is_same_file(target) || !itself.is_same_file(source) {
        return Err(FailureKind::Changed);
    }
    itself.times.modified = source.times.modified;
    protect(set_open(run, entry.into(), &file, &itself, &xattrs)).await
}

/// Both sides of an entry as they are now.
struct Opened {
    /// The target, without access to its content.
    file: File,
    /// Attributes of the target.
    found: Stat,
    /// Attributes of the source.
    itself: Stat,
    /// Extended attributes of the source.
    xattrs: Vec<Xattr>,
}

async fn open(run: &Run, entry: Entry<'_>) -> Result<Opened, FailureKind> {
    let dirs = run.dirs(entry.folder).await.during(Verb::StatTarget)?;
    let file = unless_gone(dirs.target.reach(entry.target).await, Verb::StatTarget)?;
    let found = file.stat().await.during(Verb::StatTarget)?;
    let itself = unless_gone(dirs.source.stat_entry(entry.source, false).await, Verb::Stat)?;
    let xattrs = meta::found(run, entry.into(), dirs.source.entry_xattrs(entry.source).await)?;
    Ok(Opened { file, found, itself, xattrs })
}

fn unless_gone<T>(found: ferry_io::Result<T>, verb: Verb) -> Result<T, FailureKind> {
    match found {
        Err(error) if error.is(Errno::NOENT) => Err(FailureKind::Changed),
        found => found.during(verb),
    }
}

/// Sets the attributes of a folder's target.
pub(super) async fn set_folder(run: &Run, folder: &Arc<Folder>) -> Result<(), FailureKind> {
    let Dirs { source, target } = run.dirs(folder).await.during(Verb::StatTarget)?;
    let stat = source.stat().await.during(Verb::Stat)?;
    let xattrs = meta::found(run, Subject::Folder(folder), source.as_file().xattrs().await)?;
    protect(set_open(run, Subject::Folder(folder), &target.as_file(), &stat, &xattrs)).await
}

async fn set_open(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    source: &Stat,
    xattrs: &[Xattr],
) -> Result<(), FailureKind> {
    let found = meta::found(run, subject, file.xattrs().await)?;
    let is_wanted = |name: &CStr| xattrs.iter().any(|(wanted, _)| wanted.as_c_str() == name);
    // An access ACL is replaced together with the mode, which it is a part of.
    let is_removed = |name: &CStr| is_kept_xattr(name) && !acl::is_access(name) && !is_wanted(name);
    for (name, _) in found.iter().filter(|(name, _)| is_removed(name)) {
        let removed = match file.remove_xattr(name).await {
            Err(error) if error.is(Errno::ACCESS) => {
                meta::while_writable(file, error, async || file.remove_xattr(name).await).await
            }
            // Gone already; or of a namespace that only root may change.
            Err(error) if error.is(Errno::NODATA) => Ok(()),
            Err(error) if error.is(Errno::PERM) && !name.to_bytes().starts_with(b"user.") => Ok(()),
            answer => acl::supported(answer),
        };
        run.note_attribute(subject, Verb::SetXattr, removed)?;
    }
    let mode = TargetMode::existing(source.kind, source.mode, acl::holds_access(&found));
    meta::keep(run, subject, file, source, xattrs, Some(mode)).await
}
