//! `ferry verify`: how two trees differ, a line a difference.

mod options;
mod report;

use std::process::ExitCode;
use std::sync::Arc;

use ferry_tree::compare::{self, Difference, Progress, Summary};

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
    if json {
        output.line(&report::summary(&summary));
    } else if shown || summary.differences > 0 {
        let took = time(start.elapsed());
        let what = counted(summary.entries, "entry", "entries");
        let differences = counted(summary.differences, "difference", "differences");
        output.error(&format!("compared {what}, {} in {took}: {differences}", bytes(summary.bytes)));
    }
    if let Err(error) = output.finish() {
        output.error(&format!("{}: write error: {error}", MANUAL.name));
        return DIFFERENT;
    }
    if summary.differences == 0 { ExitCode::SUCCESS } else { DIFFERENT }
}

fn counts(progress: &Progress) -> Counts {
    let Summary { entries, bytes, .. } = progress.so_far();
    Counts { entries, bytes, found: None }
}
