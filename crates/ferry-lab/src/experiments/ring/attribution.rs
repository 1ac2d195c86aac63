//! Attributes the kernel's work to its causes: calls that ran task work, wake-ups between threads, and the ways in
//! which completions were found. These are document 002's counts, taken from the kernel's tracepoints and their call
//! chains.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ferry_io::sampling::{Event, Sampling, ThreadSelection};
use ferry_trace::Trace;
use ferry_trace::cause::cause;
use ferry_trace::model::{Cause, CompletionMet, Did};

use crate::error::Failure;
use crate::published;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Figures, Measure, Record};
use crate::session::Session;
use crate::statistics::percentile;
use crate::table::Table;
use crate::units::{figure, real, real_count};

/// Names of the figures begin with these.
const RUNS: &str = "runs_";
const WAKES: &str = "wakes_";
const NOT_SAMPLED: &str = "wakes_not_sampled";
const MET: &str = "met_";
/// Followed by the function that the kernel entered task work by, or that left it for a sleeping thread.
const RAN_BY: &str = "ran_by_";
const ADDED_BY: &str = "added_by_";
pub(super) const LOST: &str = "lost_events";
/// Task work that was run.
pub(super) const ALL_RUNS: &str = "task_work_runs";
pub(super) const BY_IPI: &str = "runs_ipi";
/// Time from adding task work for a sleeping thread until it had run.
const ADDED_TO_RUN_P50: &str = "added_to_run_s_p50";
const ADDED_TO_RUN_P99: &str = "added_to_run_s_p99";

/// Events that are being gathered.
pub(super) struct Attribution {
    sampling: Sampling,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Attribution {
    /// Begins with the calling thread, and all that it will start.
    ///
    /// # Errors
    /// Why the kernel's side can't be seen.
    pub(super) fn start() -> Result<Self, Failure> {
        let events = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&events);
        let take = move |batch: &[Event]| {
            taken.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(batch);
        };
        let sampling = Sampling::start(ThreadSelection::ThisThread, take)
            .map_err(|refusal| Failure::Run(format!("the kernel's work cannot be observed: {refusal}")))?;
        Ok(Self { sampling, events })
    }

    /// Ends; what was found, as figures.
    pub(super) fn finish(self) -> Figures {
        let summary = self.sampling.finish();
        let events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        let mut trace = Trace::default();
        let met = ferry_trace::kernel::add(&mut trace, 0, events, &summary);
        counted(&trace, &met)
    }
}

/// Why nothing can be attributed here, if so.
pub(super) fn refusal() -> Option<String> {
    match Attribution::start() {
        Ok(attribution) => {
            attribution.finish();
            None
        }
        Err(failure) => Some(failure.to_string()),
    }
}

fn counted(trace: &Trace, met: &[Option<CompletionMet>]) -> Figures {
    let mut figures: Figures = always().map(|measure| (measure.name, 0.0)).collect();
    // Time of the first addition that has not run yet, by thread. The kernel traces additions by their wake-ups only.
    let (mut added, mut delays) = (BTreeMap::new(), Vec::new());
    let mut count = |name: String| *figures.entry(name).or_default() += 1.0;
    for event in &trace.kernel {
        let chain = event.chain.and_then(|chain| trace.chains.get(usize::try_from(chain).ok()?));
        let chain = chain.map_or(&[][..], Vec::as_slice);
        match event.did {
            Did::TaskWork { cause, .. } => {
                let since = added.remove(&event.thread);
                delays.extend(since.map(|at| real(event.at.saturating_sub(at)) / 1e9));
                count(ALL_RUNS.to_owned());
                count(format!("{RUNS}{}", word(cause)));
                if let Some(entered) = chain.first() {
                    count(format!("{RAN_BY}{entered}"));
                }
            }
            Did::Sleep => count("sleeps".to_owned()),
            Did::Wake { .. } => {
                count(format!("{WAKES}{}", word(cause(chain, false))));
                let adds = chain.iter().rposition(|function| function.ends_with("req_task_work_add"));
                if let Some(adder) = adds.and_then(|at| chain.get(at + 1)) {
                    count(format!("{ADDED_BY}{adder}"));
                    added.entry(event.thread).or_insert(event.at);
                }
            }
            Did::Run => count(NOT_SAMPLED.to_owned()),
            Did::TaskAdd | Did::HandOver(_) | Did::Began | Did::Ended => {}
        }
    }
    for met in met.iter().flatten() {
        count(format!("{MET}{}", met_word(*met)));
    }
    figures.insert("requests".to_owned(), real_count(trace.requests.len()));
    figures.insert(LOST.to_owned(), real(trace.lost.kernel));
    if !delays.is_empty() {
        delays.sort_by(f64::total_cmp);
        figures.insert(ADDED_TO_RUN_P50.to_owned(), percentile(&delays, 500));
        figures.insert(ADDED_TO_RUN_P99.to_owned(), percentile(&delays, 990));
    }
    figures
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::GetEvents => "getevents",
        Cause::GetEventsSlept => "getevents_slept",
        Cause::SystemCall => "system_call",
        Cause::Ipi => "ipi",
        Cause::PageFault => "page_fault",
        Cause::Tick => "tick",
        Cause::DeviceInterrupt => "device_interrupt",
        Cause::Unknown => "unknown",
    }
}

fn met_word(met: CompletionMet) -> &'static str {
    match met {
        CompletionMet::Peek => "peek",
        CompletionMet::AtOnce => "at_once",
        CompletionMet::Slept => "slept",
    }
}

/// Measures counted in every run.
fn always() -> impl Iterator<Item = Measure> {
    let count = |name: &str, about: &str| Measure::new(name, about, "", Better::Neither);
    let runs = Cause::ALL.into_iter().map(move |cause| {
        count(&format!("{RUNS}{}", word(cause)), &format!("runs of task work by {}", cause.name()))
    });
    let met = [
        (CompletionMet::Peek, "completions that were ready before the program asked for them"),
        (CompletionMet::AtOnce, "completions that GETEVENTS found without sleeping"),
        (CompletionMet::Slept, "completions for which the thread slept"),
    ];
    let met = met.into_iter().map(move |(met, about)| count(&format!("{MET}{}", met_word(met)), about));
    let others = [
        (ALL_RUNS, "runs of task work"),
        ("requests", "requests submitted to rings"),
        ("sleeps", "sleeps of threads"),
        (LOST, "lost events"),
    ];
    others.map(|(name, about)| count(name, about)).into_iter().chain(runs).chain(met)
}

/// Times, which only runs with wake-ups for task work have.
fn times() -> [Measure; 2] {
    let about = "time from adding task work for a sleeping thread until it had run";
    [(ADDED_TO_RUN_P50, "median"), (ADDED_TO_RUN_P99, "99th percentile")]
        .map(|(name, which)| Measure::new(name, &format!("{which} of the {about}"), "s", Better::Lower))
}

/// Everything that is counted in these cells.
pub(super) fn measures(cells: &[Cell]) -> Vec<Measure> {
    let mut found: Vec<Measure> = always().chain(times()).collect();
    let figures = cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| run.figures.keys());
    for name in figures {
        let about = [
            (NOT_SAMPLED, "sleeps without a sampled wake-up"),
            (WAKES, "wake-ups by"),
            (RAN_BY, "runs of task work through"),
            (ADDED_BY, "wake-ups for task work added by"),
        ];
        let about = about.iter().find_map(|(prefix, about)| Some((about, name.strip_prefix(prefix)?)));
        if let Some((about, what)) = about
            && found.iter().all(|measure| measure.name != *name)
        {
            let what = what.replace('_', if name.starts_with(WAKES) { " " } else { "_" });
            found.push(Measure::new(name, format!("{about} {what}").trim_end(), "", Better::Neither));
        }
    }
    found
}

/// Counts that lack something are not to be trusted.
pub(super) fn tell_lost(session: &mut Session<'_>) {
    let runs = session.record().cells.iter().flat_map(|cell| &cell.runs);
    let lost: f64 = runs.filter_map(|run| run.figures.get(LOST)).sum();
    if lost > 0.0 {
        let message = format!("{} of the kernel's events were lost", figure(lost, ""));
        let advice = "the counts are too low: repeat the measurement on a quieter machine";
        session.warn(Warning::note(WarningKind::Experiment, message, advice).distrusted());
    }
}

/// The document's tables: medians of the counts, with their share.
pub(super) fn tables(record: &Record) -> Vec<Table> {
    let parts = [
        ("Causes of task work, in runs", RUNS, ALL_RUNS),
        ("Functions that ran task work, in runs", RAN_BY, ALL_RUNS),
        ("How completions were found", MET, "requests"),
        ("Causes of wake-ups, as a share of sleeps", WAKES, "sleeps"),
        (
            "Functions that added task work for a sleeping thread, as a share of its sleeps",
            ADDED_BY,
            "sleeps",
        ),
    ];
    let tables = parts.map(|(title, prefix, of)| table(record, title, prefix, of));
    let others = [as_published(record), added_to_run(record)];
    let tables = tables.into_iter().chain(others);
    tables.filter(|table| table.columns.len() > 2 && !table.rows.is_empty()).collect()
}

/// Document 002's counts beside those of the cells. The document does not divide system calls.
fn as_published(record: &Record) -> Table {
    let columns = ["depth/load/mode", "of", "system call", "IPI", "page fault", "other"];
    let mut table = Table::new("What ran task work in a run, beside document 002", &columns);
    let counts = |all: f64, parts: [f64; 3]| {
        let others = all - parts.iter().sum::<f64>();
        parts.into_iter().chain([others]).map(|part| with_share(part, all)).collect::<Vec<_>>()
    };
    for cell in &record.cells {
        // Means, so that the parts add up to the whole.
        let mean = |name: &str| {
            let figures = cell.figures(name);
            if figures.is_empty() { 0.0 } else { figures.iter().sum::<f64>() / real_count(figures.len()) }
        };
        let of = |cause: Cause| mean(&format!("{RUNS}{}", word(cause)));
        let all = mean(ALL_RUNS);
        if all > 0.0 {
            let calls = [Cause::GetEvents, Cause::GetEventsSlept, Cause::SystemCall].map(of).iter().sum();
            let row = counts(all, [calls, of(Cause::Ipi), of(Cause::PageFault)]);
            table.row([vec![cell.name.clone(), figure(all, "")], row].concat());
        }
    }
    let is_known = |one: &&published::Published| one.title == published::TASK_WORK;
    let known = published::of("ring").find(is_known).filter(|_| !table.rows.is_empty());
    for (name, figures) in known.iter().flat_map(|known| known.rows) {
        if let [Some(fault), Some(ipi), Some(call)] = **figures {
            let all = fault + ipi + call;
            let row = counts(all, [call, ipi, fault]);
            table.row([vec![format!("002: {name}"), figure(all, "")], row].concat());
        }
    }
    table
}

fn added_to_run(record: &Record) -> Table {
    let title = "Time from adding task work for a sleeping thread until it had run";
    let mut table = Table::new(title, &["depth/load/mode", "median", "99th percentile"]);
    for cell in &record.cells {
        let median = |name: &str| Some(figure(record.summary(cell, name)?.median.middle, "s"));
        if let (Some(middle), Some(p99)) = (median(ADDED_TO_RUN_P50), median(ADDED_TO_RUN_P99)) {
            table.row(vec![cell.name.clone(), middle, p99]);
        }
    }
    table
}

/// `41 (0.4 %)`.
fn with_share(part: f64, all: f64) -> String {
    let share = if all > 0.0 { format!(" ({:.1} %)", 100.0 * part / all) } else { String::new() };
    figure(part, "") + &share
}

fn table(record: &Record, title: &str, prefix: &str, of: &str) -> Table {
    let median = |cell: &Cell, name: &str| record.summary(cell, name).map(|found| found.median.middle);
    let is_met = |name: &str| record.cells.iter().any(|cell| median(cell, name).is_some_and(|n| n > 0.0));
    let names = record.measures.iter().map(|measure| measure.name.as_str());
    let names: Vec<&str> = names.filter(|name| name.starts_with(prefix) && is_met(name)).collect();
    let mut table = Table::new(title, &["depth/load/mode", "of"]);
    let heading = |name: &str| {
        let name = name.trim_start_matches(prefix);
        if [RAN_BY, ADDED_BY].contains(&prefix) { name.to_owned() } else { name.replace('_', " ") }
    };
    table.columns.extend(names.iter().map(|name| heading(name)));
    for cell in &record.cells {
        let Some(all) = median(cell, of) else { continue };
        let mut row = vec![cell.name.clone(), figure(all, "")];
        row.extend(names.iter().map(|name| with_share(median(cell, name).unwrap_or(0.0), all)));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests;
