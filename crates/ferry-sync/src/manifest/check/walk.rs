//! Lists the regular files of a tree, folder by folder, in bounded memory.
//!
//! Each folder's names are sorted, and those of one level stay while its subfolders are listed. As for `ferry sync`, its
//! trash is no part of the tree: in the root by its name, beneath it by its mark.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ferry_io::{Cause, Dir, Entry, Errno, FileKind, Io, Name};

use super::finding::What;
use crate::manifest::note::Found;
use crate::perform::{is_trash, marks_trash};
use crate::sorted::{Sorted, Sorter};
use crate::walk::TRASH;

/// Levels of the path that stay open.
const OPEN_LEVELS: usize = 64;

/// A folder that is being listed.
struct Level {
    path: PathBuf,
    /// `None` once it was closed, because too many are open.
    dir: Option<Dir>,
    names: Sorted<Entry>,
}

/// Opens a folder below a root, one component at a time, and follows no link.
pub(super) async fn open(root: &Dir, path: &Path) -> ferry_io::Result<Dir> {
    let mut dir = root.clone();
    for component in path.components() {
        let name = Name::new(component.as_os_str().as_bytes());
        let error =
            ferry_io::Error { operation: ferry_io::Operation::Open, cause: Cause::Errno(Errno::INVAL) };
        dir = dir.open_dir(&name.ok_or(error)?).await?;
    }
    Ok(dir)
}

/// Returns the regular files beneath a root, sorted, and the number of trashes that were passed over. Folders that can't be
/// listed are reported.
///
/// # Errors
/// Those of the temporary file.
pub(super) async fn files(
    io: &Io,
    root: &Dir,
    report: &impl Fn(&Path, What),
) -> io::Result<(Sorted<Found>, u64)> {
    let folder = std::env::temp_dir();
    let (mut files, mut trashes) = (Sorter::new(), 0);
    let mut levels = Vec::new();
    match list(root, true).await? {
        Ok(Listed { names, trashes: count }) => {
            trashes += count;
            levels.push(Level { path: PathBuf::new(), dir: Some(root.clone()), names });
        }
        Err(error) => report(Path::new("."), What::Unreadable(error.cause)),
    }
    let open_levels = (io.descriptors() / 16).clamp(1, OPEN_LEVELS);
    while let Some(level) = levels.last_mut().filter(|_| !io.is_stopped()) {
        let Some(entry) = level.names.next()? else {
            levels.pop();
            continue;
        };
        let path = level.path.join(entry.name.as_os_str());
        let entered = async {
            let dir = match &level.dir {
                Some(dir) => dir.clone(),
                None => open(root, &level.path).await?,
            };
            level.dir = Some(dir.clone());
            let kind = match entry.kind {
                Some(kind) => kind,
                None => dir.stat_entry(&entry.name, false).await?.kind,
            };
            Ok(match kind {
                FileKind::Directory => Some(dir.open_dir(&entry.name).await?),
                FileKind::Regular => {
                    files
                        .add(vec![Found(path.as_os_str().as_bytes().into())], &folder)
                        .map_err(Failed::Keep)?;
                    None
                }
                FileKind::Symlink
                | FileKind::Fifo
                | FileKind::Socket
                | FileKind::CharDevice
                | FileKind::BlockDevice => None,
            })
        };
        let dir = match entered.await {
            Ok(Some(dir)) => dir,
            Ok(None) => continue,
            Err(Failed::Keep(error)) => return Err(error),
            Err(Failed::Read(error)) => {
                report(&path, What::Unreadable(error.cause));
                continue;
            }
        };
        match list(&dir, false).await? {
            Ok(Listed { names, trashes: count }) => {
                trashes += count;
                levels.push(Level { path, dir: Some(dir), names });
            }
            Err(error) => report(&path, What::Unreadable(error.cause)),
        }
        if let Some(above) = levels.len().checked_sub(open_levels + 1) {
            levels[above].dir = None;
        }
    }
    Ok((files.finish(&folder)?, trashes))
}

/// Why an entry was not entered.
enum Failed {
    Read(ferry_io::Error),
    Keep(io::Error),
}

impl From<ferry_io::Error> for Failed {
    fn from(error: ferry_io::Error) -> Self {
        Self::Read(error)
    }
}

/// A folder that was listed.
struct Listed {
    /// Its names, sorted; none if it is a trash.
    names: Sorted<Entry>,
    /// Number of trashes: itself, or the one in the root.
    trashes: u64,
}

/// Lists a folder. The outer error is that of the temporary file.
async fn list(dir: &Dir, is_root: bool) -> io::Result<ferry_io::Result<Listed>> {
    let folder = std::env::temp_dir();
    let mut sorter = Sorter::new();
    let (mut is_marked, mut trashes) = (false, 0);
    let mut from = Some(0);
    loop {
        let mut part = match dir.list(from).await {
            Ok(part) => part,
            Err(error) => return Ok(Err(error)),
        };
        // Then from the descriptor's own position.
        from = None;
        is_marked |= !is_root && part.entries.iter().any(marks_trash);
        let count = part.entries.len();
        part.entries.retain(|entry| !is_root || entry.name.as_bytes() != TRASH);
        trashes += (count - part.entries.len()) as u64;
        sorter.add(part.entries, &folder)?;
        if part.next.is_none() {
            break;
        }
    }
    // The listing may not tell the mark's kind.
    let is_trash = match is_marked {
        true => is_trash(dir).await,
        false => Ok(false),
    };
    let names = match is_trash {
        Ok(true) => {
            trashes += 1;
            Sorter::new()
        }
        Ok(false) => sorter,
        Err(error) => return Ok(Err(error)),
    };
    names.finish(&folder).map(|names| Ok(Listed { names, trashes }))
}
