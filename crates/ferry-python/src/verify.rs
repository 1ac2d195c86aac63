//! Comparisons of two trees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_tree::compare::{self, Holes, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::copy::path_of;
use crate::queue::Lines;
use crate::run::{Outcome, Run, Shared};

/// Starts a comparison. `ignore` has the parts that are not compared, by the names of `ferry verify --ignore`.
#[pyfunction]
#[pyo3(signature = (source, target, *, ignore, threads))]
pub(crate) fn start_verify(
    source: &[u8],
    target: &[u8],
    ignore: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Run> {
    let mut options = Options::all();
    ignore.iter().try_for_each(|part| leave_out(&mut options, part))?;
    if let Some(threads) = threads {
        if !(1..=1024).contains(&threads) {
            return Err(PyValueError::new_err("threads is none of 1 to 1024"));
        }
        options.threads = threads;
    }
    let (source, target) = (path_of(source), path_of(target));
    let counters = Arc::new(compare::Progress::new());
    let (counted, stopped) = (Arc::clone(&counters), Arc::clone(&counters));
    let counts = move || {
        let so_far = counted.so_far();
        (so_far.entries, so_far.bytes, 0, 0, false)
    };
    Run::start(
        Arc::new(Shared::default()),
        counts,
        move || stopped.stop(),
        move |shared| {
            let write = Box::new(Lines(Arc::clone(&shared.queue)));
            let summary = ferry::job::verify((&source, &target), &options, &counters, write)?;
            let totals = HashMap::from([
                ("entries", summary.entries),
                ("directories", summary.directories),
                ("files", summary.files),
                ("bytes", summary.bytes),
                ("differences", summary.differences),
                ("shared", summary.shared),
            ]);
            let is_interrupted = summary.stopped && shared.cancelled.load(Ordering::SeqCst);
            Ok(Outcome { totals, is_interrupted, ..Outcome::default() })
        },
    )
}

fn leave_out(options: &mut Options, part: &str) -> PyResult<()> {
    match part {
        "content" => options.content = false,
        "mode" => options.mode = false,
        "owner" => options.owner = false,
        "times" => options.mtime = false,
        "xattrs" => options.xattrs = false,
        "acls" => options.acls = false,
        "links" => options.links = false,
        "holes" => options.holes = Holes::Ignore,
        other => {
            let message =
                format!("ignore is none of content, mode, owner, times, xattrs, acls, links, holes: {other}");
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(())
}
