//! `ferry verify`: how two trees differ, a line a difference.

mod options;
mod report;

use std::process::ExitCode;
use std::sync::Arc;

use ferry_tree::compare::{self, Difference, Progress, Summary};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub(crate) use self::options::{MANUAL, OPTIONS, Request, parse};
use crate::output::Output;
use crate::progress::{Counts, Indicator};
use crate::units::{bytes, counted, time};

/// The trees are not the same, or can't be compared.
const DIFFERENT: ExitCode = ExitCode::FAILURE;

/// Compares, and tells each difference.
pub(crate) fn run(request: Request) -> ExitCode {
    let Request { source, target, options, json, progress } = request;
    let output = Arc::new(Output::new());
    let counters = Arc::new(Progress::new());
    let counts = {
        let counters = Arc::clone(&counters);
        move || counts(&counters)
    };
    let start = std::time::Instant::now();
    let stop = Stop::on_signals(&counters);
    let indicator = Indicator::start(progress, "compared", counts, Arc::clone(&output));
    let tell = |difference: Difference| {
        output.line(&if json { report::difference(&difference) } else { difference.to_string() });
    };
    let compared = compare::trees(&source, &target, &options, &counters, &tell);
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
        output.error(&format!("{}: warning: {what} one file on both sides, not a copy", MANUAL.name));
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
        return die_of(signal);
    }
    if summary.differences == 0 && !summary.stopped { ExitCode::SUCCESS } else { DIFFERENT }
}

/// Ends the comparison on SIGINT and SIGTERM, and remembers which it was.
struct Stop {
    handle: signal_hook::iterator::Handle,
    thread: std::thread::JoinHandle<Option<i32>>,
}

impl Stop {
    /// `None` if signals can't be caught: then they kill, as they usually do. Those that are ignored (nohup, a shell's
    /// background job) stay ignored.
    fn on_signals(counters: &Arc<Progress>) -> Option<Self> {
        let heeded = [SIGINT, SIGTERM].into_iter().filter(|&signal| !ferry_io::is_ignored(signal));
        let mut signals = Signals::new(heeded).ok()?;
        let handle = signals.handle();
        let counters = Arc::clone(counters);
        let listen = move || {
            let mut first = None;
            for signal in signals.forever() {
                if first.is_some() {
                    // Who asks twice does not want to wait.
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

    /// Stops listening; the signal that came, if any.
    fn end(self) -> Option<i32> {
        self.handle.close();
        self.thread.join().ok().flatten()
    }
}

/// Ends the process by a signal, so that a shell's loop around it ends too.
fn die_of(signal: i32) -> ExitCode {
    signal_hook::low_level::emulate_default_handler(signal).ok();
    u8::try_from(128 + signal).map_or(DIFFERENT, ExitCode::from)
}

fn counts(progress: &Progress) -> Counts {
    let Summary { entries, bytes, .. } = progress.so_far();
    Counts { entries, bytes, found: None }
}
