//! `ferry verify`: compares two trees, or a tree with a manifest, and reports the differences and a verdict.

mod described;
mod file;
mod findings;
mod listed;
mod options;
mod report;
mod verdict;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ferry_io::Cause;
use ferry_tree::compare::{self, Difference, Progress, Summary};
use ferry_tree::quote::Quoted;

use self::described::Described as _;
use self::findings::Findings;
pub(crate) use self::options::{MANUAL, OPTIONS, Request, Task, parse};
use self::report::Report;
use self::verdict::Totals;
use crate::output::lock;
use crate::progress::{Counts, Indicator};
use crate::signals;
use crate::units::counted;

pub(crate) fn run(request: Request) -> ExitCode {
    match request.task {
        Task::Trees(ref source, ref target) => {
            let by = |_: &Request, counters: &Progress, tell: &compare::Observer<'_>| {
                compare::trees(source, target, &request.options, counters, tell)
                    .map_err(|error| unread(&error))
            };
            let (code, signal) = compare(&request, by);
            signal.map_or(code, signals::end_by)
        }
        Task::Manifest(ref listed) => listed::check(listed, &request),
    }
}

/// Reports what a comparison finds. Returns the exit code, and the signal that has ended the comparison.
///
/// The comparison returns a message if a root can't be read.
pub(crate) fn compare(
    request: &Request,
    by: impl FnOnce(&Request, &Progress, &compare::Observer<'_>) -> Result<Summary, String>,
) -> (ExitCode, Option<i32>) {
    let Request { ref options, shown, progress, .. } = *request;
    let output = match file::opened(request) {
        Ok(output) => Arc::new(output),
        Err(code) => return (code, None),
    };
    let report = Report::new(shown, Arc::clone(&output));
    let counters = Arc::new(Progress::new());
    let counts = {
        let counters = Arc::clone(&counters);
        move || counts(&counters)
    };
    let start = Instant::now();
    let stop = Stop::on_signals(&counters);
    let indicator = Indicator::start(progress, counts, output);
    let tell = |difference: Difference| report.add(&difference);
    let compared = by(request, &counters, &tell);
    let took = indicator.stop().map(|_| start.elapsed());
    let totals = |summary| Totals { summary, trashes: None, content: options.content, took };
    let code = match compared {
        Ok(summary) => {
            if summary.shared > 0 {
                let what = counted(summary.shared, "entry is", "entries are");
                report.warn(&format!("{what} the same file on both sides, not a copy"));
            }
            report.end(&totals(summary))
        }
        Err(why) => report.end_unread(&why, totals(counters.so_far())),
    };
    (code, stop.and_then(Stop::end))
}

/// Compares two trees, and writes the lines of `--json`.
///
/// # Errors
/// A root that can't be read.
pub(crate) fn write_lines(
    (source, target): (&Path, &Path),
    options: &compare::Options,
    counters: &Progress,
    write: &Mutex<Box<dyn Write + Send>>,
) -> Result<Summary, String> {
    let findings = Mutex::new(Findings::default());
    let put = |line: &str| {
        // A line goes out in one piece. Its receiver is the program itself, which has no errors.
        lock(write).write_all(format!("{line}\n").as_bytes()).ok();
    };
    let tell = |difference: Difference| {
        lock(&findings).count(difference.kind());
        put(&report::difference(&difference));
    };
    let summary = compare::trees(source, target, options, counters, &tell).map_err(|error| unread(&error))?;
    let totals = Totals { summary, trashes: None, content: options.content, took: None };
    put(&report::last(&totals, &lock(&findings)));
    Ok(summary)
}

/// Returns the message about a root that can't be read, without the number of its errno.
pub(crate) fn unread(error: &ferry_tree::Error) -> String {
    let ferry_tree::Error { operation, path, errno } = error;
    format!("cannot {operation} {}: {}", Quoted(path), Cause::Errno(*errno))
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
