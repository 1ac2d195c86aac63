//! Section of one record: its answer and the plot of it, then folded: claims, warnings, further plots, figures beside the
//! published ones, conditions, all runs.

use super::html::{Shown, escaped, link, part, scrolling, sentence, table, terms};
use super::runs::values;
use super::source::{Source, scale};
use super::{machines, runs, title};
use crate::headline::Headline;
use crate::plot::Plot;
use crate::published::{self, MACHINES};
use crate::record::warning::Warning;
use crate::record::{Record, Scale};
use crate::table::{Table, not_measured};
use crate::verdict::{Outcome, Verdict};
use crate::warnings::counted;

/// Section of one record.
pub(super) struct Section<'s> {
    source: &'s Source,
    /// Id that links refer to.
    pub(super) id: String,
    /// `copy`, or with several of them the file's name, `copy-large`.
    pub(super) title: String,
    /// Parameters that distinguish it from other records of its experiment.
    differences: String,
    /// Verdicts of the record.
    pub(super) verdicts: Vec<Verdict>,
    /// Answer of the record.
    pub(super) headline: Headline,
    /// Plots, that of the answer first.
    plots: Vec<Plot>,
    tables: Vec<Table>,
}

/// A part of the section: its name in links, title, presentation and HTML.
type Part = (&'static str, &'static str, Shown, String);

impl<'s> Section<'s> {
    /// Returns a section for each record.
    pub(super) fn all(sources: &'s [Source]) -> Vec<Self> {
        let titles = title::all(sources).into_iter();
        let section = |(index, (source, title)): (usize, (&'s Source, String))| {
            Self::new(source, format!("record-{}", index + 1), title, title::differences(sources, source))
        };
        sources.iter().zip(titles).enumerate().map(section).collect()
    }

    fn new(source: &'s Source, id: String, title: String, differences: String) -> Self {
        let Source { record, experiment, .. } = source;
        let headline = experiment.headline(record);
        let plots = source.plots_of(&headline);
        let (verdicts, mut tables) = (experiment.verdicts(record), experiment.tables(record));
        tables.retain(|table| !table.is_empty());
        Self { source, id, title, differences, verdicts, headline, plots, tables }
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
        let parts = self.contents().into_iter().filter(|(.., content)| !content.is_empty());
        parts.map(|(name, title, ..)| (self.part(name), title)).collect()
    }

    /// Returns the HTML of the section.
    pub(super) fn html(&self) -> String {
        let id = &self.id;
        let mut out = format!(
            "<section class=\"record\" aria-labelledby=\"{id}\">\n<div class=\"answer\">\n<h2 id=\"{id}\">{}</h2>\n\
             <p class=\"about\">{}.{}</p>\n<p class=\"headline\">{}.</p>\n",
            escaped(&self.title),
            escaped(self.source.experiment.spec().about),
            self.distinction(),
            sentence(&self.headline.answer),
        );
        for more in &self.headline.more {
            out += &format!("<p>{}.</p>\n", sentence(more));
        }
        out += &self.notice();
        out += &self.plots.first().map(drawn).unwrap_or_default();
        out += "</div>\n";
        for (name, title, shown, content) in self.contents() {
            if !content.is_empty() {
                out += &part(&self.part(name), title, shown, &content);
            }
        }
        out + "</section>\n"
    }

    /// The parameters that distinguish the record, in a line.
    fn distinction(&self) -> String {
        if self.differences.is_empty() {
            return String::new();
        }
        format!("<br>This record: {}.", escaped(&self.differences))
    }

    /// What a reader must know before using the figures.
    fn notice(&self) -> String {
        let record = self.record();
        if record.is_to_be_trusted() {
            return String::new();
        }
        let doubts = self.record().warnings.iter().filter(|warning| warning.distrust).count();
        let why = link(&self.part("warnings"), &counted(doubts, "warning"));
        let quick = record.scale == Scale::Quick && self.source.experiment.spec().is_measured;
        let words = if quick { "<code>--quick</code> decides nothing" } else { "Do not trust these figures" };
        format!("<p class=\"notice\"><strong>{words}:</strong> see {why}.</p>\n")
    }

    fn contents(&self) -> [Part; 7] {
        let doubted = if self.record().is_to_be_trusted() { Shown::Folded } else { Shown::OnScreen };
        let others: String = self.plots.iter().skip(1).map(drawn).collect();
        [
            ("claims", "Claims", Shown::Printed, self.claims()),
            ("warnings", "Warnings", doubted, self.warnings()),
            ("plots", "Further plots", Shown::Folded, others),
            ("tables", "Figures", Shown::Folded, self.tables()),
            ("published", "Published", Shown::Folded, self.published()),
            ("how", "Conditions", Shown::Folded, self.how()),
            ("runs", "Every run", Shown::Folded, runs::all(self.record(), &self.part("cell"))),
        ]
    }

    /// The decided claims, and the others folded.
    fn claims(&self) -> String {
        let (decided, open): (Vec<&Verdict>, Vec<&Verdict>) =
            self.verdicts.iter().partition(|verdict| verdict.outcome.is_decided());
        let list = |verdicts: &[&Verdict]| list("verdicts", verdicts.iter().map(|its| verdict(its)));
        let mut out = list(&decided);
        if !open.is_empty() {
            let title = format!("Not decided or not measured: {}", counted(open.len(), "claim"));
            out += &format!("<details><summary>{title}</summary>\n{}</details>\n", list(&open));
        }
        out
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

    /// Each table, with the documents' own beside it, and the footnote about absent cells.
    fn tables(&self) -> String {
        let mut out = String::new();
        for (index, one) in self.tables.iter().enumerate() {
            let own = table(&self.part(&format!("table-{}", index + 1)), one);
            let beside = published::beside(&self.record().experiment, &one.title).enumerate();
            let beside: String = beside
                .map(|(number, known)| {
                    let id = self.part(&format!("table-{}-published-{}", index + 1, number + 1));
                    table(&id, &known.table())
                })
                .collect();
            out += &if beside.is_empty() {
                own
            } else {
                format!("<div class=\"beside\">\n{own}<div>\n{beside}</div>\n</div>\n")
            };
        }
        if let Some(note) = not_measured(self.record()) {
            out += &format!("<p class=\"note\">{}</p>\n", escaped(&note));
        }
        out
    }

    /// The documents' tables that stand beside none, and their machines.
    fn published(&self) -> String {
        let experiment = &self.record().experiment;
        let is_beside = |known: &published::Published| {
            let is_it =
                |other: &published::Published| (other.document, other.title) == (known.document, known.title);
            self.tables.iter().any(|one| published::beside(experiment, &one.title).any(is_it))
        };
        let mut out = String::new();
        for (index, known) in published::of(experiment).enumerate().filter(|(_, known)| !is_beside(known)) {
            out += &table(&self.part(&format!("published-{}", index + 1)), &known.table());
        }
        let documents: Vec<&str> = published::of(experiment).map(|known| known.document).collect();
        let known = MACHINES.iter().filter(|(number, _)| documents.contains(number));
        let machines: Vec<(String, &str)> =
            known.map(|(number, words)| (format!("document {number}"), *words)).collect();
        if machines.is_empty() {
            return out;
        }
        out + "<p>Machines of the documents:</p>\n"
            + &terms(machines.iter().map(|(number, words)| (number.as_str(), escaped(words))))
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

fn drawn(plot: &Plot) -> String {
    scrolling(&format!("Plot: {}", plot.title), &plot.svg())
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
    let published = verdict.published.map(|figure| format!(" (published: {})", escaped(figure)));
    format!(
        "<span class=\"badge {class}\">{}</span> <div><strong>{}</strong>{document}<br>{}{}</div>",
        verdict.answer(),
        escaped(&verdict.finding),
        escaped(&verdict.words),
        published.unwrap_or_default(),
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
