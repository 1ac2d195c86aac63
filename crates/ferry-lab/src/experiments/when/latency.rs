//! The latency case: durable copies beside a reader, and the reader alone.
//!
//! Each run copies until the reader has enough reads for a 99th percentile.

use std::path::Path;
use std::time::{Duration, Instant};

use ferry_tree::workload::Workload;

use super::cases::{ALONE, LATENCY, Source, ferry_cp, leave_out_all, routes};
use super::reader::{Reader, figures};
use crate::cache::State;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiments::copies::{self, Times};
use crate::experiments::tree;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Cell, Figures};
use crate::session::{Session, Subject, Turn};
use crate::statistics::median;
use crate::stop::Stop;
use crate::units::{plain, real, real_count};

/// Number of reads with ten above the 99th percentile.
pub(super) const ENOUGH_READS: u64 = 1000;
pub(super) const READ_FILE_BYTES: u64 = 32 << 20;

/// Measures the case.
pub(super) fn take(session: &mut Session<'_>, source: &mut Source) -> Result<(), Failure> {
    let least = session.settings().number("reads");
    if least < ENOUGH_READS {
        let message =
            format!("the latency case takes the 99th percentile of only {} reads a run", plain(real(least)));
        let advice = format!("this is close to the maximum: use --reads {}", plain(real(ENOUGH_READS)));
        session.warn(Warning::note(WarningKind::Experiment, message, advice));
    }
    let routes = routes(session, LATENCY, State::Warm);
    let alone = Cell::new(&[("case", LATENCY.into()), ("route", ALONE.into())], State::AsItIs);
    if session.has_taken(routes.iter().map(|(cell, _)| cell).chain([&alone])) {
        return Ok(());
    }
    let sample = source.ready(session)?;
    let folder = session.work().join("read");
    let workload = Workload::plain(0, 0, 1, READ_FILE_BYTES, !session.seed());
    tree::make(&workload, &folder, 1, session.stop())?;
    rustix::fs::sync();
    match Reader::open(&folder.join("f0"), session.seed()) {
        Ok(reader) => {
            let (reader, source, least) =
                (&reader, &source.folder, usize::try_from(least).unwrap_or(usize::MAX));
            let beside_one = |(cell, route): (Cell, String)| {
                let command = ferry_cp(session, &["--fsync", &route]);
                Subject::new(cell, move |turn| beside(&command, source, reader, least, turn))
            };
            let mut subjects: Vec<Subject<'_>> = routes.into_iter().map(beside_one).collect();
            subjects.push(Subject::new(alone, move |turn| by_itself(reader, least, turn)));
            session.interleave(&mut subjects, &sample)?;
        }
        Err(why) => leave_out_all(session, routes.into_iter().map(|(cell, _)| cell).chain([alone]), &why),
    }
    Ok(ferry_tree::remove::remove(&folder)?)
}

/// Copies until the reader has enough reads. The times are medians over the copies.
fn beside(
    command: &Stranger,
    source: &Path,
    reader: &Reader,
    least: usize,
    turn: &mut Turn<'_>,
) -> Result<Figures, Failure> {
    let (mut latencies, mut returned, mut durable) = (Vec::new(), Vec::new(), Vec::new());
    while latencies.len() < least {
        let target = turn.fresh(&format!("copy-{}", returned.len()));
        let copying = |target: &Path, stop: &Stop| {
            let (times, more) = reader.read_during(|| Times::take(command, source, target, stop))?;
            Ok((times?, more))
        };
        let (times, more) = copies::once(source, target, turn, copying)?;
        latencies.extend(more);
        returned.push(times.returned);
        durable.push(times.durable);
    }
    let mut found = figures(latencies);
    let copies = real_count(returned.len());
    let times = [("returned_s", median(&returned)), ("durable_s", median(&durable)), ("copies", copies)];
    found.extend(times.map(|(name, value)| (name.to_owned(), value)));
    Ok(found)
}

/// Measures the reader's latency without a copy.
fn by_itself(reader: &Reader, least: usize, turn: &Turn<'_>) -> Result<Figures, Failure> {
    let mut latencies = Vec::new();
    while latencies.len() < least {
        let wait = || {
            let end = Instant::now() + Duration::from_millis(100);
            while Instant::now() < end && !turn.stop().is_set() {
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let ((), more) = reader.read_during(wait)?;
        turn.stop().check()?;
        latencies.extend(more);
    }
    Ok(figures(latencies))
}
