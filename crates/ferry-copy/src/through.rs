//! Links of the target that the copy goes through: whose they are decides.
//!
//! As cp does, a file is written through a link that stands at the target, and a folder on the way to an operand may be
//! one. Whoever may write to the target's folder could have put it there, to have a file elsewhere overwritten with the
//! rights of who copies. So a link counts only if it is the user's own or root's, or leads to what belongs to its own
//! owner, who could have written there anyway. And it does not count if this run may have made it: what it says is the
//! source's, whose owner is somebody else, and a later operand, or a name that differs in case, may lead to it. A link is
//! taken for the run's own if it changed after the run began, once the run makes links at all. The kernel can't be asked for that: the link is opened itself, and what it
//! says is walked one component at a time, so that nobody can exchange it in between. It costs only those copies that
//! meet a link.
//!
//! Limits: on a filesystem of another host whose clock is behind, links made in the first moments of a run are not known
//! to be its own.

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Result, Stat};

use crate::copier::{Copier, identity};
use crate::folder::open_target;

/// Links that may lead to one another, as the kernel has it (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// The magic number of proc(5) (statfs(2)).
const PROC: u64 = 0x9fa0;

/// Where links led.
struct Led {
    dir: Dir,
    /// `None` for the folder itself.
    name: Option<Name>,
    stat: Stat,
    /// Whether the name is a link of proc(5), to what is open: what it says is no path where that is a pipe, or was
    /// removed, and only the kernel can follow it.
    is_open: bool,
}

/// Opens the file that a name or its links lead to.
///
/// # Errors
/// The kernel's; ELOOP for a link that does not count; ESTALE if something else has the name by then.
pub(crate) async fn open(copier: &Copier, dir: &Dir, name: &Name, how: OpenHow) -> Result<(File, Stat)> {
    let led = follow(copier, dir, name).await?;
    let Some(name) = led.name else { return Err(failed(Errno::ISDIR)) };
    let how = if led.is_open { how.following() } else { how };
    let file = led.dir.open(&name, how).await?;
    let found = file.stat().await?;
    if found.is_same_file(&led.stat) { Ok((file, found)) } else { Err(failed(Errno::STALE)) }
}

/// The same for a folder; it may be one that can only be searched.
///
/// # Errors
/// Those of [`open`].
pub(crate) async fn open_folder(copier: &Copier, dir: &Dir, name: &Name) -> Result<Dir> {
    let led = follow(copier, dir, name).await?;
    let Some(name) = led.name else { return Ok(led.dir) };
    let folder = open_target(&led.dir, &name, false).await?;
    let is_it = identity(&folder.stat().await?) == identity(&led.stat);
    if is_it { Ok(folder) } else { Err(failed(Errno::STALE)) }
}

async fn follow(copier: &Copier, dir: &Dir, name: &Name) -> Result<Led> {
    let mut owners = Vec::new();
    let mut at = dir.clone();
    // The next component last.
    let mut left = vec![name.as_bytes().to_vec()];
    let led = loop {
        let Some(component) = left.pop() else {
            let stat = at.stat().await?;
            break Led { dir: at, name: None, stat, is_open: false };
        };
        let name = match component.as_slice() {
            b"" | b"." => continue,
            b".." => {
                at = at.parent().await?;
                continue;
            }
            component => Name::new(component).ok_or_else(|| failed(Errno::NAMETOOLONG))?,
        };
        let entry = at.reach(&name).await?;
        let stat = entry.stat().await?;
        if stat.kind == FileKind::Symlink {
            if owners.len() == MOST_LINKS {
                return Err(failed(Errno::LOOP));
            }
            if copier.may_have_made(&stat) {
                return Err(failed(Errno::LOOP));
            }
            owners.push(stat.uid);
            if left.is_empty() && at.filesystem_magic() == Some(PROC) {
                let stat = at.stat_entry(&name, true).await?;
                if stat.kind != FileKind::Directory {
                    break Led { dir: at, name: Some(name), stat, is_open: true };
                }
            }
            let says = entry.read_link().await?;
            if says.starts_with(b"/") {
                at = copier.io.folder(&copier.paths, "/".as_ref())?;
            }
            left.extend(says.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec));
        } else if left.is_empty() {
            break Led { dir: at, name: Some(name), stat, is_open: false };
        } else {
            at = at.reach_dir(&name, false).await?;
        }
    };
    let counts = |&owner: &u32| owner == 0 || owner == copier.user || owner == led.stat.uid;
    if owners.iter().all(counts) { Ok(led) } else { Err(failed(Errno::LOOP)) }
}

fn failed(errno: Errno) -> Error {
    Error { operation: Operation::Open, cause: Cause::Errno(errno) }
}
