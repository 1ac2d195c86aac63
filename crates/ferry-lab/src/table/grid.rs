//! A table, and its formats: text in lines of a certain width, and Markdown.

use super::layout::{fitted, unbroken, wrapped};
use crate::statistics::Interval;
use crate::units::figure;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Headings. The first column is text, the others are figures.
    pub columns: Vec<String>,
    /// Rows, each with a text for every column.
    pub rows: Vec<Vec<String>>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { title: title.to_owned(), columns, ..Self::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns true if there are neither rows nor notes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.notes.is_empty()
    }

    /// Formats the table with a line for each row, however long.
    #[must_use]
    pub fn text(&self) -> String {
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{}\n{}{notes}", self.title, unbroken(&self.columns, &self.rows))
    }

    /// Formats the table in lines of at most `width` characters, unless one column is wider. Without rows, there are no
    /// headings.
    #[must_use]
    pub fn text_in(&self, width: usize) -> String {
        let lines = |text: &String| wrapped(text, width).into_iter().map(|line| line + "\n");
        let mut out: String = lines(&self.title).collect();
        if !self.rows.is_empty() {
            out += &fitted(&self.columns, &self.rows, width);
        }
        out.extend(self.notes.iter().flat_map(lines));
        out
    }

    /// Formats the table as Markdown, below its title.
    #[must_use]
    pub fn markdown(&self) -> String {
        let rows = if self.rows.is_empty() { String::new() } else { self.markdown_rows() };
        let notes: String = self.notes.iter().map(|note| format!("\n{note}\n")).collect();
        format!("### {}\n\n{}", self.title, (rows + &notes).trim_start())
    }

    /// Formats the table as Markdown without its title.
    #[must_use]
    pub fn markdown_rows(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> =
            (0..self.columns.len()).map(|index| if index == 0 { "---" } else { "---:" }.to_owned()).collect();
        let mut out = line(&self.columns) + &line(&rule);
        self.rows.iter().for_each(|row| out += &line(row));
        out
    }
}

/// Formats a median with its interval, `200 ms (180-210)`, or alone if there are too few figures.
#[must_use]
pub fn measured(found: &Interval, unit: &str) -> String {
    let middle = figure(found.middle, unit);
    if !found.is_enough() {
        return middle;
    }
    let unit_of = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let [low, high] = [found.low, found.high].map(|end| figure(end, unit));
    let is_one = [&low, &high].iter().all(|end| unit_of(end) == unit_of(&middle));
    let number = |text: &str| {
        let alone = text.split_once(' ').filter(|_| is_one);
        alone.map_or(text, |(number, _)| number).to_owned()
    };
    format!("{middle} ({}-{})", number(&low), number(&high))
}
