//! The files of a comparison, and the works on them.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use ferry_lab::cache::State;
use ferry_lab::cache::sample::Sample;
use ferry_tree::workload::{self, Preset, Workload};

use crate::Failure;
use crate::work::{BLOCK, RECORD, Sum, Total, fill_record, log_path, offset, record_key};

/// Seed of all contents.
const SEED: u64 = 1;
/// Size of the large file in MiB.
const LARGE: u64 = 512;
/// Files and records of each log work.
const LOGS: [(&str, u64, u64); 2] = [("log", 1, 300), ("logs-16", 16, 50)];

/// A folder with all files, which is removed in the end.
pub(super) struct Place {
    path: PathBuf,
    quick: bool,
}

impl Place {
    /// Makes a folder, which must not exist, and the files.
    pub(super) fn make(path: &Path, quick: bool) -> Result<Self, Failure> {
        fs::create_dir(path).map_err(|error| format!("cannot create '{}': {error}", path.display()))?;
        let place = Self { path: path.canonicalize()?, quick };
        let (small, large) = if quick {
            (Workload::plain(2, 2, 3, 4096, SEED), Preset::Huge { mebibytes: 4 })
        } else {
            (Preset::Small.workload(SEED), Preset::Huge { mebibytes: LARGE })
        };
        workload::make(&small, &place.small(), 2)?;
        workload::make(&large.workload(SEED), &place.folder_of_large(), 1)?;
        fs::create_dir(place.path.join("logs"))?;
        Ok(place)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn small(&self) -> PathBuf {
        self.path.join("small")
    }

    fn folder_of_large(&self) -> PathBuf {
        self.path.join("large")
    }

    /// Returns all works.
    pub(super) fn cells(&self) -> Result<Vec<Cell>, Failure> {
        let mut cells = self.cells_of_small()?;
        cells.extend(self.cells_of_large()?);
        for (name, files, records) in LOGS {
            let records = if self.quick { records.min(5) } else { records };
            cells.push(self.cell_of_log(name, files, records));
        }
        Ok(cells)
    }

    fn cells_of_small(&self) -> Result<Vec<Cell>, Failure> {
        let paths = files(&self.small())?;
        let list = self.path.join("list");
        let mut out = File::create(&list)?;
        let sum = Sum::default();
        for (index, path) in (0_u64..).zip(&paths) {
            writeln!(out, "{}", path.display())?;
            sum.add(&fs::read(path)?, index);
        }
        out.sync_all()?;
        let cell = |(name, state): (&'static str, State)| -> Result<Cell, Failure> {
            let what = format!("open, read and close {} files of 4 KiB, {}", paths.len(), state.name());
            let arguments = vec!["small".to_owned(), list.display().to_string()];
            let sample = Sample::of(&self.small(), SEED)?;
            Ok(Cell { name, what, state, sample, arguments, total: sum.total(), made: Made::Nothing })
        };
        [("small-warm", State::Warm), ("small-cold", State::Cold)].into_iter().map(cell).collect()
    }

    fn cells_of_large(&self) -> Result<Vec<Cell>, Failure> {
        let (source, target) = (self.folder_of_large().join("f0"), self.path.join("copy"));
        let bytes = fs::metadata(&source)?.len();
        let blocks = bytes / BLOCK as u64;
        let total = sum_of(&source, blocks)?;
        let size = format!("one file of {} MiB", bytes >> 20);
        let cell = |(name, state): (&'static str, State)| -> Result<Cell, Failure> {
            let what = format!("read {size}, {}", state.name());
            let arguments = vec!["read".to_owned(), source.display().to_string()];
            let sample = Sample::of(&self.folder_of_large(), SEED)?;
            Ok(Cell { name, what, state, sample, arguments, total, made: Made::Nothing })
        };
        let cells = [("read-warm", State::Warm), ("read-cold", State::Cold)].into_iter().map(cell);
        let mut cells: Vec<Cell> = cells.collect::<Result<_, Failure>>()?;
        let arguments = ["copy".to_owned(), source.display().to_string(), target.display().to_string()];
        cells.push(Cell {
            name: "copy-warm",
            what: format!("copy {size}, warm, to a new file"),
            state: State::Warm,
            sample: Sample::of(&self.folder_of_large(), SEED)?,
            arguments: arguments.to_vec(),
            total: Total::default(),
            made: Made::Copy { target, blocks, total },
        });
        Ok(cells)
    }

    fn cell_of_log(&self, name: &'static str, files: u64, records: u64) -> Cell {
        let folder = self.path.join("logs");
        let sum = Sum::default();
        let mut bytes = vec![0; RECORD];
        for (file, record) in (0..files).flat_map(|file| (0..records).map(move |record| (file, record))) {
            fill_record(&mut bytes, file, record);
            sum.add(&bytes, record_key(file, record));
        }
        let numbers = [files, records].map(|number| number.to_string());
        let arguments = [vec!["log".to_owned(), folder.display().to_string()], numbers.to_vec()].concat();
        Cell {
            name,
            what: format!("append {records} records of 4 KiB to {files} new file(s), fdatasync after each"),
            state: State::AsItIs,
            sample: Sample::none(),
            arguments,
            total: sum.total(),
            made: Made::Logs { folder, files, records },
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("cannot remove '{}': {error}", self.path.display());
        }
    }
}

/// All regular files of a tree, sorted.
fn files(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    Ok(found)
}

/// Total of a large file.
fn sum_of(path: &Path, blocks: u64) -> Result<Total, Failure> {
    let (file, sum) = (File::open(path)?, Sum::default());
    let mut buffer = vec![0; BLOCK];
    for block in 0..blocks {
        file.read_exact_at(&mut buffer, offset(block))?;
        sum.add(&buffer, block);
    }
    Ok(sum.total())
}

/// A work in one state of the cache.
pub(super) struct Cell {
    pub(super) name: &'static str,
    pub(super) what: String,
    pub(super) state: State,
    pub(super) sample: Sample,
    /// Arguments of the program.
    pub(super) arguments: Vec<String>,
    /// Total that a run must print.
    pub(super) total: Total,
    made: Made,
}

/// Files that a run makes.
enum Made {
    Nothing,
    Copy { target: PathBuf, blocks: u64, total: Total },
    Logs { folder: PathBuf, files: u64, records: u64 },
}

impl Cell {
    /// Removes what a run has made.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        let paths = match &self.made {
            Made::Nothing => Vec::new(),
            Made::Copy { target, .. } => vec![target.clone()],
            Made::Logs { folder, files, .. } => (0..*files).map(|file| log_path(folder, file)).collect(),
        };
        for path in paths.iter().filter(|path| path.exists()) {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Checks what a run has made.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match &self.made {
            Made::Nothing => Ok(()),
            Made::Copy { target, blocks, total } => {
                let is_equal =
                    fs::metadata(target)?.len() == offset(*blocks) && sum_of(target, *blocks)? == *total;
                if is_equal { Ok(()) } else { Err("the copy differs from its source".into()) }
            }
            Made::Logs { folder, files, records } => {
                let mut record = vec![0; RECORD];
                for file in 0..*files {
                    let found = fs::read(log_path(folder, file))?;
                    let expected = (0..*records).flat_map(|index| {
                        fill_record(&mut record, file, index);
                        record.clone()
                    });
                    if !expected.eq(found) {
                        return Err(format!("log {file} has other records").into());
                    }
                }
                Ok(())
            }
        }
    }
}
