//! Measures the same two commands with `ferry lab run` and with hyperfine, and compares the medians.
//!
//! The commands are [`COMMANDS`], on one file that is cached. In each round both programs measure both commands, [`RUNS`] runs of
//! each. The program that is first changes with each round, so that what changes on the machine meets both. The report has the
//! medians of all runs of all rounds, and their ratio.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::scratch::Scratch;
use crate::workspace;

/// The commands, which read the file [`FILE`].
const COMMANDS: [&str; 2] = ["md5sum", "sha256sum"];
const FILE: &str = "file";
const FILE_BYTES: usize = 200 << 20;
/// Runs of each command by each program in a round.
const RUNS: &str = "5";
/// Largest difference of two medians.
const LIMIT: f64 = 0.02;
/// Exit code of `ferry lab` if it doubts its figures: five runs are few.
const DOUBTED: i32 = 3;

/// Arguments.
struct Wanted {
    folder: PathBuf,
    rounds: usize,
    hyperfine: PathBuf,
    ferry: Option<PathBuf>,
}

/// Seconds of the runs of each command.
type Times = [Vec<f64>; 2];

/// Measures, and prints the medians. Fails if two of them differ by more than [`LIMIT`].
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), Failure> {
    let wanted = Wanted::parse(words)?;
    let ferry = match &wanted.ferry {
        Some(ferry) => ferry.canonicalize().map_err(Failure::path("find", ferry))?,
        None => workspace::release(root)?,
    };
    let place = Scratch::within(&wanted.folder)?;
    let file = place.path().join(FILE);
    fs::write(&file, vec![b'f'; FILE_BYTES]).map_err(Failure::path("write", &file))?;
    let (mut lab, mut hyperfine) = (Times::default(), Times::default());
    for round in 0..wanted.rounds {
        let mut programs = [true, false];
        programs.rotate_left(round % 2);
        for is_lab in programs {
            if is_lab {
                add(&mut lab, by_lab(&ferry, place.path())?);
            } else {
                add(&mut hyperfine, by_hyperfine(&wanted.hyperfine, place.path())?);
            }
        }
        println!("round {} of {}", round + 1, wanted.rounds);
    }
    let (report, count) = report(&lab, &hyperfine).ok_or(Failure::Output { command: "hyperfine" })?;
    print!("{report}");
    if count == 0 { Ok(()) } else { Err(Failure::Breaches { check: "hyperfine", count }) }
}

impl Wanted {
    fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut wanted =
            Self { folder: PathBuf::new(), rounds: 9, hyperfine: PathBuf::from("hyperfine"), ferry: None };
        for option in words.chunks(2) {
            match option {
                ["--in", folder] => wanted.folder = PathBuf::from(folder),
                ["--rounds", rounds] => wanted.rounds = rounds.parse().map_err(|_| Failure::Usage)?,
                ["--hyperfine", program] => wanted.hyperfine = PathBuf::from(program),
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

fn add(times: &mut Times, found: Times) {
    times.iter_mut().zip(found).for_each(|(times, found)| times.extend(found));
}

/// Measures both commands with `ferry lab run`.
fn by_lab(ferry: &Path, place: &Path) -> Result<Times, Failure> {
    const NAME: &str = "ferry lab run";
    let mut command = Command::new(ferry);
    command.args(["lab", "run", "--csv", "--runs", RUNS]);
    for line in COMMANDS {
        command.args(["--", line, FILE]);
    }
    command.current_dir(place).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(Failure::start(NAME))?;
    if !matches!(output.status.code(), Some(0 | DOUBTED)) {
        return Err(Failure::Command { command: NAME });
    }
    times_of_lab(&String::from_utf8_lossy(&output.stdout)).ok_or(Failure::Output { command: NAME })
}

/// Measures both commands with hyperfine, which starts them without a shell, as the lab does.
fn by_hyperfine(hyperfine: &Path, place: &Path) -> Result<Times, Failure> {
    const NAME: &str = "hyperfine";
    let mut command = Command::new(hyperfine);
    command.args(["--shell=none", "--warmup=1", "--runs", RUNS, "--export-json=times.json"]);
    command.args(COMMANDS.map(|line| format!("{line} {FILE}")));
    command.current_dir(place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(Failure::start(NAME))?;
    if !status.success() {
        return Err(Failure::Command { command: NAME });
    }
    let times = workspace::read(&place.join("times.json"))?;
    times_of_hyperfine(&times).ok_or(Failure::Output { command: NAME })
}

/// Returns the times in the lab's CSV, which has a line for each run. None of its values is quoted, because the commands have no
/// commas.
fn times_of_lab(csv: &str) -> Option<Times> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name);
    let (command, returned) = (column("command")?, column("returned_s")?);
    let mut times = Times::default();
    for line in lines {
        let values: Vec<&str> = line.split(',').collect();
        let known = COMMANDS.iter().position(|known| values.get(command) == Some(known))?;
        times.get_mut(known)?.push(values.get(returned)?.parse().ok()?);
    }
    times.iter().all(|times| !times.is_empty()).then_some(times)
}

/// Returns the times in hyperfine's JSON: a list `times` for each command, in their order.
fn times_of_hyperfine(json: &str) -> Option<Times> {
    let lists = json.split("\"times\": [").skip(1).map(|rest| {
        let (list, _) = rest.split_once(']')?;
        list.split(',').map(|time| time.trim().parse().ok()).collect::<Option<Vec<f64>>>()
    });
    lists.collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// Formats the medians of both programs, and counts the commands whose medians differ by more than [`LIMIT`].
fn report(lab: &Times, hyperfine: &Times) -> Option<(String, usize)> {
    let (mut text, mut far) = (String::new(), 0);
    for (name, (lab, hyperfine)) in COMMANDS.iter().zip(lab.iter().zip(hyperfine)) {
        let (own, other) = (median(lab)?, median(hyperfine)?);
        let ratio = own / other;
        far += usize::from((ratio - 1.0).abs() > LIMIT);
        text += &format!(
            "{name}: ferry lab run {:.1} ms ({} runs), hyperfine {:.1} ms ({} runs): {ratio:.3}\n",
            own * 1e3,
            lab.len(),
            other * 1e3,
            hyperfine.len()
        );
    }
    Some((text, far))
}

/// Returns the median; `None` without values.
fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(*values.get(low)?, *values.get(high)?))
}

#[cfg(test)]
mod tests;
