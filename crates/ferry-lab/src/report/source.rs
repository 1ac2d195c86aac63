//! The records of a page.

use std::path::Path;

use crate::error::Failure;
use crate::experiment::Experiment;
use crate::experiments;
use crate::message::quoted;
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
}

/// Names the scale.
pub(super) fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Default => "usual",
        Scale::Quick => "quick",
        Scale::AsPublished => "as published",
    }
}
