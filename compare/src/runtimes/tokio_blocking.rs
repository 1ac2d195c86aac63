//! tokio with `spawn_blocking`, many calls at a time, which its documentation recommends for much file work.

use std::fs::File;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::plain::{read_blocks, read_small, write_log};
use super::tokio_fs::all;
use crate::Failure;
use crate::work::{SMALL, Sum, Total, Work};

/// Small files in one blocking task.
const FILES: usize = 64;
/// Blocks in one blocking task: 16 MiB.
const RANGE: u64 = 64;

pub(super) fn run(work: &Work, threads: usize) -> Result<Total, Failure> {
    let runtime = Builder::new_multi_thread().max_blocking_threads(threads).build()?;
    let sum = Arc::new(Sum::default());
    let mut tasks: JoinSet<Result<(), Failure>> = JoinSet::new();
    match work {
        Work::Small(paths) => {
            for start in (0..paths.len()).step_by(FILES) {
                let (paths, sum) = (Arc::clone(paths), Arc::clone(&sum));
                let task = move || -> Result<(), Failure> {
                    let mut buffer = vec![0; SMALL];
                    for index in start..paths.len().min(start + FILES) {
                        read_small(&paths[index], index as u64, &mut buffer, &sum)?;
                    }
                    Ok(())
                };
                tasks.spawn_blocking_on(task, runtime.handle());
            }
        }
        Work::Read { path, blocks } => {
            let file = Arc::new(File::open(path)?);
            for range in 0..blocks.div_ceil(RANGE) {
                let (file, sum) = (Arc::clone(&file), Arc::clone(&sum));
                let (start, end) = (range * RANGE, (range * RANGE + RANGE).min(*blocks));
                tasks.spawn_blocking_on(move || read_blocks(&file, (start, end), &sum), runtime.handle());
            }
        }
        Work::Copy { source, target, .. } => {
            runtime.block_on(tokio::fs::copy(source, target))?;
        }
        Work::Log { folder, files, records } => {
            for file in 0..*files {
                let (folder, records, sum) = (folder.clone(), *records, Arc::clone(&sum));
                tasks.spawn_blocking_on(move || write_log(&folder, file, records, &sum), runtime.handle());
            }
        }
    }
    runtime.block_on(all(tasks))?;
    Ok(sum.total())
}
