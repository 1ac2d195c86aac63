//! `cp -r`, breadth first with a queue and a semaphore: the program of the second document on eio (seed 003).
//!
//! The document's semaphore is released right after the fork, so it bounds nothing. Here the permit belongs to the
//! fiber and comes back when its file is copied. Folders wait in the queue by their path, not open.

mod arguments;

use std::process::ExitCode;

use arguments::{Failure, Place};
use ferry_io::flow::{self, Flow};
use ferry_io::{Dir, Error, FileKind, Io, Name, OpenHow, Queue, Semaphore, scope};

async fn copy(io: &Io, source: &Dir, target: &Dir, max_fibers: usize) -> Result<(), Failure> {
    let permits = Semaphore::new(max_fibers);
    // Unbounded, because the fiber that fills the queue also empties it.
    let queue = Queue::new(usize::MAX);
    queue.push(Vec::new()).await?;
    scope(async |fibers| {
        while !queue.is_empty()
            && let Some(path) = queue.pop().await?
        {
            let (source, target) = (open(source, &path).await?, open(target, &path).await?);
            let mut listing = source.list(None).await?;
            while !listing.entries.is_empty() {
                for entry in listing.entries {
                    let stat = source.stat_entry(&entry.name, false).await?;
                    match stat.kind {
                        FileKind::Directory => {
                            target.make_dir(&entry.name, stat.mode).await?;
                            queue.push([path.as_slice(), &[entry.name]].concat()).await?;
                        }
                        FileKind::Regular => {
                            let permit = permits.acquire().await?;
                            let (source, target) = (source.clone(), target.clone());
                            fibers.spawn(async move {
                                let _released_when_copied = permit;
                                copy_file(io, &source, &target, &entry.name, stat.mode).await
                            });
                        }
                        kind @ (FileKind::Symlink
                        | FileKind::Fifo
                        | FileKind::Socket
                        | FileKind::CharDevice
                        | FileKind::BlockDevice) => return Err(Failure::NotCopied(entry.name, kind)),
                    }
                }
                listing = source.list(None).await?;
            }
        }
        Ok(())
    })
    .await
}

async fn copy_file(io: &Io, source: &Dir, target: &Dir, name: &Name, mode: u32) -> Result<(), Failure> {
    let source = source.open(name, OpenHow::read()).await?;
    let target = target.open(name, OpenHow::create(mode)).await?;
    let size = source.stat().await?.size;
    let flow = Flow::buffered(4, io.block_size());
    flow::copy(io, &source, &target, (0, size), flow, |_| ()).await?;
    Ok(())
}

/// Opens the folder at a path.
async fn open(root: &Dir, path: &[Name]) -> Result<Dir, Error> {
    let mut folder = root.clone();
    for name in path {
        folder = folder.open_dir(name).await?;
    }
    Ok(folder)
}

/// Opens the source folder, makes the target folder, and copies.
async fn copy_roots(io: &Io, source: Place, target: Place, max_fibers: usize) -> Result<(), Failure> {
    let root = source.folder.open_dir(&source.name).await?;
    target.folder.make_dir(&target.name, root.stat().await?.mode).await?;
    copy(io, &root, &target.folder.open_dir(&target.name).await?, max_fibers).await
}

fn main() -> ExitCode {
    arguments::main(64, async |io, source, target, arguments| {
        copy_roots(io, source, target, arguments.max_fibers).await
    })
}
