//! Plain threads, which take files or ranges of a large file from a common counter.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plain::{read_blocks, read_small, write_log};
use crate::Failure;
use crate::work::{SMALL, Sum, Total, Work};

/// Blocks that a thread reads in order before it takes others: 16 MiB.
const RANGE: u64 = 64;

pub(super) fn run(work: &Work, threads: usize) -> Result<Total, Failure> {
    if let Work::Copy { source, target, .. } = work {
        // The standard library's copy is one call of the kernel after another; more threads have nothing to do.
        std::fs::copy(source, target)?;
        return Ok(Total::default());
    }
    let next = AtomicU64::new(0);
    let next = &next;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(move || part(work, next))).collect();
        super::join(threads)
    })
}

fn part(work: &Work, next: &AtomicU64) -> Result<Total, Failure> {
    let sum = Sum::default();
    let take = |end: u64| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&unit| unit < end);
    match work {
        Work::Small(paths) => {
            let mut buffer = vec![0; SMALL];
            while let Some(index) = take(work.units()) {
                read_small(&paths[usize::try_from(index)?], index, &mut buffer, &sum)?;
            }
        }
        Work::Read { path, blocks } => {
            let file = File::open(path)?;
            while let Some(range) = take(blocks.div_ceil(RANGE)) {
                let start = range * RANGE;
                read_blocks(&file, (start, (start + RANGE).min(*blocks)), &sum)?;
            }
        }
        Work::Log { folder, files, records } => {
            while let Some(file) = take(*files) {
                write_log(folder, file, *records, &sum)?;
            }
        }
        Work::Copy { .. } => {}
    }
    Ok(sum.total())
}
