//! Results read from the lines that libtest prints.

/// Results of one or more test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) ignored: usize,
    /// Each line beginning with SKIP, after its test's name.
    pub(super) skips: Vec<String>,
    /// Each test that failed, and the message of its panic; empty if none was found.
    pub(super) failures: Vec<(String, String)>,
    /// Set if a binary failed without a test that did: it was killed, or never began.
    pub(super) has_broken_off: bool,
    /// The test whose output is being read.
    test: String,
    /// Set if the line before announced a panic: this one is its message.
    is_reason: bool,
}

/// Characters of a panic's message that are repeated at the end.
const REASON: usize = 400;

impl Tally {
    pub(super) fn take(&mut self, line: &str) {
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
            self.count(result);
        } else if let Some(header) = line.strip_prefix("---- ")
            && let Some(test) = header.strip_suffix(" stdout ----")
        {
            test.clone_into(&mut self.test);
        } else if line.starts_with("SKIP") {
            self.skips.push(format!("{}: {line}", self.test));
        } else if let Some((test, skip)) = line.split_once(" ... SKIP") {
            // Output past the runner's capture.
            self.skips.push(format!("{}: SKIP{skip}", test.trim_start_matches("test ")));
        }
    }

    /// Takes a closing line's figures: `ok. 3 passed; 0 failed; 1 ignored; ...`. The last line is the binary's own;
    /// tests may have printed others.
    fn count(&mut self, result: &str) {
        for figure in result.split([';', '.']) {
            let mut words = figure.split_whitespace();
            if let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<usize>), words.next()) {
                match what {
                    "passed" => self.passed = count,
                    "failed" => self.failed = count,
                    "ignored" => self.ignored = count,
                    _ => {}
                }
            }
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skips.extend(other.skips);
        self.failures.extend(other.failures);
        self.has_broken_off |= other.has_broken_off;
    }
}
