//! Progress of an experiment, and the format of its result.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ferry_lab::experiment::Experiment;
use ferry_lab::export;
use ferry_lab::record::Record;
use ferry_lab::schedule::Progress;
use ferry_lab::session::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::layout::wrapped;
use crate::output::{Output, columns, lock};
use crate::units::{clock, count};

/// Least and most columns of a result.
const NARROWEST: usize = 40;
const WIDEST: usize = 120;
/// Time between lines if there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResultFormat {
    /// Tables and sentences for a terminal.
    #[default]
    Text,
    Markdown,
    /// One line per run.
    Csv,
}

impl ResultFormat {
    pub(crate) fn text(self, experiment: &dyn Experiment, record: &Record) -> String {
        match self {
            Self::Markdown => export::markdown(experiment, record),
            Self::Csv => export::csv(record),
            Self::Text => export::text(experiment, record, width()),
        }
    }
}

/// Returns the number of columns for tables. Sentences are hard to read in longer lines, and figures in shorter ones.
fn width() -> usize {
    columns().clamp(NARROWEST, WIDEST)
}

/// Progress on standard error: an updated line on a terminal, otherwise one line every ten seconds.
pub(crate) struct ProgressLine<'o> {
    output: &'o Output,
    bar: Option<ProgressBar>,
    last: Mutex<Option<Instant>>,
}

impl<'o> ProgressLine<'o> {
    pub(crate) fn new(output: &'o Output) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        output.show(bar.clone());
        Self { output, bar, last: Mutex::new(None) }
    }

    pub(crate) fn end(self) {
        self.output.show(None);
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for ProgressLine<'_> {
    fn progress(&self, progress: &Progress) {
        let line = line(progress);
        if let Some(bar) = &self.bar {
            // Drawn here, because a drawing thread would be measured too.
            bar.set_message(line);
            bar.tick();
            return;
        }
        let mut last = lock(&self.last);
        let now = Instant::now();
        if last.is_none_or(|last| now - last >= LINE_PERIOD) {
            *last = Some(now);
            self.output.error(&line);
        }
    }

    fn note(&self, line: &str) {
        // A pipe gets each note as one line.
        match self.output.screen() {
            Some(screen) => self.output.error(&wrapped("", line, 2, screen.columns)),
            None => self.output.error(line),
        }
    }
}

/// Formats `12 of 140 runs, 0:20 elapsed, about 3:12 left: small/cold/cp`.
fn line(progress: &Progress) -> String {
    let Progress { what, taken, planned, elapsed, left } = progress;
    let left = left.map(|left| format!(", about {} left", clock(left))).unwrap_or_default();
    format!("{} of {} runs, {} elapsed{left}: {what}", count(*taken), count(*planned), clock(*elapsed))
}
