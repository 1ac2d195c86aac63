//! `cp -r`, depth first: both programs of document 004, and eio's `eurcp` (document 003) applied to trees.
//!
//! With [`Order::Concurrent`] the bound holds for each folder, so a tree of depth d has up to about 2^d fibers with two
//! a folder. The document does not mention this.

use ferry_io::{FileKind, Io, for_each};

use super::entry::{EntryAt, Failure};
use super::file;

/// Order in which the entries of a folder are copied.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    /// One entry after another, each file with `depth` blocks in flight.
    Sequential { depth: usize },
    /// Up to `max_fibers` entries of a folder at once, each file with one block in flight.
    Concurrent { max_fibers: usize },
}

pub(super) async fn copy(io: &Io, source: EntryAt, target: EntryAt, order: Order) -> Result<(), Failure> {
    let stat = source.folder.stat_entry(&source.name, false).await?;
    match stat.kind {
        FileKind::Directory => {
            target.folder.make_dir(&target.name, stat.mode).await?;
            let source = source.folder.open_dir(&source.name).await?;
            let target = target.folder.open_dir(&target.name).await?;
            let copy_child = async |entry: ferry_io::Entry| {
                let source = EntryAt { folder: source.clone(), name: entry.name.clone() };
                let target = EntryAt { folder: target.clone(), name: entry.name };
                Box::pin(copy(io, source, target, order)).await
            };
            loop {
                let listing = source.list(None).await?;
                match order {
                    Order::Sequential { .. } => {
                        for entry in listing.entries {
                            copy_child(entry).await?;
                        }
                    }
                    Order::Concurrent { max_fibers } => {
                        for_each(max_fibers, listing.entries, copy_child).await?
                    }
                }
                if listing.next.is_none() {
                    return Ok(());
                }
            }
        }
        FileKind::Regular => {
            let depth = match order {
                Order::Sequential { depth } => depth,
                Order::Concurrent { .. } => 1,
            };
            file::copy(io, &source, &target, stat.mode, depth).await
        }
        kind @ (FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice) => Err(Failure::NotCopied(source.name, kind)),
    }
}
