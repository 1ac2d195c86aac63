//! One row: cp, ferry, the best other copier, and the limit, of one tree in one cache state.

use crate::experiments::copy::groups;
use crate::experiments::copy::shares::{self, MEASURE};
use crate::record::{Cell, Failed, Record};
use crate::statistics::Interval;

use super::label::label;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: String,
    /// Median time of cp in seconds.
    pub(super) cp_s: f64,
    /// Speed of ferry relative to cp.
    pub(super) ferry: Interval,
    /// The fastest copier other than ferry, cp included.
    pub(super) best: Rival,
    /// The fastest limit program, if there is one.
    pub(super) limit: Option<Rival>,
    /// Number of runs of ferry.
    pub(super) runs: usize,
    /// Names of the copiers with figures, cp and ferry aside.
    pub(super) others: Vec<String>,
    /// Copiers without figures, each with the reason.
    pub(super) absent: Vec<(String, &'static str)>,
    /// True if a warning says not to trust the figures of this row.
    pub(super) is_doubted: bool,
}

/// A copier or limit program that ferry is compared with.
#[derive(Debug)]
pub(super) struct Rival {
    pub(super) name: String,
    /// Median speed relative to cp.
    pub(super) speed: f64,
    /// Speed of ferry relative to this.
    pub(super) reached: Interval,
}

impl Row {
    /// Takes a group's figures. Fails if cp or ferry has none, or too few.
    pub(super) fn of(record: &Record, group: &str) -> Result<Self, String> {
        let cells = || groups::cells_of(record, group);
        let measured = |tool: &str| {
            let cell = cells().find(|cell| cell.text("tool") == tool);
            let (cell, found) = cell
                .and_then(|cell| Some((cell, record.summary(cell, MEASURE)?)))
                .filter(|(cell, _)| cell.missing.is_none())
                .ok_or_else(|| format!("{tool} has no figures for {group}"))?;
            match found.count {
                count if found.median.is_enough() && cell.has_all(record.runs) => {
                    Ok((cell, found.median.middle, count))
                }
                count => Err(format!("{tool} has {count} runs of {group}, too few for a claim")),
            }
        };
        let (cp, cp_s, _) = measured("cp")?;
        let (ferry, _, runs) = measured("ferry")?;
        let rival = |cell: &Cell| {
            Some(Rival {
                name: cell.text("tool"),
                speed: record.ratio(cell, cp, MEASURE)?.middle,
                reached: record.ratio(ferry, cell, MEASURE)?,
            })
        };
        let is_peer = |cell: &&Cell| !cell.text("command").is_empty();
        let has_figures = |cell: &&Cell| cell.missing.is_none() && cell.has_all(record.runs);
        let peers: Vec<&Cell> = cells().filter(is_peer).filter(has_figures).collect();
        let rivals = peers.iter().copied().chain([cp]).filter_map(|cell| Some((cell, rival(cell)?)));
        let best = rivals.max_by(|(_, one), (_, other)| one.speed.total_cmp(&other.speed));
        let (best_cell, best) = best.ok_or("cp and ferry have no runs of the same round")?;
        let limit = shares::limit(record, group);
        let used = || [cp, ferry, best_cell].into_iter().chain(limit);
        let doubts = |about: &str| about.is_empty() || used().any(|cell| cell.name == about);
        Ok(Self {
            label: label(record, ferry),
            cp_s,
            ferry: record.ratio(ferry, cp, MEASURE).ok_or("cp and ferry have no runs of the same round")?,
            best,
            limit: limit.and_then(rival),
            runs,
            others: peers.iter().map(|cell| cell.text("tool")).collect(),
            absent: cells().filter(is_peer).filter(|cell| !has_figures(cell)).map(absent).collect(),
            is_doubted: record.warnings.iter().any(|warning| warning.distrust && doubts(&warning.cell)),
        })
    }
}

impl Row {
    /// Returns the label, with a dagger if the figures are doubted.
    pub(super) fn name(&self) -> String {
        format!("{}{}", self.label, if self.is_doubted { " †" } else { "" })
    }
}

/// Returns a copier without figures, and the reason.
fn absent(cell: &Cell) -> (String, &'static str) {
    let why = match cell.failed {
        None if cell.missing.is_some() => "not installed",
        None => "runs are missing",
        Some(Failed::Run) => "a run failed",
        Some(Failed::Copy) => "a copy was wrong",
    };
    (cell.text("tool"), why)
}
