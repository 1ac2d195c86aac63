//! glommio: one executor for each processor, bound to it, with several tasks. Files are buffered, as with the others.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use glommio::io::{BufferedFile, OpenOptions};
use glommio::{GlommioError, LocalExecutorPoolBuilder, PoolPlacement, spawn_local};

use super::too_large;
use crate::Failure;
use crate::work::{
    BLOCK, Part, RECORD, SMALL, Sum, Total, Work, fill_record, log_path, offset, processors, record_key,
};

pub(super) fn run(work: &Work) -> Result<Total, Failure> {
    let count = processors();
    let (work, started) = (work.clone(), Arc::new(AtomicUsize::new(0)));
    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::MaxSpread(count, None));
    let executors = pool.on_all_shards(move || async move {
        let index = started.fetch_add(1, Ordering::Relaxed);
        do_part(Part::new(work, index, count)).await
    });
    let ended = executors.map_err(text)?.join_all();
    ended.into_iter().try_fold(Total::default(), |all, done| Ok(all.and(done.map_err(text)??)))
}

/// The error as text, because it can't be sent to other threads.
fn text<T: std::fmt::Debug>(error: GlommioError<T>) -> Failure {
    error.to_string().into()
}

async fn do_part(part: Part) -> Result<Total, Failure> {
    let part = Rc::new(part);
    let files = Rc::new(Files::open(&part.work).await?);
    let task = |_| spawn_local(do_units(Rc::clone(&part), Rc::clone(&files)));
    let tasks: Vec<_> = (0..part.work.at_once()).map(task).collect();
    for task in tasks {
        task.await?;
    }
    if let Some(files) = Rc::into_inner(files) {
        files.close().await?;
    }
    Ok(part.sum.total())
}

/// A large file and its copy, open.
struct Files {
    source: Option<BufferedFile>,
    target: Option<BufferedFile>,
}

impl Files {
    async fn open(work: &Work) -> Result<Self, Failure> {
        let (source, target) = match work {
            Work::Read { path, .. } => (Some(path), None),
            Work::Copy { source, target, .. } => (Some(source), Some(target)),
            Work::Small(_) | Work::Log { .. } => (None, None),
        };
        let source = match source {
            Some(path) => Some(BufferedFile::open(path).await.map_err(text)?),
            None => None,
        };
        let target = match target {
            Some(path) => {
                let opened = OpenOptions::new().write(true).create(true).buffered_open(path).await;
                Some(opened.map_err(text)?)
            }
            None => None,
        };
        Ok(Self { source, target })
    }

    async fn close(self) -> Result<(), Failure> {
        for file in [self.source, self.target].into_iter().flatten() {
            file.close().await.map_err(text)?;
        }
        Ok(())
    }
}

async fn do_units(part: Rc<Part>, files: Rc<Files>) -> Result<(), Failure> {
    while let Some(unit) = part.take() {
        match &part.work {
            Work::Small(paths) => read_small(&paths[usize::try_from(unit)?], unit, &part.sum).await?,
            Work::Read { .. } | Work::Copy { .. } => move_block(&files, unit, &part.sum).await?,
            Work::Log { folder, records, .. } => write_log(folder, unit, *records, &part.sum).await?,
        }
    }
    Ok(())
}

async fn read_small(path: &Path, index: u64, sum: &Sum) -> Result<(), Failure> {
    let file = BufferedFile::open(path).await.map_err(text)?;
    let bytes = file.read_at(0, SMALL).await.map_err(text)?;
    if bytes.len() == SMALL {
        return Err(too_large(path));
    }
    sum.add(&bytes, index);
    file.close().await.map_err(text)
}

async fn move_block(files: &Files, block: u64, sum: &Sum) -> Result<(), Failure> {
    let Some(source) = &files.source else { return Ok(()) };
    let bytes = source.read_at(offset(block), BLOCK).await.map_err(text)?;
    if bytes.len() < BLOCK {
        return Err("a read was short".into());
    }
    let Some(target) = &files.target else {
        sum.add(&bytes, block);
        return Ok(());
    };
    // A write takes a vector of its own.
    write(target, bytes.to_vec(), offset(block)).await
}

/// Writes bytes by one call, which is never short on a regular file unless its filesystem is full.
async fn write(file: &BufferedFile, bytes: Vec<u8>, at: u64) -> Result<(), Failure> {
    let size = bytes.len();
    match file.write_at(bytes, at).await.map_err(text)? {
        count if count == size => Ok(()),
        _ => Err("a write was short".into()),
    }
}

async fn write_log(folder: &Path, file: u64, records: u64, sum: &Sum) -> Result<(), Failure> {
    let path = log_path(folder, file);
    let log = OpenOptions::new().write(true).create_new(true).buffered_open(&path).await.map_err(text)?;
    for record in 0..records {
        let mut bytes = vec![0; RECORD];
        fill_record(&mut bytes, file, record);
        sum.add(&bytes, record_key(file, record));
        write(&log, bytes, record * RECORD as u64).await?;
        log.fdatasync().await.map_err(text)?;
    }
    log.close().await.map_err(text)
}
