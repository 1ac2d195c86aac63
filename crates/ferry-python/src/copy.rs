//! Copies by the rules of Python's shutil.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry::job::Host;
use ferry_copy::{Dereference, Item, Options, Preserve, Progress, Summary};
use pyo3::prelude::*;

use crate::failures::{Collector, LeftOut};
use crate::queue::Lines;
use crate::run::{Outcome, Run, Shared, counts_of, io_options, workers};

/// Starts the copy of a folder by the rules of `shutil.copytree` with `shutil.copy2`.
///
/// The copy is `relative`, a name in the folder `base`, or `base` itself if it is empty. `left_out` has names by the path
/// of their folder below the source. Without `events` there are none.
#[pyfunction]
#[pyo3(signature = (source, base, relative, *, follow, left_out, events, each_entry))]
#[allow(clippy::too_many_arguments, reason = "each is a parameter of the Python function that calls it")]
pub(crate) fn start_tree(
    source: &[u8],
    base: &[u8],
    relative: &[u8],
    follow: bool,
    left_out: Option<HashMap<Vec<u8>, HashSet<Vec<u8>>>>,
    events: bool,
    each_entry: bool,
) -> PyResult<Run> {
    let options = Options {
        recursive: true,
        dereference: if follow { Dereference::Always } else { Dereference::Never },
        preserve: Preserve { mode: true, timestamps: true, xattr: true, ..Preserve::default() },
        keep_directory_symlink: true,
        through_dangling: true,
        strict_kinds: true,
        filtered: left_out.is_some(),
        verbose: events && each_entry,
        ..Options::default()
    };
    let item = item(source, base, relative);
    let collector = Collector::without(item.source.clone(), left_out_of(left_out.unwrap_or_default()));
    start(item, options, (workers(), collector), events)
}

/// Starts the copy of a file's bytes, as `shutil.copyfile`: a new target gets the mode that the umask leaves, an existing
/// one is overwritten and keeps its own.
#[pyfunction]
pub(crate) fn start_file(source: &[u8], base: &[u8], relative: &[u8]) -> PyResult<Run> {
    let options = Options {
        copy_contents: true,
        preserve: Preserve { refuse_mode: true, ..Preserve::default() },
        through_dangling: true,
        ..Options::default()
    };
    let workers = (NonZeroUsize::MIN, Collector::default());
    start(item(source, base, relative), options, workers, false)
}

/// Returns true if a path, or the nearest existing folder above it, is a folder or beneath it.
#[pyfunction]
pub(crate) fn is_within(py: Python<'_>, path: &[u8], folder: &[u8]) -> bool {
    let [path, folder] = [path, folder].map(path_of);
    py.detach(|| {
        let Ok(folder) = folder.canonicalize() else { return false };
        let mut at = std::path::absolute(&path).unwrap_or(path);
        loop {
            match at.canonicalize() {
                Ok(place) => return place.starts_with(&folder),
                Err(_) if !at.pop() => return false,
                Err(_) => {}
            }
        }
    })
}

fn item(source: &[u8], base: &[u8], relative: &[u8]) -> Item {
    let [source, base, relative] = [source, base, relative].map(path_of);
    Item { source, base, relative }
}

fn start(
    item: Item,
    options: Options,
    (workers, collector): (NonZeroUsize, Collector),
    events: bool,
) -> PyResult<Run> {
    let (progress, shared) = (Arc::new(Progress::default()), Arc::new(Shared::default()));
    let counters = Arc::clone(&progress);
    Run::start(
        shared,
        move || counts_of(&counters),
        || {},
        move |shared| {
            let (io, collector) = (io_options(workers, shared), Arc::new(collector));
            let summary = if events {
                let write = Box::new(Lines(Arc::clone(&shared.queue)));
                let (observer, cancelled) = (Arc::clone(&collector), Arc::clone(&shared.cancelled));
                ferry::job::copy(item, &options, Host { io, progress, observer, write, cancelled })?
            } else {
                let (paths, observer) = (ferry_io::Paths::new(), Arc::clone(&collector));
                ferry_copy::run_from(paths, vec![item], &options, &io, progress, observer)
                    .map_err(|error| error.to_string())?
            };
            Ok(outcome(&summary, &collector))
        },
    )
}

fn outcome(summary: &Summary, collector: &Collector) -> Outcome {
    let totals = [
        ("files", summary.files),
        ("directories", summary.directories),
        ("symlinks", summary.symlinks),
        ("bytes", summary.bytes()),
    ];
    Outcome {
        totals: totals.into(),
        failures: collector.take(),
        is_interrupted: summary.interrupted,
        is_out_of_space: summary.out_of_space,
        trash: None,
    }
}

fn left_out_of(names: HashMap<Vec<u8>, HashSet<Vec<u8>>>) -> LeftOut {
    let of_folder = |names: HashSet<Vec<u8>>| names.into_iter().map(OsString::from_vec).collect();
    names.into_iter().map(|(folder, names)| (path_of(&folder), of_folder(names))).collect()
}

/// Returns a path that Python gave as bytes.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}
