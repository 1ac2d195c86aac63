//! Section of one record: verdicts, warnings, plots, tables beside the published ones, all runs.

use super::html::{escaped, link, scrolling, table, terms};
use super::runs::values;
use super::source::{Source, scale};
use super::{machines, runs};
use crate::published::{self, MACHINES};
use crate::record::Record;
use crate::record::warning::Warning;
use crate::verdict::{Outcome, Verdict};

/// Section of one record.
pub(super) struct Section<'s> {
    source: &'s Source,
    /// Id that links refer to.
    pub(super) id: String,
    /// `copy`, or with several of them `copy, 1 of 2`.
    pub(super) title: String,
    /// Verdicts of the record.
    pub(super) verdicts: Vec<Verdict>,
}

impl<'s> Section<'s> {
    /// Returns a section for each record.
    pub(super) fn all(sources: &'s [Source]) -> Vec<Self> {
        let section = |(index, source): (usize, &'s Source)| {
            let name = &source.record.experiment;
            let of =
                |sources: &[Source]| sources.iter().filter(|other| other.record.experiment == *name).count();
            let (number, all) = (of(sources.get(..index).unwrap_or_default()) + 1, of(sources));
            let title = if all > 1 { format!("{name}, {number} of {all}") } else { name.clone() };
            let verdicts = source.experiment.verdicts(&source.record);
            Self { source, id: format!("record-{}", index + 1), title, verdicts }
        };
        sources.iter().enumerate().map(section).collect()
    }

    /// Returns its record.
    pub(super) fn record(&self) -> &'s Record {
        &self.source.record
    }

    /// Returns the id of a part.
    pub(super) fn part(&self, name: &str) -> String {
        format!("{}-{name}", self.id)
    }

    /// Returns id and title of each part that is not empty.
    pub(super) fn parts(&self) -> Vec<(String, &'static str)> {
        let parts = self.contents().into_iter().filter(|(_, _, content)| !content.is_empty());
        parts.map(|(name, title, _)| (self.part(name), title)).collect()
    }

    /// Returns the HTML of the section.
    pub(super) fn html(&self) -> String {
        let id = &self.id;
        let mut out = format!(
            "<section class=\"record\" aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n<p \
            class=\"about\">{}.</p>\n",
            escaped(&self.title),
            escaped(self.source.experiment.spec().about),
        );
        if !self.record().is_to_be_trusted() {
            let why = link(&self.part("warnings"), "why");
            out +=
                &format!("<p class=\"notice\"><strong>Do not trust these figures:</strong> see {why}.</p>\n");
        }
        for (name, title, content) in self.contents() {
            if !content.is_empty() {
                out += &format!("<h3 id=\"{}\">{title}</h3>\n{content}", self.part(name));
            }
        }
        out + "</section>\n"
    }

    fn contents(&self) -> [(&'static str, &'static str, String); 7] {
        [
            ("findings", "Findings", self.meaning()),
            ("warnings", "Warnings", self.warnings()),
            ("plots", "Plots", self.plots()),
            ("tables", "Measured here", self.tables()),
            ("published", "Published", self.published()),
            ("how", "Conditions", self.how()),
            ("runs", "Every run", runs::all(self.record(), &self.part("cell"))),
        ]
    }

    fn meaning(&self) -> String {
        list("verdicts", self.verdicts.iter().map(verdict))
    }

    /// Each advice once, with all warnings that share it; unreliable figures first.
    fn warnings(&self) -> String {
        let mut groups: Vec<Vec<&Warning>> = Vec::new();
        for warning in &self.record().warnings {
            let key = |one: &Warning| (one.kind, one.advice.clone(), one.distrust);
            let same = |group: &&mut Vec<&Warning>| group.iter().all(|known| key(known) == key(warning));
            match groups.iter_mut().find(same) {
                Some(group) => group.push(warning),
                None => groups.push(vec![warning]),
            }
        }
        groups.sort_by_key(|group| !group.iter().any(|warning| warning.distrust));
        list("warnings", groups.iter().map(|group| advice(group)))
    }

    fn plots(&self) -> String {
        let plots = self.source.experiment.plots(self.record());
        plots.iter().map(|plot| scrolling(&format!("Plot: {}", plot.title), &plot.svg())).collect()
    }

    fn tables(&self) -> String {
        let tables = self.source.experiment.tables(self.record());
        tables
            .iter()
            .enumerate()
            .map(|(index, one)| table(&self.part(&format!("table-{}", index + 1)), one))
            .collect()
    }

    fn published(&self) -> String {
        let tables: Vec<_> = published::of(&self.record().experiment).collect();
        if tables.is_empty() {
            return String::new();
        }
        let mut out = String::from("<div class=\"beside\">\n");
        for (index, one) in tables.iter().enumerate() {
            out += &table(&self.part(&format!("published-{}", index + 1)), &one.table());
        }
        out += "</div>\n<p>Machines of the documents:</p>\n";
        let known = MACHINES.iter().filter(|(number, _)| tables.iter().any(|one| one.document == *number));
        let names: Vec<(String, &str)> =
            known.map(|(number, words)| (format!("document {number}"), *words)).collect();
        out + &terms(names.iter().map(|(number, words)| (number.as_str(), escaped(words))))
    }

    fn how(&self) -> String {
        let record = self.record();
        let tools: Vec<String> =
            record.tools.iter().map(|(name, version)| format!("{name}: {version}")).collect();
        let lines =
            |texts: &[String]| texts.iter().map(|text| escaped(text)).collect::<Vec<_>>().join("<br>");
        let known = [
            ("record", escaped(&self.source.name)),
            ("taken by", escaped(&record.taken_by)),
            ("begun", escaped(&record.started)),
            ("scale", scale(record.scale).to_owned()),
            ("runs of each cell", format!("{}, after {} not counted", record.runs, record.warm_ups)),
            ("whole", if record.complete { "yes" } else { "no: it was interrupted" }.to_owned()),
            ("seed", record.seed.to_string()),
            ("memory available", machines::bytes_text(record.machine.memory.available_bytes)),
            ("parameters", lines(&values(&record.parameters))),
            ("programs", lines(&tools)),
            (
                "measures",
                lines(
                    &record
                        .measures
                        .iter()
                        .map(|one| format!("{}: {}", one.heading(), one.about))
                        .collect::<Vec<_>>(),
                ),
            ),
        ];
        terms(known)
    }
}

fn list(class: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{item}</li>\n")).collect();
    if items.is_empty() { items } else { format!("<ul class=\"{class}\">\n{items}</ul>\n") }
}

fn verdict(verdict: &Verdict) -> String {
    let class = match verdict.outcome {
        Outcome::Held => "held",
        Outcome::DidNotHold => "failed",
        Outcome::Unclear | Outcome::NotMeasured => "open",
    };
    let document = if verdict.document.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"faint\">(document {})</span>", escaped(verdict.document))
    };
    format!(
        "<span class=\"badge {class}\">{}</span> <div><strong>{}</strong>{document}<br>{}</div>",
        verdict.outcome.name(),
        escaped(&verdict.finding),
        escaped(&verdict.words),
    )
}

/// Formats warnings with the same advice.
fn advice(group: &[&Warning]) -> String {
    let Some(first) = group.first() else { return String::new() };
    let badge = if first.distrust { ("failed", "do not trust") } else { ("open", "note") };
    let cell = |warning: &&Warning| format!("<code>{}</code>", escaped(&warning.cell));
    let words = if group.iter().all(|warning| warning.message == first.message) {
        let cells: Vec<String> = group.iter().filter(|warning| !warning.cell.is_empty()).map(cell).collect();
        let about = if cells.is_empty() { String::new() } else { format!("<br>{}", cells.join(", ")) };
        format!("<strong>{}</strong><br>{}{about}", escaped(&first.message), escaped(&first.advice))
    } else {
        let lines = group.iter().map(|warning| format!("{} {}", cell(warning), escaped(&warning.message)));
        format!("<strong>{}</strong>{}", escaped(&first.advice), list("cells", lines))
    };
    format!("<span class=\"badge {}\">{}</span> <div>{words}</div>", badge.0, badge.1)
}
