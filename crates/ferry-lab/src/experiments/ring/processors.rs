//! Chooses the processors to read on, by the device interrupts they take (/proc/interrupts).
//!
//! A processor that takes the device's interrupts sees completions at once. The others need an interrupt between
//! processors, which document 002 measures.

use std::collections::BTreeMap;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::Failure;
use crate::message::quoted;

/// A processor that took so few of all device interrupts, in thousandths, takes none for its part.
const QUIET_PERMILLE: u64 = 10;

/// Processors to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Their numbers.
    pub(super) numbers: Vec<usize>,
    /// True if none of the chosen processors takes device interrupts.
    pub(super) are_quiet: bool,
}

/// Those that are named; else `count` processors, those with the fewest device interrupts first; with a count of 0 those
/// that take no device interrupts, or else all.
///
/// # Errors
/// If one is named that this process may not use.
pub(super) fn choose(named: &str, count: u64) -> Result<Chosen, Failure> {
    let text = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
    among(&allowed(), named, count, &device_interrupts(&text))
}

/// Chooses among the allowed processors; all of them if there are fewer than `count`.
pub(super) fn among(
    allowed: &[usize],
    named: &str,
    count: u64,
    taken: &BTreeMap<usize, u64>,
) -> Result<Chosen, Failure> {
    let all: u64 = taken.values().sum();
    let is_quiet = |number: &usize| {
        taken.get(number).is_some_and(|count| u128::from(*count) * 1000 <= u128::from(all * QUIET_PERMILLE))
    };
    let numbers: Vec<usize> = if named.is_empty() && count > 0 {
        let mut found = allowed.to_vec();
        found.sort_by_key(|number| taken.get(number).copied().unwrap_or(u64::MAX));
        found.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        found.sort_unstable();
        found
    } else if named.is_empty() {
        let quiet: Vec<usize> = allowed.iter().copied().filter(is_quiet).collect();
        if quiet.is_empty() { allowed.to_vec() } else { quiet }
    } else {
        let number = |word: &str| word.trim().parse().ok().filter(|number| allowed.contains(number));
        let found: Option<Vec<usize>> = named.split(',').map(number).collect();
        found.ok_or_else(|| {
            let (named, allowed) = (quoted(named.as_ref()).to_string(), list(allowed));
            Failure::Misuse(format!(
                "invalid value {named} for '--processors'; this process may use {allowed}"
            ))
        })?
    };
    let are_quiet = numbers.iter().all(is_quiet);
    Ok(Chosen { numbers, are_quiet })
}

/// Interrupts of devices that each processor took since the machine started.
pub(super) fn device_interrupts(text: &str) -> BTreeMap<usize, u64> {
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    let numbers: Vec<usize> = heading
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU").and_then(|number| number.parse().ok()))
        .collect();
    let mut taken: BTreeMap<usize, u64> = numbers.iter().map(|number| (*number, 0)).collect();
    for line in lines {
        let Some((label, rest)) = line.split_once(':') else { continue };
        // Those with a name are the processors' own; so are timers, which have a number on some machines.
        if label.trim().parse::<u32>().is_err() || rest.contains("timer") {
            continue;
        }
        for (number, word) in numbers.iter().zip(rest.split_whitespace()) {
            let count = word.parse::<u64>().unwrap_or(0);
            *taken.entry(*number).or_default() += count;
        }
    }
    taken
}

/// Returns a processor on which this process may run, and which is not `number`: one that is not among `others`, if
/// possible.
pub(super) fn beside(number: usize, others: &[usize]) -> Option<usize> {
    let mut allowed = allowed();
    allowed.retain(|one| *one != number);
    allowed.iter().find(|one| !others.contains(one)).or(allowed.first()).copied()
}

/// Returns the processors in this thread's affinity mask.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
}

/// From now on the calling thread, and what it starts, runs there only.
///
/// # Errors
/// Those of sched_setaffinity(2).
pub(super) fn pin(number: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(number);
    sched_setaffinity(None, &set)
        .map_err(|errno| Failure::Run(format!("cannot run on processor {number}: {}", errno.kind())))
}

/// `0,2`.
pub(super) fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}
