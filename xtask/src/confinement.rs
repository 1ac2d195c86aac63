//! Checks that the tests of races fail without confinement of names, because otherwise they would prove nothing.

use std::path::Path;

use crate::failure::Failure;
use crate::workspace;

const NAME: &str = "cargo test --features unconfined races::";
/// Times the usual number of refusals. A test ends with its first breach, which some runs meet late: with the usual number,
/// one run of CI met none.
const ROUNDS: &str = "20";
/// Fewest tests that must run: one for each class of races.
const LEAST_TESTS: usize = 6;

/// Races between files of one folder, in which confinement has no part.
const OF_IDENTITY: [&str; 2] = [
    "races::a_target_that_is_replaced_again_and_again_is_copied_each_time",
    "races::a_target_that_becomes_another_name_of_its_source_costs_no_bytes",
];

/// Runs the tests of races with a build that follows links, waits for FIFOs and reads devices. Each must fail.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let mut command = workspace::cargo(root);
    command.args(["test", "--package", "ferry", "--features", "unconfined", "--locked", "--no-fail-fast"]);
    command.args(["--test", "it", "--", "races::"]);
    for test in OF_IDENTITY {
        command.args(["--skip", test]);
    }
    let output = command.env("FERRY_SEEDS", ROUNDS).output().map_err(Failure::start(NAME))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let results = results(&said);
    let passed: Vec<_> = results.iter().filter(|(_, has_failed)| !has_failed).collect();
    passed.iter().for_each(|(test, _)| println!("{test} does not fail without confinement"));
    if results.len() < LEAST_TESTS {
        // The build failed, or the tests have other names.
        println!("{said}{}", String::from_utf8_lossy(&output.stderr));
        return Err(Failure::NoTests);
    }
    if passed.is_empty() {
        println!("check-confinement: ok; {} tests fail without it", results.len());
        Ok(())
    } else {
        Err(Failure::Breaches { check: "check-confinement", count: passed.len() })
    }
}

/// Returns each test that ran, and true if it failed.
fn results(output: &str) -> Vec<(&str, bool)> {
    fn result(line: &str) -> Option<(&str, bool)> {
        let (test, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        match result {
            "FAILED" => Some((test, true)),
            "ok" => Some((test, false)),
            _ => None,
        }
    }
    output.lines().filter_map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::results;

    #[test]
    fn results_are_read_from_the_runners_lines() {
        let output = "\nrunning 2 tests\ntest races::a ... ok\ntest races::b ... FAILED\n\ntest result: FAILED. 1 passed";
        assert_eq!(results(output), [("races::a", false), ("races::b", true)]);
    }
}
