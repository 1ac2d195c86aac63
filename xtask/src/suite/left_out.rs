//! Tests that the usual suite leaves out because they take long, and the rounds that it cuts.

use std::ffi::OsString;

use super::binaries::{Binary, Run};
use super::{Failure, Scope};

/// Tests that only the whole suite runs.
struct LeftOut {
    binary: &'static str,
    /// A test's path, or the beginning of several.
    tests: &'static str,
    reason: &'static str,
}

const LEFT_OUT: &[LeftOut] = &[];

/// Binaries that change something for the whole machine while they run.
const ALONE: &[&str] = &["ferry switched_off"];

/// The variable that multiplies the number of seeds and rounds, and the usual suite's value.
const ROUNDS: (&str, &str) = ("FERRY_SEEDS", "1/4");

/// A binary and the tests of it that run.
pub(super) struct Selection {
    binary: Binary,
    tests: Vec<String>,
    scope: Scope,
}

impl Selection {
    pub(super) fn new(binary: Binary, tests: Vec<String>, scope: Scope) -> Self {
        Self { binary, tests, scope }
    }

    pub(super) fn runs_alone(&self) -> bool {
        ALONE.contains(&self.binary.name.as_str())
    }

    pub(super) fn run(&self) -> Result<Run, Failure> {
        let left_out: Vec<&str> = self.left_out().map(|(test, _)| test).collect();
        let rounds = match self.scope {
            Scope::Usual => vec![(ROUNDS.0, OsString::from(ROUNDS.1))],
            Scope::All => Vec::new(),
        };
        self.binary.run(&left_out, &rounds)
    }

    /// Each test that does not run, with the reason.
    fn left_out(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let reason = |test: &&String| match self.scope {
            Scope::Usual => LEFT_OUT.iter().find(|left_out| left_out.is(&self.binary, test)),
            Scope::All => None,
        };
        self.tests
            .iter()
            .filter_map(move |test| reason(&test).map(|left_out| (test.as_str(), left_out.reason)))
    }
}

impl LeftOut {
    fn is(&self, binary: &Binary, test: &str) -> bool {
        self.binary == binary.name && test.starts_with(self.tests)
    }
}

/// Fails if a line of the table means no test: it was renamed.
pub(super) fn check(selections: &[Selection]) -> Result<(), Failure> {
    let is_used = |left_out: &&LeftOut| {
        selections
            .iter()
            .any(|selection| selection.tests.iter().any(|test| left_out.is(&selection.binary, test)))
    };
    let unused: Vec<&LeftOut> = LEFT_OUT.iter().filter(|left_out| !is_used(left_out)).collect();
    for left_out in &unused {
        println!(
            "{}: no test begins with {}, which the usual suite leaves out",
            left_out.binary, left_out.tests
        );
    }
    if unused.is_empty() { Ok(()) } else { Err(Failure::Breaches { check: "left out", count: unused.len() }) }
}

/// Names each test that did not run, and the command that runs it.
pub(super) fn print(selections: &[Selection]) {
    let mut count = 0;
    for selection in selections {
        for (test, reason) in selection.left_out() {
            println!("left out: {} {test}: {reason}", selection.binary.name);
            count += 1;
        }
    }
    if count > 0 {
        let (variable, share) = ROUNDS;
        println!(
            "left out: {count} tests, and the rounds beyond {variable}={share}; `cargo xtask test --all` runs everything"
        );
    }
}
