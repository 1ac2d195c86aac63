//! A record as tables in Markdown.

use std::fs;
use std::path::Path;

use ferry_lab::statistics::{Summary, median, ratio};

use crate::Failure;
use crate::record::{Measured, Record, Run, Runs};

/// Runtime that the others are compared with.
const BASE: &str = "ferry-io";
/// Seed of the intervals.
const SEED: u64 = 1;

/// Markers of the part of a document that tables are written into.
const MARKERS: [&str; 2] =
    ["<!-- results: written by `ferry-compare table --into` -->\n", "<!-- end of results -->"];

/// Replaces the text between the markers of a document.
///
/// # Errors
/// If the document can't be read or written, or lacks the markers.
pub fn write_into(document: &Path, tables: &str) -> Result<(), Failure> {
    let text = fs::read_to_string(document)?;
    let replaced = text.split_once(MARKERS[0]).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(MARKERS[1])?;
        Some([before, MARKERS[0], tables, MARKERS[1], after].concat())
    });
    let replaced = replaced.ok_or_else(|| format!("'{}' lacks the markers", document.display()))?;
    Ok(fs::write(document, replaced)?)
}

/// Returns the conditions, a table of the medians, and a table for each work.
#[must_use]
pub fn text(record: &Record) -> String {
    let mut text = format!("{}\n{}", conditions(record), medians(&record.works));
    for work in &record.works {
        text.push('\n');
        text.push_str(&table(work));
    }
    text
}

fn conditions(record: &Record) -> String {
    let machine = &record.machine;
    let versions: Vec<String> =
        record.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let gibibytes = machine.memory.total_bytes >> 30;
    format!(
        "- kernel {}, {} of {} processors ({}), {gibibytes} GiB of memory\n- filesystem {} on {}\n- {}\n",
        machine.kernel,
        machine.processor.usable,
        machine.processor.count,
        machine.processor.model,
        machine.place.filesystem,
        machine.place.source,
        versions.join(", "),
    )
}

/// Returns the median of each runtime and work in milliseconds, with the fastest of each work in bold.
fn medians(works: &[Measured]) -> String {
    let heads: Vec<&str> = works.iter().map(|work| work.work.as_str()).collect();
    let mut text = format!("| median (ms) | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(works.len()));
    let runtimes = works.first().map_or(&[][..], |work| &work.runtimes);
    for runs in runtimes {
        let cells = works.iter().map(|work| cell(work, &runs.runtime));
        text.push_str(&format!("| {} | {} |\n", runs.runtime, cells.collect::<Vec<_>>().join(" | ")));
    }
    text
}

fn cell(work: &Measured, runtime: &str) -> String {
    let of = |runs: &Runs| median(&runs.runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
    let measured = || work.runtimes.iter().filter(|runs| !runs.runs.is_empty());
    let Some(runs) = measured().find(|runs| runs.runtime == runtime) else { return "-".to_owned() };
    let own = of(runs);
    let is_fastest = measured().all(|other| own <= of(other));
    let figure = milliseconds(own);
    if is_fastest { format!("**{figure}**") } else { figure }
}

/// Returns one work's table: medians, the spread, and the time relative to ferry-io's in the same rounds.
fn table(work: &Measured) -> String {
    // The averages of one minute, the first words.
    let [before, after] = work.load.each_ref().map(|load| load.split(' ').next().unwrap_or_default());
    let mut text =
        format!("**{}**: {}; load average {before} before, {after} after\n\n", work.work, work.what);
    text.push_str("| runtime | runs | median (ms) | quartiles (ms) | fastest-slowest (ms) | processor time (ms) | time / ferry-io's |\n");
    text.push_str("|---|---|---|---|---|---|---|\n");
    let base = work.runtimes.iter().find(|runs| runs.runtime == BASE);
    for runs in &work.runtimes {
        text.push_str(&row(runs, base));
    }
    text
}

fn row(runs: &Runs, base: Option<&Runs>) -> String {
    let seconds = |runs: &Runs| -> Vec<f64> { runs.runs.iter().map(|run| run.seconds).collect() };
    let mut line = format!("| {} | {} | ", runs.runtime, runs.runs.len());
    match Summary::of(&seconds(runs), SEED) {
        Some(summary) => {
            let processor: Vec<f64> = runs.runs.iter().map(|run: &Run| run.processor_seconds).collect();
            let pairs: Vec<(f64, f64)> =
                base.map(|base| seconds(base).into_iter().zip(seconds(runs)).collect()).unwrap_or_default();
            let compared = match ratio(&pairs, SEED) {
                Some(found) if runs.runtime != BASE => {
                    format!("{:.2} ({:.2}-{:.2})", found.middle, found.low, found.high)
                }
                Some(_) | None => "1".to_owned(),
            };
            let Summary { median: middle, p25, p75, min, max, .. } = summary;
            line.push_str(&format!(
                "{} | {}-{} | {}-{} | {} | {compared} |",
                milliseconds(middle.middle),
                milliseconds(p25),
                milliseconds(p75),
                milliseconds(min),
                milliseconds(max),
                milliseconds(median(&processor)),
            ));
        }
        None => line.push_str("- | - | - | - | - |"),
    }
    line.push('\n');
    if let Some(failure) = &runs.failure {
        let why = failure.replace(['|', '\n'], " ");
        line.push_str(&format!("| | | {} failed: {why} | | | | |\n", runs.runtime));
    }
    line
}

/// Three digits, as far as there are any behind the point.
fn milliseconds(seconds: f64) -> String {
    let figure = seconds * 1000.0;
    if figure < 10.0 {
        format!("{figure:.2}")
    } else if figure < 100.0 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runtime: &str, seconds: &[f64], failure: Option<&str>) -> Runs {
        let run = |&seconds: &f64| Run { seconds, processor_seconds: 2.0 * seconds, cache: None };
        let failure = failure.map(str::to_owned);
        Runs { runtime: runtime.to_owned(), runs: seconds.iter().map(run).collect(), failure }
    }

    #[test]
    fn a_table_has_medians_spread_and_ratios() {
        let runtimes = vec![
            runs("ferry-io", &[0.010, 0.020, 0.030], None),
            runs("other", &[0.005, 0.040, 0.060], None),
            runs("broken", &[], Some("no | ring")),
        ];
        let load = ["0.10 0.20", "0.30 0.20"].map(str::to_owned);
        let work = Measured { work: "small-warm".into(), what: "reads".into(), load, runtimes };
        let lines =
            ["| median (ms) | small-warm |", "|---|---|", "| ferry-io | **20.0** |", "| other | 40.0 |"];
        assert_eq!(medians(std::slice::from_ref(&work)), lines.join("\n") + "\n| broken | - |\n");
        let text = table(&work);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "**small-warm**: reads; load average 0.10 before, 0.30 after");
        assert_eq!(lines[4], "| ferry-io | 3 | 20.0 | 15.0-25.0 | 10.0-30.0 | 40.0 | 1 |");
        assert_eq!(lines[5], "| other | 3 | 40.0 | 22.5-50.0 | 5.00-60.0 | 80.0 | 2.00 (0.50-2.00) |");
        assert_eq!(
            lines[6..],
            ["| broken | 0 | - | - | - | - | - |", "| | | broken failed: no   ring | | | | |"]
        );
    }
}
