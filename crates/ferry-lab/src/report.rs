//! The report: records as one HTML page without network access or scripts.
//!
//! Called by `ferry lab report`. The page shows the answer of each record, with its plot. Folded below it are claims,
//! warnings, further plots, tables beside the documents' published ones, and every figure of every run. Answers, their
//! plots and decided claims are printed, and what the reader has opened; warnings are only counted. A content security policy forbids loading anything;
//! `html` escapes all texts of records.
//!
//! For keyboards and screen readers, scrolling regions can be focused, plots have descriptions, and no meaning depends
//! on colour alone. 100 runs of 60 cells are about 2 MB.

mod html;
mod machines;
mod runs;
mod section;
mod source;
mod title;

use std::collections::BTreeMap;

use self::html::{Grid, link};
use self::section::Section;
pub use self::source::Source;
use self::source::scale;
use crate::plot;

#[cfg(test)]
mod tests;

/// Style sheet of the page.
const STYLE: &str = include_str!("report/style.css");

/// Returns the page of these records, in this order.
#[must_use]
pub fn page(sources: &[Source]) -> String {
    let sections = Section::all(sources);
    let names: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
    let title = format!("ferry lab: {}", names.join("; "));
    let mut out = head(&title);
    out += "<header>\n<h1>Results of ferry lab</h1>\n";
    out += "<p>The documents' experiments, repeated. Times and rates are medians with 95&nbsp;% confidence intervals; ";
    out += "ratios compare runs of the same round. Fewer than five runs have no interval.</p>\n</header>\n";
    out += &contents(&sections);
    out += "<main id=\"main\" tabindex=\"-1\">\n";
    out += &overview(&sections);
    sections.iter().for_each(|section| out += &section.html());
    out += &machines::all(sources, &names);
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

/// Links to the parts, folded. The style sheet shows them on wide screens.
fn contents(sections: &[Section<'_>]) -> String {
    let mut out = String::from(
        "<nav aria-labelledby=\"contents\">\n<details><summary><h2 id=\"contents\">Contents</h2></summary>\n<ul>\n\
         <li><a href=\"#overview\">Overview</a></li>\n",
    );
    for section in sections {
        out += &format!("<li>{}\n<ul>\n", link(&section.id, &section.title));
        for (id, title) in section.parts() {
            out += &format!("<li>{}</li>\n", link(&id, title));
        }
        out += "</ul></li>\n";
    }
    out + "<li><a href=\"#machines\">Machines</a></li>\n</ul>\n</details>\n</nav>\n"
}

/// The answer of each record, and a row with scale, runs, outcomes and reliability.
fn overview(sections: &[Section<'_>]) -> String {
    let mut grid = Grid::new("overview-table", "Records on this page");
    grid.columns(["record", "to be trusted", "claims", "scale", "cells", "runs", "taken"]);
    for section in sections {
        let record = section.record();
        let runs: usize = record.cells.iter().map(|cell| cell.runs.len()).sum();
        grid.row([
            link(&section.id, &section.title),
            trust(section),
            outcomes(section),
            scale(record.scale).to_owned(),
            record.cells.len().to_string(),
            runs.to_string(),
            html::escaped(&minute(&record.started)),
        ]);
    }
    let answer = |section: &Section<'_>| (section.title.clone(), html::sentence(&section.headline.answer));
    let answers: Vec<(String, String)> = sections.iter().map(answer).collect();
    let answers = html::terms(answers.iter().map(|(title, answer)| (title.as_str(), answer.clone())));
    format!(
        "<section aria-labelledby=\"overview\">\n<h2 id=\"overview\">Overview</h2>\n{answers}{}</section>\n",
        grid.html()
    )
}

/// `2026-08-01 12:00`.
fn minute(time: &str) -> String {
    time.chars().take("2026-08-01T12:00".len()).collect::<String>().replace('T', " ")
}

/// `holds 3, not decided 1`.
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
        format!("no: {}", link(&section.part("warnings"), "why"))
    }
}
