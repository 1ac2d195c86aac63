//! `lab tree`: makes the documents' workloads on disk.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ferry_tree::workload::{Made, Preset, Sizes, Workload};

use crate::cache::State;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Better, Cell, Figures, Measure, Record};
use crate::session::{Session, Subject};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::Table;
use crate::units::{figure, real};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Makes a tree.
pub(super) struct Tree;

const MANY: u64 = 1 << 32;
const LARGEST: u64 = 1 << 44;

const PARAMETERS: &[Parameter] = &[
    Parameter::new("preset", "PRESET", "Which tree", ParameterKind::Text, "small"),
    Parameter::new("target", "TARGET", "Path of the new tree", ParameterKind::Text, ""),
    Parameter::new("fan-out", "N", "Folders in each folder", ParameterKind::Maybe(0, MANY), ""),
    Parameter::new("depth", "N", "Levels of folders below the root", ParameterKind::Maybe(0, 100_000), "")
        .quick("1"),
    Parameter::new("files", "N", "Files in each folder", ParameterKind::Maybe(0, MANY), ""),
    Parameter::new(
        "sizes",
        "SIZES",
        "Sizes of files: SIZE, LEAST-MOST (uniform), or log-normal:MEDIAN:DEVIATION:MOST",
        ParameterKind::Text,
        "",
    ),
    Parameter::new("symlinks", "PERCENT", "Symbolic links among the files", ParameterKind::Maybe(0, 100), ""),
    Parameter::new("hard-links", "PERCENT", "Second names among the files", ParameterKind::Maybe(0, 100), ""),
    Parameter::new(
        "holes",
        "PERCENT",
        "Files with a hole, of those of 64 KiB and more",
        ParameterKind::Maybe(0, 100),
        "",
    ),
    Parameter::new(
        "threads",
        "N",
        "Number of threads; 0: one for each processor",
        ParameterKind::Number(0, 256),
        "0",
    ),
];

const SPEC: Spec = Spec {
    name: "tree",
    about: "Makes one of the documents' trees, or a tree by your own numbers",
    manual: "\
PRESET is one of
  small       3,905 files of 4 KiB in 781 folders (000)
  wide        117,649 files of 4 KiB in the deepest of 19,608 folders (004)
  large       780 files of 1 MiB in 156 folders (004)
  large-3905  3,905 files of 1 MiB in 781 folders (000)
  huge[:MIB]  one file of MIB MiB, 2,048 if not said
  three       three files of 4 KiB in one folder
  flat        50,000 files of up to 3 KiB in one folder
  deep[:N]    N levels of folders (2,000 by default), each with a file of 100 bytes
  mixed       sizes from 0 to 64 MiB as in real trees, with links and holes
  empty[:FILES[:FOLDERS]]  empty files
Options change the preset's numbers. The same seed makes the same tree, and no two files have the same bytes. \
DEVIATION of log-normal sizes is in hundredths of a doubling: at 200, one file in six is larger than four times \
MEDIAN. With --quick the tree has one level.",
    parameters: PARAMETERS,
    operands: &["preset", "target"],
    runs: Runs { default: 1, quick: 1, published: 1 },
    is_measured: false,
};

impl Experiment for Tree {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn place(&self, settings: &Settings) -> Option<PathBuf> {
        let target = PathBuf::from(settings.text("target"));
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        Some(parent.unwrap_or(Path::new(".")).to_owned())
    }

    fn measures(&self) -> Vec<Measure> {
        let count = |name, about| Measure::new(name, about, "", Better::Neither);
        vec![
            Measure::new("made_s", "time to make it", "s", Better::Neither),
            count("folders", "folders"),
            count("files", "files"),
            count("symlinks", "symbolic links"),
            count("hard_links", "second names"),
            Measure::new("bytes", "sum of the files' sizes", "B", Better::Neither),
        ]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let target = settings.text("target");
        if target.is_empty() {
            return Err(Failure::Misuse("missing operand: the path of the new tree".to_owned()));
        }
        let path = Path::new(&target);
        if path.symlink_metadata().is_ok() {
            return Err(Failure::file("create", path, &rustix::io::Errno::EXIST.into()));
        }
        let workload = workload(settings, 0)?;
        Ok(vec![space(&workload)])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let workload = workload(session.settings(), session.seed())?;
        let target = PathBuf::from(session.settings().text("target"));
        let threads = match session.settings().number("threads") {
            0 => threads(),
            threads => usize::try_from(threads).unwrap_or(1),
        };
        let preset = session.settings().text("preset");
        let cell = Cell::new(&[("preset", preset.as_str().into())], State::AsItIs);
        let subject = Subject::new(cell, |turn| {
            let start = Instant::now();
            let made = make(&workload, &target, threads, turn.stop())?;
            Ok(figures(&made, start.elapsed().as_secs_f64()))
        });
        session.interleave(&mut [subject], &crate::cache::sample::Sample::none())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let mut table = Table::new("The tree", &["", "count"]);
        for cell in &record.cells {
            for measure in &record.measures {
                let values = cell.figures(&measure.name);
                let text = values.last().map(|value| figure(*value, &measure.unit));
                table.row(vec![measure.about.clone(), text.unwrap_or_default()]);
            }
        }
        vec![table]
    }

    fn plots(&self, _: &Record) -> Vec<Plot> {
        Vec::new()
    }

    fn verdicts(&self, _: &Record) -> Vec<Verdict> {
        Vec::new()
    }

    /// Number of files and folders, and the time to make them.
    fn headline(&self, record: &Record) -> Headline {
        let Some(cell) = record.cells.first() else { return Headline::none("the tree") };
        let text = |measure: &str, unit: &str| {
            cell.figures(measure).last().map(|value| figure(*value, unit)).unwrap_or_default()
        };
        Headline::new(format!(
            "{} files in {} folders, {}, made in {}",
            text("files", ""),
            text("folders", ""),
            text("bytes", "B"),
            text("made_s", "s"),
        ))
    }
}

fn figures(made: &Made, seconds: f64) -> Figures {
    let counts = [
        ("folders", made.folders),
        ("files", made.files),
        ("symlinks", made.symlinks),
        ("hard_links", made.hard_links),
        ("bytes", made.bytes),
    ];
    let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), real(count)));
    counts.chain([("made_s".to_owned(), seconds)]).collect()
}

/// As many threads as there are processors.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Room for a tree: its data in blocks of 4 KiB, a block a folder, and its entries.
pub(super) fn space(workload: &Workload) -> Need {
    let (files, folders) = (workload.file_count(), workload.folder_count());
    let rounding = files.saturating_mul(2048).saturating_add(folders.saturating_mul(4096));
    Need::Space {
        bytes: workload.expected_bytes().saturating_add(rounding),
        entries: files.saturating_add(folders),
    }
}

/// Makes a tree; removes it again if it could not be finished.
pub(super) fn make(
    workload: &Workload,
    target: &Path,
    threads: usize,
    stop: &crate::stop::Stop,
) -> Result<Made, Failure> {
    if target.symlink_metadata().is_ok() {
        return Err(Failure::file("create", target, &rustix::io::Errno::EXIST.into()));
    }
    let made = ferry_tree::workload::make_while(workload, target, threads, &|| !stop.is_set());
    if made.is_err() {
        // The first error is reported, not an error of this removal.
        ferry_tree::remove::remove(target).ok();
        stop.check()?;
    }
    Ok(made?)
}

/// The preset's tree, with what the options change.
fn workload(settings: &Settings, seed: u64) -> Result<Workload, Failure> {
    let preset = settings.text("preset").parse::<Preset>();
    let preset = preset.map_err(|error| Failure::Misuse(error.to_string()))?;
    let mut workload = preset.workload(seed);
    for (name, number) in [
        ("fan-out", &mut workload.fanout),
        ("depth", &mut workload.depth),
        ("files", &mut workload.files),
        ("symlinks", &mut workload.symlink_percent),
        ("hard-links", &mut workload.hard_link_percent),
        ("holes", &mut workload.sparse_percent),
    ] {
        *number = settings.maybe(name).unwrap_or(*number);
    }
    let text = settings.text("sizes");
    if !text.is_empty() {
        workload.sizes = sizes(&text).ok_or_else(|| {
            let allowed = "it must be SIZE, LEAST-MOST, or log-normal:MEDIAN:DEVIATION:MOST";
            Failure::Misuse(format!(
                "invalid value {} for '--sizes'; {allowed}",
                crate::message::quoted(text.as_ref())
            ))
        })?;
    }
    if workload.symlink_percent + workload.hard_link_percent > 100 {
        let why = "'--symlinks' and '--hard-links' are more than 100 percent together";
        return Err(Failure::Misuse(why.to_owned()));
    }
    Ok(workload)
}

fn sizes(text: &str) -> Option<Sizes> {
    let bytes = |text: &str| crate::settings::bytes(text).filter(|bytes| *bytes <= LARGEST);
    if let Some(numbers) = text.strip_prefix("log-normal:") {
        let numbers: Vec<&str> = numbers.split(':').collect();
        let [median, deviation, most] = numbers.try_into().ok()?;
        let deviation_percent = deviation.parse().ok().filter(|percent| *percent <= 1000)?;
        return Some(Sizes::LogNormal { median: bytes(median)?, deviation_percent, most: bytes(most)? });
    }
    match text.split_once('-') {
        Some((least, most)) => {
            let (least, most) = (bytes(least)?, bytes(most)?);
            (least <= most).then_some(Sizes::Uniform { least, most })
        }
        None => bytes(text).map(Sizes::Fixed),
    }
}
