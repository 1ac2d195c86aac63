//! Long runs of single tests of `ferry sync`: the acceptance of what it promises.
//!
//! The tests are those of the suite, with more rounds (`FERRY_SEEDS==N`). Each prints a line `SEEDS: pairs=12 compared=12`, and
//! the figures of all lines are added up.

use std::collections::BTreeMap;
use std::path::Path;

use super::binaries::{self, Binary, Run};
use crate::failure::Failure;

/// A test, and its share of the rounds.
struct Part {
    test: &'static str,
    share: u64,
}

const fn part(test: &'static str, share: u64) -> Part {
    Part { test, share }
}

/// Random pairs of trees, beside rsync: plain runs of both programs, and runs with options that both have.
const PAIRS: &[Part] = &[
    part("sync::on_tmpfs", 1),
    part("sync::on_ext4", 1),
    part("sync::on_xfs", 1),
    part("sync::on_btrfs", 1),
    part("sync::beside::on_tmpfs", 3),
    part("sync::beside::on_ext4", 3),
    part("sync::beside::on_xfs", 3),
    part("sync::beside::on_btrfs", 3),
];

/// Runs that are killed while they copy large files.
const KILLS: &[Part] = &[part("sync::killed::on_tmpfs", 1), part("sync::killed::on_ext4", 1)];

/// Runs the tests of `what`, `count` rounds in all, and prints one line with their figures.
pub(crate) fn run(root: &Path, what: &str, count: &str) -> Result<(), Failure> {
    let (parts, rounds) = match what {
        "pairs" => (PAIRS, "pairs"),
        "kills" => (KILLS, "kills"),
        _ => return Err(Failure::Usage),
    };
    let count: u64 = count.parse().ok().filter(|count| *count > 0).ok_or(Failure::Usage)?;
    let found = binaries::build_with(root, &["test", "--locked", "--package", "ferry", "--test", "it"])?;
    let binary = found.into_iter().find(|binary| binary.name == "ferry it").ok_or(Failure::NoTests)?;
    let (mut figures, mut seconds, mut is_right) = (Figures::default(), 0.0, true);
    for (part, rounds) in parts.iter().zip(shares(parts, count)) {
        if rounds > 0 {
            let run = run_part(&binary, part, rounds)?;
            is_right &= run.is_success;
            seconds += run.duration.as_secs_f64();
            figures.add(&run.output);
        }
    }
    let done = figures.of(rounds);
    let each = if done > 0 { seconds * 100.0 / approximate(done) } else { 0.0 };
    println!("acceptance-sync {what}: {}; {seconds:.0} s, {each:.0} s for 100", figures.line());
    match is_right {
        false => Err(Failure::Tests { count: 1 }),
        true if figures.rounds() < count => Err(Failure::FewRounds { wanted: count, done: figures.rounds() }),
        true if figures.compares_nothing() => Err(Failure::FewRounds { wanted: count, done: 0 }),
        true => Ok(()),
    }
}

/// Runs one test, and prints its output if it fails, and else the reasons why it was skipped.
fn run_part(binary: &Binary, part: &Part, rounds: u64) -> Result<Run, Failure> {
    let seeds = format!("={rounds}");
    let run = binary.run(&[part.test.to_owned()], &[("FERRY_SEEDS", &seeds)])?;
    println!("{}: {rounds} rounds in {:.0} s", part.test, run.duration.as_secs_f64());
    let is_said = |line: &&str| !run.is_success || line.trim_start().starts_with("SKIP");
    run.output.lines().filter(is_said).for_each(|line| println!("  {line}"));
    Ok(run)
}

/// Divides rounds by the parts' shares; the first parts get what is left.
fn shares(parts: &[Part], count: u64) -> Vec<u64> {
    let all: u64 = parts.iter().map(|part| part.share).sum();
    let mut shares: Vec<u64> = parts.iter().map(|part| count * part.share / all).collect();
    let left = usize::try_from(count - shares.iter().sum::<u64>()).unwrap_or(0);
    shares.iter_mut().take(left).for_each(|share| *share += 1);
    shares
}

/// Converts a count for a quotient that is printed with few digits.
fn approximate(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Figures of tests, by name.
#[derive(Default)]
struct Figures(BTreeMap<String, u64>);

impl Figures {
    /// Adds the figures in a test's output. Of those named `most_`, the largest counts.
    fn add(&mut self, output: &str) {
        let figures =
            output.lines().filter_map(|line| line.split_once("SEEDS: ")).flat_map(|(_, figures)| {
                figures.split_whitespace().filter_map(|figure| {
                    let (name, value) = figure.split_once('=')?;
                    Some((name.to_owned(), value.parse::<u64>().ok()?))
                })
            });
        for (name, value) in figures {
            let is_most = name.starts_with("most_");
            let known = self.0.entry(name).or_default();
            *known = if is_most { value.max(*known) } else { value + *known };
        }
    }

    fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Number of rounds, with those of runs that had ended before they were killed.
    fn rounds(&self) -> u64 {
        ["pairs", "kills", "ended_before"].iter().map(|name| self.of(name)).sum()
    }

    /// Returns true if there were pairs of trees, and rsync has copied none of them.
    fn compares_nothing(&self) -> bool {
        self.of("pairs") > 0 && self.of("compared") == 0
    }

    fn line(&self) -> String {
        let figures: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        figures.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, KILLS, PAIRS, shares};

    #[test]
    fn all_rounds_are_divided_among_the_tests() {
        assert_eq!(shares(PAIRS, 5_000), [313, 313, 313, 313, 937, 937, 937, 937]);
        assert_eq!(shares(PAIRS, 3), [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(shares(KILLS, 1_001), [501, 500]);
    }

    #[test]
    fn figures_of_tests_are_added_up() {
        let mut figures = Figures::default();
        figures.add("running\nSEEDS: kills=5 most_mib_again=40\n");
        figures.add("test x ... SEEDS: kills=3 ended_before=1 most_mib_again=7\nSKIP: nothing\n");
        assert_eq!(figures.line(), "ended_before=1 kills=8 most_mib_again=40");
        assert_eq!((figures.of("kills"), figures.rounds()), (8, 9));
        assert!(!figures.compares_nothing());
        figures.add("SEEDS: pairs=12 compared=0");
        assert!(figures.compares_nothing());
    }
}
