//! Brings the kernel's caches into a cold or warm state before a run, and proves it on a sample of files.
//!
//! Cold: data is written back and the caches are dropped. Then openat2(2) with RESOLVE_CACHED must return EAGAIN for
//! each sampled name, and cachestat(2) must find no data in memory. Querying data opens the file, which caches its
//! inode. So data is queried after a first drop, and names, which can be queried without side effects, after a second
//! drop right before the run.
//!
//! Warm: every file is read, and both queries must find everything in memory. Where the kernel supports neither query,
//! the proof reports it.

mod proof;
pub mod sample;

use std::path::{Path, PathBuf};

use ferry_tree::compare::{self, Options, Progress};

use crate::command::wake;
use crate::error::Failure;
pub use proof::{Proof, State};
use sample::Sample;

#[cfg(test)]
mod tests;

/// Maximum attempts to reach the state.
const ATTEMPTS: usize = 3;
/// Brings the caches into `state` for the files of `sample`, then loads `programs` again. Without files there is
/// nothing to read for a warm cache, and no proof.
///
/// # Errors
/// Fails if the caches cannot be dropped or the files cannot be read.
pub fn prepare(state: State, sample: &Sample, programs: &[PathBuf]) -> Result<Option<Proof>, Failure> {
    match state {
        State::AsItIs => {
            rustix::fs::sync();
            Ok(None)
        }
        State::Warm if sample.is_none() => {
            rustix::fs::sync();
            Ok(None)
        }
        State::Warm => warm(sample).map(Some),
        State::Cold if sample.is_none() => {
            drop_caches()?;
            programs.iter().for_each(|program| wake(program));
            Ok(None)
        }
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
        sample.roots().iter().try_for_each(|root| read_all(root))?;
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

/// Writes back all data and drops the page cache, names and inodes.
///
/// # Errors
/// Fails without permission to write /proc/sys/vm/drop_caches.
pub fn drop_caches() -> Result<(), Failure> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    rustix::fs::sync();
    std::fs::write(path, "3").map_err(|error| Failure::file("write", path, &error))
}
