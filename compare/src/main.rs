//! Does one work with one runtime, or measures all.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use ferry_compare::Failure;
use ferry_compare::measure::{self, Printed, measure};
use ferry_compare::record::Record;
use ferry_compare::runtimes;
use ferry_compare::table;
use ferry_compare::work::{BLOCK, Work};
use rustix::time::{ClockId, clock_gettime};

/// Compare ferry-io with other runtimes on file work.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Do one work with one runtime, and print the time and the checksum as JSON
    Run {
        /// Name of the runtime; an unknown name lists them
        #[arg(long)]
        runtime: String,
        #[command(subcommand)]
        work: Wanted,
    },
    /// Measure all runtimes of this build interleaved, and print tables. Needs root, to drop caches
    Measure {
        /// Folder for the files; it must not exist, and is removed afterwards
        #[arg(long, default_value = "ferry-compare-files")]
        work_dir: PathBuf,
        /// Rounds of each work
        #[arg(long, default_value_t = 10)]
        rounds: u64,
        /// Small trees and files, for a test
        #[arg(long)]
        quick: bool,
        /// Measure only these works, separated by commas; an unknown name lists them
        #[arg(long, value_delimiter = ',')]
        works: Vec<String>,
        /// Write the record to this file, or add to the record in it
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Print the tables of a record
    Table {
        /// The record
        record: PathBuf,
        /// Write them between the markers of this document instead
        #[arg(long)]
        into: Option<PathBuf>,
    },
}

#[derive(Subcommand)]
enum Wanted {
    /// Open, read and close each file of a list
    Small {
        /// File with an absolute path on each line
        list: PathBuf,
    },
    /// Read a large file
    Read {
        /// Its absolute path; its size is a multiple of 256 KiB
        path: PathBuf,
    },
    /// Copy a large file
    Copy {
        /// Its absolute path; its size is a multiple of 256 KiB
        source: PathBuf,
        /// Absolute path of the copy, which must not exist
        target: PathBuf,
    },
    /// Append records to new files, and make each durable
    Log {
        /// Folder of the files
        folder: PathBuf,
        /// Number of files
        files: u64,
        /// Number of records in each file
        records: u64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ferry-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<(), Failure> {
    match task {
        Task::Run { runtime, work } => {
            println!("{}", serde_json::to_string(&run_once(&runtime, &read(work)?)?)?);
        }
        Task::Measure { work_dir, rounds, quick, works, json } => {
            let program = std::env::current_exe()?;
            let request = measure::Request { place: work_dir, rounds, quick, works, program };
            let record = measure(&request, &|line| eprintln!("{line}"))?;
            let record = match &json {
                Some(json) if json.exists() => Record::read(json)?.and(record)?,
                Some(_) | None => record,
            };
            if let Some(json) = json {
                record.write(&json)?;
            }
            print!("{}", table::text(&record));
        }
        Task::Table { record, into } => {
            let text = table::text(&Record::read(&record)?);
            match into {
                Some(document) => table::write_into(&document, &text)?,
                None => print!("{text}"),
            }
        }
    }
    Ok(())
}

/// Reads what a work needs to know, before its time begins.
fn read(work: Wanted) -> Result<Work, Failure> {
    let blocks = |path: &PathBuf| Ok::<_, Failure>(std::fs::metadata(path)?.len() / BLOCK as u64);
    Ok(match work {
        Wanted::Small { list } => {
            Work::Small(std::fs::read_to_string(list)?.lines().map(PathBuf::from).collect())
        }
        Wanted::Read { path } => Work::Read { blocks: blocks(&path)?, path },
        Wanted::Copy { source, target } => Work::Copy { blocks: blocks(&source)?, source, target },
        Wanted::Log { folder, files, records } => Work::Log { folder, files, records },
    })
}

fn run_once(runtime: &str, work: &Work) -> Result<Printed, Failure> {
    let (begun, used) = (Instant::now(), processor_time());
    let total = runtimes::run(runtime, work)?;
    let (seconds, processor) = (begun.elapsed().as_secs_f64(), processor_time().saturating_sub(used));
    let processor_seconds = processor.as_secs_f64();
    Ok(Printed { seconds, processor_seconds, bytes: total.bytes, checksum: total.checksum })
}

/// Processor time of all threads of this process, those that have ended included.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}
