//! `cp -r`, one entry after the other: the first program of document 004.

use ferry_io::{FileKind, Io};

use super::{Failure, Place, file};

pub(super) async fn copy(io: &Io, source: Place, target: Place) -> Result<(), Failure> {
    with_depth(io, source, target, 1).await
}

/// The same with several blocks of each file in flight.
pub(super) async fn with_depth(io: &Io, source: Place, target: Place, depth: usize) -> Result<(), Failure> {
    let stat = source.folder.stat_entry(&source.name, false).await?;
    match stat.kind {
        FileKind::Directory => {
            target.folder.make_dir(&target.name, stat.mode).await?;
            let source = source.folder.open_dir(&source.name).await?;
            let target = target.folder.open_dir(&target.name).await?;
            loop {
                let listing = source.list(None).await?;
                for entry in listing.entries {
                    let source = Place { folder: source.clone(), name: entry.name.clone() };
                    let target = Place { folder: target.clone(), name: entry.name };
                    Box::pin(with_depth(io, source, target, depth)).await?;
                }
                if listing.next.is_none() {
                    return Ok(());
                }
            }
        }
        FileKind::Regular => file::copy(io, &source, &target, stat.mode, depth).await,
        kind @ (FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice) => Err(Failure::NotCopied(source.name, kind)),
    }
}
