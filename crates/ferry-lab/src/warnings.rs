//! Warnings, with advice, about anything that makes figures doubtful: before, during and after the measurement.

use crate::cache::Proof;
use crate::machine::Machine;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Cell, Failed, Record, Scale};

#[cfg(test)]
mod tests;

/// Fewer runs than this say nothing about spread.
const FEW_RUNS: usize = 5;
/// Limit for half of a median's confidence interval, as a fraction of the median.
const NOISE: f64 = 0.15;
/// Limit for the percentage of the processors' time that the hypervisor takes.
const STOLEN_PERCENT: u64 = 3;

/// Warnings from the machine's state before the first run.
#[must_use]
pub fn of_machine(machine: &Machine) -> Vec<Warning> {
    let mut found = Vec::new();
    let processor = &machine.processor;
    if processor.usable < processor.count {
        found.push(Warning::note(
            WarningKind::CpuLimit,
            format!("this process may use {} of {} processors", processor.usable, processor.count),
            "compare only with records taken under the same limit",
        ));
    }
    if let Some(percent) = processor.quota_percent {
        let message = format!("a cgroup limits it to {percent} % of one processor");
        let advice = "runs stop when the quota is used up: lift it while measuring";
        found.push(Warning::note(WarningKind::CpuLimit, message, advice).distrusted());
    }
    if let Some(limit) = machine.memory.limit_bytes {
        let message =
            format!("a cgroup limits it to {}", crate::units::figure(crate::units::real(limit), "B"));
        found.push(Warning::note(
            WarningKind::MemoryLimit,
            message,
            "the limit includes the page cache, so writes are throttled sooner",
        ));
    }
    let place = &machine.place;
    if place.in_memory {
        found.push(Warning::note(
            WarningKind::RamFilesystem,
            format!("the work folder is in memory ({})", place.filesystem),
            "no device is measured: use --work-dir on a disk",
        ));
    }
    if place.discards() {
        found.push(Warning::note(
            WarningKind::Discard,
            "the filesystem is mounted with discard: removing files keeps the device busy afterwards",
            "copies are removed at the end of a group while there is room; remount with nodiscard to be sure",
        ));
    }
    found
}

/// Warnings about changes of the machine since the record was begun.
#[must_use]
pub fn of_changes(before: &Machine, now: &Machine) -> Vec<Warning> {
    let facts = |machine: &Machine| {
        let number = |limit: Option<u64>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
        let scheduler = machine.place.device.as_ref().map(|device| device.scheduler.clone());
        [
            ("the quota of processor time in percent", number(machine.processor.quota_percent)),
            ("the limit of memory in bytes", number(machine.memory.limit_bytes)),
            ("the mount options", machine.place.options.join(",")),
            ("the device's scheduler", scheduler.unwrap_or_default()),
        ]
    };
    let pairs = facts(before).into_iter().zip(facts(now));
    pairs
        .filter(|(before, now)| before != now)
        .map(|((what, before), (_, now))| of_change(what, &before, &now))
        .collect()
}

/// Something is not as it was when the record was begun.
#[must_use]
pub fn of_change(what: &str, before: &str, now: &str) -> Warning {
    let message = format!("{what} changed while the record was taken ('{before}', then '{now}')");
    Warning::note(WarningKind::Changed, message, "the runs are not comparable: measure again").distrusted()
}

/// Warnings from the figures: too few, too scattered, or in another cache state than the wanted one.
/// `judged` returns the measures of a cell that matter.
#[must_use]
pub fn of_figures(record: &Record, judged: &dyn Fn(&Cell) -> Vec<String>) -> Vec<Warning> {
    let mut found = Vec::new();
    if record.scale == Scale::Quick {
        found.push(
            Warning::note(
                WarningKind::FewRuns,
                "--quick takes too few runs",
                "run it without --quick for reliable figures",
            )
            .distrusted(),
        );
    }
    for cell in &record.cells {
        found.extend(
            of_cell(record, cell, &judged(cell)).into_iter().map(|warning| warning.about(&cell.name)),
        );
    }
    found
}

fn of_cell(record: &Record, cell: &Cell, judged: &[String]) -> Vec<Warning> {
    let mut found = Vec::new();
    if let Some(why) = &cell.missing {
        found.push(of_missing(cell.failed, why));
    }
    let count = cell.runs.len();
    if (1..FEW_RUNS).contains(&count) && record.scale != Scale::Quick {
        let message = format!("{} of it", counted(count, "run"));
        found.push(
            Warning::note(WarningKind::FewRuns, message, "take 5 at least, 10 for a claim (--runs)")
                .distrusted(),
        );
    }
    for measure in judged {
        found.extend(of_scatter(record, cell, measure));
    }
    found.extend(of_proofs(cell));
    found
}

/// Figures of one measure that lie far apart. Where it is not the most important one, it is named.
fn of_scatter(record: &Record, cell: &Cell, measure: &str) -> Vec<Warning> {
    let mut found = Vec::new();
    let Some(summary) = record.summary(cell, measure) else { return found };
    let about = record.measures.iter().skip(1).find(|known| known.name == measure);
    let of = about.map(|measure| format!(" ({})", measure.about)).unwrap_or_default();
    if summary.count >= FEW_RUNS && summary.median.relative_width() > NOISE {
        let percent = summary.median.relative_width() * 100.0;
        let message = format!("the confidence interval of its median{of} is ±{percent:.0} %");
        found.push(
            Warning::note(WarningKind::Noisy, message, "take more runs on a quieter machine").distrusted(),
        );
    }
    if !summary.outliers.is_empty() {
        let message = format!("{}{of} far from the others", counted(summary.outliers.len(), "run"));
        found.push(Warning::note(
            WarningKind::Outliers,
            message,
            "medians are robust against them; see the plot",
        ));
    }
    found
}

/// Runs whose caches were not in their state, or not known to be.
fn of_proofs(cell: &Cell) -> Vec<Warning> {
    let unproved = cell.runs.iter().filter_map(|run| run.proof.as_ref()).filter(|proof| !proof.holds);
    let (asked, not_asked): (Vec<&Proof>, Vec<&Proof>) = unproved.partition(|proof| proof.was_asked());
    let (state, mut found) = (cell.cache.name(), Vec::new());
    if !asked.is_empty() {
        let message = format!("{} began with a cache that was not {state}", counted(asked.len(), "run"));
        let advice = "another program was reading, or memory is short";
        found.push(Warning::note(WarningKind::CacheState, message, advice).distrusted());
    }
    if let Some(proof) = not_asked.first() {
        let message = format!(
            "{} began with a cache that is not proved to be {state} (names by {}, data by {})",
            counted(not_asked.len(), "run"),
            proof.names_by,
            proof.data_by
        );
        let advice = "run it on Linux 6.5 or later, without a system call filter";
        found.push(Warning::note(WarningKind::CacheState, message, advice).distrusted());
    }
    found
}

/// A cell that is missing, or has not all of its runs.
fn of_missing(failed: Option<Failed>, why: &str) -> Warning {
    let others = "the other cells are complete";
    match failed {
        None => Warning::note(WarningKind::Missing, why, others),
        Some(Failed::Run) => {
            let advice = format!("{others}; fix the cause, then continue with --resume FILE");
            Warning::note(WarningKind::Failed, why, advice).distrusted()
        }
        Some(Failed::Copy) => {
            let advice = format!("the copy was wrong, so its figures are worthless; {others}");
            Warning::note(WarningKind::Failed, why, advice).distrusted()
        }
    }
}

/// Runs that are recorded take longer than others.
#[must_use]
pub fn of_recording() -> Warning {
    let advice = "measure again without recording";
    Warning::note(
        WarningKind::Recorded,
        "ferry's runs were recorded (--trace, or FERRY_TRACE), which costs time",
        advice,
    )
    .distrusted()
}

/// Warning about time that the hypervisor took during the experiment: `stolen` of `all` ticks.
#[must_use]
pub fn of_stolen_time(stolen: u64, all: u64) -> Option<Warning> {
    let percent = (stolen * 100).checked_div(all)?;
    (percent >= STOLEN_PERCENT).then(|| {
        Warning::note(
            WarningKind::StolenTime,
            format!("the hypervisor took {percent} % of the processors' time"),
            "other machines on this host were busy: repeat it later",
        )
        .distrusted()
    })
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
