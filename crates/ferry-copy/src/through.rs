//! Links of the target that the copy goes through: their owner decides.
//!
//! As cp does, a file is written through a symbolic link at the target, and a folder on the way to an operand may be
//! one. Another user with write access to the target's folder could have put the link there, to have a file elsewhere
//! overwritten with the rights of the copying user. So a link counts only if it is the user's own or root's, or if its
//! owner also owns the file it leads to.
//!
//! A link that this run may have made does not count: its text is the source owner's, and a later operand, or a name
//! that differs in case, may lead to it. A link is taken for the run's own if it changed after the run began to make
//! links.
//!
//! The kernel can't be asked for any of this. So the link itself is opened, and its text is walked one component at a
//! time, so that no link can be exchanged in between. Only copies that meet a link pay for it.
//!
//! Limits: on a filesystem of another host whose clock is behind, links made in the first moments of a run are not
//! known to be its own.

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Result, Stat};

use crate::folder::open_target;
use crate::identity::identity;
use crate::run::Run;

/// Links followed in a row, as by the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Magic number of proc(5) (statfs(2)).
const PROC: u64 = 0x9fa0;

/// End of a chain of links.
struct Led {
    dir: Dir,
    /// `None` for the folder itself.
    name: Option<Name>,
    stat: Stat,
    /// Set for a link of proc(5) to an open file. The text of a link to a pipe or a removed file is no path: only the
    /// kernel can follow it.
    is_open: bool,
}

/// Opens the file that a name or its links lead to.
///
/// # Errors
/// The kernel's; ELOOP for a link that does not count; ESTALE if another file has the name by then.
pub(crate) async fn open(run: &Run, dir: &Dir, name: &Name, how: OpenHow) -> Result<(File, Stat)> {
    let led = follow(run, dir, name).await?;
    let Some(name) = led.name else { return Err(failed(Errno::ISDIR)) };
    let how = if led.is_open { how.following() } else { how };
    let file = led.dir.open(&name, how).await?;
    let found = file.stat().await?;
    if found.is_same_file(&led.stat) { Ok((file, found)) } else { Err(failed(Errno::STALE)) }
}

/// Opens the folder that a name or its links lead to; it may be one that can only be searched.
///
/// # Errors
/// Those of [`open`].
pub(crate) async fn open_folder(run: &Run, dir: &Dir, name: &Name) -> Result<Dir> {
    let led = follow(run, dir, name).await?;
    let Some(name) = led.name else { return Ok(led.dir) };
    let folder = open_target(&led.dir, &name, false).await?;
    let is_it = identity(&folder.stat().await?) == identity(&led.stat);
    if is_it { Ok(folder) } else { Err(failed(Errno::STALE)) }
}

async fn follow(run: &Run, dir: &Dir, name: &Name) -> Result<Led> {
    let mut owners = Vec::new();
    let mut at = dir.clone();
    // Components left, the next one last.
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
            if run.may_have_made(&stat) {
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
                at = run.io.folder(&run.paths, "/".as_ref())?;
            }
            left.extend(says.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec));
        } else if left.is_empty() {
            break Led { dir: at, name: Some(name), stat, is_open: false };
        } else {
            at = at.reach_dir(&name, false).await?;
        }
    };
    let counts = |&owner: &u32| owner == 0 || owner == run.user.id || owner == led.stat.uid;
    if owners.iter().all(counts) { Ok(led) } else { Err(failed(Errno::LOOP)) }
}

fn failed(errno: Errno) -> Error {
    Error { operation: Operation::Open, cause: Cause::Errno(errno) }
}
