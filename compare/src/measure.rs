//! Runs all runtimes interleaved: each round takes every runtime once, in random order, each as a program of its own.
//!
//! Before each run the cache is made cold or warm, and this is proved on a sample of the files. After it, the checksum is
//! compared with that of plain reads, a copy with its source, and a log with its records.

mod place;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ferry_lab::cache::{Proof, State, prepare};
use ferry_lab::machine::Machine;
use ferry_lab::schedule;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::record::{Measured, Record, Run, Runs, SCHEMA, versions};
use crate::runtimes::NAMES;
use crate::work::Total;
use place::{Cell, Place};

/// Seed of the order of the runs.
const SEED: u64 = 1;
/// Time after which a run counts as hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// Time between two looks for a run's end, which it does not count.
const LOOK: Duration = Duration::from_millis(10);

/// Attempts to bring the cache into a state.
const ATTEMPTS: u32 = 5;

/// Parameters of a comparison.
#[derive(Debug, Clone)]
pub struct Request {
    /// Folder in which the files are made; it is removed afterwards.
    pub place: PathBuf,
    /// Rounds of each work.
    pub rounds: u64,
    /// Small trees and files, for a test.
    pub quick: bool,
    /// Names of the works; empty for all.
    pub works: Vec<String>,
    /// Program that does one run.
    pub program: PathBuf,
}

/// Output of a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Printed {
    /// Time from the start of the runtime to its end.
    pub seconds: f64,
    /// Processor time of all threads.
    pub processor_seconds: f64,
    /// Number of bytes.
    pub bytes: u64,
    /// Checksum.
    pub checksum: u64,
}

/// Makes the files, measures, and removes them. `tell` gets a line for each work. A runtime that fails, or that does
/// something else than it should, is left out of the rest of that work.
///
/// # Errors
/// If the files can't be made or the caches can't be dropped.
pub fn measure(request: &Request, tell: &dyn Fn(&str)) -> Result<Record, Failure> {
    let place = Place::make(&request.place, request.quick)?;
    let machine = Machine::look(place.path());
    let mut record = Record { schema: SCHEMA, machine, versions: versions(), works: Vec::new() };
    let cells = place.cells()?;
    if let Some(unknown) =
        request.works.iter().find(|name| !cells.iter().any(|cell| cell.name == name.as_str()))
    {
        let known: Vec<&str> = cells.iter().map(|cell| cell.name).collect();
        return Err(format!("'{unknown}' is none of {}", known.join(", ")).into());
    }
    for cell in cells {
        if request.works.is_empty() || request.works.iter().any(|name| name == cell.name) {
            let begun = Instant::now();
            record.works.push(measure_cell(&cell, request)?);
            tell(&format!(
                "{}: {} rounds in {:.1} s",
                cell.name,
                request.rounds,
                begun.elapsed().as_secs_f64()
            ));
        }
    }
    Ok(record)
}

fn load() -> Result<String, Failure> {
    Ok(std::fs::read_to_string("/proc/loadavg")?.trim().to_owned())
}

fn measure_cell(cell: &Cell, request: &Request) -> Result<Measured, Failure> {
    let none = |name: &&str| Runs { runtime: (*name).to_owned(), runs: Vec::new(), failure: None };
    let before = load()?;
    let mut runtimes: Vec<Runs> = NAMES.iter().map(none).collect();
    for round in 0..request.rounds {
        for index in schedule::order(SEED, round, runtimes.len()) {
            let runs = &mut runtimes[index];
            if runs.failure.is_none() {
                match run_once(cell, &runs.runtime, &request.program) {
                    Ok(run) => runs.runs.push(run),
                    Err(Stopped::Run(why)) => runs.failure = Some(why),
                    Err(Stopped::All(error)) => return Err(error),
                }
            }
        }
    }
    let load = [before, load()?];
    Ok(Measured { work: cell.name.to_owned(), what: cell.what.clone(), load, runtimes })
}

/// Why a run has no result.
enum Stopped {
    /// The runtime has failed.
    Run(String),
    /// Nothing can be measured.
    All(Failure),
}

/// Ends the comparison.
fn all(error: impl Into<Failure>) -> Stopped {
    Stopped::All(error.into())
}

fn run_once(cell: &Cell, runtime: &str, program: &Path) -> Result<Run, Stopped> {
    cell.clear().map_err(all)?;
    let cache = prepared(cell, program)?;
    let printed = start(runtime, &cell.arguments, program)?;
    let Printed { seconds, processor_seconds, bytes, checksum } = printed;
    if cell.total != (Total { bytes, checksum }) {
        return Err(Stopped::Run(format!("it has read or written other bytes: {printed:?}")));
    }
    cell.check().map_err(|error| Stopped::Run(error.to_string()))?;
    cell.clear().map_err(all)?;
    Ok(Run { seconds, processor_seconds, cache: cache.filter(|_| cell.state != State::AsItIs) })
}

/// Brings the cache into the cell's state, and returns the proof. Another program may drop the caches meanwhile: then it is
/// tried again.
fn prepared(cell: &Cell, program: &Path) -> Result<Option<Proof>, Stopped> {
    for attempt in 1.. {
        let proof = prepare(cell.state, &cell.sample, &[program.to_owned()]).map_err(all)?;
        match &proof {
            Some(found) if found.was_asked() && !found.holds && attempt == ATTEMPTS => {
                return Err(all(format!("the cache is not {}: {found:?}", cell.state.name())));
            }
            Some(found) if found.was_asked() && !found.holds => {}
            Some(_) | None => return Ok(proof),
        }
    }
    Ok(None)
}

/// Runs the program once.
fn start(runtime: &str, arguments: &[String], program: &Path) -> Result<Printed, Stopped> {
    let mut command = Command::new(program);
    command.args(["run", "--runtime", runtime]).args(arguments).env_remove("FERRY_TRACE");
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(all)?;
    let begun = Instant::now();
    while child.try_wait().map_err(all)?.is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().and_then(|()| child.wait()).map_err(all)?;
            return Err(Stopped::Run(format!("it was killed after {} s", LIMIT.as_secs())));
        }
        std::thread::sleep(LOOK);
    }
    let output = child.wait_with_output().map_err(all)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Stopped::Run(format!("{}: {}", output.status, said.trim())));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Stopped::Run(error.to_string()))
}
