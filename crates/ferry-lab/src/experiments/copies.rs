//! Shared by the experiments that copy: makes, times, compares and removes a copy.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ferry_tree::compare::{self, Options};

use crate::cache::State;
use crate::command::Stranger;
use crate::error::Failure;
use crate::needs;
use crate::record::{Better, Figures, Measure};
use crate::session::{Session, Turn};
use crate::stop::Stop;
use crate::units::real;

/// For cp and `ferry cp`: reads and writes every byte. Otherwise both let the kernel copy (copy_file_range(2)), or share
/// the source's blocks on btrfs and XFS.
pub(super) const NEVER_SHARED: &str = "--reflink=never";

/// The measures of [`Times::figures_of`].
pub(super) fn measures(throughput: &str) -> Vec<Measure> {
    vec![
        Measure::new("returned_s", "time until it returned", "s", Better::Lower),
        Measure::new("durable_s", "time until the data was durable", "s", Better::Lower),
        Measure::new("throughput_b_s", throughput, "B/s", Better::Higher),
    ]
}

/// Times of one copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Seconds until the command returned.
    pub(super) returned: f64,
    /// Seconds until the copy was durable.
    pub(super) durable: f64,
}

impl Times {
    /// Runs a command and makes its copy durable.
    pub(super) fn take(
        command: &Stranger,
        source: &Path,
        target: &Path,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let start = Instant::now();
        let returned = command.run(source, target, stop)?.seconds;
        make_durable(target)?;
        Ok(Self { returned, durable: start.elapsed().as_secs_f64() })
    }

    /// Returns the times by the measures' names.
    pub(super) fn figures(self) -> Figures {
        [("returned_s".to_owned(), self.returned), ("durable_s".to_owned(), self.durable)].into()
    }

    /// Adds the throughput of `bytes` until the command returned.
    pub(super) fn figures_of(self, bytes: u64) -> Figures {
        let rate = if self.returned > 0.0 { real(bytes) / self.returned } else { 0.0 };
        let mut found = self.figures();
        found.insert("throughput_b_s".to_owned(), rate);
        found
    }
}

/// Makes a target by `copying`, compares it with its source, and removes it.
pub(super) fn once<T>(
    source: &Path,
    target: PathBuf,
    turn: &mut Turn<'_>,
    copying: impl FnOnce(&Path, &Stop) -> Result<T, Failure>,
) -> Result<T, Failure> {
    once_equal_in(&Options::plain(), source, target, turn, copying)
}

/// As [`once`], with these properties compared.
pub(super) fn once_equal_in<T>(
    properties: &Options,
    source: &Path,
    target: PathBuf,
    turn: &mut Turn<'_>,
    copying: impl FnOnce(&Path, &Stop) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let outcome =
        copying(&target, turn.stop()).and_then(|value| same_in(properties, source, &target).map(|()| value));
    let removed = turn.remove(target);
    let value = outcome?;
    removed?;
    Ok(value)
}

/// Makes a copy durable: one file by fsync(2), a tree by syncfs(2).
fn make_durable(target: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("sync", target, &error);
    let file = std::fs::File::open(target).map_err(failed)?;
    let is_folder = file.metadata().map_err(failed)?.is_dir();
    let synced = if is_folder { rustix::fs::syncfs(&file) } else { rustix::fs::fsync(&file) };
    synced.map_err(|errno| failed(errno.into()))
}

/// Fails unless `target` equals `source`.
pub(super) fn same(source: &Path, target: &Path) -> Result<(), Failure> {
    same_in(&Options::plain(), source, target)
}

fn same_in(properties: &Options, source: &Path, target: &Path) -> Result<(), Failure> {
    let first = std::sync::Mutex::new(None);
    let note = |difference: compare::Difference| {
        let mut first = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(difference.to_string());
    };
    compare::trees(source, target, properties, &compare::Progress::new(), &note)?;
    let first = first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    first.map_or(Ok(()), |difference| Err(Failure::Differs(format!("the copy differs: {difference}"))))
}

/// Returns the reason why the caches cannot be brought into this state.
pub(super) fn no_cache(session: &Session<'_>, state: State) -> Option<String> {
    if state != State::Cold {
        return None;
    }
    if session.machine().place.in_memory && session.machine().place.device.is_none() {
        return Some("a filesystem in memory cannot be made cold".to_owned());
    }
    (!needs::may_drop_caches()).then(|| needs::Unmet::DropCaches.to_string())
}
