//! The record of a comparison, as JSON: conditions, and each run's figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ferry_lab::cache::Proof;
use ferry_lab::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Version of the layout.
pub const SCHEMA: u32 = 1;

/// A comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Version of the layout: [`SCHEMA`].
    pub schema: u32,
    /// The machine, and the filesystem that was measured.
    pub machine: Machine,
    /// Versions of the runtimes.
    pub versions: BTreeMap<String, String>,
    /// Measured cases, in this order.
    pub works: Vec<Measured>,
}

/// The runs of one work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// Name: `small-cold`.
    pub work: String,
    /// Description of the work.
    pub what: String,
    /// Content of /proc/loadavg before the first run and after the last.
    pub load: [String; 2],
    /// The runs of each runtime.
    pub runtimes: Vec<Runs>,
}

/// The runs of one runtime; run N of each runtime was in round N.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Runs {
    /// Name of the runtime.
    pub runtime: String,
    /// The runs.
    pub runs: Vec<Run>,
    /// Reason why there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Time from the start of the runtime to its end.
    pub seconds: f64,
    /// Processor time of all threads, those of the kernel that work for the process included.
    pub processor_seconds: f64,
    /// Proof of the cache's state before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Proof>,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// If the file is none.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let record: Self = serde_json::from_slice(&fs::read(path)?)?;
        if record.schema != SCHEMA {
            return Err(format!("'{}' has layout {}", path.display(), record.schema).into());
        }
        Ok(record)
    }

    /// Adds works that were measured later. They replace those of the same names.
    ///
    /// # Errors
    /// If they were measured on another machine, or with other versions.
    pub fn and(mut self, later: Self) -> Result<Self, Failure> {
        if self.machine.lasting() != later.machine.lasting() || self.versions != later.versions {
            return Err("the record is of another machine, or of other versions".into());
        }
        self.works.retain(|work| later.works.iter().all(|newer| newer.work != work.work));
        self.works.extend(later.works);
        Ok(self)
    }

    /// Writes the record.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(fs::write(path, text)?)
    }
}

/// Returns the versions of the runtimes in this build.
#[must_use]
pub fn versions() -> BTreeMap<String, String> {
    let lock = include_str!("../Cargo.lock");
    let version = |package: &str| {
        let (_, found) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
        found.split_once('"').map(|(version, _)| (package.to_owned(), version.to_owned()))
    };
    ["ferry-io", "tokio", "monoio", "compio", "glommio"].into_iter().filter_map(version).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_those_of_the_lock_file() {
        let versions = super::versions();
        assert_eq!(versions.len(), 5, "{versions:?}");
        assert!(versions["tokio"].starts_with("1."), "{versions:?}");
    }
}
