//! What is kept of a file's attributes, and in which order.
//!
//! Times first, which nothing that follows changes; then the owner, because chown(2) clears setuid and capabilities;
//! then extended attributes and ACLs, which may need rights that the mode takes away; the mode last, so that nobody is
//! ever allowed more than in the end. Where the owner could not be kept, setuid, setgid and sticky bits are not either.
//!
//! What is overwritten loses first what it allows beyond its source ([`withhold`]).
//!
//! An attribute that can't be kept is told, and costs neither the copy nor the other attributes.

use std::ffi::CStr;

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, Operation, Result as IoResult, Stat, Xattr};

use crate::copier::{Copier, Place};
use crate::entry::names;
use crate::folder::{Facts, Folder};
use crate::mode::New;
use crate::report::{FailureKind, Verb};

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

fn io(verb: Verb) -> impl Fn(Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// Whether what is made in this folder inherits a default ACL.
pub(crate) async fn has_default_acl(dir: &Dir) -> bool {
    dir.as_file()
        .xattrs()
        .await
        // Where it can't be told, it may be.
        .map_or(true, |found| found.iter().any(|(name, _)| name.to_bytes() == DEFAULT_ACL))
}

/// Whether what is made at a place inherits a default ACL.
pub(crate) fn gives_acl(place: &Place<'_>) -> bool {
    // Of an operand's folder it is not known.
    place.folder.facts().is_none_or(|facts| facts.gives_acl)
}

/// Whether a folder's copy inherits a default ACL, if it is to be made.
pub(crate) async fn inherits_acl(folder: &Folder, target_parent: &Dir) -> bool {
    match folder.parent().and_then(|parent| parent.facts()) {
        Some(parent) => parent.gives_acl,
        None => has_default_acl(target_parent).await,
    }
}

/// Sets an access ACL that says just what `mode` says: any other is gone.
pub(crate) async fn set_minimal_acl(subject: &File, mode: u32) -> IoResult<()> {
    subject.set_xattr(c"system.posix_acl_access", &minimal_acl(mode)).await
}

/// Tells of an attribute that could not be kept, which costs the copy nothing else. An error only if the run has been
/// cancelled: then the copy is not whole.
pub(crate) fn told(
    copier: &Copier,
    place: &Place<'_>,
    verb: Verb,
    answer: IoResult<()>,
) -> Result<bool, FailureKind> {
    match answer {
        Ok(()) => Ok(true),
        Err(error) if error.is_cancelled() => Err(io(verb)(error)),
        Err(error) => {
            copier.fail_io(place, verb, error);
            Ok(false)
        }
    }
}

/// A source's extended attributes. That they can't be had is told if they were asked for by name.
///
/// # Errors
/// Only if the run has been cancelled.
pub(crate) fn found(
    copier: &Copier,
    place: &Place<'_>,
    answer: IoResult<Vec<Xattr>>,
) -> Result<Vec<Xattr>, FailureKind> {
    let preserve = copier.options.preserve;
    match answer {
        Ok(xattrs) => return Ok(xattrs),
        Err(error) if preserve.xattr && preserve.xattr_required || error.is_cancelled() => {
            told(copier, place, Verb::ListXattr, Err(error))?;
        }
        Err(_) => {}
    }
    Ok(Vec::new())
}

/// Sets what is kept of a source's attributes on its copy, whose bytes are there; `new` if this run made it.
///
/// # Errors
/// Only if the run has been cancelled; what can't be set is told.
pub(crate) async fn keep(
    copier: &Copier,
    place: &Place<'_>,
    subject: &File,
    source: &Stat,
    xattrs: &[Xattr],
    new: Option<New>,
) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    let is_link = source.kind == FileKind::Symlink;
    let keeps_mode = preserve.mode && !is_link;
    if preserve.timestamps && !is_link {
        told(copier, place, Verb::SetTimes, subject.set_times(source.times).await)?;
    }
    let mut mode = source.mode;
    if preserve.ownership {
        match keep_owner(copier, place, subject, source).await? {
            Owner::Kept => {}
            // What a sticky folder protects does not depend on whose it is.
            Owner::NotExpected if source.kind == FileKind::Directory => mode &= 0o1777,
            Owner::NotExpected if source.kind == FileKind::Regular => mode &= 0o777,
            Owner::NotExpected => {}
            // Whose it is now was never meant: it stays as private as it was made.
            Owner::Lost => return Ok(()),
        }
    }
    if preserve.timestamps && is_link {
        told(copier, place, Verb::SetTimes, subject.set_times(source.times).await)?;
    }
    if preserve.xattr {
        keep_xattrs(copier, place, subject, xattrs).await?;
    }
    if keeps_mode {
        let may_have_acl = new.is_none_or(|new| new.inherits_acl);
        let kept = keep_acl(subject, xattrs, source.mode, may_have_acl).await;
        let is_kept = told(copier, place, Verb::SetAcl, kept)?;
        let set = subject.set_mode(mode).await;
        // Where neither can be set, one of them is told.
        if is_kept || set.is_err_and(|error| error.is_cancelled()) {
            told(copier, place, Verb::SetMode, set)?;
        }
    }
    match new {
        Some(new) => new.settle(copier, place, subject).await,
        None => Ok(()),
    }
}

/// Takes from a file that is to be overwritten what it allows beyond its source, before it holds anything of that: those
/// who may read it until then, or run it as its owner, may do so no more. Returns true if it took anything. A refusal is
/// reported when the attribute is to be set.
pub(crate) async fn withhold(copier: &Copier, file: &File, existing: &Stat, source: &Stat) -> bool {
    let preserve = copier.options.preserve;
    let is_anothers = preserve.ownership && (existing.uid, existing.gid) != (source.uid, source.gid);
    let allows_more = existing.mode & !source.mode & 0o7077 != 0;
    let withholds_mode = preserve.mode && (is_anothers || allows_more || allows_by_acl(file, existing).await);
    if withholds_mode {
        file.set_mode(0o600).await.ok();
    }
    let withholds_owner = is_anothers && copier.is_root;
    if withholds_owner {
        file.set_owner(Some(source.uid), Some(source.gid)).await.ok();
    }
    withholds_mode || withholds_owner
}

/// Returns true if an ACL may give access that the mode does not show. The group's bits are its mask: without them no
/// entry gives anything (acl(5)).
async fn allows_by_acl(file: &File, existing: &Stat) -> bool {
    // Where it can't be found out, there may be one.
    existing.mode & 0o070 != 0
        && file
            .xattrs()
            .await
            .map_or(true, |found| found.iter().any(|(name, _)| name.to_bytes() == ACCESS_ACL))
}

/// Gives a file back what [`withhold`] took from it.
pub(crate) async fn give_back(copier: &Copier, file: &File, existing: &Stat) {
    // It is to be left as it was, and the reason has been reported.
    if copier.is_root {
        file.set_owner(Some(existing.uid), Some(existing.gid)).await.ok();
    }
    file.set_mode(existing.mode).await.ok();
}

/// Attributes of a file that an atomic copy replaces.
pub(crate) struct Replaced {
    stat: Stat,
    xattrs: Vec<Xattr>,
}

impl Replaced {
    /// Reads the attributes of `existing`; `None` if `name` is no longer that file.
    pub(crate) async fn of(dir: &Dir, name: &Name, existing: &Stat) -> IoResult<Option<Self>> {
        let found = async {
            let xattrs = dir.entry_xattrs(name).await?;
            Ok(Self { stat: dir.stat_entry(name, false).await?, xattrs })
        };
        match found.await {
            Ok(found) => Ok(Some(found).filter(|found| found.stat.is_same_file(existing))),
            Err(error) if Error::is(&error, Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Gives the copy that is to replace a file those of its attributes that overwriting it would have kept: owner, extended
/// attributes with the ACL, and mode, unless the source's are kept.
///
/// # Errors
/// Only if the run has been cancelled; what can't be set is reported.
pub(crate) async fn keep_replaced(
    copier: &Copier,
    place: &Place<'_>,
    file: &File,
    replaced: &Replaced,
) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    // Of what a user writes to, the kernel takes setuid and setgid.
    let mut mode = if copier.is_root { replaced.stat.mode } else { replaced.stat.mode & 0o1777 };
    if !preserve.ownership {
        match keep_owner(copier, place, file, &replaced.stat).await? {
            Owner::Kept => {}
            Owner::NotExpected => mode &= 0o777,
            // Another owner was never meant to have access: it stays as private as it was made.
            Owner::Lost => return Ok(()),
        }
    }
    for (name, value) in replaced.xattrs.iter().filter(|(name, _)| is_left_by_writing(name)) {
        let set = match file.set_xattr(name, value).await {
            // Only root may set those of other namespaces.
            Err(error) if !name.to_bytes().starts_with(b"user.") && error.is(Errno::PERM) => Ok(()),
            answer => supported(answer),
        };
        told(copier, place, Verb::SetXattr, set)?;
    }
    if preserve.mode {
        return Ok(());
    }
    let kept = keep_acl(file, &replaced.xattrs, mode, true).await;
    told(copier, place, Verb::SetAcl, kept)?;
    told(copier, place, Verb::SetMode, file.set_mode(mode).await).map(drop)
}

/// Returns true for attributes that a file keeps when it is written to. It loses its capabilities, and what was measured
/// of its bytes.
fn is_left_by_writing(name: &CStr) -> bool {
    const LOST: [&[u8]; 2] = [b"security.capability", b"security.ima"];
    !is_acl(name) && !is_of_its_filesystem(name) && !LOST.contains(&name.to_bytes())
}

/// What became of the owner.
enum Owner {
    Kept,
    /// Only root could, and this is not root.
    NotExpected,
    Lost,
}

async fn keep_owner(
    copier: &Copier,
    place: &Place<'_>,
    subject: &File,
    source: &Stat,
) -> Result<Owner, FailureKind> {
    if subject.stat().await.is_ok_and(|made| (made.uid, made.gid) == (source.uid, source.gid)) {
        return Ok(Owner::Kept);
    }
    match subject.set_owner(Some(source.uid), Some(source.gid)).await {
        // What only root may do is not expected of others; the group alone, as far as it goes.
        Err(error) if !copier.is_root && (error.is(Errno::PERM) || error.is(Errno::INVAL)) => {
            subject.set_owner(None, Some(source.gid)).await.ok();
            Ok(Owner::NotExpected)
        }
        answer => match told(copier, place, Verb::SetOwner, answer)? {
            true => Ok(Owner::Kept),
            false => Ok(Owner::Lost),
        },
    }
}

async fn keep_xattrs(
    copier: &Copier,
    place: &Place<'_>,
    subject: &File,
    xattrs: &[Xattr],
) -> Result<(), FailureKind> {
    for (name, value) in xattrs.iter().filter(|(name, _)| !is_acl(name) && !is_of_its_filesystem(name)) {
        let answer = match subject.set_xattr(name, value).await {
            Err(error) if error.is(Errno::ACCESS) => {
                set_xattr_of_unwritable(subject, name, value, error).await
            }
            answer => answer,
        };
        // Otherwise it is what the filesystem can't hold, and nobody asked for by name.
        if copier.options.preserve.xattr_required || answer.is_err_and(|error| error.is_cancelled()) {
            told(copier, place, Verb::SetXattr, answer)?;
        }
    }
    Ok(())
}

/// Sets an attribute of what its own mode forbids to write to: its owner may meanwhile.
async fn set_xattr_of_unwritable(subject: &File, name: &CStr, value: &[u8], refused: Error) -> IoResult<()> {
    let mode = subject.stat().await?.mode & 0o7777;
    if mode & 0o200 != 0 || subject.set_mode(mode | 0o200).await.is_err() {
        return Err(refused);
    }
    let set = subject.set_xattr(name, value).await;
    subject.set_mode(mode).await.and(set)
}

/// Attributes that mean something only where they are, or are another view of what is kept anyway (XFS's ACLs): the
/// `skip` lines of xattr.conf(5), which cp heeds.
fn is_of_its_filesystem(name: &CStr) -> bool {
    const SKIPPED: [&[u8]; 5] = [b"trusted.SGI_", b"security.evm", b"user.Beagle.", b"afs.", b"xfsroot."];
    SKIPPED.iter().any(|skipped| name.to_bytes().starts_with(skipped))
}

fn is_acl(name: &CStr) -> bool {
    name.to_bytes() == ACCESS_ACL || name.to_bytes() == DEFAULT_ACL
}

/// Sets the source's ACLs, and takes away those that the target has from elsewhere.
async fn keep_acl(subject: &File, xattrs: &[Xattr], mode: u32, may_have: bool) -> IoResult<()> {
    let mut has_access = false;
    let mut kept = Ok(());
    for (name, value) in xattrs.iter().filter(|(name, _)| is_acl(name)) {
        let set = subject.set_xattr(name, value).await;
        let is_lost = name.to_bytes() == DEFAULT_ACL || says_more_than_mode(value);
        has_access |= name.to_bytes() == ACCESS_ACL && set.is_ok();
        let set = if is_lost { set } else { supported(set) };
        kept = kept.and(set);
    }
    if !has_access && may_have {
        // Where its own can't be set, what the folder has given it is not left either.
        let set = set_minimal_acl(subject, mode).await;
        kept = kept.and(supported(set));
    }
    kept
}

/// A filesystem without ACLs gives none to anything.
fn supported(answer: IoResult<()>) -> IoResult<()> {
    match answer {
        Err(error) if error.is(Errno::OPNOTSUPP) => Ok(()),
        answer => answer,
    }
}

/// Whether an ACL has other entries than the three of the mode, and so would be lost on a filesystem without ACLs.
fn says_more_than_mode(acl: &[u8]) -> bool {
    acl.len() > minimal_acl(0).len()
}

/// The ACL that says just what the mode says (acl(5)); the kernel stores none for it. Version 2, then owner, group and
/// others, each tag, permissions and an unused identifier, little endian.
fn minimal_acl(mode: u32) -> Vec<u8> {
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, shift) in [(0x01_u16, 6), (0x04, 3), (0x20, 0)] {
        acl.extend_from_slice(&tag.to_le_bytes());
        let bits = u16::try_from(mode >> shift & 7).unwrap_or_default();
        acl.extend_from_slice(&bits.to_le_bytes());
        acl.extend_from_slice(&u32::MAX.to_le_bytes());
    }
    acl
}

/// The ACL of no entries, which removes a default ACL.
fn no_acl() -> Vec<u8> {
    2_u32.to_le_bytes().to_vec()
}

/// Whether there is anything to set on a finished folder.
pub(crate) fn changes_folder(copier: &Copier, folder: &Folder, facts: &Facts) -> bool {
    let preserve = copier.options.preserve;
    let keeps = preserve.mode || preserve.timestamps || preserve.ownership || preserve.xattr;
    keeps || New::of(folder, facts).is_some_and(|new| new.is_unsettled(copier))
}

/// Sets what is kept on a finished folder.
pub(crate) async fn keep_folder(
    copier: &Copier,
    place: &Place<'_>,
    facts: &Facts,
    target: &Dir,
) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    let subject = &target.as_file();
    let has_default = facts.xattrs.iter().any(|(name, _)| name.to_bytes() == DEFAULT_ACL);
    if preserve.mode && facts.gives_acl && !has_default {
        let kept = supported(subject.set_xattr(c"system.posix_acl_default", &no_acl()).await);
        told(copier, place, Verb::SetAcl, kept)?;
    }
    keep(copier, place, subject, &facts.source, &facts.xattrs, New::of(place.folder, facts)).await
}

/// Whether there is anything to set on a new link or special file.
pub(crate) fn changes_entry(copier: &Copier, place: &Place<'_>, source: &Stat) -> bool {
    let preserve = copier.options.preserve;
    let keeps = preserve.timestamps || preserve.ownership || preserve.xattr;
    let settles = || preserve.mode || New::entry(place, source.kind, source.mode).is_unsettled(copier);
    keeps || source.kind != FileKind::Symlink && settles()
}

/// Opens a link or special file that this run has just made, only to be changed. Whoever may write to its folder could
/// have put something else there, to have that given to another owner or made accessible; so it must be new.
///
/// # Errors
/// The kernel's; ESTALE if something else has the name.
pub(crate) async fn reach_made(
    copier: &Copier,
    dir: &Dir,
    name: &Name,
    source: &Stat,
) -> IoResult<(File, Stat)> {
    let file = dir.reach(name).await?;
    let made = file.identify().await?;
    let is_device = matches!(source.kind, FileKind::CharDevice | FileKind::BlockDevice);
    let is_like = made.kind == source.kind && (!is_device || made.special == source.special);
    // Some filesystems in user space count no names.
    if is_like && made.links <= 1 && is_own(copier, dir, &made).await {
        Ok((file, made))
    } else {
        Err(Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) })
    }
}

/// Whether something belongs to the owner that new files of this folder have: the user, unless the filesystem gives them
/// another. Where that can't be found out, it is taken for granted.
async fn is_own(copier: &Copier, dir: &Dir, made: &Stat) -> bool {
    if made.uid == copier.user {
        return true;
    }
    match dir.open_unnamed(0o600).await {
        Ok(file) => file.stat().await.is_ok_and(|own| own.uid == made.uid),
        Err(_) => true,
    }
}

/// Sets what is kept on a link or special file that was reached.
pub(crate) async fn keep_entry(
    copier: &Copier,
    place: &Place<'_>,
    subject: &File,
    source: &Stat,
) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    let mut xattrs = Vec::new();
    if preserve.xattr || preserve.mode && source.kind != FileKind::Symlink {
        let (source_dir, _) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::SetOwner))?;
        xattrs = found(copier, place, source_dir.entry_xattrs(names(place).0).await)?;
    }
    let new = New::entry(place, source.kind, source.mode);
    keep(copier, place, subject, source, &xattrs, Some(new)).await
}

#[cfg(test)]
mod tests;
