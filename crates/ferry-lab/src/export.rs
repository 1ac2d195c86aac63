//! Exports a record as text, Markdown, CSV, or JSON for current-bench.

mod conditions;
mod markdown;
mod text;
mod told;

use serde_json::{Value, json};

pub use self::markdown::markdown;
pub use self::text::text;
use crate::record::Record;
use crate::statistics::median;

#[cfg(test)]
mod tests;

/// One line for each run: cell, parameters, round, start time, and the exact figure of each measure.
#[must_use]
pub fn csv(record: &Record) -> String {
    let mut parameters: Vec<&String> = record.cells.iter().flat_map(|cell| cell.parameters.keys()).collect();
    parameters.sort();
    parameters.dedup();
    let mut header = vec!["experiment".to_owned(), "cell".to_owned()];
    header.extend(parameters.iter().map(|name| (*name).clone()));
    header.extend(["cache", "cache_proved", "round", "started"].map(str::to_owned));
    header.extend(record.measures.iter().map(|measure| measure.name.clone()));
    let mut out = csv_line(&header);
    for cell in &record.cells {
        for run in &cell.runs {
            let mut fields = vec![record.experiment.clone(), cell.name.clone()];
            fields.extend(parameters.iter().map(|name| cell.text(name)));
            let proved = run.proof.as_ref().map(|proof| if proof.holds { "yes" } else { "no" });
            fields.extend([cell.cache.name(), proved.unwrap_or_default()].map(str::to_owned));
            fields.extend([run.round.to_string(), run.started.clone()]);
            let figure = |name: &String| run.figures.get(name).map(f64::to_string).unwrap_or_default();
            fields.extend(record.measures.iter().map(|measure| figure(&measure.name)));
            out += &csv_line(&fields);
        }
    }
    out
}

/// RFC 4180, but with line feeds only.
fn csv_line(fields: &[String]) -> String {
    let quoted = |field: &String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    };
    fields.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

/// The format that current-bench reads and in which document 003 prints its results. Each cell is a result, each
/// measure a metric; its value is the median.
#[must_use]
pub fn current_bench(record: &Record) -> Value {
    let result = |cell: &crate::record::Cell| {
        let metrics: Vec<Value> = record
            .measures
            .iter()
            .filter_map(|measure| {
                let figures = cell.figures(&measure.name);
                (!figures.is_empty()).then(|| {
                    json!({
                        "name": measure.name,
                        "value": median(&figures),
                        "units": units(&measure.unit),
                        "description": format!("{}: {}", cell.name, measure.about),
                    })
                })
            })
            .collect();
        json!({ "name": cell.name, "metrics": metrics })
    };
    json!({
        "config": {
            "uname": record.machine.kernel_version,
            "backend": "linux",
            "recommended_domain_count": record.machine.processor.usable,
        },
        "results": record.cells.iter().filter(|cell| !cell.runs.is_empty()).map(result).collect::<Vec<_>>(),
    })
}

fn units(unit: &str) -> &str {
    match unit {
        "B/s" => "bytes/s",
        "B" => "bytes",
        "1/s" => "per second",
        other => other,
    }
}
