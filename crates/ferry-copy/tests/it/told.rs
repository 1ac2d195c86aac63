//! Runs the copier in a simulated world and records its reports.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ferry_copy::{
    Copied, Dereference, Digest, Explained, Failure, Hashed, Item, Observer, Options, Preserve, Progress,
    Question, Summary, Unfinished,
};
use ferry_io::Name;
use ferry_io::sim::World;

/// Reports of a run.
#[derive(Default)]
pub(crate) struct Told {
    failures: Mutex<Vec<Failure>>,
    unfinished: Mutex<Vec<Unfinished>>,
    hashes: Mutex<Vec<(PathBuf, Digest)>>,
}

impl Told {
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.failures.lock().unwrap().clone()
    }

    /// Returns the hashes of targets, in the order in which they were reported.
    pub(crate) fn hashes(&self) -> Vec<(PathBuf, Digest)> {
        self.hashes.lock().unwrap().clone()
    }
}

impl Observer for Told {
    fn leaves_out(&self, _: &Path, name: &Name) -> bool {
        name.as_bytes() == b"left out"
    }

    fn copied(&self, _: &Copied<'_>) {}

    fn removed(&self, _: &Path) {}

    fn taken_back(&self, _: &Path, _: &Path) {}

    fn agrees(&self, _: &Path, _: Question, _: &dyn Fn() -> bool) -> bool {
        false
    }

    fn explained(&self, _: &Explained<'_>) {}

    fn hashed(&self, hashed: &Hashed<'_>) {
        self.hashes.lock().unwrap().push((hashed.target.to_owned(), hashed.digest));
    }

    fn failed(&self, failure: &Failure) {
        self.failures.lock().unwrap().push(failure.clone());
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.unfinished.lock().unwrap().push(unfinished.clone());
    }
}

/// Result of a copy.
pub(crate) struct Outcome {
    pub(crate) summary: Summary,
    pub(crate) failures: Vec<Failure>,
    pub(crate) unfinished: Vec<Unfinished>,
    /// Hashes of targets, in the order in which they were reported.
    pub(crate) hashes: Vec<(PathBuf, Digest)>,
    pub(crate) progress: Arc<Progress>,
}

/// Options of `cp -a`.
pub(crate) fn archive() -> Options {
    Options {
        recursive: true,
        dereference: Dereference::Never,
        preserve: Preserve::ARCHIVE,
        ..Options::default()
    }
}

/// Copies `/source` to `/target`, existing or not. Panics if a file stays open or a block is lost.
pub(crate) fn copy(world: &World, options: &Options, io: &ferry_io::Options) -> Outcome {
    let told = Arc::new(Told::default());
    let progress = Arc::new(Progress::default());
    let items = vec![Item { source: "/source".into(), base: "/".into(), relative: "target".into() }];
    let observer = Arc::clone(&told) as Arc<dyn Observer>;
    let summary =
        ferry_copy::run_from(ferry_io::Paths::new(), items, options, io, Arc::clone(&progress), observer)
            .unwrap();
    assert_eq!(world.open_descriptors(), Vec::<String>::new(), "descriptors are open");
    assert_eq!(world.blocks_outstanding(), 0, "blocks are lost");
    let failures = std::mem::take(&mut *told.failures.lock().unwrap());
    let unfinished = std::mem::take(&mut *told.unfinished.lock().unwrap());
    assert_eq!(summary.failed, failures.len() as u64);
    assert_eq!(summary.unfinished, unfinished.len() as u64);
    Outcome { summary, failures, unfinished, hashes: told.hashes(), progress }
}

/// Returns a test's number of rounds times `FERRY_SEEDS`, which is a number or a fraction such as 1/8.
pub(crate) fn scaled(count: u64) -> u64 {
    let factor = std::env::var("FERRY_SEEDS").unwrap_or_else(|_| "1".to_owned());
    let (times, parts) = factor.split_once('/').unwrap_or((&factor, "1"));
    let number = |text: &str| text.parse::<u64>().expect("FERRY_SEEDS is a number or a fraction");
    (count * number(times)).div_ceil(number(parts)).max(1)
}

/// Returns a test's seeds: [`scaled`] many, or `FERRY_SEED` alone.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("FERRY_SEED") {
        Some(seed) => vec![seed],
        None => (0..scaled(count)).collect(),
    }
}

/// Returns true if the environment names a single seed.
pub(crate) fn is_one_seed() -> bool {
    std::env::var_os("FERRY_SEED").is_some()
}

/// Runs a test's body for each seed, and names the seed that panics.
pub(crate) fn for_seeds(count: u64, body: impl Fn(u64)) {
    for seed in seeds(count) {
        if let Err(panic) = named(seed, &body) {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Runs several seeds at once and all to their end, and names each one that panics.
pub(crate) fn for_seeds_at_once(count: u64, body: impl Fn(u64) + Sync) {
    let seeds = seeds(count);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if named(seed, &body).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "of {} seeds {} failed: {failed:?}", seeds.len(), failed.len());
}

fn named(seed: u64, body: &impl Fn(u64)) -> std::thread::Result<()> {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(seed)));
    if ended.is_err() {
        eprintln!("replay with FERRY_SEED={seed}");
    }
    ended
}
