//! `ferry tune --check`: whether copies that begin with a profile are faster than copies without, here and now.
//!
//! A tree is made on the mount and copied there with and without the profile, in pairs of a random order, each copy from a
//! cold cache to a place of its own. What is told is the median of the pairs' ratios, so that what disturbs the machine
//! for a while disturbs both.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ferry_lab::Failure;
use ferry_lab::cache::drop_caches;
use ferry_lab::command::{time, wake};
use ferry_lab::schedule::{Progress, left, order};
use ferry_lab::session::Observer;
use ferry_lab::statistics::{Interval, Summary, ratio};
use ferry_lab::stop::Stop;
use ferry_lab::units::figure;
use ferry_lab::work::WorkFolder;
use ferry_tree::workload::{Sizes, Workload, make_while};
use ferry_tune::measure::folder_of;
use ferry_tune::{kernel, store};
use rustix::fs::{Advice, fadvise, statvfs};

use super::show::{place_of, refused};
use crate::lab::Shown;
use crate::output::Output;
use crate::quote::quote;
use crate::units::{bytes, count};

/// Slower than this, a profile does harm.
const LEAST: f64 = 0.95;
/// Slower with the profile than [`LEAST`].
const HARMS: u8 = 3;
/// Pairs of copies, and with `--quick`.
const PAIRS: (u64, u64) = (21, 7);
/// What order and trees follow from.
const SEED: u64 = 13;
/// Room for the source, a copy, and what a filesystem needs besides.
const ROOM: u64 = 4;

/// How copies are told not to use a profile, or to.
const WAYS: [&str; 2] = ["--profile=auto", "--profile=none"];

/// Seconds of copies with the profile and without, pair by pair.
type Pairs = Vec<(f64, f64)>;

/// Checks the profile of a path's filesystem; the exit code.
pub(super) fn check(path: &Path, quick: bool, output: &Output, stop: &Stop) -> Result<u8, Failure> {
    let folder = folder_of(path)?;
    must_be_in_force(path, &folder)?;
    let tree = Workload {
        sizes: Sizes::LogNormal { median: 8192, deviation_percent: 250, most: 4 << 20 },
        ..Workload::plain(8, 2, 40, 0, SEED)
    };
    must_have_room(&folder, tree.expected_bytes() * ROOM)?;
    let work = WorkFolder::make(&folder)?;
    let shown = Shown::new(output);
    let pairs = take(&work, &tree, if quick { PAIRS.1 } else { PAIRS.0 }, &shown, stop);
    shown.end();
    let removed = work.remove();
    let pairs = pairs?;
    removed?;
    tell(&pairs, &tree, output)
}

fn must_be_in_force(path: &Path, folder: &Path) -> Result<(), Failure> {
    let place = place_of(folder)?;
    let found = store::find(&store::folders(), &place.identity);
    let found = found.map_err(|(file, why)| Failure::Run(refused(&file, &why)))?;
    let none = || Failure::Run(format!("no profile is kept of the filesystem with {}", quote(path)));
    let stored = found.ok_or_else(none)?;
    match stored.profile.stale(&place, &kernel()) {
        Some(why) => Err(Failure::Run(format!("profile {} is not in force: {why}", quote(&stored.path)))),
        None => Ok(()),
    }
}

fn must_have_room(folder: &Path, wanted: u64) -> Result<(), Failure> {
    let found = statvfs(folder).map_err(|errno| Failure::file("look at", folder, &errno.into()))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free >= wanted {
        return Ok(());
    }
    let (folder, wanted, free) = (quote(folder), bytes(wanted), bytes(free));
    Err(Failure::Run(format!("{folder} has {free} free, and the check takes {wanted}")))
}

/// Makes the tree and copies it.
fn take(
    work: &WorkFolder,
    tree: &Workload,
    planned: u64,
    shown: &dyn Observer,
    stop: &Stop,
) -> Result<Pairs, Failure> {
    let (source, target) = (work.path().join("source"), work.path().join("target"));
    let ferry = std::env::current_exe();
    let ferry = ferry.map_err(|error| Failure::Run(format!("cannot find its own program: {error}")))?;
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
            command.args(["cp", "-r", WAYS[way]]).args([&source, &target]);
            seconds[way] = time(&mut command, stop)?.seconds;
            ferry_tree::remove::remove(&target)?;
        }
        pairs.push((seconds[0], seconds[1]));
    }
    Ok(pairs)
}

/// Nothing of the source is in memory, then; who may not drop the kernel's caches has its bytes alone dropped.
fn make_cold(source: &Path, ferry: &Path) -> Result<(), Failure> {
    if drop_caches().is_err() {
        rustix::fs::sync();
        return drop_pages(source);
    }
    // The program itself is to be in memory again.
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

/// Prints both, and what they come to.
fn tell(pairs: &Pairs, tree: &Workload, output: &Output) -> Result<u8, Failure> {
    let seconds = |of: fn(&(f64, f64)) -> f64| Summary::of(&pairs.iter().map(of).collect::<Vec<_>>(), SEED);
    let both = seconds(|pair| pair.0).zip(seconds(|pair| pair.1)).zip(ratio(pairs, SEED));
    let Some(((with, without), speed)) = both else {
        return Err(Failure::Run("nothing was taken".to_owned()));
    };
    let one = |of: &Summary| {
        let all = [of.median.middle, of.min, of.max].map(|value| figure(value, "s"));
        format!("{} ({} to {})", all[0], all[1], all[2])
    };
    let files = format!("{} files, about {}", count(tree.file_count()), bytes(tree.expected_bytes()));
    output.line(&format!("{} pairs of copies of {files}; median, least and most:", pairs.len()));
    output.line(&format!("with the profile     {}", one(&with)));
    output.line(&format!("without it           {}", one(&without)));
    let Interval { middle, low, high, .. } = speed;
    output.line(&format!(
        "speed with it        {middle:.2} of that without ({low:.2} to {high:.2} with 95 % confidence)"
    ));
    if middle >= LEAST {
        return Ok(0);
    }
    output
        .error(&format!("{}: copies are slower with this profile: measure again, or remove it", super::NAME));
    Ok(HARMS)
}
