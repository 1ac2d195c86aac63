//! The records of a page.

use std::path::Path;

use crate::error::Failure;
use crate::experiment::Experiment;
use crate::experiments;
use crate::headline::Headline;
use crate::message::quoted;
use crate::plot::Plot;
use crate::record::{Record, Scale, read};

/// A record, its origin and its experiment.
pub struct Source {
    pub(super) name: String,
    pub(super) record: Record,
    pub(super) experiment: &'static dyn Experiment,
}

impl Source {
    /// Reads a record for a page.
    ///
    /// # Errors
    /// If it cannot be read, or if its version or experiment is unknown.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = quoted(path.as_os_str()).to_string();
        let record = read::read(path)?;
        Self::new(name.clone(), record).ok_or_else(|| {
            Failure::Run(format!(
                "cannot use {name}: its experiment is unknown to this version of the program"
            ))
        })
    }

    /// A record from `name`; `None` if its experiment is unknown.
    #[must_use]
    pub fn new(name: String, record: Record) -> Option<Self> {
        let experiment = experiments::named(&record.experiment)?;
        Some(Self { name, record, experiment })
    }

    /// Returns the record's plots, that of its answer first.
    #[must_use]
    pub fn plots(&self) -> Vec<Plot> {
        self.plots_of(&self.experiment.headline(&self.record))
    }

    /// Returns the record's plots, that of this answer first.
    pub(super) fn plots_of(&self, headline: &Headline) -> Vec<Plot> {
        let mut plots = self.experiment.plots(&self.record);
        // A stable sort keeps the others in their order.
        plots.sort_by_key(|plot| headline.plot.as_ref() != Some(&plot.title));
        plots
    }
}

/// Names the scale.
pub(super) fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Default => "usual",
        Scale::Quick => "quick",
        Scale::AsPublished => "as published",
    }
}
