//! Attributes kept of a source, and the safe order of setting them.
//!
//! 1. Times: nothing that follows changes them.
//! 2. Owner: chown(2) clears setuid and capabilities.
//! 3. Extended attributes and ACLs: setting them may need rights that the mode takes away.
//! 4. Mode: last, so that nobody is ever allowed more than in the end.
//!
//! A small file without extended attributes, with the owner and group that new files get, has its mode from its
//! creation ([`ferry_io::NewMode::is_whole`]; guard: `a_plain_file_is_created_with_its_final_mode`).
//! If the owner could not be kept, setuid, setgid and sticky bits are not kept either. A target that is overwritten
//! first loses the access that its source does not give ([`withhold`]). An attribute that can't be kept is reported,
//! and costs neither the copy nor the other attributes.

use std::ffi::CStr;
use std::sync::Arc;

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, Operation, Result as IoResult, Stat, Xattr};

use crate::acl;
use crate::folder::{Facts, Folder};
use crate::mode::{SET_GROUP_ID, TargetMode};
use crate::place::{Entry, Subject};
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Returns true if a folder's new copy inherits a default ACL.
pub(crate) async fn inherits_acl(folder: &Folder, target_parent: &Dir) -> bool {
    match folder.parent().and_then(|parent| parent.facts()) {
        Some(parent) => parent.gives_acl,
        None => acl::has_default(target_parent).await,
    }
}

/// Returns a source's extended attributes. An error is reported if they were asked for by name.
///
/// # Errors
/// Only if the run has been cancelled.
pub(crate) fn found(
    run: &Run,
    subject: Subject<'_>,
    answer: IoResult<Vec<Xattr>>,
) -> Result<Vec<Xattr>, FailureKind> {
    let preserve = run.options.preserve;
    match answer {
        Ok(xattrs) => return Ok(xattrs),
        Err(error) if preserve.xattr && preserve.xattr_required || error.is_cancelled() => {
            run.note_attribute(subject, Verb::ListXattr, Err(error))?;
        }
        Err(_) => {}
    }
    Ok(Vec::new())
}

/// Sets the kept attributes of a source on its filled copy; `new` if this run made it.
///
/// # Errors
/// Only if the run has been cancelled; an attribute that can't be set is reported.
pub(crate) async fn keep(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    source: &Stat,
    xattrs: &[Xattr],
    new: Option<TargetMode>,
) -> Result<(), FailureKind> {
    keep_made(run, subject, file, (source, xattrs), new, None).await
}

/// Like [`keep`], for a copy that was made with this owner and group, if they are known.
async fn keep_made(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    (source, xattrs): (&Stat, &[Xattr]),
    new: Option<TargetMode>,
    made_with: Option<(u32, u32)>,
) -> Result<(), FailureKind> {
    let preserve = run.options.preserve;
    let is_link = source.kind == FileKind::Symlink;
    let keeps_mode = preserve.mode && !is_link;
    if !is_link {
        keep_times(run, subject, file, source).await?;
    }
    let mut mode = source.mode;
    if preserve.ownership && made_with != Some((source.uid, source.gid)) {
        match keep_owner(run, subject, file, source).await? {
            Owner::Kept => {}
            // The sticky bit protects a folder's entries under any owner.
            Owner::NotExpected if source.kind == FileKind::Directory => mode &= 0o1777,
            Owner::NotExpected if source.kind == FileKind::Regular => mode &= 0o777,
            Owner::NotExpected => {}
            // Another owner was never meant to have access: it stays as private as it was made.
            Owner::Lost => return Ok(()),
        }
    }
    if is_link {
        keep_times(run, subject, file, source).await?;
    }
    if preserve.xattr {
        keep_xattrs(run, subject, file, xattrs).await?;
    }
    if keeps_mode && would_lose_bit(run, file, mode, xattrs).await {
        run.note_attribute(subject, Verb::SetAcl, acl::keep_default(file, xattrs).await)?;
    } else if keeps_mode {
        let may_have_acl = new.is_none_or(|new| new.inherits_acl);
        let kept = acl::keep(file, xattrs, source.mode, may_have_acl).await;
        let is_kept = run.note_attribute(subject, Verb::SetAcl, kept)?;
        let set = file.set_mode(mode).await;
        // If neither can be set, one of them is reported.
        if is_kept || set.is_err_and(|error| error.is_cancelled()) {
            run.note_attribute(subject, Verb::SetMode, set)?;
        }
    }
    match new {
        Some(new) => new.settle(run, subject, file).await,
        None => Ok(()),
    }
}

/// Returns true if a target has its mode and its access ACL, and setting them once more would clear the set-group-ID bit: chmod(2)
/// and setting an access ACL do so for a user outside the group.
async fn would_lose_bit(run: &Run, file: &File, mode: u32, xattrs: &[Xattr]) -> bool {
    if run.user.is_root || mode & SET_GROUP_ID == 0 {
        return false;
    }
    let has_mode =
        file.stat().await.is_ok_and(|found| found.mode & 0o7777 == mode && !run.user.is_in(found.gid));
    has_mode && file.xattrs().await.is_ok_and(|found| acl::access(&found) == acl::access(xattrs))
}

/// Sets the times of a source on its filled copy, if they are kept.
///
/// # Errors
/// Only if the run has been cancelled; times that can't be set are reported.
pub(crate) async fn keep_times(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    source: &Stat,
) -> Result<(), FailureKind> {
    if run.options.preserve.timestamps {
        run.note_attribute(subject, Verb::SetTimes, file.set_times(source.times).await)?;
    }
    Ok(())
}

/// Takes from a file that is to be overwritten the access that its source does not give, before it holds the source's
/// bytes. Returns true if it took any. A refusal is reported when the attribute is to be set.
pub(crate) async fn withhold(run: &Run, file: &File, existing: &Stat, source: &Stat) -> bool {
    let preserve = run.options.preserve;
    let is_anothers = preserve.ownership && (existing.uid, existing.gid) != (source.uid, source.gid);
    let allows_more = existing.mode & !source.mode & 0o7077 != 0;
    let withholds_mode =
        preserve.mode && (is_anothers || allows_more || acl::allows_more(file, existing).await);
    if withholds_mode {
        file.set_mode(0o600).await.ok();
    }
    let withholds_owner = is_anothers && run.user.is_root;
    if withholds_owner {
        file.set_owner(Some(source.uid), Some(source.gid)).await.ok();
    }
    withholds_mode || withholds_owner
}

/// Gives a file back what [`withhold`] took from it.
pub(crate) async fn give_back(run: &Run, file: &File, existing: &Stat) {
    // Errors are ignored: the failure that made this necessary has been reported.
    if run.user.is_root {
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

/// Gives the copy that is to replace a file those of its attributes that overwriting it would have kept: owner,
/// extended attributes with the ACL, and mode, unless the source's are kept.
///
/// # Errors
/// Only if the run has been cancelled; an attribute that can't be set is reported.
pub(crate) async fn keep_replaced(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    replaced: &Replaced,
) -> Result<(), FailureKind> {
    let preserve = run.options.preserve;
    // Of what a user writes to, the kernel takes setuid and setgid.
    let mut mode = if run.user.is_root { replaced.stat.mode } else { replaced.stat.mode & 0o1777 };
    if !preserve.ownership {
        match keep_owner(run, subject, file, &replaced.stat).await? {
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
            answer => acl::supported(answer),
        };
        run.note_attribute(subject, Verb::SetXattr, set)?;
    }
    if preserve.mode {
        return Ok(());
    }
    let kept = acl::keep(file, &replaced.xattrs, mode, true).await;
    run.note_attribute(subject, Verb::SetAcl, kept)?;
    run.note_attribute(subject, Verb::SetMode, file.set_mode(mode).await).map(drop)
}

/// Returns true for extended attributes that survive a write. The kernel removes capabilities, and IMA's hash no longer
/// matches.
fn is_left_by_writing(name: &CStr) -> bool {
    const LOST: [&[u8]; 2] = [b"security.capability", b"security.ima"];
    !acl::is_acl(name) && !is_of_its_filesystem(name) && !LOST.contains(&name.to_bytes())
}

/// Outcome of setting the owner.
enum Owner {
    Kept,
    /// Only root may set it, and this is not root.
    NotExpected,
    Lost,
}

async fn keep_owner(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    source: &Stat,
) -> Result<Owner, FailureKind> {
    if file.stat().await.is_ok_and(|made| (made.uid, made.gid) == (source.uid, source.gid)) {
        return Ok(Owner::Kept);
    }
    match file.set_owner(Some(source.uid), Some(source.gid)).await {
        // Others than root can set the group alone, and not any.
        Err(error) if !run.user.is_root && (error.is(Errno::PERM) || error.is(Errno::INVAL)) => {
            file.set_owner(None, Some(source.gid)).await.ok();
            Ok(Owner::NotExpected)
        }
        answer => match run.note_attribute(subject, Verb::SetOwner, answer)? {
            true => Ok(Owner::Kept),
            false => Ok(Owner::Lost),
        },
    }
}

async fn keep_xattrs(
    run: &Run,
    subject: Subject<'_>,
    file: &File,
    xattrs: &[Xattr],
) -> Result<(), FailureKind> {
    for (name, value) in xattrs.iter().filter(|(name, _)| !acl::is_acl(name) && !is_of_its_filesystem(name)) {
        let answer = match file.set_xattr(name, value).await {
            Err(error) if error.is(Errno::ACCESS) => {
                while_writable(file, error, async || file.set_xattr(name, value).await).await
            }
            answer => answer,
        };
        // Attributes that were not asked for by name may be lost without a report.
        if run.options.preserve.xattr_required || answer.is_err_and(|error| error.is_cancelled()) {
            run.note_attribute(subject, Verb::SetXattr, answer)?;
        }
    }
    Ok(())
}

/// Changes an attribute of a file whose mode forbids writing, which was refused; its owner may write to it meanwhile.
///
/// # Errors
/// Those of the change; `refused` if the mode is not the reason.
pub(crate) async fn while_writable(
    file: &File,
    refused: Error,
    change: impl AsyncFnOnce() -> IoResult<()>,
) -> IoResult<()> {
    let mode = file.stat().await?.mode & 0o7777;
    if mode & 0o200 != 0 || file.set_mode(mode | 0o200).await.is_err() {
        return Err(refused);
    }
    let changed = change().await;
    file.set_mode(mode).await.and(changed)
}

/// Returns true for attributes that have a meaning on their filesystem only, or are another view of kept ones (XFS's
/// ACLs): the `skip` lines of xattr.conf(5), which cp heeds.
pub(crate) fn is_of_its_filesystem(name: &CStr) -> bool {
    const SKIPPED: [&[u8]; 5] = [b"trusted.SGI_", b"security.evm", b"user.Beagle.", b"afs.", b"xfsroot."];
    SKIPPED.iter().any(|skipped| name.to_bytes().starts_with(skipped))
}

/// Returns true if a filled folder has attributes to be set.
pub(crate) fn changes_folder(run: &Run, folder: &Folder, facts: &Facts) -> bool {
    let preserve = run.options.preserve;
    let keeps = preserve.mode || preserve.timestamps || preserve.ownership || preserve.xattr;
    keeps || TargetMode::of(folder, facts).is_some_and(|new| new.is_unsettled(run))
}

/// Sets the kept attributes of a filled folder.
pub(crate) async fn keep_folder(
    run: &Run,
    folder: &Arc<Folder>,
    facts: &Facts,
    target: &Dir,
) -> Result<(), FailureKind> {
    let (subject, file) = (Subject::Folder(folder), &target.as_file());
    if run.options.preserve.mode && facts.gives_acl && !acl::holds_default(&facts.xattrs) {
        run.note_attribute(subject, Verb::SetAcl, acl::remove_default(file).await)?;
    }
    let source = (&facts.source, facts.xattrs.as_slice());
    keep_made(run, subject, file, source, TargetMode::of(folder, facts), facts.gives_owner).await
}

/// Returns true if a new link or special file has attributes to be set.
pub(crate) fn changes_special(run: &Run, entry: Entry<'_>, source: &Stat) -> bool {
    let preserve = run.options.preserve;
    let keeps = preserve.timestamps || preserve.ownership || preserve.xattr;
    let settles = || preserve.mode || TargetMode::entry(entry, source.kind, source.mode).is_unsettled(run);
    keeps || source.kind != FileKind::Symlink && settles()
}

/// Opens a link or special file that this run has just made, in order to set its attributes. Another user with write
/// access to the folder could have put a file of their own there, to have its owner or mode changed; so it must be new.
///
/// # Errors
/// The kernel's; ESTALE if something else has the name.
pub(crate) async fn reach_made(run: &Run, dir: &Dir, name: &Name, source: &Stat) -> IoResult<(File, Stat)> {
    let file = dir.reach(name).await?;
    let made = file.identify().await?;
    let is_device = matches!(source.kind, FileKind::CharDevice | FileKind::BlockDevice);
    let is_like = made.kind == source.kind && (!is_device || made.special == source.special);
    // Some filesystems in user space count no names.
    if is_like && made.links <= 1 && is_own(run, dir, &made).await {
        Ok((file, made))
    } else {
        Err(Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) })
    }
}

/// Returns true if a file belongs to the owner that new files of this folder get: the user, unless the filesystem gives
/// them another. Assumed where that can't be found out.
async fn is_own(run: &Run, dir: &Dir, made: &Stat) -> bool {
    if made.uid == run.user.id {
        return true;
    }
    match dir.open_unnamed(0o600).await {
        Ok(file) => file.stat().await.is_ok_and(|own| own.uid == made.uid),
        Err(_) => true,
    }
}

/// Sets the kept attributes of a link or special file that was reached.
pub(crate) async fn keep_special(
    run: &Run,
    entry: Entry<'_>,
    file: &File,
    source: &Stat,
) -> Result<(), FailureKind> {
    let preserve = run.options.preserve;
    let mut xattrs = Vec::new();
    if preserve.xattr || preserve.mode && source.kind != FileKind::Symlink {
        let dir = run.dirs(entry.folder).await.during(Verb::SetOwner)?.source;
        xattrs = found(run, entry.into(), dir.entry_xattrs(entry.source).await)?;
    }
    let new = TargetMode::entry(entry, source.kind, source.mode);
    keep(run, entry.into(), file, source, &xattrs, Some(new)).await
}
