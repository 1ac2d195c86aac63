//! The report: records as one HTML page that needs no network and no script.
//!
//! Called by `ferry lab report`. The page has the machines, and for each record what it means, what to keep in mind, its
//! plots and tables beside the documents' published ones, and every figure of every run. A content security policy
//! forbids it to load anything, whatever a record's texts say; all of them are escaped in `html`.
//!
//! Links, headings, captions and regions are for keyboards and screen readers: what scrolls can be focused, each
//! picture says its figures, and no meaning is in a colour alone. Limit: 100 runs of 60 cells are about 2 MB.

mod html;
mod machines;
mod runs;
mod section;

use std::collections::BTreeMap;
use std::path::Path;

use self::html::{Grid, link};
use self::section::Section;
use crate::error::{Failure, quoted};
use crate::experiments::{self, Experiment};
use crate::plot;
use crate::record::{Record, Scale, read};

#[cfg(test)]
mod tests;

/// How the page looks.
const STYLE: &str = include_str!("report/style.css");

/// A record, where it was read from, and the experiment that it is of.
pub struct Source {
    name: String,
    record: Record,
    experiment: &'static dyn Experiment,
}

impl Source {
    /// Reads a record for a page.
    ///
    /// # Errors
    /// If it can't be read, or is of a version or an experiment that this program does not know.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = quoted(path.as_os_str()).to_string();
        let record = read::read(path)?;
        Self::new(name.clone(), record).ok_or_else(|| {
            Failure::Run(format!("cannot use {name}: it is of an experiment that this program does not know"))
        })
    }

    /// A record that came from `name`; `None` if its experiment is not known.
    #[must_use]
    pub fn new(name: String, record: Record) -> Option<Self> {
        let experiment = experiments::named(&record.experiment)?;
        Some(Self { name, record, experiment })
    }
}

/// The page of these records, in their order.
#[must_use]
pub fn page(sources: &[Source]) -> String {
    let sections = Section::all(sources);
    let names: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
    let title = format!("ferry lab: {}", names.join("; "));
    let mut out = head(&title);
    out += "<header>\n<h1>What ferry lab measured</h1>\n";
    out += "<p>The documents' experiments, repeated. Times and rates are medians with 95&nbsp;% intervals; ";
    out += "ratios are taken round by round.</p>\n</header>\n";
    out += &contents(&sections);
    out += "<main id=\"main\" tabindex=\"-1\">\n";
    out += &overview(&sections);
    out += &machines::all(sources);
    sections.iter().for_each(|section| out += &section.html());
    out += &format!("</main>\n<footer><p>Made by ferry {}.</p></footer>\n", env!("CARGO_PKG_VERSION"));
    out += "</body>\n</html>\n";
    out
}

fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<link rel=\"icon\" \
         href=\"data:,\">\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the \
         results</a>\n",
        html::escaped(title),
        plot::STYLE,
    )
}

fn contents(sections: &[Section<'_>]) -> String {
    let mut out = String::from(
        "<nav aria-labelledby=\"contents\">\n<h2 id=\"contents\">Contents</h2>\n<ul>\n\
         <li><a href=\"#overview\">Overview</a></li>\n<li><a href=\"#machines\">Where</a></li>\n",
    );
    for section in sections {
        out += &format!("<li>{}\n<ul>\n", link(&section.id, &section.title));
        for (id, title) in section.parts() {
            out += &format!("<li>{}</li>\n", link(&id, title));
        }
        out += "</ul></li>\n";
    }
    out + "</ul>\n</nav>\n"
}

/// A row a record: what it is, how much was taken, what held, and whether to trust it.
fn overview(sections: &[Section<'_>]) -> String {
    let mut grid = Grid::new("overview-table", "Records on this page");
    grid.columns(["record", "taken", "scale", "cells", "runs", "findings", "to be trusted"]);
    for section in sections {
        let record = section.record();
        let runs: usize = record.cells.iter().map(|cell| cell.runs.len()).sum();
        grid.row([
            link(&section.id, &section.title),
            html::escaped(&minute(&record.started)),
            scale(record.scale).to_owned(),
            record.cells.len().to_string(),
            runs.to_string(),
            outcomes(section),
            trust(section),
        ]);
    }
    format!(
        "<section aria-labelledby=\"overview\">\n<h2 id=\"overview\">Overview</h2>\n{}</section>\n",
        grid.html()
    )
}

/// `2026-08-01 12:00`.
fn minute(time: &str) -> String {
    time.chars().take("2026-08-01T12:00".len()).collect::<String>().replace('T', " ")
}

/// `held 3, unclear 1`.
fn outcomes(section: &Section<'_>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    section.verdicts.iter().for_each(|verdict| *counts.entry(verdict.outcome.name()).or_default() += 1);
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn trust(section: &Section<'_>) -> String {
    if section.record().is_to_be_trusted() {
        "yes".to_owned()
    } else {
        format!("no: {}", link(&section.part("mind"), "why"))
    }
}

/// How much was measured, in words.
fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Default => "usual",
        Scale::Quick => "quick",
        Scale::AsPublished => "as published",
    }
}
