//! `lab ring`: measures how completions reach the program, by ring mode, depth and load (document 002).
//!
//! The reads are random direct reads of 4 KiB by our own generator, on processors that take no device interrupts if
//! there are any. They run alone, beside a busy process on each of these processors, and with a computation in the
//! same thread between submissions. Another load measures when a second thread sees the completions of a thread that
//! computes. If fio is installed, its figures check those of our generator.

mod attribution;
mod fio;
mod load;
mod modes;
mod names;
mod processors;
mod reads;
mod setup;
mod shares;
mod spec;
mod tables;
mod verdicts;
mod watched;

use std::path::Path;

use ferry_tree::fill::derive;

use self::names::{
    COMPUTATIONS, FIO, LATENCY_MEAN, LATENCY_P99, PROCESS, READS, SEEN_DURING, SEEN_P50, SEEN_P99, WATCHED,
};
use self::processors::Chosen;
use self::setup::{Computations, Order, Setup, chosen_modes, make_file, sqpoll_idle};
use self::spec::SPEC;
use super::headlines;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Spec};
use crate::headline::Headline;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Measure, Record};
use crate::search_path::find_program;
use crate::session::{Session, Subject, Turn};
use crate::settings::Settings;
use crate::table::Table;
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Rings, mode by mode.
pub(super) struct Ring;

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
            Measure::new(SEEN_P50, "median time until another thread sees a completion", "s", Better::Lower),
            Measure::new(
                SEEN_P99,
                "99th percentile of the time until another thread sees a completion",
                "s",
                Better::Lower,
            ),
            Measure::new(
                SEEN_DURING,
                "share of the completions that another thread saw during the computation",
                "x",
                Better::Higher,
            ),
        ]
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        match cell.text("load").as_str() {
            WATCHED => &[SEEN_P50],
            _ => &[READS, LATENCY_MEAN, LATENCY_P99],
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        processors::choose(&settings.text("processors"), settings.number("processor-count"))?;
        let space = Need::Space { bytes: settings.number("file-size"), entries: 1 };
        let mut needs = vec![Need::Ring, space, Need::DirectIo, Need::Program("sh".into())];
        let has_busy = settings.texts("loads").iter().any(|load| load == PROCESS);
        needs.extend(has_busy.then(|| Need::Program("setsid".into())));
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let setup = Setup::of(session)?;
        warn_of_processors(session, &setup.chosen);
        let fio = find_program(FIO.as_ref());
        if let Some(program) = &fio {
            session.note_tool(FIO, program);
        }
        let groups = groups(session, &setup, fio.is_some());
        if session.has_taken(groups.iter().flatten()) {
            return Ok(());
        }
        session.step("making the file");
        make_file(&setup.file(), setup.bytes, session.seed(), session.stop())?;
        let computations = Computations::of(session);
        let attributes = session.settings().is_on("attribute");
        session.measure(shares::measures(setup.workers, setup.chosen.numbers.len()));
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
                        setup.take(&Order { cell: &what, fio, computations, seed, stop: turn.stop() })
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
        tables::all(record)
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        tables::plots(record)
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::ring(record).unwrap_or_else(|| Headline::of_verdicts(&self.verdicts(record)))
    }
}

/// A group of cells for each depth, and one in which another thread looks for completions. What can't be measured is
/// left out.
fn groups(session: &mut Session<'_>, setup: &Setup, has_fio: bool) -> Vec<Vec<Cell>> {
    let settings = session.settings();
    let mut groups: Vec<Vec<Cell>> =
        settings.numbers("depths").iter().map(|depth| setup.cells(*depth, settings)).collect();
    groups.push(setup.watched_cells(settings));
    groups.retain(|cells| !cells.is_empty());
    let (refused, attributes) = (refusals(settings, has_fio), settings.is_on("attribute"));
    session.plan(groups.iter().map(Vec::len).sum());
    for (mode, why) in refused {
        for cells in &mut groups {
            cells
                .extract_if(.., |cell| cell.text("mode") == mode)
                .for_each(|cell| session.leave_out(cell, &why));
        }
    }
    if let Some(why) = attributes.then(attribution::refusal).flatten() {
        for cell in groups.iter_mut().flat_map(std::mem::take) {
            session.leave_out(cell, &why);
        }
    }
    groups
}

/// Document 002 ran on two processors that take no device interrupts.
fn warn_of_processors(session: &mut Session<'_>, chosen: &Chosen) {
    let list = processors::list(&chosen.numbers);
    if !chosen.are_quiet {
        session.warn(Warning::note(
            WarningKind::Experiment,
            format!("processor {list} takes device interrupts"),
            "completions need no interrupt between processors there: choose others with --processors",
        ));
    }
    let wanted = session.settings().number("processor-count");
    let is_short = session.settings().text("processors").is_empty()
        && u64::try_from(chosen.numbers.len()).is_ok_and(|found| found < wanted);
    if is_short {
        session.warn(Warning::note(
            WarningKind::Experiment,
            format!("it runs on processor {list} only, instead of {wanted} processors"),
            "compare it only with records that were taken on as many",
        ));
    }
}

/// The modes that this machine can't do, and fio if it is not there, each with the reason.
fn refusals(settings: &Settings, has_fio: bool) -> Vec<(String, String)> {
    let idle = sqpoll_idle(settings);
    let refused = |mode: &modes::Mode| Some((mode.name.to_owned(), mode.refusal(idle)?));
    let mut found: Vec<(String, String)> = chosen_modes(settings).into_iter().filter_map(refused).collect();
    if !has_fio {
        found.push((FIO.to_owned(), "'fio' is not found on the PATH".to_owned()));
    }
    found
}
