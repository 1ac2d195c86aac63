//! Runs the test suite: the checks that need no build, all test binaries side by side, the documents' commands.
//!
//! By default, the tests and rounds of [`left_out`] stay out, so that it ends within five minutes on two processors
//! once everything is built; the end of the output names them. A test that lacks a program or a kernel feature prints a
//! line that begins with `SKIP` and passes. Such lines are found in the output, and fail the suite if the environment
//! has `CI=true`.

mod acceptance;
mod binaries;
mod left_out;
mod tally;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::env;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::failure::Failure;
use crate::{architecture, documents, gnu_cp, guards, imports, tools, workspace};
pub(crate) use acceptance::run as acceptance;
use binaries::{Binary, Run};
pub(crate) use left_out::Scope;
use left_out::Selection;
use tally::Tally;

/// Test binaries that run at the same time, because each waits for the disk or for a process of its own now and then.
const AT_ONCE: usize = 2;

/// Runs all parts, even if one fails.
pub(crate) fn run(root: &Path, scope: Scope) -> Result<(), Failure> {
    let is_ci = env::var("CI").is_ok_and(|value| value == "true");
    tools::install(scope != Scope::Usual);
    if let Err(failure) = gnu_cp::run(root) {
        println!("no GNU cp to compare with: {failure}");
    }
    let binaries = binaries::build(root)?;
    let programs = workspace::target(root).join("debug");
    let start = Instant::now();
    let parts = [
        imports::check(root),
        guards::check(root),
        architecture::check(root),
        documents::check_with(root, &programs, scope != Scope::Usual),
        run_tests(binaries, scope, is_ci),
        if scope == Scope::Usual { Ok(()) } else { binaries::run_examples(root) },
    ];
    let mut count = 0;
    for failure in parts.into_iter().filter_map(Result::err) {
        eprintln!("xtask: {failure}");
        count += 1;
    }
    println!("{} s after the build", start.elapsed().as_secs());
    if count == 0 { Ok(()) } else { Err(Failure::Parts { count }) }
}

/// Runs the binaries, then prints the tests that were skipped, failed or left out.
fn run_tests(binaries: Vec<Binary>, scope: Scope, is_ci: bool) -> Result<(), Failure> {
    let mut tests = Vec::new();
    for binary in &binaries {
        tests.push((binary.name.clone(), binary.tests()?));
    }
    left_out::check(&tests)?;
    let selections =
        binaries.into_iter().zip(tests).map(|(binary, (_, tests))| Selection::new(binary, tests, scope));
    let mut selections: Vec<Selection> =
        selections.flat_map(Selection::parts).filter(|selection| !selection.is_empty()).collect();
    // The longest first, so that the others run beside it.
    selections.sort_by_key(|selection| Reverse(selection.len()));
    let (alone, beside): (Vec<_>, Vec<_>) = selections.iter().partition(|selection| selection.runs_alone());
    let mut tally = Tally::default();
    for (selections, at_once) in [(beside, AT_ONCE), (alone, 1)] {
        tally.add(run_side_by_side(selections, at_once)?);
    }
    for skip in &tally.skips {
        println!("{skip}");
    }
    for (test, reason) in &tally.failures {
        println!("{test}: FAILED: {reason}");
    }
    left_out::print(&selections);
    let Tally { passed, failed, ignored, skips, .. } = &tally;
    println!("{passed} passed, {failed} failed, {ignored} ignored, {} said SKIP", skips.len());
    verdict(&tally, is_ci)
}

/// Runs binaries, up to `at_once` at a time, in this order.
fn run_side_by_side(selections: Vec<&Selection>, at_once: usize) -> Result<Tally, Failure> {
    let waiting = Mutex::new(VecDeque::from(selections));
    // The lock is given back before the binary runs.
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
    let worker = || -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        while let Some(selection) = next() {
            tally.add(report(&selection.run()?));
        }
        Ok(tally)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
        let mut tally = Tally::default();
        for worker in workers {
            match worker.join() {
                Ok(found) => tally.add(found?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(tally)
    })
}

/// Prints one line for a binary that passed, and the output of one that failed, without the tests that passed.
fn report(run: &Run) -> Tally {
    let mut tally = Tally::default();
    for line in run.output.lines() {
        tally.take(line.trim());
    }
    for test in tally.failures.iter_mut().map(|(test, _)| test).chain(&mut tally.skips) {
        *test = format!("{} {test}", run.name);
    }
    if run.is_success {
        // Lines of another suite, which a test has printed.
        tally.failures.clear();
    } else {
        run.output.lines().filter(|line| !line.ends_with(" ... ok")).for_each(|line| println!("{line}"));
        tally.has_broken_off |= tally.failed == 0;
    }
    let verdict = if run.is_success { "ok" } else { "FAILED" };
    let seconds = run.duration.as_secs_f64();
    println!("{}: {verdict}; {} passed, {} failed in {seconds:.1} s", run.name, tally.passed, tally.failed);
    tally
}

/// Returns the suite's result.
fn verdict(tally: &Tally, is_ci: bool) -> Result<(), Failure> {
    if tally.failed > 0 || tally.has_broken_off {
        Err(Failure::Tests { count: tally.failed.max(1) })
    } else if tally.passed == 0 {
        Err(Failure::NoTests)
    } else if is_ci && !tally.skips.is_empty() {
        Err(Failure::Skips { count: tally.skips.len() })
    } else if is_ci && tally.ignored > 0 {
        Err(Failure::Ignored { count: tally.ignored })
    } else {
        Ok(())
    }
}
