//! Tests that the usual suite leaves out because they take long, and the rounds that it cuts.

use std::env;

use super::binaries::{Binary, Run};
use crate::failure::Failure;

/// The choice of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything once, without the tests that take long.
    Usual,
    All,
    /// The tests that the usual suite leaves out.
    Rest,
}

/// Tests that only the whole suite runs.
struct LeftOut {
    binary: &'static str,
    /// Path of a test, or the common prefix of several tests' paths.
    tests: &'static str,
    reason: &'static str,
}

const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        binary: "ferry it",
        tests: "lab::trees_that_were_not_begun_yet_keep_their_levels_when_it_is_resumed",
        reason: "copies thousands of files again and again",
    },
    LeftOut {
        binary: "ferry it",
        tests: "lab::a_tree_that_has_levels_less_keeps_them_when_it_is_resumed",
        reason: "measures large trees",
    },
    LeftOut {
        binary: "ferry it",
        tests: "lab_cache::a_quick_run_makes_a_record",
        reason: "runs an experiment; other tests run smaller ones",
    },
    LeftOut {
        binary: "ferry it",
        tests: "lab_disk::a_quick_run_makes_a_record",
        reason: "runs an experiment; other tests run smaller ones",
    },
    LeftOut { binary: "ferry it", tests: "lab_interrupted::", reason: "interrupts each experiment" },
    LeftOut {
        binary: "ferry it",
        tests: "lab_refusals::a_missing_peer_is_named",
        reason: "runs each experiment without a program",
    },
    LeftOut {
        binary: "ferry it",
        tests: "lab_refusals::without_",
        reason: "runs each experiment without io_uring or root",
    },
    LeftOut {
        binary: "ferry it",
        tests: "lab_rings_and_writes::rings_are_measured_quickly",
        reason: "runs an experiment; other tests run smaller ones",
    },
    LeftOut {
        binary: "ferry it",
        tests: "lab_strategies::a_quick_run_makes_a_record",
        reason: "runs an experiment; other tests run smaller ones",
    },
    LeftOut {
        binary: "ferry it",
        tests: "traced::what_the_lab_runs_is_recorded_under_numbers",
        reason: "runs experiments",
    },
    LeftOut {
        binary: "ferry it",
        tests: "report::a_browser_",
        reason: "shows every experiment in a browser",
    },
    LeftOut {
        binary: "ferry it",
        tests: "tune::a_quick_one_finds_all_and_leaves_nothing",
        reason: "measures for 20 seconds",
    },
    LeftOut {
        binary: "ferry it",
        tests: "tune::ext4_is_measured",
        reason: "measures for 20 seconds; tmpfs is measured",
    },
    LeftOut {
        binary: "ferry it",
        tests: "tune::xfs_is_measured",
        reason: "measures for 20 seconds; tmpfs is measured",
    },
    LeftOut {
        binary: "ferry it",
        tests: "tune::btrfs_is_measured",
        reason: "measures for 20 seconds; tmpfs is measured",
    },
    LeftOut {
        binary: "ferry it",
        tests: "profiles::a_check_compares_copies_and_leaves_nothing",
        reason: "measures for 30 seconds",
    },
    LeftOut {
        binary: "ferry it",
        tests: "killed::an_atomic_copy_may_be_killed_at_each_of_its_calls",
        reason: "kills a copy at each call; the other tests kill it at some",
    },
    LeftOut {
        binary: "ferry it",
        tests: "window::a_copy_that_is_killed_at_any_call_leaves_nothing_too_open",
        reason: "kills copies at each call; another test watches copies that are not killed",
    },
    LeftOut {
        binary: "ferry it",
        tests: "options::long_options_may_be_shortened",
        reason: "runs GNU cp with each beginning of each option",
    },
    LeftOut {
        binary: "ferry it",
        tests: "progress::all_work_is_known_",
        reason: "copies slowly for ten seconds",
    },
    LeftOut {
        binary: "ferry it",
        tests: "sync::resumed::a_part_is_locked_",
        reason: "delays calls for seconds",
    },
    LeftOut {
        binary: "ferry it",
        tests: "sync::resumed::a_run_that_verifies_",
        reason: "copies slowly; two other tests interrupt runs",
    },
    LeftOut {
        binary: "ferry it",
        tests: "sync::resumed::foreign_",
        reason: "copies slowly; two other tests interrupt runs",
    },
    LeftOut {
        binary: "ferry it",
        tests: "sync::resumed::parts_",
        reason: "copies slowly; two other tests interrupt runs",
    },
    LeftOut {
        binary: "ferry it",
        tests: "sync::resumed::two_runs_",
        reason: "copies slowly; two other tests interrupt runs",
    },
    LeftOut {
        binary: "ferry it",
        tests: "sync::resumed::what_is_not_sound_",
        reason: "copies slowly; two other tests interrupt runs",
    },
    LeftOut { binary: "ferry it", tests: "memory::", reason: "copies 576 MiB in little memory" },
    LeftOut { binary: "ferry it", tests: "stress::", reason: "makes trees of tens of thousands of entries" },
    LeftOut {
        binary: "ferry-trace it",
        tests: "page::a_million_",
        reason: "draws a million operations in a browser",
    },
    LeftOut {
        binary: "ferry-trace it",
        tests: "page::scopes_nested_beyond_reason_are_drawn",
        reason: "draws thousands of rows in a browser",
    },
    LeftOut {
        binary: "ferry-trace lib",
        tests: "export::svg::tests::the_picture_of_a_million_operations_is_small",
        reason: "draws a million operations",
    },
    LeftOut {
        binary: "ferry-trace lib",
        tests: "timeline::tests::what_a_cell_holds_is_what_going_through_everything_finds",
        reason: "compares every cell with a full search",
    },
    LeftOut {
        binary: "ferry-io it",
        tests: "folders::a_large_folder_is_listed_whole_and_each_name_once",
        reason: "makes 5,000 entries for each seed; others list smaller folders",
    },
    LeftOut {
        binary: "xtask main",
        tests: "deb::tests::a_cp_",
        reason: "packs and installs a Debian package",
    },
    LeftOut {
        binary: "xtask main",
        tests: "deb::tests::the_",
        reason: "packs and installs a Debian package",
    },
];

/// Binaries that run alone: one changes something for the whole machine, the others judge times and the page cache, which
/// tests of `ferry it` drop.
const ALONE: &[&str] = &[
    "ferry switched_off",
    "ferry-direct it",
    "ferry-io it",
    "ferry-io lib",
    "ferry-lab lib",
    "ferry-trace it",
];

/// Variable that multiplies the number of seeds and rounds, and its value in the usual suite. A value in the
/// environment takes precedence.
const ROUNDS: (&str, &str) = ("FERRY_SEEDS", "1/8");

/// Binaries with fewer rounds in the usual suite; the rounds of the others take seconds.
const SCALED: &[&str] = &["ferry it", "ferry-direct it"];

/// Fewest tests of a part of a binary, but for the last part.
const PART: usize = 80;

/// A binary, and tests of it that run.
pub(super) struct Selection {
    binary: Binary,
    running: Vec<String>,
    left_out: Vec<(String, &'static str)>,
    /// The environment of its tests.
    variables: Vec<(&'static str, &'static str)>,
}

impl Selection {
    pub(super) fn new(binary: Binary, tests: Vec<String>, scope: Scope) -> Self {
        let reason =
            |test: &str| LEFT_OUT.iter().find(|line| line.is(&binary.name, test)).map(|line| line.reason);
        let (rare, usual): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| reason(test).is_some());
        let (running, left_out) = match scope {
            Scope::Usual => {
                let reasons = rare.into_iter().filter_map(|test| Some((reason(&test)?, test)));
                (usual, reasons.map(|(reason, test)| (test, reason)).collect())
            }
            Scope::Rest => (rare, Vec::new()),
            Scope::All => ([usual, rare].concat(), Vec::new()),
        };
        let is_scaled = scope == Scope::Usual
            && SCALED.contains(&binary.name.as_str())
            && env::var_os(ROUNDS.0).is_none();
        let variables = if is_scaled { vec![ROUNDS] } else { Vec::new() };
        Self { binary, running, left_out, variables }
    }

    pub(super) fn runs_alone(&self) -> bool {
        ALONE.contains(&self.binary.name.as_str())
    }

    /// Splits it into parts of about [`PART`] tests, which run in processes of their own side by side. So a lock may be shared only
    /// by the tests of one module, which stay together.
    pub(super) fn parts(self) -> Vec<Self> {
        if self.runs_alone() {
            return vec![self];
        }
        let Self { binary, running, mut left_out, variables } = self;
        let module = |test: &str| test.rsplit_once("::").map_or("", |(module, _)| module).to_owned();
        let mut parts: Vec<Vec<String>> = Vec::new();
        for test in running {
            match parts.last_mut() {
                Some(part)
                    if part.len() < PART || part.last().map(|last| module(last)) == Some(module(&test)) =>
                {
                    part.push(test);
                }
                Some(_) | None => parts.push(vec![test]),
            }
        }
        let part = |running| Self {
            binary: binary.clone(),
            running,
            left_out: std::mem::take(&mut left_out),
            variables: variables.clone(),
        };
        parts.into_iter().map(part).collect()
    }

    /// Returns the number of tests that run.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn run(&self) -> Result<Run, Failure> {
        let first = self.running.first().map_or("", String::as_str);
        println!("{}: {} tests from {first}", self.binary.name, self.running.len());
        self.binary.run(&self.running, &self.variables)
    }
}

impl LeftOut {
    fn is(&self, binary: &str, test: &str) -> bool {
        self.binary == binary && test.starts_with(self.tests)
    }
}

/// Fails if a line of the table applies to no test, because it was renamed. Takes binaries with the names of their
/// tests.
pub(super) fn check(tests: &[(String, Vec<String>)]) -> Result<(), Failure> {
    let stale: Vec<&LeftOut> = stale(LEFT_OUT, tests).collect();
    for left_out in &stale {
        println!("{}: the usual suite leaves out {}, but no test begins so", left_out.binary, left_out.tests);
    }
    if stale.is_empty() { Ok(()) } else { Err(Failure::Breaches { check: "left out", count: stale.len() }) }
}

fn stale<'a>(table: &'a [LeftOut], tests: &[(String, Vec<String>)]) -> impl Iterator<Item = &'a LeftOut> {
    let is_used = |left_out: &LeftOut| {
        tests.iter().any(|(binary, tests)| tests.iter().any(|test| left_out.is(binary, test)))
    };
    table.iter().filter(move |left_out| !is_used(left_out))
}

/// Names each test that did not run, and the command that runs it.
pub(super) fn print(selections: &[Selection]) {
    let mut count = 0;
    for selection in selections {
        for (test, reason) in &selection.left_out {
            println!("left out: {} {test}: {reason}", selection.binary.name);
            count += 1;
        }
    }
    if count > 0 {
        let (variable, share) = ROUNDS;
        println!(
            "left out: {count} tests, examples in documentation, and rounds beyond {variable}={share}; `cargo xtask test --all` runs everything"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::binaries::Binary;
    use super::{ALONE, LEFT_OUT, LeftOut, PART, Scope, Selection, stale};

    #[test]
    fn tests_of_the_table_run_only_with_all() {
        let Some(left_out) = LEFT_OUT.first() else { return };
        let tests = || vec![format!("{}::one", left_out.tests), "another".to_owned()];
        let selection = |scope| {
            let binary =
                Binary { name: left_out.binary.to_owned(), program: PathBuf::new(), folder: PathBuf::new() };
            Selection::new(binary, tests(), scope)
        };
        let usual = selection(Scope::Usual);
        assert_eq!((usual.running.len(), usual.left_out), (1, vec![(tests()[0].clone(), left_out.reason)]));
        let all = selection(Scope::All);
        assert_eq!((all.running.len(), all.left_out.len(), all.variables.len()), (2, 0, 0));
        assert_eq!(selection(Scope::Rest).running, tests()[..1]);
    }

    #[test]
    fn parts_have_all_tests_and_keep_modules_together() {
        let tests: Vec<String> =
            (0..500).map(|index| format!("module_{}::test_{index}", index / 7)).collect();
        let binary =
            |name: &str| Binary { name: name.to_owned(), program: PathBuf::new(), folder: PathBuf::new() };
        let split = |name| Selection::new(binary(name), tests.clone(), Scope::All).parts();
        let parts = split("some it");
        let running: Vec<&[String]> = parts.iter().map(|part| &part.running[..]).collect();
        assert_eq!(running.concat(), tests);
        assert!(running.len() > 4 && running.iter().all(|part| part.len() < PART + 7), "{}", running.len());
        let module = |test: &String| test.split_once("::").unwrap().0.to_owned();
        assert!(running.windows(2).all(|two| module(&two[0][two[0].len() - 1]) != module(&two[1][0])));
        assert_eq!(split(ALONE[0]).len(), 1);
    }

    #[test]
    fn a_line_for_tests_that_were_renamed_is_found() {
        let line = |tests| LeftOut { binary: "ferry it", tests, reason: "slow" };
        let table = [line("lab::a"), line("lab::b"), line("lost")];
        let known = [
            ("ferry it".to_owned(), vec!["lab::a_first".to_owned()]),
            ("other".to_owned(), vec!["lost".to_owned()]),
        ];
        let found: Vec<&str> = stale(&table, &known).map(|left_out| left_out.tests).collect();
        assert_eq!(found, ["lab::b", "lost"]);
    }
}
