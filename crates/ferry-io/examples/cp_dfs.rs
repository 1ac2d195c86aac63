//! `cp -r`, depth first with a bounded number of fibers a folder: the second program of the document on eio (seed 004),
//! where the bound is one more argument, `~max_fibers:2`.
//!
//! The bound holds for each folder, so a tree of depth d has up to about 2^d fibers, which the document does not
//! mention.

mod arguments;

use std::process::ExitCode;

use arguments::{Failure, Place};
use ferry_io::flow::{self, Flow};
use ferry_io::{FileKind, Io, OpenHow, for_each};

async fn copy(io: &Io, source: Place, target: Place, max_fibers: usize) -> Result<(), Failure> {
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
        FileKind::Regular => {
            let source = source.folder.open(&source.name, OpenHow::read()).await?;
            let target = target.folder.open(&target.name, OpenHow::create(stat.mode)).await?;
            let flow = Flow::buffered(4, io.block_size());
            flow::copy(io, &source, &target, (0, stat.size), flow, |_| ()).await?;
            Ok(())
        }
        kind @ (FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice) => Err(Failure::NotCopied(source.name, kind)),
    }
}

fn main() -> ExitCode {
    arguments::main(2, async |io, source, target, arguments| {
        copy(io, source, target, arguments.max_fibers).await
    })
}
