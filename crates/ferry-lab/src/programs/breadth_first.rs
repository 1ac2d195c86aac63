//! `cp -r`, breadth first with a queue and a semaphore: the program of document 003.
//!
//! The document releases its semaphore right after the fork, so it bounds nothing. Here the permit belongs to the fiber
//! and comes back when its file is copied, as was meant. Folders wait in the queue by their path, not open.

use std::collections::VecDeque;

use ferry_io::{Dir, Error, FileKind, Io, Name, Semaphore, scope};

use super::entry::{EntryAt, Failure};
use super::file;

pub(super) async fn copy(
    io: &Io,
    source: EntryAt,
    target: EntryAt,
    max_fibers: usize,
) -> Result<(), Failure> {
    let stat = source.folder.stat_entry(&source.name, false).await?;
    if stat.kind == FileKind::Regular {
        return file::copy(io, &source, &target, stat.mode, 1).await;
    }
    let root = source.folder.open_dir(&source.name).await?;
    target.folder.make_dir(&target.name, stat.mode).await?;
    copy_tree(io, &root, &target.folder.open_dir(&target.name).await?, max_fibers).await
}

async fn copy_tree(io: &Io, source: &Dir, target: &Dir, max_fibers: usize) -> Result<(), Failure> {
    let permits = Semaphore::new(max_fibers);
    let mut queue = VecDeque::from([Vec::new()]);
    scope(async |fibers| {
        while let Some(path) = queue.pop_front() {
            let (source, target) = (open(source, &path).await?, open(target, &path).await?);
            loop {
                let listing = source.list(None).await?;
                for entry in listing.entries {
                    let stat = source.stat_entry(&entry.name, false).await?;
                    match stat.kind {
                        FileKind::Directory => {
                            target.make_dir(&entry.name, stat.mode).await?;
                            queue.push_back([path.as_slice(), &[entry.name]].concat());
                        }
                        FileKind::Regular => {
                            let permit = permits.acquire().await?;
                            let source = EntryAt { folder: source.clone(), name: entry.name.clone() };
                            let target = EntryAt { folder: target.clone(), name: entry.name };
                            fibers.spawn(async move {
                                let _released_when_copied = permit;
                                file::copy(io, &source, &target, stat.mode, 1).await
                            });
                        }
                        kind @ (FileKind::Symlink
                        | FileKind::Fifo
                        | FileKind::Socket
                        | FileKind::CharDevice
                        | FileKind::BlockDevice) => return Err(Failure::NotCopied(entry.name, kind)),
                    }
                }
                if listing.next.is_none() {
                    break;
                }
            }
        }
        Ok(())
    })
    .await
}

/// The folder that a path leads to.
async fn open(root: &Dir, path: &[Name]) -> Result<Dir, Error> {
    let mut folder = root.clone();
    for name in path {
        folder = folder.open_dir(name).await?;
    }
    Ok(folder)
}
