//! Runs of `ferry sync` that follow one another until they are ended.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::failure::Failure;

/// Time from one look at a run to the next.
const LOOK: Duration = Duration::from_millis(20);

/// A thread that starts runs.
pub(super) struct Copying {
    ends: Arc<AtomicBool>,
    /// Returns the MiB that were copied.
    runs: JoinHandle<Result<f64, Failure>>,
}

impl Copying {
    /// Begins to copy `source` to `target` in a folder, again and again.
    pub(super) fn begin(ferry: &Path, place: &Path, options: &[&str]) -> Result<Self, Failure> {
        let ends = Arc::new(AtomicBool::new(false));
        let runs = Runs {
            ferry: ferry.to_owned(),
            place: place.to_owned(),
            options: options.iter().map(|&word| word.to_owned()).collect(),
            ends: Arc::clone(&ends),
        };
        let first = runs.start()?;
        Ok(Self { ends, runs: thread::spawn(move || runs.run(first)) })
    }

    /// Ends the run, and returns the MiB that all runs have copied.
    pub(super) fn end(self) -> Result<f64, Failure> {
        self.ends.store(true, Ordering::Relaxed);
        match self.runs.join() {
            Ok(copied) => copied,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Runs {
    ferry: PathBuf,
    place: PathBuf,
    options: Vec<String>,
    ends: Arc<AtomicBool>,
}

impl Runs {
    /// Starts a run that copies everything, and reads it from the disk if this user may empty the page cache.
    fn start(&self) -> Result<Child, Failure> {
        let target = self.place.join("target");
        if target.exists() {
            fs::remove_dir_all(&target).map_err(Failure::path("remove", &target))?;
        }
        // Without root the source stays cached: then the run only writes.
        fs::write("/proc/sys/vm/drop_caches", "3").ok();
        let mut command = Command::new(&self.ferry);
        command.arg("sync").args(&self.options).args(["source", "target"]).current_dir(&self.place);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(Failure::path("run", &self.ferry))
    }

    /// Follows runs until they are to end.
    fn run(&self, first: Child) -> Result<f64, Failure> {
        const NAME: &str = "ferry sync";
        let (mut child, mut copied) = (first, 0.0);
        loop {
            let is_over = self.ends.load(Ordering::Relaxed);
            let status = child.try_wait().map_err(Failure::start(NAME))?;
            if is_over || status.is_some() {
                copied += mib_beneath(&self.place.join("target"))?;
            }
            match status {
                Some(status) if !status.success() => return Err(Failure::Command { command: NAME }),
                _ if is_over => {
                    // It may have ended at this moment.
                    child.kill().ok();
                    child.wait().map_err(Failure::start(NAME))?;
                    return Ok(copied);
                }
                Some(_) => child = self.start()?,
                None => thread::sleep(LOOK),
            }
        }
    }
}

/// Returns the MiB that files beneath a folder take, if it is there.
fn mib_beneath(folder: &Path) -> Result<f64, Failure> {
    const PER_MIB: u64 = 2_048;
    let (mut folders, mut sectors) = (vec![folder.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.map_err(Failure::path("list", &folder))?;
            match entry.metadata() {
                Ok(facts) if facts.is_dir() => folders.push(entry.path()),
                Ok(facts) => sectors += facts.blocks(),
                // The run has renamed it.
                Err(_) => {}
            }
        }
    }
    Ok(f64::from(u32::try_from(sectors / PER_MIB).unwrap_or(u32::MAX)))
}
