//! `cp -r`, one entry after the other: the first program of the document on eio (seed 004).
//!
//! Nothing overlaps but the blocks of one file, which `flow::copy` keeps in flight.

mod arguments;

use std::process::ExitCode;

use arguments::{Failure, Place};
use ferry_io::flow::{self, Flow};
use ferry_io::{FileKind, Io, OpenHow};

async fn copy(io: &Io, source: Place, target: Place) -> Result<(), Failure> {
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
                    Box::pin(copy(io, source, target)).await?;
                }
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
    arguments::main(1, async |io, source, target, _| copy(io, source, target).await)
}
