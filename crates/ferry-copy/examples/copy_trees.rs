//! Copies several trees at once: `copy_trees [--seconds N] SOURCE TARGET [SOURCE TARGET]...`
//!
//! Each copy has a thread of its own. The main thread prints their progress, and ends them after N seconds. The guide in
//! docs/library.md explains the calls.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ferry_copy::{
    Dereference, Failure, Item, Observer, Options, Preserve, Progress, Summary, Unfinished, run_in,
    split_last,
};
use ferry_io::{Io, Paths, SetupError};

const USAGE: &str = "usage: copy_trees [--seconds N] SOURCE TARGET [SOURCE TARGET]...";

/// Time between two looks at the copies.
const TICK: Duration = Duration::from_millis(20);
/// Number of ticks between two lines of progress.
const TICKS_A_LINE: u32 = 25;

fn main() -> ExitCode {
    let Some((seconds, pairs)) = arguments(std::env::args().skip(1).collect()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let jobs: Vec<Job> = pairs.iter().map(|(source, target)| Job::start(source, target)).collect();
    watch(&jobs, seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)));
    let complete = jobs.into_iter().map(Job::end).filter(|is_complete| !is_complete).count() == 0;
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Source and target.
type Pair = (PathBuf, PathBuf);

/// Returns the time limit and the pairs of paths; `None` if they are incomplete.
fn arguments(mut words: Vec<String>) -> Option<(Option<u64>, Vec<Pair>)> {
    let mut seconds = None;
    if words.first().is_some_and(|word| word == "--seconds") {
        seconds = Some(words.get(1)?.parse().ok()?);
        words.drain(..2);
    }
    let pairs: Vec<_> =
        words.chunks_exact(2).map(|pair| (pair[0].as_str().into(), pair[1].as_str().into())).collect();
    (!pairs.is_empty() && words.len() == 2 * pairs.len()).then_some((seconds, pairs))
}

/// Prints the progress of all copies until they have ended, and stops them at `end`.
fn watch(jobs: &[Job], end: Option<Instant>) {
    for tick in 1.. {
        if jobs.iter().all(|job| job.thread.is_finished()) {
            return;
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            jobs.iter().for_each(Job::stop);
        }
        if tick % TICKS_A_LINE == 0 {
            let (entries, bytes) =
                jobs.iter().map(Job::done).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            println!("{entries} entries, {bytes} bytes");
        }
        thread::sleep(TICK);
    }
}

/// A copy in progress.
struct Job {
    target: PathBuf,
    progress: Arc<Progress>,
    /// Handle of the run; `None` if it could not be set up.
    io: Option<Io>,
    thread: JoinHandle<Result<Summary, SetupError>>,
}

impl Job {
    fn start(source: &Path, target: &Path) -> Self {
        let (source, target) = (source.to_owned(), target.to_owned());
        let progress = Arc::new(Progress::default());
        let (sender, receiver) = mpsc::channel();
        let item = item(source, &target);
        let counters = Arc::clone(&progress);
        let thread = thread::spawn(move || {
            let (summary, _stats) = ferry_io::run(&ferry_io::Options::default(), async |io: Io| {
                // The receiver waits for it.
                sender.send(io.clone()).ok();
                let observer = Arc::new(Messages);
                run_in(&io, Paths::new(), &[item], &options(), counters, observer).await
            })?;
            Ok(summary)
        });
        Self { target, progress, io: receiver.recv().ok(), thread }
    }

    /// Ends the copy early. It removes its incomplete files first.
    fn stop(&self) {
        if let Some(io) = &self.io {
            io.stop();
        }
    }

    /// Returns the entries and bytes copied so far.
    fn done(&self) -> (u64, u64) {
        (self.progress.entries_done.get(), self.progress.bytes_done.get())
    }

    /// Waits for the end, prints the result, and returns true if everything was copied.
    fn end(self) -> bool {
        let target = self.target.display();
        match self.thread.join() {
            Ok(Ok(summary)) => {
                let how = if summary.interrupted { "stopped" } else { "ended" };
                let (files, bytes, failed) = (summary.files, summary.bytes(), summary.failed);
                println!("{target}: {how}; {files} files, {bytes} bytes, {failed} failed");
                failed == 0 && !summary.interrupted && !summary.out_of_space
            }
            Ok(Err(error)) => {
                eprintln!("{target}: {error}");
                false
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The copy of `source` that is to be named `target`, in a folder that exists.
fn item(source: PathBuf, target: &Path) -> Item {
    let (base, name) = split_last(target);
    Item { source, base: base.unwrap_or(Path::new(".")).to_owned(), relative: name.into() }
}

/// As `cp -a`: whole trees with all attributes.
fn options() -> Options {
    Options {
        recursive: true,
        dereference: Dereference::Never,
        preserve: Preserve::ARCHIVE,
        ..Options::default()
    }
}

/// Prints failures. Any worker's thread calls it.
struct Messages;

impl Observer for Messages {
    fn failed(&self, failure: &Failure) {
        let path = failure.source.display();
        match failure.kind.error() {
            Some(error) => eprintln!("{path}: {error}"),
            None => eprintln!("{path}: {:?}", failure.kind),
        }
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        eprintln!("{}: incomplete", unfinished.target.display());
    }
}
