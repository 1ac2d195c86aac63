//! Warnings about figures, each with advice.

use serde::{Deserialize, Serialize};

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Kind of the warning.
    pub kind: WarningKind,
    /// Cell that it concerns; empty for all.
    pub cell: String,
    /// Finding.
    pub message: String,
    /// Advice.
    pub advice: String,
    /// True if the figures are unreliable because of it.
    pub distrust: bool,
}

/// Kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Too few runs.
    FewRuns,
    /// The confidence interval of the median is wide.
    Noisy,
    /// Some runs are far from the others.
    Outliers,
    /// The caches were not in the requested state.
    CacheState,
    /// The process may use fewer processors than the machine has.
    CpuLimit,
    /// The process may use less memory than the machine has.
    MemoryLimit,
    /// The hypervisor took processor time away.
    StolenTime,
    /// A run wrote more than the kernel lets wait in memory.
    DirtyThrottling,
    /// The filesystem discards the blocks of removed files.
    Discard,
    /// The filesystem is in memory.
    RamFilesystem,
    /// A cell cannot be measured here, for example because a program is missing.
    Missing,
    /// A run failed, or a copy differed.
    Failed,
    /// The environment changed between sessions.
    Changed,
    /// The experiment was interrupted.
    Incomplete,
    /// The runs were recorded.
    Recorded,
    /// A finding of one experiment.
    Experiment,
}

impl WarningKind {
    /// Returns true if the warning is derived from the record, each time that it is judged.
    pub(crate) fn is_of_figures(self) -> bool {
        match self {
            Self::FewRuns
            | Self::Noisy
            | Self::Outliers
            | Self::CacheState
            | Self::Missing
            | Self::Failed
            | Self::Incomplete => true,
            Self::CpuLimit
            | Self::MemoryLimit
            | Self::StolenTime
            | Self::DirtyThrottling
            | Self::Discard
            | Self::RamFilesystem
            | Self::Changed
            | Self::Recorded
            | Self::Experiment => false,
        }
    }

    /// Returns true if the warning is about the filesystem on which an experiment makes its files.
    pub(crate) fn is_of_place(self) -> bool {
        matches!(self, Self::Discard | Self::RamFilesystem)
    }
}

impl Warning {
    /// A warning about all cells.
    #[must_use]
    pub fn note(kind: WarningKind, message: impl Into<String>, advice: impl Into<String>) -> Self {
        let (message, advice) = (message.into(), advice.into());
        Self { kind, cell: String::new(), message, advice, distrust: false }
    }

    /// Limits the warning to one cell.
    #[must_use]
    pub fn about(mut self, cell: &str) -> Self {
        cell.clone_into(&mut self.cell);
        self
    }

    /// Marks the figures as unreliable.
    #[must_use]
    pub fn distrusted(mut self) -> Self {
        self.distrust = true;
        self
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.cell.is_empty() {
            write!(out, "{}: ", self.cell)?;
        }
        write!(out, "{}; {}", self.message, self.advice)
    }
}
