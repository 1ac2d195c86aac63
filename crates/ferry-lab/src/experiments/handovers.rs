//! `lab handovers`: requests of a ring that the kernel hands to its own workers (io-wq), by filesystem (document 003).
//!
//! A hand-over costs a thread switch, so a ring gains little from such requests. The kernel's tracepoints count them,
//! for requests made one after another, on filesystems in loop images and on that of the work folder.

mod trials;

use std::path::{Path, PathBuf};

use self::trials::{Counts, HANDED, SERIAL, STRIDE, TRIALS, Trial};
use super::when::devices::Image;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::load;
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::{Better, Cell, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::statistics::Interval;
use crate::table::Table;
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Hand-overs, by filesystem.
pub(super) struct Handovers;

/// The filesystem of the work folder.
const HERE: &str = "here";
const FILESYSTEMS: &[&str] = &["ext4", "xfs", "btrfs", HERE];
/// Size of an image without its files. XFS needs 300 MB; space is allocated as it is used.
const IMAGE_BYTES: u64 = 512 << 20;
/// What the filesystems write by themselves, at most.
const STRUCTURES_BYTES: u64 = 96 << 20;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "filesystems",
        "NAME,...",
        "Filesystems: ext4, xfs and btrfs in loop images, and that of the work folder (here)",
        ParameterKind::Words(FILESYSTEMS),
        "ext4,xfs,btrfs,here",
    ),
    Parameter::new("requests", "N", "Requests of 4 KiB in a run", ParameterKind::Number(1, 1024), "64")
        .quick("16"),
];

const SPEC: Spec = Spec {
    name: "handovers",
    about: "Counts the requests that the kernel hands to its workers, by filesystem",
    manual: "\
Tests what document 003 says about io_uring and files: that writes are always handed to a worker of the kernel (io-wq), \
except on XFS. For each filesystem, a ring performs --requests reads or writes of 4 KiB, one after another, and the \
kernel's tracepoints count the hand-overs:
  read   cached, uncached, direct (O_DIRECT)
  write  buffered and direct, over written blocks; growing and direct-growing, each at the end of a file
One at a time means that a request waits until a worker has performed the one before it on the same file. The images \
are in the work folder. Loop devices and tracing need root. The mounts are removed at the end, even if the lab is killed.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 5 },
    is_measured: true,
};

impl Experiment for Handovers {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new(HANDED, "share of the requests that a kernel worker performed", "x", Better::Lower),
            Measure::new(
                SERIAL,
                "share of the requests that a kernel worker performed one at a time",
                "x",
                Better::Lower,
            ),
            Measure::new("request_s", "mean time of a request", "s", Better::Lower),
        ]
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &[HANDED]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let files = 2 * file_bytes(settings);
        let count = u64::try_from(settings.texts("filesystems").len()).unwrap_or(1);
        let bytes = count.saturating_mul(files + STRUCTURES_BYTES);
        Ok(vec![Need::Root, Need::Ring, Need::Space { bytes, entries: 100 }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let filesystems = session.settings().texts("filesystems");
        session.plan(filesystems.len() * TRIALS.len());
        if let Err(errno) = Counts::begin() {
            let why =
                format!("the kernel's tracepoints can't be counted ({})", ferry_io::Cause::Errno(errno));
            for filesystem in &filesystems {
                leave_out(session, cells(filesystem), &why);
            }
            return Ok(());
        }
        filesystems.iter().try_for_each(|filesystem| on(session, filesystem))
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        vec![table(record)]
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = Plot::strips(record, "Share of requests handed over", HANDED, "", &record.cells);
        if plot.is_empty() { Vec::new() } else { vec![plot] }
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        let words = |found: &Interval| format!("{} of the requests were handed over", percent(found.middle));
        let mut verdicts = Vec::new();
        for (filesystem, name) in [("ext4", "ext4"), ("btrfs", "btrfs"), ("xfs", "XFS")] {
            for (how, what) in [("buffered", "Buffered writes"), ("direct", "Direct writes")] {
                let found = handed(record, filesystem, "write", how);
                verdicts.push(if filesystem == "xfs" {
                    let finding = format!("{what} to {name} need no kernel worker");
                    Verdict::below("003", &finding, found, 0.5, words)
                } else {
                    let finding = format!("{what} to {name} are handed to kernel workers");
                    Verdict::above("003", &finding, found, 0.5, words)
                });
            }
            let finding = format!("Reads of uncached data need no kernel worker ({name})");
            let found = handed(record, filesystem, "read", "uncached");
            verdicts.push(Verdict::below("", &finding, found, 0.5, words));
        }
        verdicts
    }

    fn headline(&self, record: &Record) -> Headline {
        let share = |filesystem: &&str| {
            let found = handed(record, filesystem, "write", "buffered")?;
            Some((percent(found.middle), place_of(record, filesystem)))
        };
        let shares: Vec<(String, String)> = FILESYSTEMS.iter().filter_map(share).collect();
        let Some(((first, place), rest)) = shares.split_first() else {
            return Headline::none("buffered writes");
        };
        let rest: String = rest.iter().map(|(share, place)| format!(", {share} {place}")).collect();
        Headline::new(format!("The kernel hands {first} of the buffered writes {place} to a worker{rest}"))
    }
}

/// Size of the file that is read and overwritten.
fn file_bytes(settings: &Settings) -> u64 {
    settings.number("requests") * STRIDE
}

/// `xfs/write/buffered`.
fn cells(filesystem: &str) -> Vec<(Trial, Cell)> {
    let cell = |(trial, operation, how): (Trial, &str, &str)| {
        let parameters =
            [("filesystem", filesystem.into()), ("operation", operation.into()), ("how", how.into())];
        (trial, Cell::new(&parameters, State::AsItIs))
    };
    TRIALS.map(cell).into()
}

fn leave_out(session: &mut Session<'_>, cells: Vec<(Trial, Cell)>, why: &str) {
    cells.into_iter().for_each(|(_, cell)| session.leave_out(cell, why));
}

/// A folder on the filesystem, which is mounted for it unless it is that of the work folder.
enum Place {
    Here(PathBuf),
    Mounted(Image),
}

impl Place {
    fn make(session: &Session<'_>, filesystem: &str) -> Result<Self, Failure> {
        if filesystem == HERE {
            let folder = session.work().join(HERE);
            std::fs::create_dir(&folder).map_err(|error| Failure::file("create", &folder, &error))?;
            return Ok(Self::Here(folder));
        }
        let bytes = IMAGE_BYTES.saturating_add(2 * file_bytes(session.settings()));
        Image::make(session.work(), filesystem, filesystem, bytes, session.stop()).map(Self::Mounted)
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Here(folder) => folder,
            Self::Mounted(image) => image.folder(),
        }
    }

    fn remove(self) -> Result<(), Failure> {
        match self {
            Self::Here(folder) => Ok(ferry_tree::remove::remove(&folder)?),
            Self::Mounted(image) => image.remove(),
        }
    }
}

/// Takes all trials on one filesystem.
fn on(session: &mut Session<'_>, filesystem: &str) -> Result<(), Failure> {
    let mut cells = cells(filesystem);
    if session.has_taken(cells.iter().map(|(_, cell)| cell)) {
        return Ok(());
    }
    session.step(&format!("making a filesystem ({filesystem})"));
    let place = match Place::make(session, filesystem) {
        Ok(place) => place,
        Err(Failure::Run(why)) => {
            leave_out(session, cells, &why);
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    if !needs::has_direct_io(place.folder()) {
        let is_direct = |(_, cell): &mut (Trial, Cell)| cell.text("how").starts_with("direct");
        let direct = cells.extract_if(.., is_direct).collect();
        leave_out(session, direct, "the filesystem has no direct I/O");
    }
    let (folder, requests) = (place.folder(), session.settings().number("requests"));
    load::lay_out(&folder.join("old"), file_bytes(session.settings()), session.seed(), session.stop())?;
    let subject = |(trial, cell): (Trial, Cell)| {
        Subject::new(cell, move |turn: &mut Turn<'_>| trial.take(folder, requests, turn.stop()))
    };
    let mut subjects: Vec<Subject<'_>> = cells.into_iter().map(subject).collect();
    session.interleave(&mut subjects, &Sample::none())?;
    drop(subjects);
    place.remove()
}

fn find<'r>(record: &'r Record, filesystem: &str, operation: &str, how: &str) -> Option<&'r Cell> {
    record.find(&[("filesystem", filesystem), ("operation", operation), ("how", how)])
}

/// Median share of the requests that were handed over.
fn handed(record: &Record, filesystem: &str, operation: &str, how: &str) -> Option<Interval> {
    let cell = find(record, filesystem, operation, how)?;
    record.summary(cell, HANDED).map(|found| found.median)
}

/// `on XFS`.
fn place_of(record: &Record, filesystem: &str) -> String {
    match filesystem {
        "xfs" => "on XFS".to_owned(),
        HERE => format!("in the work folder ({})", record.machine.place.filesystem),
        other => format!("on {other}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A row for each kind of request, a column for each filesystem.
fn table(record: &Record) -> Table {
    let filesystems: Vec<&str> = FILESYSTEMS
        .iter()
        .copied()
        .filter(|filesystem| record.find(&[("filesystem", filesystem)]).is_some())
        .collect();
    let mut table = Table::new("Requests that the kernel handed to a worker", &["operation"]);
    let place = &record.machine.place.filesystem;
    table.columns.extend(filesystems.iter().map(|filesystem| {
        if *filesystem == HERE { format!("{HERE} ({place})") } else { (*filesystem).to_owned() }
    }));
    let mut has_serial = false;
    for (_, operation, how) in TRIALS {
        let mut text = |filesystem: &&str| {
            let cell = find(record, filesystem, operation, how)?;
            let median = |measure: &str| record.summary(cell, measure).map(|found| found.median.middle);
            let is_serial = median(SERIAL).is_some_and(|share| share > 0.5);
            has_serial |= is_serial;
            Some(percent(median(HANDED)?) + if is_serial { " *" } else { "" })
        };
        let texts: Vec<Option<String>> = filesystems.iter().map(&mut text).collect();
        if texts.iter().any(Option::is_some) {
            let texts = texts.into_iter().map(Option::unwrap_or_default);
            table.row(std::iter::once(format!("{operation}, {how}")).chain(texts).collect());
        }
    }
    table.notes.extend(has_serial.then(|| "*: one at a time.".to_owned()));
    let published = "Document 003: writes to regular files are always handed over, except on XFS.";
    table.notes.push(published.to_owned());
    table
}
