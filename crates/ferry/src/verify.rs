//! `ferry verify`: reports the differences between two trees, one per line.

mod listed;
mod options;
mod report;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ferry_tree::compare::{self, Difference, Progress, Summary};

use self::options::Task;
pub(crate) use self::options::{MANUAL, OPTIONS, Request, parse};
use crate::output::Output;
use crate::progress::{Counts, Indicator};
use crate::signals;
use crate::units::{bytes, counted, time};

const DIFFERENT: ExitCode = ExitCode::FAILURE;

pub(crate) fn run(request: Request) -> ExitCode {
    match request.task {
        Task::Trees(ref source, ref target) => compare(source, target, &request),
        Task::Manifest(ref listed) => listed::check(listed, &request),
    }
}

fn compare(source: &Path, target: &Path, request: &Request) -> ExitCode {
    let Request { ref options, json, progress, .. } = *request;
    let output = Arc::new(Output::new());
    let counters = Arc::new(Progress::new());
    let counts = {
        let counters = Arc::clone(&counters);
        move || counts(&counters)
    };
    let start = std::time::Instant::now();
    let stop = Stop::on_signals(&counters);
    let indicator = Indicator::start(progress, counts, Arc::clone(&output));
    let tell = |difference: Difference| {
        output.line(&if json { report::difference(&difference) } else { difference.to_string() });
    };
    let compared = compare::trees(source, target, options, &counters, &tell);
    let shown = indicator.stop();
    let summary = match compared {
        Ok(summary) => summary,
        Err(error) => {
            output.error(&format!("{}: {error}", MANUAL.name));
            return DIFFERENT;
        }
    };
    if summary.shared > 0 {
        let what = counted(summary.shared, "entry is", "entries are");
        output.error(&format!("{}: warning: {what} the same file on both sides, not a copy", MANUAL.name));
    }
    if json {
        output.line(&report::summary(&summary));
    } else if shown || summary.differences > 0 || summary.stopped {
        let took = time(start.elapsed());
        let begin = if summary.stopped { "interrupted: " } else { "" };
        let what = counted(summary.entries, "entry", "entries");
        let differences = counted(summary.differences, "difference", "differences");
        output.error(&format!("{begin}compared {what}, {} in {took}: {differences}", bytes(summary.bytes)));
    }
    if let Err(error) = output.finish() {
        output.error(&format!("{}: write error: {error}", MANUAL.name));
        return DIFFERENT;
    }
    if let Some(signal) = stop.and_then(Stop::end) {
        return signals::end_by(signal);
    }
    if summary.differences == 0 && !summary.stopped { ExitCode::SUCCESS } else { DIFFERENT }
}

/// Stops the comparison on SIGINT or SIGTERM, and remembers the signal.
struct Stop {
    handle: signal_hook::iterator::Handle,
    thread: std::thread::JoinHandle<Option<i32>>,
}

impl Stop {
    /// Returns `None` if signals can't be caught; they kill the process then. Ignored signals (nohup,
    /// background jobs) stay ignored.
    fn on_signals(counters: &Arc<Progress>) -> Option<Self> {
        let mut signals = signals::catch().ok()?;
        let handle = signals.handle();
        let counters = Arc::clone(counters);
        let listen = move || {
            let mut first = None;
            for signal in signals.forever() {
                if first.is_some() {
                    // A second signal ends the process at once.
                    signal_hook::low_level::emulate_default_handler(signal).ok();
                }
                first = Some(signal);
                counters.stop();
            }
            first
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(listen).ok()?;
        Some(Self { handle, thread })
    }

    /// Stops listening, and returns the signal received, if any.
    fn end(self) -> Option<i32> {
        self.handle.close();
        self.thread.join().ok().flatten()
    }
}

fn counts(progress: &Progress) -> Counts {
    let Summary { entries, bytes, .. } = progress.so_far();
    Counts { entries, bytes, ..Counts::default() }
}
