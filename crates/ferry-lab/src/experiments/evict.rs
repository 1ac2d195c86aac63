//! `lab evict`: measures how much of another program's page cache a copy larger than memory evicts.
//!
//! It runs in a memory cgroup, so that little memory is needed. A process reads a file, its working set, once or
//! repeatedly, while a file larger than the cgroup's limit is copied in the same cgroup. cachestat(2) reports the
//! working set's cached share from outside, without changing it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::Advice;

use super::copies::{self, Times};
use super::headlines;
use super::when::fixtures::MemoryLimit;
use super::when::held::Held;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::load;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Better, Cell, Figures, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::{Columns, Table};
use crate::units::{figure, real};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// A working set beside a copy.
pub(super) struct Evict;

/// Copiers, and what they are called with.
const COPIERS: [(&str, Option<&str>); 4] = [
    ("cp", None),
    ("never", Some("--direct=never")),
    ("auto", Some("--direct=auto")),
    ("always", Some("--direct=always")),
];
/// Use of the working set during the copy: none, or repeated reads. Pages that were read only once are evicted first.
const USES: [&str; 2] = ["left", "used"];
/// Explanations of the table's words.
const NOTES: [&str; 2] = [
    "Resident: share of the working set in memory, the least during the copy and that after it.",
    "left: not read during the copy. used: read again and again. never, auto, always: ferry cp with this --direct.",
];
/// Interval between two checks of the page cache.
const ASKED_EVERY: Duration = Duration::from_millis(20);
/// A working set of which so much stays is left alone.
const STAYS: f64 = 0.95;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "resident",
        "BYTES",
        "Size of the working set",
        ParameterKind::Size(1 << 20, 1 << 40),
        "512M",
    )
    .quick("32M"),
    Parameter::new(
        "memory",
        "BYTES",
        "Memory limit of the cgroup",
        ParameterKind::Size(16 << 20, 1 << 40),
        "768M",
    )
    .quick("96M"),
    Parameter::new("size", "BYTES", "Size of the copied file", ParameterKind::Size(1 << 20, 1 << 40), "1G")
        .quick("128M"),
    Parameter::new(
        "use",
        "HOW,...",
        "Use of the working set during the copy: left (none), used (repeated reads)",
        ParameterKind::Words(&USES),
        "left,used",
    ),
];

const SPEC: Spec = Spec {
    name: "evict",
    about: "Measures how much of another program's page cache a large copy evicts: cp and ferry, buffered and direct",
    manual: "\
A process in a memory cgroup of --memory reads a file of --resident bytes, the working set: once (left), or twice a \
second (used). Meanwhile a cold file of --size bytes is copied by cp and by `ferry cp` with --direct=never, auto and \
always. cachestat(2) reports every 20 ms how much of the working set is in memory. Needs root and the memory cgroup \
controller. The cgroup is removed at the end, even if the lab is killed.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 5 },
    is_measured: true,
};

impl Experiment for Evict {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("resident_least", "lowest share of the working set in memory", "x", Better::Higher),
            Measure::new(
                "resident_after",
                "share of the working set in memory after the copy",
                "x",
                Better::Higher,
            ),
            Measure::new("refaults", "file pages that were read again after eviction", "", Better::Lower),
            Measure::new("returned_s", "time until the copy returned", "s", Better::Lower),
            Measure::new("durable_s", "time until the data was durable", "s", Better::Lower),
            Measure::new(
                "throughput_b_s",
                "bytes copied per second until the command returned",
                "B/s",
                Better::Higher,
            ),
        ]
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &["resident_least"]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let [resident, memory, size] = ["resident", "memory", "size"].map(|name| settings.number(name));
        if resident >= memory || size <= memory {
            let why = "'--memory' must be more than '--resident' and less than '--size'".to_owned();
            return Err(Failure::Misuse(why));
        }
        let bytes = size.saturating_mul(2).saturating_add(resident);
        Ok(vec![Need::Root, Need::Program("cp".into()), Need::Space { bytes, entries: 3 }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let uses = session.settings().texts("use");
        let cells = cells(&uses);
        session.plan(cells.len());
        if session.has_taken(&cells) {
            return Ok(());
        }
        let limit = match MemoryLimit::make(session.settings().number("memory")) {
            Ok(limit) => limit,
            Err(Failure::Run(why)) => {
                cells.into_iter().for_each(|cell| session.leave_out(cell, &why));
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        session.step("writing the files");
        let (resident, source) = (session.work().join("resident"), session.work().join("source"));
        let bytes = session.settings().number("size");
        let resident_bytes = session.settings().number("resident");
        load::lay_out(&resident, resident_bytes, session.seed(), session.stop())?;
        load::lay_out(&source, bytes, session.seed().wrapping_add(1), session.stop())?;
        let subject = |cell: Cell| {
            let option = COPIERS.iter().find(|(name, _)| *name == cell.text("copier")).and_then(|its| its.1);
            let command = limit.around(&copier(session.ferry(), option));
            let is_used = cell.text("use") == "used";
            let case =
                Case { limit: &limit, resident: &resident, resident_bytes, is_used, source: &source, bytes };
            Subject::new(cell, move |turn: &mut Turn<'_>| case.take(&command, turn))
        };
        let mut subjects: Vec<Subject<'_>> = cells.into_iter().map(subject).collect();
        session.interleave(&mut subjects, &Sample::none())?;
        drop(subjects);
        limit.remove()
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let Some(mut columns) = Columns::of(record) else { return Vec::new() };
        // Each copier moves the same bytes, so that a rate says no more than its time.
        columns.others.retain(|measure| measure.unit != "B/s");
        let cells: Vec<&Cell> = record.cells.iter().collect();
        let mut table = columns.table(record, "A working set beside a copy", &cells);
        if !table.is_empty() {
            table.notes.extend(NOTES.map(str::to_owned));
        }
        vec![table]
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = |measure, title| Plot::strips(record, title, measure, "", record.cells.iter());
        let plots = [
            plot("resident_least", "Lowest share of the working set in memory"),
            plot("throughput_b_s", "Throughput of the copy"),
        ];
        plots.into_iter().filter(|plot| !plot.is_empty()).collect()
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        let words = |found: &crate::statistics::Interval| {
            format!("the cached share fell to {}", figure(found.middle, "x"))
        };
        let mut verdicts = Vec::new();
        let is_there = |how: &&str| record.cells.iter().any(|cell| cell.text("use") == *how);
        for how in USES.into_iter().filter(is_there) {
            let least = |name: &str| {
                let is_it = |cell: &&Cell| cell.text("use") == how && cell.text("copier") == name;
                Some(record.summary(record.cells.iter().find(is_it)?, "resident_least")?.median)
            };
            for name in ["auto", "always"] {
                let finding = format!(
                    "While `ferry cp --direct={name}` copies more than fits into memory, at least 95 % of a \
                    working set \
                     stays cached ({how})"
                );
                verdicts.push(Verdict::above("", &finding, least(name), STAYS, words));
            }
            let finding = format!("A copy by cp evicts more than 5 % of a working set ({how})");
            verdicts.push(Verdict::below("", &finding, least("cp"), STAYS, words));
        }
        verdicts
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::evict(record)
    }
}

/// Each copier beside each use.
fn cells(uses: &[String]) -> Vec<Cell> {
    let cell =
        |how: &str, copier: &str| Cell::new(&[("use", how.into()), ("copier", copier.into())], State::AsItIs);
    uses.iter().flat_map(|how| COPIERS.map(|(copier, _)| cell(how, copier))).collect()
}

fn copier(ferry: &Path, option: Option<&str>) -> Stranger {
    let words = [copies::NEVER_SHARED, "{source}", "{target}"];
    match option {
        None => Stranger::new("cp".as_ref(), &words),
        Some(option) => Stranger::new(ferry, &[&["cp", option], &words[..]].concat()),
    }
}

/// Inputs of one run.
#[derive(Clone, Copy)]
struct Case<'a> {
    limit: &'a MemoryLimit,
    resident: &'a Path,
    resident_bytes: u64,
    is_used: bool,
    source: &'a Path,
    bytes: u64,
}

impl Case<'_> {
    fn take(self, command: &Stranger, turn: &mut Turn<'_>) -> Result<Figures, Failure> {
        forget(self.source)?;
        forget(self.resident)?;
        let reader = self.reader()?;
        let before = self.limit.refaults().unwrap_or(0);
        let target = turn.fresh("copy");
        let (ended, stop) = (AtomicBool::new(false), turn.stop());
        let (times, least) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| self.least_until(&ended));
            let times = Times::take(command, self.source, &target, stop);
            ended.store(true, Ordering::Relaxed);
            (times, watching.join().unwrap_or(0.0))
        });
        let (after, refaults) = (self.share(), self.limit.refaults());
        reader.undo()?;
        let same = times.and_then(|times| copies::same(self.source, &target).map(|()| times));
        turn.remove(target)?;
        let mut figures = same?.figures_of(self.bytes);
        figures.insert("resident_least".to_owned(), least);
        figures.insert("resident_after".to_owned(), after);
        let refaults = refaults.map(|refaults| real(refaults.saturating_sub(before)));
        figures.extend(refaults.map(|refaults| ("refaults".to_owned(), refaults)));
        Ok(figures)
    }

    /// A process in the cgroup has read the working set once; or twice, and goes on.
    fn reader(self) -> Result<Held, Failure> {
        const ONCE: &str = "sh -c 'echo 0 > \"$0\" && cat \"$1\" > /dev/null' \"$1\" \"$2\"";
        const READ: &str = "sh -c 'echo 0 > \"$0\" && cat \"$1\" \"$1\" > /dev/null' \"$1\" \"$2\" && \
            { sh -c 'echo 0 > \"$0\"; while cat \"$1\"; do sleep 0.5; done' \"$1\" \"$2\" > /dev/null 2>&1 & reader=$!; }";
        // It ignores what the shell ignores, and must not read beside the next copy.
        const LEAVE: &str = "[ -z \"$reader\" ] || kill -9 \"$reader\"; tries=0; while read -r process < \"$1\" && [ $tries -lt 100 ]; \
            do kill -9 \"$process\" 2> /dev/null; tries=$((tries + 1)); sleep 0.02; done; ! read -r process < \"$1\"";
        let words = [self.limit.processes(), self.resident];
        Held::make("a reader", if self.is_used { READ } else { ONCE }, LEAVE, &words)
    }

    /// The least share until the copy has ended.
    fn least_until(self, ended: &AtomicBool) -> f64 {
        let mut least = self.share();
        while !ended.load(Ordering::Relaxed) {
            std::thread::sleep(ASKED_EVERY);
            least = least.min(self.share());
        }
        least
    }

    /// Returns the cached share of the working set, from 0 to 1.
    fn share(self) -> f64 {
        let found = std::fs::File::open(self.resident)
            .ok()
            .and_then(|file| ferry_io::probe::data(&file, 0, self.resident_bytes).ok());
        found.map_or(0.0, |found| real(found.bytes.min(self.resident_bytes)) / real(self.resident_bytes))
    }
}

/// Has the page cache forget a file.
fn forget(path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("forget", path, &error);
    let file = std::fs::File::open(path).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).map_err(|errno| failed(errno.into()))
}
