//! The runtimes, each used as its documentation recommends.

#[cfg(feature = "compio")]
mod compio;
mod ferry;
#[cfg(feature = "glommio")]
mod glommio;
#[cfg(feature = "monoio")]
mod monoio;
mod plain;
mod threads;
mod tokio_blocking;
mod tokio_fs;

use crate::Failure;
use crate::work::{Part, Total, Work, processors};

/// Threads of the runtimes that block: enough to keep a disk busy.
const MANY: usize = 16;

/// Names of the runtimes in this build.
pub const NAMES: &[&str] = &[
    "ferry-io",
    "threads",
    "threads-16",
    "tokio-fs",
    "tokio-blocking",
    #[cfg(feature = "monoio")]
    "monoio",
    #[cfg(feature = "compio")]
    "compio",
    #[cfg(feature = "glommio")]
    "glommio",
];

/// Starts a runtime, does the work, and ends the runtime.
///
/// # Errors
/// The first failed operation, or an unknown name.
pub fn run(name: &str, work: &Work) -> Result<Total, Failure> {
    match name {
        "ferry-io" => ferry::run(work),
        "threads" => threads::run(work, processors()),
        "threads-16" => threads::run(work, MANY),
        "tokio-fs" => tokio_fs::run(work),
        "tokio-blocking" => tokio_blocking::run(work, MANY),
        #[cfg(feature = "monoio")]
        "monoio" => monoio::run(work),
        #[cfg(feature = "compio")]
        "compio" => compio::run(work),
        #[cfg(feature = "glommio")]
        "glommio" => glommio::run(work),
        _ => Err(format!("'{name}' is none of {}", NAMES.join(", ")).into()),
    }
}

/// Runs one thread for each processor, each with its part of the work.
#[cfg_attr(
    not(any(feature = "monoio", feature = "compio")),
    allow(dead_code, reason = "for the optional runtimes")
)]
fn on_each_processor(
    work: &Work,
    run: impl Fn(usize, Part) -> Result<Total, Failure> + Sync,
) -> Result<Total, Failure> {
    let count = processors();
    let run = &run;
    std::thread::scope(|scope| {
        let start = |index| scope.spawn(move || run(index, Part::new(work.clone(), index, count)));
        let threads: Vec<_> = (0..count).map(start).collect();
        join(threads)
    })
}

/// Waits for all threads, and adds what they have done.
fn join(threads: Vec<std::thread::ScopedJoinHandle<'_, Result<Total, Failure>>>) -> Result<Total, Failure> {
    let end = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let done: Vec<Result<Total, Failure>> = threads.into_iter().map(end).collect();
    done.into_iter().try_fold(Total::default(), |all, done| Ok(all.and(done?)))
}

/// The error for a small file that is none.
fn too_large(path: &std::path::Path) -> Failure {
    format!("'{}' is too large for a small file", path.display()).into()
}
