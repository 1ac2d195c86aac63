//! Cold and warm caches: made so, and proved on a sample before each run.
//!
//! Cold: everything is written back, the kernel's caches are dropped, and then openat2(2) with RESOLVE_CACHED must answer
//! EAGAIN for sampled names, and cachestat(2) must find nothing of sampled files' data. Looking at data needs an
//! open file, which brings its inode back; so data is looked at after one dropping, and names, which can be asked for
//! without a trace, after a second one, right before the run. Warm: all is read, and both must say that it is there.
//! Where the kernel can't be asked nothing is proved, and the proof says so.

pub mod sample;

use std::path::{Path, PathBuf};

use ferry_tree::compare::{self, Options, Progress};
use serde::{Deserialize, Serialize};

use crate::command::wake;
use crate::error::Failure;
use sample::Sample;

#[cfg(test)]
mod tests;

/// How often something is tried again if the cache is not as it should be.
const ATTEMPTS: usize = 3;
/// So much of the data may be in memory and the cache still be cold, in thousandths: the kernel may keep a page that
/// is in use just now.
const COLD_PERMILLE: u64 = 10;
/// So much must be in memory for the cache to be warm.
const WARM_PERMILLE: u64 = 990;

/// The state of the kernel's caches before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing of the files is in memory.
    Cold,
    /// All of the files is in memory.
    Warm,
    /// However the run before left it: the experiment goes past the cache, or makes its files anew.
    AsItIs,
}

impl State {
    /// As the command line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::AsItIs => "as it is",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Cold, Self::Warm].into_iter().find(|state| state.name() == name)
    }
}

/// What was found in memory before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Whether the state was as it should be: not if nothing could be asked.
    pub holds: bool,
    /// How the names were asked for: `openat2(RESOLVE_CACHED)`, or why not.
    pub names_by: String,
    /// Names that were asked for.
    pub names: u64,
    /// How many of them were in memory.
    pub names_in_memory: u64,
    /// How the data was asked for: `cachestat(2)`, or why not.
    pub data_by: String,
    /// Files whose data was asked for.
    #[serde(default)]
    pub data_files: u64,
    /// Bytes that were asked for.
    pub data_bytes: u64,
    /// How many of them were in memory.
    pub data_in_memory_bytes: u64,
}

impl Proof {
    /// Whether anything answered: names and data both.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.names > 0 && self.data_files > 0
    }

    fn judge(mut self, state: State) -> Self {
        let permille = |part: u64, all: u64| (u128::from(part) * 1000).checked_div(u128::from(all));
        let data = permille(self.data_in_memory_bytes, self.data_bytes);
        let names = permille(self.names_in_memory, self.names);
        // Files may be empty: then their names alone say it.
        let is_as_asked = match state {
            State::Cold => {
                data.is_none_or(|found| found <= u128::from(COLD_PERMILLE))
                    && names.is_some_and(|found| found == 0)
            }
            State::Warm => {
                data.is_none_or(|found| found >= u128::from(WARM_PERMILLE))
                    && names.is_some_and(|found| found >= u128::from(WARM_PERMILLE))
            }
            State::AsItIs => true,
        };
        self.holds = self.was_asked() && is_as_asked;
        self
    }
}

/// Brings the caches into `state` for the files of `sample`, then has `programs` in memory again.
///
/// # Errors
/// If caches can't be dropped or the files can't be read.
pub fn prepare(state: State, sample: &Sample, programs: &[PathBuf]) -> Result<Option<Proof>, Failure> {
    match state {
        State::AsItIs => {
            rustix::fs::sync();
            Ok(None)
        }
        State::Warm => warm(sample).map(Some),
        State::Cold => cold(sample, programs).map(Some),
    }
}

fn cold(sample: &Sample, programs: &[PathBuf]) -> Result<Proof, Failure> {
    let mut attempt = 1;
    loop {
        drop_caches()?;
        let data = sample.ask_for_data();
        drop_caches()?;
        programs.iter().for_each(|program| wake(program));
        let proof = data.with_names(&sample.ask_for_names()).judge(State::Cold);
        if proof.holds || !proof.was_asked() || attempt == ATTEMPTS {
            return Ok(proof);
        }
        attempt += 1;
    }
}

fn warm(sample: &Sample) -> Result<Proof, Failure> {
    let ask = || {
        // Names first: asking for data opens the files.
        let names = sample.ask_for_names();
        sample.ask_for_data().with_names(&names).judge(State::Warm)
    };
    rustix::fs::sync();
    let mut proof = ask();
    let mut all_was_read = !sample.is_new();
    for _ in 1..ATTEMPTS {
        if all_was_read && (proof.holds || !proof.was_asked()) {
            break;
        }
        all_was_read = true;
        read_all(sample.root())?;
        rustix::fs::sync();
        proof = ask();
    }
    Ok(proof)
}

/// Reads every name and every byte of a tree, through the cache.
fn read_all(root: &Path) -> Result<(), Failure> {
    let progress = Progress::new();
    compare::trees(root, root, &Options { xattrs: true, ..Options::plain() }, &progress, &|_| ())?;
    Ok(())
}

/// Writes everything back and drops the page cache, names and inodes.
///
/// # Errors
/// Without the right to it.
pub fn drop_caches() -> Result<(), Failure> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    rustix::fs::sync();
    std::fs::write(path, "3").map_err(|error| Failure::file("write", path, &error))
}
