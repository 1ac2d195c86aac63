//! What a mount's device, its filesystem and the kernel are measured to do: a [`Profile`] of the place of a folder.
//!
//! [`measure`] works in one file without a name and in one hidden folder, reads before it writes (writing at random
//! takes the file apart where filesystems copy on write), and takes the subjects of each step in rounds, so that what
//! disturbs the machine disturbs all of them. Rules, with their figures in docs/experiments.md:
//! - A depth is enough if it brings [`ENOUGH`] of the most, or [`NEARLY`] and in one run all of it; the least such depth
//!   counts; the same for blocks. The deepest that is tried may be enough only because no deeper one is.
//! - Bandwidth is taken with the best block and [`SEQUENTIAL_DEPTH`] requests in flight, IOPS with enough depth.
//! - On a device so slow that not all rounds would be done in time, there are fewer, but [`LEAST_ROUNDS`] at least.
//! - What varies by more than 2 in its rounds is taken again, a few times; the narrower figure counts.
//! - A hand-over is what the same small read of a file in memory takes longer by that way than inline.

mod calls;
mod can;
mod device;
mod handed;
mod steps;
#[cfg(test)]
mod tests;
mod work;

use std::path::{Path, PathBuf};

use ferry_lab::session::Observer;
use ferry_lab::stop::Stop;
use ferry_lab::{Failure, needs};

use self::steps::Steps;
use self::work::Work;
use crate::{About, Place, Profile, VERSION};

/// A depth or a block size is enough if it brings so much of the most.
pub const ENOUGH: f64 = 0.95;
/// So much does if one of its runs brought all of the most.
pub const NEARLY: f64 = 0.9;
/// Each subject is taken so often on the slowest device, too.
pub const LEAST_ROUNDS: u32 = 2;
/// Requests in flight when blocks are compared and bandwidth is taken.
pub const SEQUENTIAL_DEPTH: u32 = 8;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Whether it is the short one.
    quick: bool,
    /// Times that each subject is taken, if there is time.
    rounds: u32,
    /// How long it may take, in seconds, before each subject is taken only [`LEAST_ROUNDS`] times.
    seconds: u64,
    /// How long a direct load runs each time, in milliseconds.
    load_ms: u64,
    /// Bytes of the file, if there is room and time.
    file_bytes: u64,
    /// How long that file may take to write, in seconds, once it is large enough.
    file_seconds: u64,
    /// Files that are made each time.
    creates: u32,
    /// Reads each time that tell what a hand-over costs.
    reads: u32,
}

impl Scale {
    /// Less than 30 s a mount, if its device does 8 MB/s and 60 requests a second at least.
    pub const QUICK: Self = Self {
        quick: true,
        rounds: 5,
        seconds: 20,
        load_ms: 150,
        file_bytes: 256 << 20,
        file_seconds: 4,
        creates: 200,
        reads: 1000,
    };
    /// About two minutes a mount.
    pub const FULL: Self = Self {
        quick: false,
        rounds: 7,
        seconds: 150,
        load_ms: 700,
        file_bytes: 1 << 30,
        file_seconds: 20,
        creates: 1000,
        reads: 5000,
    };
}

/// The folder that is measured for a path: itself, or the one that a file is in.
///
/// # Errors
/// The path can't be followed; what it leads to is neither: who names a device means what is on it, not its folder's mount.
pub fn folder_of(path: &Path) -> Result<PathBuf, Failure> {
    let found = path.canonicalize().map_err(|error| Failure::file("open", path, &error))?;
    let kind = found.metadata().map_err(|error| Failure::file("open", path, &error))?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        let why = "it is neither a folder nor a file: name a folder of the filesystem".to_owned();
        return Err(Failure::File { verb: "measure", path: path.to_owned(), why });
    }
    let parent = found.parent().filter(|_| kind.is_file()).map(Path::to_owned);
    Ok(parent.unwrap_or(found))
}

/// Measures the mount that a folder is on. Nothing is left in it, whether it succeeds or not.
///
/// # Errors
/// What the folder lacks; the first call that failed; [`Failure::Interrupted`].
pub fn measure(
    folder: &Path,
    scale: &Scale,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Profile, Failure> {
    needs::check(&[], folder)?;
    let ring = needs::ring();
    if let Err(why) = &ring {
        observer.note(&format!(
            "note: without io_uring, several requests in flight go to a pool of threads ({why})"
        ));
    }
    let work = Work::make(folder)?;
    let outcome = measured(&work, scale, ring.is_ok(), &mut Steps::new(scale, observer, stop));
    let removed = work.remove();
    // An interrupt may have been answered as a failure of whatever was under way.
    stop.check()?;
    let profile = outcome.map_err(|failure| placed(failure, folder))?;
    removed.map(|()| profile)
}

/// What a run of the runtime says names no file.
fn placed(failure: Failure, folder: &Path) -> Failure {
    let Failure::Run(why) = failure else { return failure };
    Failure::File { verb: "measure", path: folder.to_owned(), why }
}

fn measured(work: &Work, scale: &Scale, with_ring: bool, steps: &mut Steps<'_>) -> Result<Profile, Failure> {
    let folder = work.folder();
    let file = work.file(scale, steps)?;
    let direct = if device::is_direct(&file, folder)? {
        Some(device::measure(&file, with_ring, scale, steps)?)
    } else {
        steps.skip(device::SUBJECTS);
        None
    };
    let calls = calls::measure(work, &file, with_ring, scale, steps)?;
    let can = can::probe(work, &file)?;
    let handed_over = handed::probe(work, &file, with_ring, direct.is_some(), steps)?;
    let place = Place::of(work.path()).map_err(|error| Failure::file("open", folder, &error))?;
    let about = About::here(scale.quick);
    Ok(Profile { version: VERSION, about, place, direct, calls, can, handed_over })
}
