//! ferry-io: folders and ranges are jobs, which its workers share; files and blocks are fibers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ferry_io::flow::{self, Flow};
use ferry_io::{Content, Dir, Error, File, Io, Jobs, Name, OpenHow, Options, for_each};

use super::too_large;
use crate::Failure;
use crate::work::{
    BLOCK, BLOCKS_AT_ONCE, FILES_AT_ONCE, RECORD, Sum, Total, Work, fill_record, offset, record_key,
};

/// Folders that a worker has in hand at a time.
const FOLDERS_AT_ONCE: usize = 16;
/// Blocks of a job: 16 MiB.
const RANGE: u64 = 64;

pub(super) fn run(work: &Work) -> Result<Total, Failure> {
    let sum = Arc::new(Sum::default());
    let total = Arc::clone(&sum);
    let (done, _stats) = ferry_io::run(&Options::default(), async |io| match work {
        Work::Small(paths) => small(&io, Tree::of(paths)?, sum).await,
        Work::Read { path, blocks } => read(&io, path, *blocks, sum).await,
        Work::Copy { source, target, blocks } => copy(&io, source, target, *blocks).await,
        Work::Log { folder, files, records } => {
            let folder = io.open_dir(folder)?;
            let count = usize::try_from(*files)?.max(1);
            for_each(count, 0..*files, async |file| write_log(&io, &folder, file, *records, &sum).await).await
        }
    })?;
    done?;
    Ok(total.total())
}

/// The folders of a list of files.
#[derive(Default)]
struct Tree {
    folders: Vec<Folder>,
}

#[derive(Default)]
struct Folder {
    name: Option<Name>,
    folders: Vec<usize>,
    files: Vec<(u64, Name)>,
}

impl Tree {
    /// Returns the folders, the root first. Paths are names beneath the root of the filesystem.
    fn of(paths: &[std::path::PathBuf]) -> Result<Self, Failure> {
        let mut tree = Self { folders: vec![Folder::default()] };
        let mut known = BTreeMap::from([(Path::new("/"), 0)]);
        for (index, path) in (0_u64..).zip(paths) {
            let (folder, name) = (tree.folder(path.parent(), &mut known)?, name(path)?);
            tree.folders[folder].files.push((index, name));
        }
        Ok(tree)
    }

    fn folder<'a>(
        &mut self,
        path: Option<&'a Path>,
        known: &mut BTreeMap<&'a Path, usize>,
    ) -> Result<usize, Failure> {
        let path = path.ok_or("a path is not absolute")?;
        if let Some(&folder) = known.get(path) {
            return Ok(folder);
        }
        let parent = self.folder(path.parent(), known)?;
        let index = self.folders.len();
        self.folders.push(Folder { name: Some(name(path)?), ..Folder::default() });
        self.folders[parent].folders.push(index);
        known.insert(path, index);
        Ok(index)
    }
}

fn name(path: &Path) -> Result<Name, Failure> {
    let name = path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
    name.ok_or_else(|| format!("'{}' has no name", path.display()).into())
}

/// Reads all files. A job opens a folder, and reads its files.
async fn small(io: &Io, tree: Tree, sum: Arc<Sum>) -> Result<(), Failure> {
    let failed = Arc::new(Mutex::new(None));
    let (handle, failure) = (io.clone(), Arc::clone(&failed));
    let root = io.reach_dir("/".as_ref())?;
    io.share(vec![(root, 0)], FOLDERS_AT_ONCE, async move |jobs: &Jobs<(Dir, usize)>, (parent, index)| {
        if let Err(error) = read_folder(&handle, &tree, jobs, (parent, index), &sum).await {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            handle.stop();
        }
    })
    .await;
    first(&failed)
}

async fn read_folder(
    io: &Io,
    tree: &Tree,
    jobs: &Jobs<(Dir, usize)>,
    (parent, index): (Dir, usize),
    sum: &Sum,
) -> Result<(), Failure> {
    let folder = &tree.folders[index];
    let opened = match &folder.name {
        Some(name) => parent.reach_dir(name, false).await?,
        None => parent,
    };
    for &beneath in &folder.folders {
        jobs.push_own((opened.clone(), beneath));
    }
    for_each(FILES_AT_ONCE, &folder.files, async |(index, name)| {
        let loaded = opened.load(name, io.block().await?, false).await?;
        let Content::Whole(block) = loaded.content else {
            return Err(too_large(Path::new(name.as_os_str())));
        };
        sum.add(block.as_slice(), *index);
        Ok::<(), Failure>(())
    })
    .await
}

/// Takes the first failure.
fn first(failed: &Mutex<Option<Failure>>) -> Result<(), Failure> {
    failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}

/// Opens a file by its path.
async fn open(io: &Io, path: &Path, how: OpenHow) -> Result<File, Failure> {
    let folder = io.reach_dir(path.parent().ok_or("a path is not absolute")?)?;
    Ok(folder.open(&name(path)?, how).await?)
}

/// Reads a large file. A job reads a range, with several blocks in flight.
async fn read(io: &Io, path: &Path, blocks: u64, sum: Arc<Sum>) -> Result<(), Failure> {
    let file = open(io, path, OpenHow::read()).await?;
    file.expect_sequential();
    let failed = Arc::new(Mutex::new(None));
    let (handle, failure) = (io.clone(), Arc::clone(&failed));
    // The newest job is begun first.
    let ranges =
        (0..blocks.div_ceil(RANGE)).rev().map(|range| (range * RANGE, (range * RANGE + RANGE).min(blocks)));
    io.share(ranges.collect(), 1, async move |_: &Jobs<(u64, u64)>, (start, end)| {
        let read = for_each(BLOCKS_AT_ONCE, start..end, async |block| {
            let (mut memory, mut at) = (handle.block().await?, 0);
            // A part of the block may be in memory: it comes first.
            while at < BLOCK {
                let (filled, count) = file.read_some_at(memory, BLOCK - at, offset(block) + at as u64).await;
                match count? {
                    0 => return Err("the file has become shorter".into()),
                    count => at += count,
                }
                sum.add(filled.as_slice(), block);
                memory = filled;
            }
            Ok::<(), Failure>(())
        });
        if let Err(error) = read.await {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            handle.stop();
        }
    })
    .await;
    first(&failed)
}

/// Copies a large file: the kernel moves the bytes, as far as it will.
async fn copy(io: &Io, source: &Path, target: &Path, blocks: u64) -> Result<(), Failure> {
    let source = open(io, source, OpenHow::read()).await?;
    let target = open(io, target, OpenHow::create(0o644)).await?;
    let flow = Flow::offloaded(BLOCKS_AT_ONCE, io.block_size());
    flow::copy(io, &source, &target, (0, offset(blocks)), flow, |_| ()).await?;
    Ok(target.close()?)
}

async fn write_log(io: &Io, folder: &Dir, file: u64, records: u64, sum: &Sum) -> Result<(), Failure> {
    let name = Name::new(format!("log-{file}").as_bytes()).ok_or("a log has no name")?;
    let log = folder.open(&name, OpenHow::create(0o644)).await?;
    let mut block = io.block().await?;
    for record in 0..records {
        fill_record(&mut block.as_mut_capacity()[..RECORD], file, record);
        block.set_filled(RECORD);
        let (back, written): (_, Result<(), Error>) = log.write_all_at(block, record * RECORD as u64).await;
        written?;
        block = back;
        log.sync_data().await?;
        sum.add(block.as_slice(), record_key(file, record));
    }
    Ok(log.close()?)
}
