//! monoio: one thread for each processor, bound to it, with an io_uring and several tasks.

use std::path::Path;
use std::rc::Rc;

use monoio::fs::{File, OpenOptions};
use monoio::{IoUringDriver, RuntimeBuilder};

use super::too_large;
use crate::Failure;
use crate::work::{BLOCK, Part, RECORD, SMALL, Sum, Total, Work, fill_record, log_path, offset, record_key};

/// Entries of a ring, as by default.
const ENTRIES: u32 = 1024;

pub(super) fn run(work: &Work) -> Result<Total, Failure> {
    super::on_each_processor(work, |processor, part| {
        monoio::utils::bind_to_cpu_set([processor])?;
        let mut runtime = RuntimeBuilder::<IoUringDriver>::new().with_entries(ENTRIES).build()?;
        runtime.block_on(do_part(part))
    })
}

async fn do_part(part: Part) -> Result<Total, Failure> {
    let part = Rc::new(part);
    let files = Rc::new(Files::open(&part.work).await?);
    let task = |_| monoio::spawn(do_units(Rc::clone(&part), Rc::clone(&files)));
    let tasks: Vec<_> = (0..part.work.at_once()).map(task).collect();
    for task in tasks {
        task.await?;
    }
    Ok(part.sum.total())
}

/// A large file and its copy, open.
struct Files {
    source: Option<File>,
    target: Option<File>,
}

impl Files {
    async fn open(work: &Work) -> Result<Self, Failure> {
        let (source, target) = match work {
            Work::Read { path, .. } => (Some(path), None),
            Work::Copy { source, target, .. } => (Some(source), Some(target)),
            Work::Small(_) | Work::Log { .. } => (None, None),
        };
        let source = match source {
            Some(path) => Some(File::open(path).await?),
            None => None,
        };
        let target = match target {
            Some(path) => Some(OpenOptions::new().write(true).create(true).open(path).await?),
            None => None,
        };
        Ok(Self { source, target })
    }
}

async fn do_units(part: Rc<Part>, files: Rc<Files>) -> Result<(), Failure> {
    let mut buffer = Vec::with_capacity(if files.source.is_some() { BLOCK } else { SMALL });
    while let Some(unit) = part.take() {
        match &part.work {
            Work::Small(paths) => {
                buffer = read_small(&paths[usize::try_from(unit)?], unit, buffer, &part.sum).await?;
            }
            Work::Read { .. } | Work::Copy { .. } => {
                buffer = move_block(&files, unit, buffer, &part.sum).await?
            }
            Work::Log { folder, records, .. } => write_log(folder, unit, *records, &part.sum).await?,
        }
    }
    Ok(())
}

async fn read_small(path: &Path, index: u64, buffer: Vec<u8>, sum: &Sum) -> Result<Vec<u8>, Failure> {
    let file = File::open(path).await?;
    let (count, buffer) = file.read_at(buffer, 0).await;
    let count = count?;
    if count == SMALL {
        return Err(too_large(path));
    }
    sum.add(&buffer[..count], index);
    file.close().await?;
    Ok(buffer)
}

async fn move_block(files: &Files, block: u64, buffer: Vec<u8>, sum: &Sum) -> Result<Vec<u8>, Failure> {
    let Some(source) = &files.source else { return Ok(buffer) };
    let (done, buffer) = source.read_exact_at(buffer, offset(block)).await;
    done?;
    let Some(target) = &files.target else {
        sum.add(&buffer, block);
        return Ok(buffer);
    };
    let (done, buffer) = target.write_all_at(buffer, offset(block)).await;
    done?;
    Ok(buffer)
}

async fn write_log(folder: &Path, file: u64, records: u64, sum: &Sum) -> Result<(), Failure> {
    let log = OpenOptions::new().write(true).create_new(true).open(log_path(folder, file)).await?;
    let mut bytes = vec![0; RECORD];
    for record in 0..records {
        fill_record(&mut bytes, file, record);
        let (done, back) = log.write_all_at(bytes, record * RECORD as u64).await;
        done?;
        bytes = back;
        log.sync_data().await?;
        sum.add(&bytes, record_key(file, record));
    }
    log.close().await?;
    Ok(())
}
