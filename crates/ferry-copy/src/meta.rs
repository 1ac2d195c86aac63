//! What is kept of a file's attributes, and in which order.
//!
//! Owner first, because chown(2) clears setuid and capabilities; then extended attributes and ACLs, which may need
//! rights that the mode takes away; then times; the mode last, so that nobody is ever allowed more than in the end. Where
//! the owner could not be kept, setuid and setgid are not either.

use ferry_io::{Dir, Errno, Error, File, FileKind, Name, Result as IoResult, Stat, Xattr};

use crate::copier::Copier;
use crate::folder::Facts;
use crate::report::{FailureKind, Verb};

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

const SETUID_SETGID: u32 = 0o6000;

fn io(verb: Verb) -> impl Fn(Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// Whether what is made in this folder inherits a default ACL.
pub(crate) async fn has_default_acl(dir: &Dir) -> bool {
    dir.as_file()
        .xattrs()
        .await
        .is_ok_and(|found| found.iter().any(|(name, _)| name.to_bytes() == DEFAULT_ACL))
}

/// Sets what is kept on an open regular file.
pub(crate) async fn keep_file(
    copier: &Copier,
    target: &File,
    source: &Stat,
    xattrs: &[Xattr],
    may_have_acl: bool,
) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    let mut mode = source.mode;
    if preserve.ownership {
        let made = target.stat().await.map_err(io(Verb::SetOwner))?;
        if (made.uid, made.gid) != (source.uid, source.gid) {
            let kept = target.set_owner(Some(source.uid), Some(source.gid)).await;
            if !owner_kept(copier, kept)? {
                // The group alone, as far as it goes.
                target.set_owner(None, Some(source.gid)).await.ok();
                mode &= !SETUID_SETGID;
            }
        }
    }
    keep_xattrs(copier, target, xattrs).await?;
    if preserve.mode {
        keep_acl(target, xattrs, source.mode, may_have_acl).await?;
    }
    if preserve.timestamps {
        target.set_times(source.times).await.map_err(io(Verb::SetTimes))?;
    }
    if preserve.mode {
        target.set_mode(mode).await.map_err(io(Verb::SetMode))?;
    }
    Ok(())
}

/// Whether the owner was kept; an error if it should have been.
fn owner_kept(copier: &Copier, answer: IoResult<()>) -> Result<bool, FailureKind> {
    match answer {
        Ok(()) => Ok(true),
        Err(error) if !copier.is_root && (error.is(Errno::PERM) || error.is(Errno::INVAL)) => Ok(false),
        Err(error) => Err(io(Verb::SetOwner)(error)),
    }
}

async fn keep_xattrs(copier: &Copier, target: &File, xattrs: &[Xattr]) -> Result<(), FailureKind> {
    if !copier.options.preserve.xattr {
        return Ok(());
    }
    for (name, value) in xattrs {
        if name.to_bytes().starts_with(b"system.posix_acl_") {
            continue;
        }
        match target.set_xattr(name, value).await {
            Err(error) if error.is_cancelled() || copier.options.preserve.xattr_required => {
                return Err(io(Verb::SetXattr)(error));
            }
            // What the filesystem can't hold, and nobody asked for by name.
            Err(_) | Ok(()) => {}
        }
    }
    Ok(())
}

/// Sets the source's ACLs, and takes away those that the target has from elsewhere.
async fn keep_acl(target: &File, xattrs: &[Xattr], mode: u32, may_have: bool) -> Result<(), FailureKind> {
    let mut has_access = false;
    for (name, value) in xattrs {
        if name.to_bytes() != ACCESS_ACL && name.to_bytes() != DEFAULT_ACL {
            continue;
        }
        has_access |= name.to_bytes() == ACCESS_ACL;
        match target.set_xattr(name, value).await {
            Err(error) if error.is(Errno::OPNOTSUPP) => {}
            answer => answer.map_err(io(Verb::SetMode))?,
        }
    }
    if has_access || !may_have {
        return Ok(());
    }
    match target.set_xattr(c"system.posix_acl_access", &minimal_acl(mode)).await {
        Err(error) if error.is(Errno::OPNOTSUPP) => Ok(()),
        answer => answer.map_err(io(Verb::SetMode)),
    }
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

/// Whether the owner must be kept out of the copy, too, though nobody asked for the mode.
fn locks_out(copier: &Copier, facts: &Facts) -> bool {
    facts.is_new && facts.source.mode & 0o700 != 0o700 && !copier.options.preserve.refuse_mode
}

/// Whether there is anything to set on a finished folder.
pub(crate) fn changes_folder(copier: &Copier, facts: &Facts) -> bool {
    let preserve = copier.options.preserve;
    preserve.mode || preserve.timestamps || preserve.ownership || preserve.xattr || locks_out(copier, facts)
}

/// Sets what is kept on a finished folder.
pub(crate) async fn keep_folder(copier: &Copier, facts: &Facts, target: &Dir) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    let target = target.as_file();
    if preserve.mode
        && facts.gives_acl
        && !facts.xattrs.iter().any(|(name, _)| name.to_bytes() == DEFAULT_ACL)
    {
        match target.set_xattr(c"system.posix_acl_default", &no_acl()).await {
            Err(error) if error.is(Errno::OPNOTSUPP) => {}
            answer => answer.map_err(io(Verb::SetMode))?,
        }
    }
    keep_file(copier, &target, &facts.source, &facts.xattrs, facts.gives_acl || !facts.is_new).await?;
    if !preserve.mode && locks_out(copier, facts) {
        let made = target.stat().await.map_err(io(Verb::SetMode))?;
        let mode = made.mode & !(0o700 & !facts.source.mode);
        target.set_mode(mode).await.map_err(io(Verb::SetMode))?;
    }
    Ok(())
}

/// Sets what is kept on a link or special file, by its name.
pub(crate) async fn keep_entry(
    copier: &Copier,
    source_dir: &Dir,
    source_name: &Name,
    dir: &Dir,
    name: &Name,
    source: &Stat,
) -> Result<(), FailureKind> {
    let preserve = copier.options.preserve;
    let mut mode = source.mode;
    if preserve.ownership {
        let kept = dir.set_entry_owner(name, Some(source.uid), Some(source.gid)).await;
        if !owner_kept(copier, kept)? {
            dir.set_entry_owner(name, None, Some(source.gid)).await.ok();
            mode &= !SETUID_SETGID;
        }
    }
    let is_link = source.kind == FileKind::Symlink;
    if preserve.xattr || (preserve.mode && !is_link) {
        let found = source_dir.entry_xattrs(source_name).await;
        for (attribute, value) in found.unwrap_or_default() {
            let is_acl = attribute.to_bytes().starts_with(b"system.posix_acl_");
            if !(if is_acl { preserve.mode && !is_link } else { preserve.xattr }) {
                continue;
            }
            match dir.set_entry_xattr(name, &attribute, &value).await {
                Err(error) if !is_acl && preserve.xattr_required => return Err(io(Verb::SetXattr)(error)),
                Err(_) | Ok(()) => {}
            }
        }
    }
    if preserve.timestamps {
        dir.set_entry_times(name, source.times).await.map_err(io(Verb::SetTimes))?;
    }
    if preserve.mode && !is_link {
        dir.set_entry_mode(name, mode).await.map_err(io(Verb::SetMode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
