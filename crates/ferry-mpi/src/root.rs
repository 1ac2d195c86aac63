//! A copy on rank 0: begins it or goes on with it, and reports its end.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ferry_cluster::{Coordinator, Header, Line, Settings, Stop, Totals};

use crate::failures::{cannot, complain};
use crate::job::{Ended, Job};
use crate::journal::Journal;
use crate::options::Copy;
use crate::place::{self, Place};
use crate::setup::{Existing, Setup, Task, text};
use crate::wire::Wire;

/// Time between two lines of progress.
const TICK: Duration = Duration::from_secs(2);
/// A smaller preferred size of a filesystem is no stripe.
const LEAST_STRIPE: u64 = 64 << 10;

/// Copies, and reports the result.
pub(crate) fn run(wire: &mut Wire, copy: &Copy) -> ExitCode {
    let mut hear = |message: String| complain(&message);
    match perform(wire, copy, Existing::Replaced, &mut hear) {
        Ok(ended) => end(ended, copy.stats),
        Err(why) => {
            complain(&why);
            ExitCode::FAILURE
        }
    }
}

/// Copies. `hear` gets the messages of failures.
///
/// # Errors
/// A message for the user, if nothing was begun.
pub(crate) fn perform(
    wire: &mut Wire,
    copy: &Copy,
    existing: Existing,
    hear: &mut dyn FnMut(String),
) -> Result<Ended, String> {
    let begun = begin(copy, existing, wire.ranks());
    let (setup, coordinator, journal) = begun.inspect_err(|_| wire.send_setup(None))?;
    let mut shown = Instant::now();
    let tick = |coordinator: &Coordinator| {
        if copy.progress && shown.elapsed() >= TICK {
            shown = Instant::now();
            show(coordinator);
        }
        None
    };
    Ok(Job::start(wire, setup, coordinator, Some(journal), hear).run(tick))
}

/// Finds the copy's place, and opens its journal.
fn begin(copy: &Copy, existing: Existing, ranks: u32) -> Result<(Setup, Coordinator, Journal), String> {
    let Place { source, target, journal } = place::find(copy)?;
    let root = fs::metadata(&source).map_err(cannot("stat", &source))?;
    let found = Journal::open(&journal, copy.journaling.restart, copy.fsync)?;
    let is_new = make(&target)?;
    let identity = (root.ino(), fs::metadata(&target).map_err(cannot("stat", &target))?.ino());
    let (mut journal, header) = (found.journal, found.header);
    let is_resumed = header.is_some();
    let settings = match header {
        Some(header) => {
            let is_same = (&header.source, &header.target) == (&text(&source), &text(&target));
            if header.task.as_bytes() != existing.task().as_bytes()
                || !is_same
                || header.identity.0 != identity.0
            {
                return Err("the journal is that of another job: see --restart and --journal".to_owned());
            }
            if is_new || header.identity.1 != identity.1 {
                if is_new {
                    // The next attempt must not find it.
                    fs::remove_dir(&target).map_err(cannot("remove directory", &target))?;
                }
                let target = target.display();
                return Err(format!("'{target}' is not the folder that the journal is about: see --restart"));
            }
            // Offsets depend on the other sizes.
            let Settings { lease_entries, lease_bytes, .. } = copy.division.settings(ranks);
            Settings { lease_entries, lease_bytes, ..header.settings }
        }
        None => {
            let settings = settings(copy, ranks, &target)?;
            let paths = (text(&source), text(&target));
            journal.begin(&Header::new(existing.task(), paths, identity, settings))?;
            settings
        }
    };
    let mut coordinator = Coordinator::new(settings, ranks);
    if is_resumed {
        let mut replay =
            |line: &Line| coordinator.replay(line).map_err(|error| format!("the journal: {error}"));
        journal.replay(&mut replay)?;
        replay(&Line::Resumed)?;
        journal.add(&Line::Resumed)?;
    }
    coordinator.begin();
    let task = Task::Copy { fsync: copy.fsync, existing, identity };
    let mut setup = Setup::new(&source, &target, task, settings);
    (setup.is_resumed, setup.is_new) = (is_resumed, is_new && !is_resumed);
    Ok((setup, coordinator, journal))
}

/// Makes the target, if it is missing. Nobody else may enter it before it has its attributes.
fn make(target: &std::path::Path) -> Result<bool, String> {
    match fs::DirBuilder::new().mode(0o700).create(target) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(target).map_err(cannot("stat", target))?;
            if found.is_dir() {
                return Ok(false);
            }
            Err(format!("cannot overwrite non-directory '{}' with a directory", target.display()))
        }
        Err(error) => Err(cannot("create directory", target)(error)),
    }
}

fn settings(copy: &Copy, ranks: u32, target: &std::path::Path) -> Result<Settings, String> {
    let mut settings = copy.division.settings(ranks);
    let preferred = fs::metadata(target).map_err(cannot("stat", target))?.blksize();
    if copy.division.range.is_none() && preferred >= LEAST_STRIPE {
        settings.stripe = preferred;
    }
    settings.stripe = copy.journaling.stripe.unwrap_or(settings.stripe);
    Ok(settings)
}

fn show(coordinator: &Coordinator) {
    let (totals, load) = (coordinator.totals(), coordinator.load());
    let Totals { entries, bytes, failed, .. } = totals;
    let (frontier, leases) = (load.frontier, load.leases);
    eprintln!(
        "ferry-mpi: {entries} entries, {bytes} bytes, {failed} failed; {frontier} pieces wait, {leases} leases"
    );
}

/// Reports the end.
pub(crate) fn end(ended: Ended, stats: bool) -> ExitCode {
    let Ended { totals, stopped, journal } = ended;
    if stats {
        print_totals(&totals);
    }
    match stopped {
        None => {
            if let Some(Err(why)) = journal.map(Journal::remove) {
                complain(&why);
                return ExitCode::FAILURE;
            }
            if totals.failed > 0 {
                complain(&format!("{} paths failed", totals.failed));
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Some(Stop::Interrupted) => {
            complain("interrupted; the same command goes on");
            ExitCode::from(130)
        }
        Some(Stop::NoSpace) => {
            complain("stopped early: space or quota is used up; the same command goes on");
            ExitCode::FAILURE
        }
        Some(Stop::Failed) => {
            complain("stopped early; the same command goes on");
            ExitCode::FAILURE
        }
    }
}

fn print_totals(totals: &Totals) {
    let Totals { entries, files, directories, symlinks, hard_links, specials, kept, bytes, failed } = totals;
    eprintln!("entries       {entries:>16}");
    eprintln!("files         {files:>16}");
    eprintln!("directories   {directories:>16}");
    eprintln!("symlinks      {symlinks:>16}");
    eprintln!("hard links    {hard_links:>16}");
    eprintln!("special files {specials:>16}");
    eprintln!("kept          {kept:>16}");
    eprintln!("bytes         {bytes:>16}");
    eprintln!("failed        {failed:>16}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_was_asked_for_is_the_only_size() {
        let place = tempfile::tempdir().map_err(|error| error.to_string());
        let place = place.unwrap();
        let copy = |arguments: &[&str]| {
            let all = [&["ferry-mpi", "cp", "-a", "a", "b"], arguments].concat();
            <crate::options::Options as clap::Parser>::try_parse_from(all)
                .map_err(|error| error.to_string())
                .unwrap()
        };
        let options = copy(&["--range", "64K"]);
        let settings = settings(options.copy(), 4, place.path()).unwrap();
        assert_eq!((settings.range(1 << 20), settings.range(1 << 30)), (65_536, 65_536));
        assert_eq!(settings.large(), 131_072);
    }

    #[test]
    fn a_target_that_was_removed_is_not_the_one_of_the_journal() {
        let place = tempfile::tempdir().map_err(|error| error.to_string()).unwrap();
        let (source, target) = (place.path().join("source"), place.path().join("target"));
        fs::create_dir(&source).unwrap();
        let arguments = ["ferry-mpi", "cp", "-aT"].map(std::ffi::OsString::from);
        let arguments = arguments.into_iter().chain([source.into(), target.clone().into()]);
        let options = <crate::options::Options as clap::Parser>::try_parse_from(arguments).unwrap();
        let begun = || begin(options.copy(), Existing::Replaced, 2).map(|(setup, ..)| setup.is_resumed);
        assert_eq!(begun(), Ok(false));
        assert_eq!(begun(), Ok(true));
        fs::remove_dir(&target).unwrap();
        assert!(begun().is_err_and(|why| why.contains("not the folder")));
        // Nor is the new one, which an earlier attempt has made.
        assert!(begun().is_err_and(|why| why.contains("not the folder")));
    }

    #[test]
    fn another_copy_does_not_go_on_with_a_journal() {
        let place = tempfile::tempdir().map_err(|error| error.to_string()).unwrap();
        let path = |name: &str| place.path().join(name);
        for source in ["one", "other"] {
            fs::create_dir(path(source)).unwrap();
        }
        let copy = |source: &str, more: &[&str]| {
            let arguments = ["ferry-mpi", "cp", "-aT"].iter().chain(more).map(std::ffi::OsString::from);
            let arguments = arguments.chain([path(source).into(), path("target").into()]);
            <crate::options::Options as clap::Parser>::try_parse_from(arguments).unwrap()
        };
        let begun = |source: &str, more: &[&str]| {
            begin(copy(source, more).copy(), Existing::Replaced, 2).map(|(setup, ..)| setup.is_resumed)
        };
        assert_eq!(begun("one", &[]), Ok(false));
        let sync = begin(copy("one", &[]).copy(), Existing::Kept, 2).map(|(setup, ..)| setup.is_resumed);
        assert!(sync.is_err_and(|why| why.contains("another job")), "a sync finds less done than a copy");
        assert!(begun("other", &[]).is_err_and(|why| why.contains("another job")));
        assert_eq!(begun("other", &["--restart"]), Ok(false));
    }
}
