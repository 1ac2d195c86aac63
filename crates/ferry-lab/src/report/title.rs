//! Titles of records, and the parameters that distinguish several records of one experiment.

use std::path::Path;

use super::source::Source;
use crate::record::Value;
use crate::settings::ParameterKind;
use crate::units::size;

/// The title of each record: its experiment, and with several of an experiment its file's name.
pub(super) fn all(sources: &[Source]) -> Vec<String> {
    sources.iter().enumerate().map(|(index, source)| one(sources, index, source)).collect()
}

fn one(sources: &[Source], index: usize, source: &Source) -> String {
    let experiment = &source.record.experiment;
    let of_it = || sources.iter().enumerate().filter(|(_, other)| other.record.experiment == *experiment);
    let count = of_it().count();
    if count == 1 {
        return experiment.clone();
    }
    let is_unique =
        |name: fn(&Source) -> &str| of_it().all(|(at, other)| at == index || name(other) != name(source));
    let name = if is_unique(stem) {
        stem(source)
    } else if is_unique(path) {
        path(source)
    } else {
        let number = of_it().take_while(|(at, _)| *at <= index).count();
        return format!("{experiment}, {number} of {count}");
    };
    if name.starts_with(experiment.as_str()) { name.to_owned() } else { format!("{experiment}, {name}") }
}

/// The name without its quotes.
fn path(source: &Source) -> &str {
    let name = source.name.as_str();
    name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')).unwrap_or(name)
}

/// `ring-16` of `'records/ring-16.json'`.
fn stem(source: &Source) -> &str {
    let path = path(source);
    Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or(path)
}

/// The record's values of those parameters in which the records of its experiment differ: `depths 16; loads alone`.
pub(super) fn differences(sources: &[Source], source: &Source) -> String {
    let record = &source.record;
    let others = || sources.iter().filter(|other| other.record.experiment == record.experiment);
    let differs =
        |name: &str| others().any(|other| other.record.parameters.get(name) != record.parameters.get(name));
    let known = source.experiment.spec().parameters;
    let names = known.iter().filter(|parameter| differs(parameter.name));
    let text = |parameter: &crate::settings::Parameter| {
        let value = record.parameters.get(parameter.name)?;
        let value = shown(value, parameter.kind);
        (!value.is_empty()).then(|| format!("{} {value}", parameter.name.replace('-', " ")))
    };
    names.filter_map(text).collect::<Vec<_>>().join("; ")
}

/// Sizes as the command line accepts them.
fn shown(value: &Value, kind: ParameterKind) -> String {
    let is_size = matches!(kind, ParameterKind::Size(..) | ParameterKind::Sizes(..));
    let texts: Vec<String> = match value {
        Value::Number(bytes) if is_size => vec![size(*bytes)],
        Value::Numbers(all) if is_size => all.iter().map(|bytes| size(*bytes)).collect(),
        Value::Numbers(all) => all.iter().map(u64::to_string).collect(),
        Value::Texts(all) => all.clone(),
        Value::Flag(_) | Value::Number(_) | Value::Text(_) => vec![value.to_string()],
    };
    texts.join(", ")
}
