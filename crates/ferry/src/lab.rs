//! `ferry lab`: one command for each experiment of the lab's registry.
//!
//! This module parses the options, shows progress and prints the result. The help lists the exit codes.

mod comparison;
mod examples;
mod files;
pub(crate) mod options;
mod report;
mod show;
mod speeds;
mod strategy;
mod trace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_lab::conduct::{Ended, Request, conduct};
use ferry_lab::experiment::Experiment;
use ferry_lab::record::store::{json, place_of, write_atomically};
use ferry_lab::stop::Stop;
use ferry_lab::{Failure, export};

use self::files::ViewFile;
use self::report::Report;
pub(crate) use self::show::ProgressLine;
use self::show::ResultFormat;
use self::speeds::Speeds;
use self::strategy::Strategy;
use crate::arguments::{CommandError, Usage};
use crate::names::LAB as NAME;
use crate::output::Output;
use crate::quote::quote;

/// Exit code of a measurement whose warnings say not to trust the figures.
const DISTRUSTED: u8 = 3;

pub(crate) enum Lab {
    Conduct(Box<Conduct>),
    Report(Report),
    /// Prints the table of docs/performance.md.
    Speeds(Speeds),
    /// Copies with one program or strategy, for the lab to time.
    Strategy(Strategy),
}

/// An experiment, and what to do with its record.
pub(crate) struct Conduct {
    experiment: &'static dyn Experiment,
    request: Request,
    format: ResultFormat,
    current_bench: Option<PathBuf>,
    views: Vec<ViewFile>,
    trace: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A problem found before anything is written.
pub(crate) fn run(lab: Lab) -> Result<ExitCode, CommandError> {
    let ended = match lab {
        Lab::Strategy(strategy) => Ok(strategy.run()),
        Lab::Conduct(conduct) => run_experiment(*conduct),
        Lab::Report(report) => report.run(),
        Lab::Speeds(speeds) => speeds.run(),
    };
    ended.map_err(|failure| CommandError {
        program: NAME,
        usage: Usage::plain(failure.to_string()),
        code: failure.exit_code(),
    })
}

fn run_experiment(order: Conduct) -> Result<ExitCode, Failure> {
    let Conduct { experiment, mut request, format, current_bench, views, trace } = order;
    let own = crate::program::path();
    request.ferry =
        own.map_err(|error| Failure::Run(format!("cannot find the executable of ferry: {error}")))?;
    if let Some(file) = trace {
        trace::record(&request.ferry, &file)?;
    }
    let current_bench = current_bench.as_deref().map(place_of).transpose()?;
    let views = views.into_iter().map(ViewFile::placed).collect::<Result<Vec<_>, Failure>>()?;
    let stop = Stop::on_signals()?;
    let output = Output::new();
    let shown = ProgressLine::new(&output);
    let ended = conduct(experiment, &request, &shown, &stop);
    shown.end();
    let ended = ended?;
    let bench = current_bench.map(|path| (path, format!("{:#}\n", export::current_bench(&ended.record))));
    let views = views.into_iter().map(|file| file.of(experiment, &ended.record));
    let written: Vec<(PathBuf, String)> = views.chain(bench).collect();
    // Print the result first, so that it is not lost if a file can't be written.
    let code = tell(experiment, ended, format, &output);
    for (path, text) in &written {
        write_atomically(path, text.as_bytes(), false)?;
    }
    Ok(code)
}

fn tell(experiment: &dyn Experiment, ended: Ended, format: ResultFormat, output: &Output) -> ExitCode {
    let Ended { record, path, failure } = ended;
    let taken = record.cells.iter().any(|cell| !cell.runs.is_empty());
    if taken {
        output.line(format.text(experiment, &record).trim_end());
    }
    let kept = path.or_else(|| failure.as_ref().filter(|_| taken).and_then(|_| rescue(&record, output)));
    if let Some(failure) = &failure {
        let go_on = kept.as_deref().filter(|_| taken).map(|path| resume(&record.experiment, path));
        output.error(&format!("{NAME}: {failure}{}", go_on.unwrap_or_default()));
    }
    if let Err(error) = output.finish() {
        output.error(&format!("{NAME}: write error: {error}"));
        return ExitCode::FAILURE;
    }
    match failure {
        Some(failure) => ExitCode::from(failure.exit_code()),
        None if record.is_to_be_trusted() => ExitCode::SUCCESS,
        None => ExitCode::from(DISTRUSTED),
    }
}

fn resume(experiment: &str, path: &Path) -> String {
    let path = quote(path);
    format!("; finished runs are in {path}, continue with `{NAME} {experiment} --resume {path}`")
}

/// Saves an interrupted record for which no file was given.
fn rescue(record: &ferry_lab::record::Record, output: &Output) -> Option<PathBuf> {
    let path = PathBuf::from(format!("ferry-lab-{}-{}.json", record.experiment, record.seed));
    match write_atomically(&path, json(record).as_bytes(), true) {
        Ok(()) => Some(path),
        Err(failure) => {
            output.error(&format!("{NAME}: {failure}"));
            None
        }
    }
}
