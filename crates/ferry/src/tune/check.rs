//! `ferry tune --check`: compares copies with and without the profile.
//!
//! Each pair copies one tree on the mount with and without the profile, in random order, from a cold cache.
//! The result is the median of the pairs' ratios, so that a disturbance affects both copies of a pair.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ferry_lab::Failure;
use ferry_lab::cache::drop_caches;
use ferry_lab::command::{time, wake};
use ferry_lab::schedule::{Progress, left, order};
use ferry_lab::session::Observer;
use ferry_lab::statistics::{Summary, ratio};
use ferry_lab::stop::Stop;
use ferry_lab::units::figure;
use ferry_lab::work::WorkFolder;
use ferry_tree::workload::{Sizes, Workload, make_while};
use ferry_tune::measure::folder_of;
use ferry_tune::store::Stored;
use ferry_tune::{kernel, store};
use rustix::fs::{Advice, fadvise, statvfs};

use super::effect::Effect;
use super::page::Page;
use super::show::{none, place_of, refused};
use super::verdict::verdict;
use crate::lab::ProgressLine;
use crate::output::Output;
use crate::quote::quote;
use crate::units::{bytes, count};

/// Number of pairs, without and with `--quick`.
const PAIRS: (u64, u64) = (21, 7);
const SEED: u64 = 13;
/// Space for the source, a copy and the filesystem's metadata, in sizes of the tree.
const ROOM: u64 = 4;

/// Options of the two copies of a pair.
const PROFILE_OPTIONS: [&str; 2] = ["--profile=auto", "--profile=none"];

/// Seconds with the profile and without, per pair.
type Pairs = Vec<(f64, f64)>;

/// Checks the profile of a path's filesystem; returns the exit code.
pub(super) fn check(path: &Path, quick: bool, output: &Output, stop: &Stop) -> Result<u8, Failure> {
    let folder = folder_of(path)?;
    let stored = in_force(path, &folder)?;
    let tree = Workload {
        sizes: Sizes::LogNormal { median: 8192, deviation_percent: 250, most: 4 << 20 },
        ..Workload::plain(8, 2, 40, 0, SEED)
    };
    must_have_room(&folder, tree.expected_bytes() * ROOM)?;
    let work = WorkFolder::make(&folder)?;
    let shown = ProgressLine::new(output);
    let pairs = take(&work, &tree, if quick { PAIRS.1 } else { PAIRS.0 }, &shown, stop);
    shown.end();
    let removed = work.remove();
    let pairs = pairs?;
    removed?;
    tell(&pairs, &tree, &stored, output)
}

/// Returns the profile of the filesystem. Fails if copies would not use it.
fn in_force(path: &Path, folder: &Path) -> Result<Stored, Failure> {
    let place = place_of(folder)?;
    let found = store::find(&store::folders(), &place.identity);
    let found = found.map_err(|(file, why)| Failure::Run(refused(&file, &why)))?;
    let stored = found.ok_or_else(|| Failure::Run(none(path, &place)))?;
    match stored.profile.stale(&place, &kernel()) {
        Some(why) => Err(Failure::Run(format!("profile {} is not in force: {why}", quote(&stored.path)))),
        None => Ok(stored),
    }
}

fn must_have_room(folder: &Path, wanted: u64) -> Result<(), Failure> {
    let found = statvfs(folder).map_err(|errno| Failure::file("look at", folder, &errno.into()))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free >= wanted {
        return Ok(());
    }
    let (folder, wanted, free) = (quote(folder), bytes(wanted), bytes(free));
    Err(Failure::Run(format!("{folder} has {free} free, but the check needs {wanted}")))
}

fn take(
    work: &WorkFolder,
    tree: &Workload,
    planned: u64,
    shown: &dyn Observer,
    stop: &Stop,
) -> Result<Pairs, Failure> {
    let (source, target) = (work.path().join("source"), work.path().join("target"));
    let ferry = crate::program::path();
    let ferry =
        ferry.map_err(|error| Failure::Run(format!("cannot find the executable of ferry: {error}")))?;
    make_while(tree, &source, 2, &|| !stop.is_set())?;
    stop.check()?;
    let mut pairs = Pairs::new();
    let begun = Instant::now();
    for round in 0..planned {
        let elapsed = begun.elapsed();
        let left = left(elapsed, round, planned - round);
        let what = "copying with the profile and without".to_owned();
        shown.progress(&Progress { what, taken: round, planned, elapsed, left });
        let mut seconds = [0.0; 2];
        for way in order(SEED, round, 2) {
            make_cold(&source, &ferry)?;
            let mut command = Command::new(&ferry);
            command.args(["cp", "-r", PROFILE_OPTIONS[way]]).args([&source, &target]);
            seconds[way] = time(&mut command, stop)?.seconds;
            ferry_tree::remove::remove(&target)?;
        }
        pairs.push((seconds[0], seconds[1]));
    }
    Ok(pairs)
}

/// Evicts the source from the page cache; without the right to drop all caches, only its bytes.
fn make_cold(source: &Path, ferry: &Path) -> Result<(), Failure> {
    if drop_caches().is_err() {
        rustix::fs::sync();
        return drop_pages(source);
    }
    // Load the program itself again.
    wake(ferry);
    Ok(())
}

fn drop_pages(source: &Path) -> Result<(), Failure> {
    let mut folders: Vec<PathBuf> = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error: std::io::Error| Failure::file("read", &folder, &error);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let file = File::open(&path).map_err(|error| Failure::file("open", &path, &error))?;
            let dropped = fadvise(&file, 0, None, Advice::DontNeed);
            dropped.map_err(|errno| Failure::file("drop the pages of", &path, &errno.into()))?;
        }
    }
    Ok(())
}

fn tell(pairs: &Pairs, tree: &Workload, stored: &Stored, output: &Output) -> Result<u8, Failure> {
    let seconds = |of: fn(&(f64, f64)) -> f64| Summary::of(&pairs.iter().map(of).collect::<Vec<_>>(), SEED);
    let both = seconds(|pair| pair.0).zip(seconds(|pair| pair.1)).zip(ratio(pairs, SEED));
    let Some(((with, without), speed)) = both else {
        return Err(Failure::Run("no pair of copies was completed".to_owned()));
    };
    let page = Page::of_standard_output();
    let one = |of: &Summary| {
        let all = [of.median.middle, of.min, of.max].map(|value| figure(value, "s"));
        format!("{} ({} to {})", all[0], all[1], all[2])
    };
    let files = format!("{} files, about {}", count(tree.file_count()), bytes(tree.expected_bytes()));
    let head = format!("{} pairs of copies of {files}; median (fastest to slowest):", pairs.len());
    let (words, code) = verdict(&speed, &Effect::here(&stored.profile), &stored.path);
    output.line(&page.wrapped(&head, 2));
    output.line(&format!("with the profile     {}", one(&with)));
    output.line(&format!("without it           {}", one(&without)));
    output.line(&page.wrapped(&words, 0));
    Ok(code)
}
