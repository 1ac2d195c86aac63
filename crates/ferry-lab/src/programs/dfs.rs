//! `cp -r`, depth first with so many fibers a folder: the second program of document 004, where it is one more word,
//! `~max_fibers:2`.
//!
//! The bound holds for each folder, so a tree of depth d has up to about 2^d fibers: the document does not say so.

use ferry_io::{FileKind, Io, for_each};

use super::{Failure, Place, file};

pub(super) async fn copy(io: &Io, source: Place, target: Place, max_fibers: usize) -> Result<(), Failure> {
    let stat = source.folder.stat_entry(&source.name, false).await?;
    match stat.kind {
        FileKind::Directory => {
            target.folder.make_dir(&target.name, stat.mode).await?;
            let source = source.folder.open_dir(&source.name).await?;
            let target = target.folder.open_dir(&target.name).await?;
            loop {
                let listing = source.list(None).await?;
                for_each(max_fibers, listing.entries, async |entry| {
                    let source = Place { folder: source.clone(), name: entry.name.clone() };
                    let target = Place { folder: target.clone(), name: entry.name };
                    Box::pin(copy(io, source, target, max_fibers)).await
                })
                .await?;
                if listing.next.is_none() {
                    return Ok(());
                }
            }
        }
        FileKind::Regular => file::copy(io, &source, &target, stat.mode, 1).await,
        kind @ (FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice) => Err(Failure::NotCopied(source.name, kind)),
    }
}
