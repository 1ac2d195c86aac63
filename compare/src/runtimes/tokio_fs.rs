//! `tokio::fs`: each operation is a blocking call on tokio's pool of threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::too_large;
use crate::Failure;
use crate::work::{
    BLOCK, FILES_AT_ONCE, RECORD, SMALL, Sum, Total, Work, fill_record, log_path, processors, record_key,
};

/// Bytes read by one request: the most that `tokio::fs::File` reads at once.
const REQUEST: usize = 2 << 20;

pub(super) fn run(work: &Work) -> Result<Total, Failure> {
    let runtime = Builder::new_multi_thread().build()?;
    let sum = Arc::new(Sum::default());
    match work {
        Work::Small(paths) => {
            let next = Arc::new(AtomicU64::new(0));
            let mut tasks = JoinSet::new();
            for _ in 0..FILES_AT_ONCE * processors() {
                let task = read_some(Arc::clone(paths), Arc::clone(&next), Arc::clone(&sum));
                tasks.spawn_on(task, runtime.handle());
            }
            runtime.block_on(all(tasks))?;
        }
        Work::Read { path, .. } => runtime.block_on(read(path, &sum))?,
        Work::Copy { source, target, .. } => {
            runtime.block_on(tokio::fs::copy(source, target))?;
        }
        Work::Log { folder, files, records } => {
            let mut tasks = JoinSet::new();
            for file in 0..*files {
                let (folder, records, sum) = (folder.clone(), *records, Arc::clone(&sum));
                let task = async move { write_log(&folder, file, records, &sum).await };
                tasks.spawn_on(task, runtime.handle());
            }
            runtime.block_on(all(tasks))?;
        }
    }
    Ok(sum.total())
}

/// Waits for all tasks.
pub(super) async fn all(mut tasks: JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Reads the files that no other task has taken.
async fn read_some(paths: Arc<[PathBuf]>, next: Arc<AtomicU64>, sum: Arc<Sum>) -> Result<(), Failure> {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(path) = paths.get(usize::try_from(index)?) else { return Ok(()) };
        read_small(path, index, &sum).await?;
    }
}

async fn read_small(path: &Path, index: u64, sum: &Sum) -> Result<(), Failure> {
    let bytes = tokio::fs::read(path).await?;
    if bytes.len() >= SMALL {
        return Err(too_large(path));
    }
    sum.add(&bytes, index);
    Ok(())
}

async fn read(path: &Path, sum: &Sum) -> Result<(), Failure> {
    let mut file = File::open(path).await?;
    let mut buffer = vec![0; REQUEST];
    let mut block = 0;
    loop {
        let mut filled = 0;
        while filled < REQUEST {
            match file.read(&mut buffer[filled..]).await? {
                0 => break,
                count => filled += count,
            }
        }
        for bytes in buffer[..filled].chunks(BLOCK) {
            sum.add(bytes, block);
            block += 1;
        }
        if filled < REQUEST {
            return Ok(());
        }
    }
}

async fn write_log(folder: &Path, file: u64, records: u64, sum: &Sum) -> Result<(), Failure> {
    let path = log_path(folder, file);
    let mut log = OpenOptions::new().append(true).create_new(true).open(path).await?;
    let mut bytes = vec![0; RECORD];
    for record in 0..records {
        fill_record(&mut bytes, file, record);
        log.write_all(&bytes).await?;
        log.sync_data().await?;
        sum.add(&bytes, record_key(file, record));
    }
    Ok(())
}
