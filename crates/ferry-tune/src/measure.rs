//! Measurement of a mount: device, filesystem, kernel. Its result is a [`Profile`].
//!
//! [`measure`] works in one unnamed file and one hidden folder. It reads before it writes, because random writes
//! fragment the file where filesystems copy on write. The subjects of each step are measured in rounds, so that a
//! disturbance affects all of them. Rules, with figures in docs/experiments.md:
//! - A depth suffices if it reaches [`ENOUGH`] of the maximum, or [`NEARLY`] with one run at the maximum. The
//!   smallest such depth counts; likewise for block sizes. The largest depth may suffice only because no larger one
//!   was tried.
//! - Bandwidth is measured with the best block size and [`SEQUENTIAL_DEPTH`] requests in flight, IOPS with
//!   sufficient depth.
//! - Slow devices get fewer rounds, but at least [`LEAST_ROUNDS`].
//! - A figure that varies by a factor of more than 2 is measured again, a few times; the narrower figure counts.
//! - The cost of a hand-over is the extra time of a small cached read by that route, compared with an inline read.

mod calls;
mod can;
mod device;
mod handed;
mod scale;
mod steps;
#[cfg(test)]
mod tests;
mod work;

use std::path::{Path, PathBuf};

use ferry_lab::session::Observer;
use ferry_lab::stop::Stop;
use ferry_lab::{Failure, needs};

pub use self::scale::{ENOUGH, LEAST_ROUNDS, NEARLY, SEQUENTIAL_DEPTH, Scale, is_enough};
use self::steps::Steps;
use self::work::Work;
use crate::{About, Place, Profile, VERSION};

/// Returns the folder to measure for a path: the path itself, or the parent of a file.
///
/// # Errors
/// The path cannot be resolved, or is neither a folder nor a regular file. A device stands for the filesystem on
/// it, which is not the one that its node is on.
pub fn folder_of(path: &Path) -> Result<PathBuf, Failure> {
    let found = path.canonicalize().map_err(|error| Failure::file("open", path, &error))?;
    let kind = found.metadata().map_err(|error| Failure::file("open", path, &error))?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        let why = "it is neither a folder nor a regular file; name a folder on the filesystem".to_owned();
        return Err(Failure::File { verb: "measure", path: path.to_owned(), why });
    }
    let parent = found.parent().filter(|_| kind.is_file()).map(Path::to_owned);
    Ok(parent.unwrap_or(found))
}

/// Measures the mount of a folder. Leaves nothing behind, whether it succeeds or fails.
///
/// # Errors
/// A missing requirement, the first failed call, or [`Failure::Interrupted`].
pub fn measure(
    folder: &Path,
    scale: &Scale,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Profile, Failure> {
    needs::check(&[], folder)?;
    let ring = needs::ring();
    if let Err(why) = &ring {
        observer.note(&format!("note: without io_uring, concurrent requests run on pool threads ({why})"));
    }
    let work = Work::make(folder)?;
    let mut steps = Steps::new(scale, device::SUBJECTS + calls::SUBJECTS, observer, stop);
    let outcome = measured(&work, scale, ring.is_ok(), &mut steps);
    let removed = work.remove();
    // An interrupt may have appeared as a failure of the current call.
    stop.check()?;
    let profile = outcome.map_err(|failure| placed(failure, folder))?;
    removed.map(|()| profile)
}

/// Adds the folder to a failure of the runtime, which names no file.
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
