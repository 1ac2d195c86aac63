//! The states of the kernel's caches, and the proof that a run began with one.

use serde::{Deserialize, Serialize};

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

/// Names and data of a sample that were cached before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// True if the cache state was the wanted one; false if neither names nor data could be checked.
    pub holds: bool,
    /// Method that checked the names, `openat2(RESOLVE_CACHED)`, or the reason why none could.
    pub names_by: String,
    /// Names that were asked for.
    pub names: u64,
    /// Number of cached names.
    pub names_in_memory: u64,
    /// Method that checked the data, `cachestat(2)`, or the reason why none could.
    pub data_by: String,
    /// Files whose data was asked for.
    #[serde(default)]
    pub data_files: u64,
    /// Bytes that were asked for.
    pub data_bytes: u64,
    /// Number of cached bytes.
    pub data_in_memory_bytes: u64,
}

impl Proof {
    /// Returns true if both names and data could be checked.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.names > 0 && self.data_files > 0
    }

    pub(super) fn judge(mut self, state: State) -> Self {
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
