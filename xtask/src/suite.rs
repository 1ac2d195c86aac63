//! Everything that must hold: the import rules, the guards, the documents' commands, and all tests.
//!
//! The tests come last, so that the runner's own closing lines end the output. A test that lacks
//! something prints a line beginning with `SKIP` and returns; such lines are found in what the tests
//! printed, and fail the suite where the environment says `CI=true`.

#[cfg(test)]
mod tests;

use std::env;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::path::Path;

use crate::failure::Failure;
use crate::{documents, guards, imports, workspace};

/// What the tests' output said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Closing lines: one a test binary, one a crate's documentation.
    runs: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Each line beginning with SKIP, after its test's name.
    skips: Vec<String>,
    /// Each test that failed, and what its thread said when it panicked; empty if nothing was found.
    failures: Vec<(String, String)>,
    /// The test whose output is being shown.
    test: String,
    /// Whether the line before said that a thread panicked: this one says why.
    is_reason: bool,
}

/// Characters of a failed test's reason that are repeated at the end.
const REASON: usize = 400;

/// Runs all parts, even if one fails.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let is_ci = env::var("CI").is_ok_and(|value| value == "true");
    let parts = [imports::check(root), guards::check(root), documents::check(root), run_tests(root, is_ci)];
    let mut count = 0;
    for failure in parts.into_iter().filter_map(Result::err) {
        eprintln!("xtask: {failure}");
        count += 1;
    }
    if count == 0 { Ok(()) } else { Err(Failure::Parts { count }) }
}

/// Passes everything that Cargo and the tests print through, then says what was skipped.
fn run_tests(root: &Path, is_ci: bool) -> Result<(), Failure> {
    const NAME: &str = "cargo test --workspace";
    let (reader, writer) = io::pipe().map_err(Failure::start(NAME))?;
    let mut command = workspace::cargo(root);
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--", "--show-output"]);
    command.stdout(writer.try_clone().map_err(Failure::start(NAME))?).stderr(writer);
    let mut child = command.spawn().map_err(Failure::start(NAME))?;
    // The command holds the pipe's other end open: without this, the output would never end.
    drop(command);
    let tally = pass_through(reader).map_err(Failure::start(NAME))?;
    let status = child.wait().map_err(Failure::start(NAME))?;
    for skip in &tally.skips {
        println!("{skip}");
    }
    for (test, reason) in &tally.failures {
        println!("{test}: FAILED: {reason}");
    }
    let Tally { runs, passed, failed, ignored, skips, .. } = &tally;
    let skipped = skips.len();
    println!("{passed} passed, {failed} failed, {ignored} ignored, {skipped} said SKIP, in {runs} runs");
    if status.success() { verdict(&tally, is_ci) } else { Err(Failure::Command { command: NAME }) }
}

fn pass_through(reader: PipeReader) -> io::Result<Tally> {
    let mut reader = BufReader::new(reader);
    let mut tally = Tally::default();
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        tally.take(String::from_utf8_lossy(&line).trim());
        line.clear();
    }
    Ok(tally)
}

/// What a successful `cargo test` is worth.
fn verdict(tally: &Tally, is_ci: bool) -> Result<(), Failure> {
    if tally.passed == 0 {
        Err(Failure::NoTests)
    } else if is_ci && !tally.skips.is_empty() {
        Err(Failure::Skips { count: tally.skips.len() })
    } else if is_ci && tally.ignored > 0 {
        Err(Failure::Ignored { count: tally.ignored })
    } else {
        Ok(())
    }
}

impl Tally {
    /// Reads one line of output.
    fn take(&mut self, line: &str) {
        if std::mem::take(&mut self.is_reason) {
            let reason = line.chars().take(REASON).collect();
            if let Some((_, known)) = self.failures.iter_mut().rfind(|(test, _)| *test == self.test) {
                *known = reason;
            }
        } else if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.is_reason = true;
        } else if let Some(test) = line.strip_suffix(" ... FAILED") {
            self.failures.push((test.trim_start_matches("test ").to_owned(), String::new()));
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.runs += 1;
            self.add(result);
        } else if let Some(header) = line.strip_prefix("---- ")
            && let Some(test) = header.strip_suffix(" stdout ----")
        {
            test.clone_into(&mut self.test);
        } else if line.starts_with("SKIP") {
            self.skips.push(format!("{}: {line}", self.test));
        } else if let Some((test, skip)) = line.split_once(" ... SKIP") {
            // Output that went around the runner's capture, with one test at a time.
            self.skips.push(format!("{test}: SKIP{skip}"));
        } else if line.starts_with("Running ") || line.starts_with("Doc-tests ") {
            line.clone_into(&mut self.test);
        }
    }

    /// Adds a closing line's figures: `ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, result: &str) {
        for figure in result.split([';', '.']) {
            let mut words = figure.split_whitespace();
            if let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<usize>), words.next()) {
                match what {
                    "passed" => self.passed += count,
                    "failed" => self.failed += count,
                    "ignored" => self.ignored += count,
                    _ => {}
                }
            }
        }
    }
}
