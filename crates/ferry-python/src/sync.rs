//! Synchronisations: they are performed, planned, or performed as they were planned.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ferry::job::{self, Host};
use ferry_copy::Progress;
use ferry_io::Time;
use ferry_sync::{Acting, Comparison, Disposal, MaxDelete, Request, Rule, Selection, Totals};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::copy::path_of;
use crate::failures::Collector;
use crate::queue::Lines;
use crate::run::{Outcome, Run, Shared, counts_of, duration, io_options, workers};

/// How the target is changed.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct HowActed {
    in_place: bool,
    fsync: bool,
    verify: bool,
    bandwidth: Option<u64>,
    time_limit: Option<f64>,
    /// Set if replaced and deleted entries are kept.
    keeps: bool,
    trash: Option<Vec<u8>>,
}

/// What is compared, and which entries take part.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct HowDecided {
    compare: String,
    newer: bool,
    delete: bool,
    allow_empty: bool,
    /// `None` for the usual bound; negative for no bound.
    max_delete: Option<i64>,
    exclude: Vec<String>,
    gitignore: bool,
    min_size: Option<u64>,
    max_size: Option<u64>,
    /// Seconds and nanoseconds since 1970.
    newer_than: Option<(i64, u32)>,
    one_file_system: bool,
    delete_excluded: bool,
}

/// Starts a synchronisation; with `plans`, its plan, which is written to `file` if one is given.
#[pyfunction]
#[pyo3(signature = (source, target, decided, acted, *, plans, file))]
pub(crate) fn start_sync(
    source: &[u8],
    target: &[u8],
    decided: HowDecided,
    acted: HowActed,
    plans: bool,
    file: Option<&[u8]>,
) -> PyResult<Run> {
    let request = request((path_of(source), path_of(target)), decided, acting(acted)?)?;
    let file = file.map(path_of);
    start(move |host| match plans {
        true => job::plan(&request, file.as_deref(), host),
        false => job::sync(&request, host),
    })
}

/// Starts to perform a plan.
#[pyfunction]
pub(crate) fn start_apply(plan: &[u8], acted: HowActed) -> PyResult<Run> {
    let (plan, acting) = (path_of(plan), acting(acted)?);
    start(move |host| job::apply(&plan, &acting, host))
}

fn start(perform: impl FnOnce(Host) -> Result<Totals, String> + Send + 'static) -> PyResult<Run> {
    let (progress, shared) = (Arc::new(Progress::default()), Arc::new(Shared::default()));
    let counters = Arc::clone(&progress);
    // Found out on this thread, which holds the interpreter: a fork can't interrupt it.
    let workers = workers();
    Run::start(
        shared,
        move || counts_of(&counters),
        || {},
        move |shared| {
            let (io, collector) = (io_options(workers, shared), Arc::new(Collector::default()));
            let (observer, cancelled) = (Arc::clone(&collector), Arc::clone(&shared.cancelled));
            let write = Box::new(Lines(Arc::clone(&shared.queue)));
            let totals = perform(Host { io, progress, observer, write, cancelled })?;
            Ok(outcome(totals, &collector))
        },
    )
}

fn outcome(totals: Totals, collector: &Collector) -> Outcome {
    let (found, limit) = totals.too_many.unwrap_or_default();
    let numbers = [
        ("created", totals.done.created),
        ("replaced", totals.done.replaced),
        ("attributes", totals.done.attributes),
        ("deleted", totals.done.deleted),
        ("failed", totals.failed),
        ("bytes", totals.bytes),
        ("spared", totals.spared),
        ("too_many", found),
        ("delete_limit", limit),
    ];
    Outcome {
        totals: numbers.into(),
        failures: collector.take(),
        is_interrupted: totals.interrupted,
        is_out_of_space: totals.out_of_space,
        trash: totals.trash,
    }
}

fn acting(acted: HowActed) -> PyResult<Acting> {
    let HowActed { in_place, fsync, verify, bandwidth, time_limit, keeps, trash } = acted;
    let positive = |bytes| NonZeroU64::new(bytes).ok_or_else(|| PyValueError::new_err("bandwidth is 0"));
    let disposal = match keeps {
        true => Disposal::Trash(trash.map(|folder| path_of(&folder))),
        false => Disposal::Remove,
    };
    Ok(Acting {
        in_place,
        fsync,
        verify,
        bandwidth: bandwidth.map(positive).transpose()?,
        time_limit: time_limit.map(duration).transpose()?.map(at_least_one),
        disposal,
        is_part: false,
    })
}

/// Returns a time limit that is not over before the run begins.
fn at_least_one(limit: Duration) -> Duration {
    limit.max(Duration::from_millis(1))
}

fn request((source, target): (PathBuf, PathBuf), decided: HowDecided, acting: Acting) -> PyResult<Request> {
    let comparison = match decided.compare.as_str() {
        "time" => Comparison::SizeAndTime,
        "size" => Comparison::Size,
        "content" => Comparison::Content,
        other => {
            return Err(PyValueError::new_err(format!("compare is none of time, size, content: {other}")));
        }
    };
    let max_delete = match decided.max_delete {
        None => MaxDelete::Half,
        Some(number) => u64::try_from(number).map_or(MaxDelete::Any, MaxDelete::Number),
    };
    let rule = |pattern| Rule { pattern, origin: "exclude".to_owned() };
    let time = |(seconds, nanoseconds)| Time { seconds, nanoseconds };
    let selection = Selection {
        rules: decided.exclude.into_iter().map(rule).collect(),
        gitignore: decided.gitignore,
        min_size: decided.min_size,
        max_size: decided.max_size,
        newer_than: decided.newer_than.map(time),
        one_file_system: decided.one_file_system,
        deletes_excluded: decided.delete_excluded,
    };
    selection.check().map_err(|bad| PyValueError::new_err(bad.to_string()))?;
    Ok(Request {
        source,
        target,
        comparison,
        keeps_newer: decided.newer,
        deletes: decided.delete,
        allows_empty: decided.allow_empty,
        max_delete,
        selection,
        list: None,
        each_entry: true,
        acting,
    })
}
