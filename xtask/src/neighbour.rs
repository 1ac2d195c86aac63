//! Measures what `ferry sync` leaves to a program that reads from the same disk, with and without `--max-load`.
//!
//! The neighbour is fio, with one random read of 4 KiB at a time, past the page cache. In each round it runs three times for
//! [`SECONDS`]: alone, beside `ferry sync`, and beside `ferry sync --max-load`. The order changes with each round, so that what
//! changes on the machine meets all three. The run copies a tree that is not cached, and begins anew when it has ended.
//! Ratios are taken within a round; the report has their median, least and greatest.

mod copying;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::scratch::Scratch;
use crate::workspace;
use copying::Copying;

/// Duration of one measurement.
const SECONDS: u32 = 8;
/// Files of the tree: large ones of [`LARGE_BYTES`], and small ones.
const LARGE: usize = 6;
const LARGE_BYTES: usize = 64 << 20;
const SMALL: usize = 2_000;
const SMALL_BYTES: usize = 4_096;

/// Arguments.
struct Wanted {
    folder: PathBuf,
    rounds: usize,
    percent: String,
    ferry: Option<PathBuf>,
}

/// Companion of the neighbour.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    Sync,
    YieldingSync,
}

/// Figures of one measurement.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// The neighbour's reads per second.
    reads: f64,
    /// The neighbour's 99th percentile of latency, in microseconds.
    p99_us: f64,
    /// MiB per second that the run copied.
    copied: f64,
}

/// Measures, and prints a line for each round and the ratios.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), Failure> {
    let wanted = Wanted::parse(words)?;
    let ferry = match &wanted.ferry {
        Some(ferry) => ferry.canonicalize().map_err(Failure::path("find", ferry))?,
        None => workspace::release(root)?,
    };
    let place = Scratch::within(&wanted.folder)?;
    make_source(&place.path().join("source"))?;
    neighbour(place.path(), &["--create_only=1"])?;
    let mut rounds = Vec::new();
    for round in 0..wanted.rounds {
        let mut found = [Figures::default(); 3];
        let mut all = [Beside::Nobody, Beside::Sync, Beside::YieldingSync];
        let turn = round % all.len();
        all.rotate_left(turn);
        for beside in all {
            found[beside as usize] = measure(&ferry, &wanted.percent, place.path(), beside)?;
        }
        let shown = |one: Figures| format!("{:.0} reads/s, p99 {:.0} us", one.reads, one.p99_us);
        let [alone, beside, yielding] = found;
        println!(
            "round {}: alone {}; beside sync {} ({:.1} MiB/s); beside sync --max-load={} {} ({:.1} MiB/s)",
            round + 1,
            shown(alone),
            shown(beside),
            beside.copied,
            wanted.percent,
            shown(yielding),
            yielding.copied
        );
        rounds.push(found);
    }
    print!("{}", report(&wanted.percent, &rounds));
    Ok(())
}

impl Wanted {
    fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut wanted = Self { folder: PathBuf::new(), rounds: 5, percent: "10".to_owned(), ferry: None };
        for option in words.chunks(2) {
            match option {
                ["--in", folder] => wanted.folder = PathBuf::from(folder),
                ["--rounds", rounds] => wanted.rounds = rounds.parse().map_err(|_| Failure::Usage)?,
                ["--max-load", percent] => wanted.percent = (*percent).to_owned(),
                ["--ferry", ferry] => wanted.ferry = Some(PathBuf::from(ferry)),
                _ => return Err(Failure::Usage),
            }
        }
        if wanted.folder.as_os_str().is_empty() || wanted.rounds == 0 {
            Err(Failure::Usage)
        } else {
            Ok(wanted)
        }
    }
}

/// Makes the tree that is copied. No two blocks are equal, so that no filesystem stores them once.
fn make_source(source: &Path) -> Result<(), Failure> {
    let folders = ["large", "small"].map(|name| source.join(name));
    for folder in &folders {
        fs::create_dir_all(folder).map_err(Failure::path("create", folder))?;
    }
    let [large, small] = folders;
    let files = (0..LARGE).map(|number| (large.join(number.to_string()), LARGE_BYTES));
    let files = files.chain((0..SMALL).map(|number| (small.join(number.to_string()), SMALL_BYTES)));
    let mut state = 0_u64;
    for (path, size) in files {
        let mut bytes = Vec::with_capacity(size);
        while bytes.len() < size {
            // Weyl's sequence, mixed (splitmix64).
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bytes.extend((mixed ^ mixed >> 27).to_le_bytes());
        }
        fs::write(&path, bytes).map_err(Failure::path("write", &path))?;
    }
    Ok(())
}

/// Runs the neighbour once, beside nobody or a run that copies.
fn measure(ferry: &Path, percent: &str, place: &Path, beside: Beside) -> Result<Figures, Failure> {
    let limit = format!("--max-load={percent}");
    let copying = match beside {
        Beside::Nobody => None,
        Beside::Sync => Some(Copying::begin(ferry, place, &[])?),
        Beside::YieldingSync => Some(Copying::begin(ferry, place, &[&limit])?),
    };
    let seconds = SECONDS.to_string();
    let output = neighbour(place, &["--time_based", "--runtime", &seconds]);
    let copied = match copying {
        Some(copying) => copying.end()?,
        None => 0.0,
    };
    let (reads, p99_us) = figures(&output?).ok_or(Failure::Output { command: "fio" })?;
    Ok(Figures { reads, p99_us, copied: copied / f64::from(SECONDS) })
}

/// Runs fio with further options, and returns its output.
fn neighbour(place: &Path, options: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("fio");
    command.args(["--name=neighbour", "--filename=neighbour", "--size=256M", "--rw=randread", "--bs=4k"]);
    command.args(["--direct=1", "--ioengine=psync", "--output-format=terse", "--terse-version=3"]);
    command.args(options).current_dir(place).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(Failure::start("fio"))?;
    if !output.status.success() {
        return Err(Failure::Command { command: "fio" });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns reads per second, and the 99th percentile of their latency in microseconds, from terse output of version 3.
fn figures(output: &str) -> Option<(f64, f64)> {
    /// Position of the reads per second.
    const READS: usize = 7;
    /// Positions of the percentiles: `99.000000%=123`.
    const PERCENTILES: std::ops::Range<usize> = 17..37;
    let line = output.lines().find(|line| line.starts_with("3;"))?;
    let fields: Vec<&str> = line.split(';').collect();
    let reads = fields.get(READS)?.parse().ok()?;
    let p99 = fields.get(PERCENTILES)?.iter().find_map(|field| field.strip_prefix("99.000000%="))?;
    Some((reads, p99.parse().ok()?))
}

/// Formats the ratios of all rounds.
fn report(percent: &str, rounds: &[[Figures; 3]]) -> String {
    let ratios = |ratio: &dyn Fn(&[Figures; 3]) -> f64| spread(rounds.iter().map(ratio).collect());
    let reads = |at: usize| ratios(&move |round: &[Figures; 3]| round[at].reads / round[0].reads);
    let latency = |at: usize| ratios(&move |round: &[Figures; 3]| round[at].p99_us / round[0].p99_us);
    let slowdown = ratios(&|round: &[Figures; 3]| round[1].copied / round[2].copied);
    format!(
        "beside sync the neighbour keeps {} of its reads, and its p99 grows to {} times\n\
         beside sync --max-load={percent} it keeps {}, and its p99 grows to {} times\n\
         --max-load={percent} makes the sync {slowdown} times as slow\n",
        reads(1),
        latency(1),
        reads(2),
        latency(2)
    )
}

/// Formats a median, with the least and the greatest: `0.50 (0.42-0.61)`.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let median = match values.as_slice() {
        [] => return "unknown".to_owned(),
        values if values.len() % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        values => values[middle],
    };
    let ends = values.first().zip(values.last());
    ends.map_or_else(String::new, |(least, greatest)| format!("{median:.2} ({least:.2}-{greatest:.2})"))
}

#[cfg(test)]
mod tests;
