//! `-o FILE` of an experiment: the file's extension selects what is written to it.

use std::path::PathBuf;

use ferry_lab::Failure;
use ferry_lab::experiment::Experiment;
use ferry_lab::export;
use ferry_lab::record::Record;
use ferry_lab::record::store::place_of;
use ferry_lab::report::{Source, page};

/// Contents of a file for the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// The record, which is written after each run.
    Record,
    /// A view of the record, which is written at the end.
    View(View),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Csv,
    Markdown,
    /// The page of `ferry lab report`.
    Page,
}

pub(super) const EXTENSIONS: [(&str, FileFormat); 4] = [
    ("json", FileFormat::Record),
    ("csv", FileFormat::View(View::Csv)),
    ("md", FileFormat::View(View::Markdown)),
    ("html", FileFormat::View(View::Page)),
];

/// A file for a view of the record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ViewFile {
    pub(super) path: PathBuf,
    pub(super) view: View,
}

impl ViewFile {
    /// Resolves links in the path. Fails if the file can't be written.
    pub(super) fn placed(self) -> Result<Self, Failure> {
        Ok(Self { path: place_of(&self.path)?, view: self.view })
    }

    /// Returns the path and what is to be written there.
    pub(super) fn of(self, experiment: &dyn Experiment, record: &Record) -> (PathBuf, String) {
        let text = match self.view {
            View::Csv => export::csv(record),
            View::Markdown => export::markdown(experiment, record),
            // An experiment that was run is known.
            View::Page => Source::new(format!("ferry lab {}", record.experiment), record.clone())
                .map(|source| page(&[source]))
                .unwrap_or_default(),
        };
        (self.path, text)
    }
}
