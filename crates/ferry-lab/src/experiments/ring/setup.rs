//! What all runs of `lab ring` share: processors, file, cells, and one run of a cell.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ferry_io::Name;
use ferry_tree::fill::fill;

use super::attribution::Attribution;
use super::fio;
use super::load::{Busy, Computation};
use super::modes::{self, Mode};
use super::names::{ALONE, COMPUTATION, COMPUTATIONS, FIO, PROCESS, WATCHED, figures};
use super::processors::{self, Chosen};
use super::reads::{self, Plan};
use super::shares;
use super::watched::Watch;
use crate::cache::State;
use crate::error::Failure;
use crate::record::{Cell, Figures, Value};
use crate::session::Session;
use crate::settings::Settings;
use crate::statistics::percentile;
use crate::stop::Stop;
use crate::units::{real, real_count};

/// Setup that all reads share.
pub(super) struct Setup {
    pub(super) chosen: Chosen,
    pub(super) workers: usize,
    folder: PathBuf,
    name: Name,
    pub(super) bytes: u64,
    window: Duration,
    sqpoll_idle: Duration,
    attributes: bool,
}

/// The computations between submissions, and after a submission that another thread waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Computations {
    between: Computation,
    watched: Computation,
}

/// One run.
pub(super) struct Order<'a> {
    pub(super) cell: &'a Cell,
    pub(super) fio: &'a Path,
    pub(super) computations: Computations,
    pub(super) seed: u64,
    pub(super) stop: &'a Stop,
}

impl Setup {
    /// The processors and how many workers there are stay what they were when the record was begun: interrupts since
    /// the machine started, by which they are chosen, do not.
    pub(super) fn of(session: &mut Session<'_>) -> Result<Self, Failure> {
        let settled = session.settled("processors").map(ToString::to_string);
        let named = settled.unwrap_or_else(|| session.settings().text("processors"));
        let chosen = processors::choose(&named, session.settings().number("processor-count"))?;
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
            sqpoll_idle: sqpoll_idle(settings),
            attributes: settings.is_on("attribute"),
        })
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.join("reads")
    }

    fn cell(&self, depth: u64, load: &str, mode: &str) -> Cell {
        Cell::new(&[("depth", depth.into()), ("load", load.into()), ("mode", mode.into())], State::AsItIs)
            .with("processors", processors::list(&self.chosen.numbers).as_str().into())
    }

    /// Each mode under each load, compared with its base, and fio with our DEFER mode.
    pub(super) fn cells(&self, depth: u64, settings: &Settings) -> Vec<Cell> {
        let workers = u64::try_from(self.workers).unwrap_or(0);
        let cell = |load: &str, mode: &str| self.cell(depth, load, mode).with("workers", workers.into());
        let (modes, loads) = (chosen_modes(settings), settings.texts("loads"));
        let mut cells = Vec::new();
        for load in loads.iter().filter(|load| *load != WATCHED) {
            cells.extend(compared(&modes, |mode| cell(load, mode)));
        }
        let has = |name: &str| modes.iter().any(|mode| mode.name == name);
        if has("defer") && !settings.is_on("attribute") && loads.iter().any(|load| load == ALONE) {
            cells.push(cell(ALONE, FIO).against(&cell(ALONE, "defer")));
        }
        cells
    }

    /// Modes in which another thread looks for completions: those that differ in when it sees them.
    pub(super) fn watched_cells(&self, settings: &Settings) -> Vec<Cell> {
        let has_load = settings.texts("loads").iter().any(|load| load == WATCHED);
        if !has_load || settings.is_on("attribute") {
            return Vec::new();
        }
        let mut modes = chosen_modes(settings);
        modes.retain(|mode| ["plain", "coop", "defer", "sqpoll"].contains(&mode.name));
        compared(&modes, |mode| self.cell(1, WATCHED, mode).with("workers", 1_u64.into()))
    }

    /// Takes one run.
    pub(super) fn take(&self, order: &Order<'_>) -> Result<Figures, Failure> {
        let Order { cell, stop, .. } = *order;
        let depth = cell.number("depth").and_then(|depth| usize::try_from(depth).ok()).unwrap_or(1);
        let (workers, processors) = (self.workers, self.chosen.numbers.as_slice());
        let (bytes, window) = (self.bytes, self.window);
        let Some(mode) = modes::named(&cell.text("mode")) else {
            let file = &self.file();
            let order = fio::Order { program: order.fio, file, bytes, depth, workers, processors, window };
            return fio::take(&order, stop);
        };
        match cell.text("load").as_str() {
            WATCHED => self.watch(mode, order),
            load => self.read(mode, load, depth, order),
        }
    }

    fn read(&self, mode: &Mode, load: &str, depth: usize, order: &Order<'_>) -> Result<Figures, Failure> {
        let processors = self.chosen.numbers.as_slice();
        let attribution = self.attributes.then(Attribution::start).transpose()?;
        let mut busy = (load == PROCESS).then(|| Busy::start(processors)).transpose()?;
        let done = reads::measure(&Plan {
            folder: &self.folder,
            name: &self.name,
            bytes: self.bytes,
            depth,
            ring: mode.setup(self.sqpoll_idle),
            workers: self.workers,
            processors,
            window: self.window,
            computation: (load == COMPUTATION).then_some(order.computations.between),
            seed: order.seed,
            stop: order.stop,
        })?;
        let of_busy = busy.as_mut().map(Busy::shares).transpose()?.unwrap_or_default();
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
        found.extend(shares::figures(&done.shares, &of_busy, processors.len()));
        found.extend(attributed);
        Ok(found)
    }

    fn watch(&self, mode: &Mode, order: &Order<'_>) -> Result<Figures, Failure> {
        let processors = self.chosen.numbers.as_slice();
        let processor = processors.first().copied().unwrap_or(0);
        let beside = processors::beside(processor, processors);
        let beside =
            beside.ok_or_else(|| Failure::Run("another thread needs a second processor".to_owned()))?;
        let watch = Watch {
            path: &self.file(),
            bytes: self.bytes,
            ring: mode.setup(self.sqpoll_idle),
            processor,
            beside,
            computation: order.computations.watched,
            window: self.window,
            seed: order.seed,
            stop: order.stop,
        };
        watch.take()
    }
}

impl Computations {
    /// Measured when the record was begun: a second measurement may come to twice the steps.
    pub(super) fn of(session: &mut Session<'_>) -> Self {
        Self {
            between: computation(session, "computing", "computation_steps"),
            watched: computation(session, "watched-computing", "watched_steps"),
        }
    }
}

fn computation(session: &mut Session<'_>, option: &str, steps: &str) -> Computation {
    if let Some(steps) = session.settled(steps).and_then(Value::as_number) {
        return Computation { steps };
    }
    let computation = Computation::of(Duration::from_micros(session.settings().number(option)));
    session.settle(steps, computation.steps.into());
    computation
}

pub(super) fn sqpoll_idle(settings: &Settings) -> Duration {
    Duration::from_millis(settings.number("sqpoll-idle"))
}

/// The modes that were asked for, in their usual order.
pub(super) fn chosen_modes(settings: &Settings) -> Vec<&'static Mode> {
    let names = settings.texts("modes");
    modes::MODES.iter().filter(|mode| names.iter().any(|name| name == mode.name)).collect()
}

/// A cell for each mode, compared with that of its base, if there is one.
fn compared(modes: &[&'static Mode], cell: impl Fn(&str) -> Cell) -> Vec<Cell> {
    let base_of = |mode: &Mode| mode.base.filter(|base| modes.iter().any(|mode| mode.name == *base));
    let one = |mode: &&'static Mode| match base_of(mode) {
        Some(base) => cell(mode.name).against(&cell(base)),
        None => cell(mode.name),
    };
    modes.iter().map(one).collect()
}

/// A file of which every byte was written, and nothing is in memory.
pub(super) fn make_file(path: &Path, bytes: u64, seed: u64, stop: &Stop) -> Result<(), Failure> {
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
