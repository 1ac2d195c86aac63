//! The cells: each sink with each block size and depth, in groups that are compared with each other.

use super::beside::{DOWNLOAD, OVERWRITE};
use super::rates::{DEVICE_RATE, Rate};
use super::sink::{Sink, SinkOptions};
use crate::cache::State;
use crate::error::Failure;
use crate::record::{Cell, Record, Value};
use crate::settings::Settings;
use crate::units::{figure, real, size};

/// Cells of one operation; of downloads, at one rate.
pub(super) struct Group {
    pub(super) operation: &'static str,
    /// Rate of the own server; `None` for a URL, and for an overwrite.
    pub(super) rate: Option<Rate>,
    pub(super) cells: Vec<(Cell, SinkOptions)>,
}

impl Group {
    /// Returns the groups that were asked for. The first download comes first, because a URL is tried before anything
    /// is measured.
    ///
    /// # Errors
    /// If a rate is invalid.
    pub(super) fn all(settings: &Settings) -> Result<Vec<Self>, Failure> {
        let operations = settings.texts("operations");
        let has = |operation: &str| operations.iter().any(|known| known == operation);
        let rates = Rate::all(settings)?.into_iter().map(Some);
        let rates: Vec<Option<Rate>> =
            if settings.text("url").is_empty() { rates.collect() } else { vec![None] };
        let group = |operation, rate| Self { operation, rate, cells: cells(operation, rate, settings) };
        let downloads = rates.into_iter().filter(|_| has(DOWNLOAD)).map(|rate| group(DOWNLOAD, rate));
        Ok(downloads.chain(has(OVERWRITE).then(|| group(OVERWRITE, None))).collect())
    }
}

/// Each sink with each block size and, with several writes in flight, each depth.
pub(super) fn cells(operation: &str, rate: Option<Rate>, settings: &Settings) -> Vec<(Cell, SinkOptions)> {
    let mut found: Vec<(Cell, SinkOptions)> = Vec::new();
    for (name, sink) in settings.texts("sinks").iter().filter_map(|name| Some((name, Sink::named(name)?))) {
        if operation == DOWNLOAD && sink.only_overwrites() {
            continue;
        }
        for block in settings.numbers("block-sizes") {
            let depths = if sink == Sink::RingAll {
                vec![settings.number("size").div_ceil(block)]
            } else if sink.has_depth() {
                settings.numbers("depths")
            } else {
                vec![1]
            };
            for depth in depths {
                let mut parameters: Vec<(&str, Value)> = vec![("operation", operation.into())];
                parameters.extend(rate.map(|rate| ("rate", rate.name().as_str().into())));
                parameters.push(("sink", name.as_str().into()));
                parameters.push(("block", size(block).as_str().into()));
                if sink.has_depth() {
                    parameters.push(("depth", depth.into()));
                }
                let cell = Cell::new(&parameters, State::AsItIs).with("block_bytes", block.into());
                let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                found.push((cell, SinkOptions { sink, block_bytes: whole(block), depth: whole(depth) }));
            }
        }
    }
    let control = found.iter().find(|(_, how)| how.sink == Sink::Control).map(|(cell, _)| cell.clone());
    let compared = |(cell, how): (Cell, SinkOptions)| match &control {
        Some(control) if control.name != cell.name => (cell.against(control), how),
        _ => (cell, how),
    };
    found.into_iter().map(compared).collect()
}

/// Cells of a record that are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workload {
    pub(super) operation: &'static str,
    /// Name of the rate; empty for an overwrite, for a URL, and in older records.
    pub(super) rate: String,
}

impl Workload {
    /// Returns those of a record, overwriting first.
    pub(super) fn all(record: &Record) -> Vec<Self> {
        let mut found = Vec::new();
        for operation in [OVERWRITE, DOWNLOAD] {
            for cell in record.cells.iter().filter(|cell| cell.text("operation") == operation) {
                let workload = Self { operation, rate: cell.text("rate") };
                if !found.contains(&workload) {
                    found.push(workload);
                }
            }
        }
        found
    }

    /// Returns true for a download from a server that limits its rate.
    pub(super) fn is_limited(&self) -> bool {
        matches!(Rate::parse(&self.rate), Some(Rate::OfDevice(_) | Rate::Bytes(_)))
    }

    /// Returns its cells.
    pub(super) fn cells<'r>(&self, record: &'r Record) -> impl Iterator<Item = &'r Cell> {
        let is_one =
            move |cell: &&Cell| cell.text("operation") == self.operation && cell.text("rate") == self.rate;
        record.cells.iter().filter(is_one)
    }

    /// Returns the cell of a sink with the first block size and depth.
    pub(super) fn cell<'r>(&self, record: &'r Record, sink: &str) -> Option<&'r Cell> {
        record.find(&[("operation", self.operation), ("rate", self.rate.as_str()), ("sink", sink)])
    }

    /// Describes it: `overwrite`, `download at 50 % of the device's rate`.
    pub(super) fn title(&self) -> String {
        Rate::parse(&self.rate)
            .map_or_else(|| self.operation.to_owned(), |rate| format!("{} {}", self.operation, rate.words()))
    }

    /// Returns the device's rate in a sentence, if the workload's rate is a part of it.
    pub(super) fn note(&self, record: &Record) -> Option<String> {
        let Some(Rate::OfDevice(_)) = Rate::parse(&self.rate) else { return None };
        let rate = record.settled.get(DEVICE_RATE).and_then(Value::as_number)?;
        Some(format!("The device's rate is {}.", figure(real(rate), "B/s")))
    }

    /// Returns the beginning of its cells' names.
    pub(super) fn prefix(&self) -> String {
        let rate = if self.rate.is_empty() { String::new() } else { format!("{}/", self.rate) };
        format!("{}/{rate}", self.operation)
    }
}
