//! `lab ring`: measures how completions reach the program, by ring mode, depth and load (document 002).
//!
//! The reads are random direct reads of 4 KiB by our own generator, on processors that take no device interrupts if
//! there are any. They run alone, beside a busy process on each of these processors, and with a computation in the
//! same thread between submissions. If fio is installed, its figures check those of our generator.

mod attribution;
mod fio;
mod load;
mod names;
mod processors;
mod reads;
mod verdicts;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ferry_io::{Name, RingFlag, RingMode};
use ferry_tree::fill::{derive, fill};

use self::attribution::Attribution;
use self::load::{Busy, Computation};
use self::names::{
    ALONE, COMPUTATION, COMPUTATIONS, FIO, LATENCY_MEAN, LATENCY_P99, PROCESS, READS, figures, groups,
};
use self::processors::Chosen;
use self::reads::Plan;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Figures, Measure, Record, Value};
use crate::search_path::find_program;
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::statistics::percentile;
use crate::stop::Stop;
use crate::table::{self, Table};
use crate::units::{real, real_count};
use crate::verdict::{Verdict, interval};

#[cfg(test)]
mod tests;

/// Rings, mode by mode.
pub(super) struct Ring;

const MODES: &[(&str, RingMode)] = &[
    ("plain", RingMode::Plain),
    ("coop", RingMode::Coop),
    ("defer", RingMode::Defer),
    ("sqpoll", RingMode::SqPoll),
    ("iopoll", RingMode::IoPoll),
];

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "modes",
        "MODE,...",
        "Ring modes: plain, coop, defer, sqpoll, iopoll",
        ParameterKind::Words(&["plain", "coop", "defer", "sqpoll", "iopoll"]),
        "plain,coop,defer,sqpoll,iopoll",
    )
    .published("plain,coop"),
    Parameter::new(
        "depths",
        "N,...",
        "Reads in flight of each worker",
        ParameterKind::Numbers(1, 1024),
        "1,16,64",
    )
    .quick("16")
    .published("1,2,4,8,16,32,64"),
    Parameter::new(
        "loads",
        "LOAD,...",
        "Loads: alone, process (a busy one on each processor), computation (in the same thread)",
        ParameterKind::Words(&[ALONE, PROCESS, COMPUTATION]),
        "alone,process,computation",
    )
    .published("alone,process"),
    Parameter::new(
        "workers",
        "N",
        "Number of threads, each with a ring; 0: one for each processor",
        ParameterKind::Number(0, 256),
        "0",
    )
    .published("16"),
    Parameter::new(
        "processors",
        "N,...",
        "Processors to run on; by default those that take no device interrupts, or else all",
        ParameterKind::Text,
        "",
    ),
    Parameter::new(
        "file-size",
        "BYTES",
        "Size of the file that is read",
        ParameterKind::Size(1 << 20, 1 << 40),
        "1G",
    )
    .quick("64M")
    .published("4G"),
    Parameter::new("time", "MS", "Duration of a run", ParameterKind::Number(10, 600_000), "600")
        .quick("120")
        .published("5000"),
    Parameter::new(
        "attribute",
        "",
        "Also count the causes of task work and of wake-ups; needs root or CAP_PERFMON",
        ParameterKind::Switch,
        "no",
    ),
    Parameter::new(
        "computing",
        "US",
        "Duration of a computation",
        ParameterKind::Number(1, 1_000_000),
        "200",
    ),
];

const SPEC: Spec = Spec {
    name: "ring",
    about: "Times random reads by ring mode, depth and load, beside fio",
    manual: "\
Repeats document 002 with random direct reads of 4 KiB, --depth in flight in each worker. Each ring mode runs under \
each load, and fio runs alone, in rounds of random order. Latency is measured from a fiber's request until the fiber \
continues; fio measures from submission to completion. A busy process only computes. A computation in the same thread \
runs between submissions, in pieces that make no system call. Its length matches --computing to within a factor of \
1.5.

With --attribute, each run of task work and each wake-up is recorded with its call chain. The tables count the \
causes: a system call, GETEVENTS before or after sleeping, an interrupt from another processor, a page fault, the \
timer tick, or a device. Recording takes time, so rates and latencies cannot be compared with those taken without it. \
fio is left out.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 7, quick: 3, published: 10 },
    is_measured: true,
};

impl Experiment for Ring {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new(READS, "reads a second", "1/s", Better::Higher),
            Measure::new(LATENCY_MEAN, "mean latency", "s", Better::Lower),
            Measure::new(LATENCY_P99, "99th percentile of the latency", "s", Better::Lower),
            Measure::new(COMPUTATIONS, "computations a second", "1/s", Better::Higher),
        ]
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &[READS, LATENCY_P99]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        processors::choose(&settings.text("processors"))?;
        let space = Need::Space { bytes: settings.number("file-size"), entries: 1 };
        Ok(vec![Need::Ring, space, Need::DirectIo, Need::Program("sh".into())])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let setup = Setup::of(session)?;
        if !setup.chosen.are_quiet {
            session.warn(Warning::note(
                WarningKind::Experiment,
                format!("processor {} takes device interrupts", processors::list(&setup.chosen.numbers)),
                "completions need no interrupt between processors there: choose others with --processors",
            ));
        }
        let fio = find_program(FIO.as_ref());
        if let Some(program) = &fio {
            session.note_tool(FIO, program);
        }
        let depths = session.settings().numbers("depths");
        let mut groups: Vec<Vec<Cell>> =
            depths.iter().map(|depth| setup.cells(*depth, session.settings())).collect();
        session.plan(groups.iter().map(Vec::len).sum());
        for (mode, why) in refusals(session.settings(), fio.is_some()) {
            for cells in &mut groups {
                cells
                    .extract_if(.., |cell| cell.text("mode") == mode)
                    .for_each(|cell| session.leave_out(cell, &why));
            }
        }
        let attributes = session.settings().is_on("attribute");
        if let Some(why) = attributes.then(attribution::refusal).flatten() {
            for cell in groups.iter_mut().flat_map(std::mem::take) {
                session.leave_out(cell, &why);
            }
        }
        if session.has_taken(groups.iter().flatten()) {
            return Ok(());
        }
        session.step("making the file");
        make_file(&setup.file(), setup.bytes, session.seed(), session.stop())?;
        let computation = computation(session);
        for cells in groups {
            let (setup, fio, seed) = (&setup, fio.as_deref().unwrap_or(Path::new(FIO)), session.seed());
            let mut run = 0;
            let mut subjects: Vec<Subject<'_>> = cells
                .into_iter()
                .map(|cell| {
                    run += 1;
                    let mut seed = derive(seed, run);
                    let what = cell.clone();
                    Subject::new(cell, move |turn: &mut Turn<'_>| {
                        seed = derive(seed, 1);
                        setup.take(&what, fio, computation, seed, turn.stop())
                    })
                })
                .collect();
            let ended = session.interleave(&mut subjects, &Sample::none());
            drop(subjects);
            if attributes {
                session.measure(attribution::measures(&session.record().cells));
            }
            ended?;
        }
        if attributes {
            attribution::tell_lost(session);
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let speeds = attribution::left_out_of(record);
        let mut tables: Vec<Table> = groups(record, "depth")
            .iter()
            .map(|depth| {
                let cells = record.cells.iter().filter(|cell| cell.text("depth") == *depth);
                table::of_cells(&speeds, &format!("Depth {depth}"), cells)
            })
            .collect();
        tables.push(effects(record));
        tables.extend(attribution::tables(record));
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        let depths = groups(record, "depth");
        let only = if let [depth] = &depths[..] { format!(" (depth {depth})") } else { String::new() };
        for load in groups(record, "load") {
            let words = words(&load);
            for (measure, what) in [(READS, "Reads"), (LATENCY_P99, "99th percentile")] {
                let cells = record.cells.iter().filter(|cell| cell.text("load") == load);
                let title = format!("{what}, {words}{only}");
                plots.push(Plot::lines(record, &title, measure, "depth", |cell| cell.text("mode"), cells));
            }
        }
        for measure in [attribution::ALL_RUNS, attribution::BY_IPI] {
            let title = record.measure(measure).map(|known| known.about.clone()).unwrap_or_default();
            plots.push(Plot::strips(record, &title, measure, "", &record.cells));
        }
        plots.retain(|plot| !plot.is_empty());
        plots
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }
}

/// A load in words.
fn words(load: &str) -> &'static str {
    match load {
        PROCESS => "beside a busy process",
        COMPUTATION => "computing in the same thread",
        _ => "nothing else running",
    }
}

/// Table of each load's effect on each mode, relative to the same mode without load.
fn effects(record: &Record) -> Table {
    let columns =
        ["depth/load/mode", "reads a second, relative to alone", "99th percentile, relative to alone"];
    let mut table = Table::new("Effect of each load on each mode", &columns);
    for cell in record.cells.iter().filter(|cell| cell.text("load") != ALONE) {
        let (depth, mode) = (cell.text("depth"), cell.text("mode"));
        let alone = record.find(&[("depth", &depth), ("load", ALONE), ("mode", &mode)]);
        let ratio = |measure| alone.and_then(|alone| record.ratio(alone, cell, measure));
        if let (Some(reads), Some(latency)) = (ratio(READS), ratio(LATENCY_P99)) {
            table.row(vec![cell.name.clone(), interval(&reads), interval(&latency)]);
        }
    }
    table
}

/// Setup that all reads share.
struct Setup {
    chosen: Chosen,
    workers: usize,
    folder: PathBuf,
    name: Name,
    bytes: u64,
    window: Duration,
    attributes: bool,
}

impl Setup {
    /// The processors and how many workers there are stay what they were when the record was begun: interrupts since
    /// the machine started, by which they are chosen, do not.
    fn of(session: &mut Session<'_>) -> Result<Self, Failure> {
        let settled = session.settled("processors").map(ToString::to_string);
        let named = settled.unwrap_or_else(|| session.settings().text("processors"));
        let chosen = processors::choose(&named)?;
        session.settle("processors", processors::list(&chosen.numbers).as_str().into());
        let settings = session.settings();
        let workers = match settings.number("workers") {
            0 => chosen.numbers.len(),
            workers => usize::try_from(workers).unwrap_or(1),
        };
        let Some(name) = Name::new(b"reads") else { unreachable!("it is one component") };
        Ok(Self {
            chosen,
            workers,
            folder: session.work().to_owned(),
            name,
            bytes: settings.number("file-size"),
            window: Duration::from_millis(settings.number("time")),
            attributes: settings.is_on("attribute"),
        })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("reads")
    }

    /// Each mode under each load, compared with the plain ring, and fio with our DEFER mode.
    fn cells(&self, depth: u64, settings: &Settings) -> Vec<Cell> {
        let cell = |load: &str, mode: &str| {
            Cell::new(&[("depth", depth.into()), ("load", load.into()), ("mode", mode.into())], State::AsItIs)
                .with("workers", u64::try_from(self.workers).unwrap_or(0).into())
                .with("processors", processors::list(&self.chosen.numbers).as_str().into())
        };
        let (modes, loads) = (settings.texts("modes"), settings.texts("loads"));
        let has = |mode: &str| modes.iter().any(|known| known == mode);
        let mut cells = Vec::new();
        for load in &loads {
            for mode in &modes {
                let found = cell(load, mode);
                let is_compared = has("plain") && mode != "plain";
                cells.push(if is_compared { found.against(&cell(load, "plain")) } else { found });
            }
        }
        if has("defer") && !settings.is_on("attribute") && loads.iter().any(|load| load == ALONE) {
            cells.push(cell(ALONE, FIO).against(&cell(ALONE, "defer")));
        }
        cells
    }

    fn take(
        &self,
        cell: &Cell,
        fio: &Path,
        computation: Computation,
        seed: u64,
        stop: &Stop,
    ) -> Result<Figures, Failure> {
        let (mode, load) = (cell.text("mode"), cell.text("load"));
        let depth = cell.number("depth").and_then(|depth| usize::try_from(depth).ok()).unwrap_or(1);
        let (workers, processors) = (self.workers, self.chosen.numbers.as_slice());
        let (bytes, window) = (self.bytes, self.window);
        let Some((_, mode)) = MODES.iter().find(|(name, _)| *name == mode) else {
            let file = &self.file();
            let order = fio::Order { program: fio, file, bytes, depth, workers, processors, window };
            return fio::take(&order, stop);
        };
        let attribution = self.attributes.then(Attribution::start).transpose()?;
        let busy = (load == PROCESS).then(|| Busy::start(processors)).transpose()?;
        let done = reads::measure(&Plan {
            folder: &self.folder,
            name: &self.name,
            bytes,
            depth,
            mode: *mode,
            workers,
            processors,
            window,
            computation: (load == COMPUTATION).then_some(computation),
            seed,
            stop,
        })?;
        drop(busy);
        let attributed = attribution.map(Attribution::finish).unwrap_or_default();
        let mut latencies = done.latencies;
        latencies.sort_by(f64::total_cmp);
        let seconds = done.lasted.as_secs_f64();
        let mean = latencies.iter().sum::<f64>() / real_count(latencies.len());
        let mut found = figures(real_count(latencies.len()) / seconds, mean, percentile(&latencies, 990));
        if load == COMPUTATION {
            found.insert(COMPUTATIONS.to_owned(), real(done.computations) / seconds);
        }
        found.extend(attributed);
        Ok(found)
    }
}

/// The computation, measured when the record was begun: a second measurement may come to twice the steps.
fn computation(session: &mut Session<'_>) -> Computation {
    if let Some(steps) = session.settled("computation_steps").and_then(Value::as_number) {
        return Computation { steps };
    }
    let length = Duration::from_micros(session.settings().number("computing"));
    let computation = Computation::of(length);
    session.settle("computation_steps", computation.steps.into());
    computation
}

/// The modes that this machine can't do, and fio if it is not there, each with the reason.
fn refusals(settings: &Settings, has_fio: bool) -> Vec<(String, String)> {
    let modes = settings.texts("modes");
    let asked = MODES.iter().filter(|(name, _)| modes.iter().any(|mode| mode == name));
    let mut found: Vec<(String, String)> =
        asked.filter_map(|(name, mode)| Some(((*name).to_owned(), refusal(*mode)?))).collect();
    if !has_fio {
        found.push((FIO.to_owned(), "'fio' is not found on the PATH".to_owned()));
    }
    found
}

/// Returns the reason why a ring of this mode is unavailable. A ring that lacks the mode's own flag counts as
/// unavailable.
fn refusal(mode: RingMode) -> Option<String> {
    match ferry_io::run(&reads::options(mode), async |_| ()) {
        Err(error) => Some(error.to_string()),
        Ok((_, stats)) => {
            let own = [RingFlag::DeferTaskrun, RingFlag::CoopTaskrun];
            let lacks_own = own.iter().any(|flag| stats.ring_flags_left_out.contains(flag));
            lacks_own.then_some(stats.backend_reason)
        }
    }
}

/// A file of which every byte was written, and nothing is in memory.
fn make_file(path: &Path, bytes: u64, seed: u64, stop: &Stop) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("write", path, &error);
    let mut block = vec![0; 1 << 20];
    let file = std::fs::File::create(path).map_err(failed)?;
    let mut at = 0;
    while at < bytes {
        stop.check()?;
        let size = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(block.len());
        fill(seed, at, &mut block[..size]);
        std::io::Write::write_all(&mut &file, &block[..size]).map_err(failed)?;
        at += u64::try_from(size).unwrap_or(0);
    }
    file.sync_all().map_err(failed)?;
    // Direct reads look for what is in memory first; that it can't be dropped only costs time.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).ok();
    Ok(())
}
