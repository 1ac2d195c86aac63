//! A copy on rank 0: begins it or goes on with it, and reports its end.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ferry::job::{CpCopies, NoCopy};
use ferry_cluster::{Coordinator, Header, Line, Settings, Stop, Totals};
use ferry_copy::{Copied, Dereference, Preserve};

use crate::failures::complain;
use crate::job::{Ended, Job};
use crate::journal::{self, Journal};
use crate::note::Notes;
use crate::options::Cp;
use crate::place::{self, Copy, Place};
use crate::rules;
use crate::setup::{CopyOptions, Existing, Setup, Task, text};
use crate::stats::{self, Shown};
use crate::wire::Wire;
use crate::wording::cannot;

/// Time between two lines of progress.
const TICK: Duration = Duration::from_secs(2);
/// A smaller preferred size of a filesystem is no stripe.
const LEAST_STRIPE: u64 = 64 << 10;

/// Copies as `ferry cp` does, and reports the result.
pub(crate) fn run(wire: &mut Wire, cp: &Cp) -> ExitCode {
    let begun = Instant::now();
    let refused = |wire: &mut Wire, why: &str| {
        complain(why);
        wire.send_setup(None);
        ExitCode::FAILURE
    };
    let copies = match ferry::job::cp_copies(&cp.arguments) {
        Ok(copies) => copies,
        Err(NoCopy::Refused(why)) => return refused(wire, &why),
        Err(NoCopy::Printed(code)) => {
            wire.send_setup(None);
            return code;
        }
    };
    let named = [copies.source.clone(), copies.target.clone()];
    let errors = copies.errors.as_deref().map(|path| ferry::job::open_errors(path, &named)).transpose();
    let notes = match errors {
        Ok(errors) => {
            let of_errors = |(file, path): (_, &PathBuf)| Notes::with_errors(file, path);
            let notes = errors.zip(copies.errors.as_ref()).map(of_errors);
            notes.unwrap_or_default().with_trace(copies.trace.clone())
        }
        Err(why) => return refused(wire, &why),
    };
    copies.warnings.iter().for_each(|warning| complain(warning));
    let (stats, verbose) = (copies.stats, copies.options.verbose);
    let copy = of_cp(cp, copies);
    let mut hear = |message: String| complain(&message);
    let ranks = wire.ranks();
    match perform(wire, &copy, (notes, verbose), &mut hear) {
        Ok(ended) => end(ended, stats.map(|stats| Shown { stats, ranks, took: begun.elapsed() })),
        Err(why) => {
            complain(&why);
            ExitCode::FAILURE
        }
    }
}

/// Returns the copy that `ferry cp` would make.
fn of_cp(cp: &Cp, copies: CpCopies) -> Copy {
    let CpCopies { source, target, inside, options, progress, errors, trace, .. } = copies;
    let (deciding, is_plain) = (rules::deciding(&options), rules::is_plain(&options));
    let arguments = cp.arguments.iter().map(text).collect();
    Copy {
        source,
        target,
        inside,
        follows: options.dereference != Dereference::Never,
        existing: Existing::Replaced,
        division: cp.division.clone(),
        journaling: cp.journaling.clone(),
        options: CopyOptions::Cp { arguments, records: errors.is_some() },
        deciding,
        is_plain,
        may_keep: rules::may_keep(&options),
        preserve: options.preserve,
        fsync: options.fsync,
        progress,
        is_recorded: trace.is_some(),
    }
}

/// Copies. `hear` gets the messages of failures. `verbose` is set if a new target is printed.
///
/// # Errors
/// A message for the user, if nothing was begun.
pub(crate) fn perform(
    wire: &mut Wire,
    copy: &Copy,
    (mut notes, verbose): (Notes, bool),
    hear: &mut dyn FnMut(String),
) -> Result<Ended, String> {
    let begun = begin(copy, wire.ranks());
    let (setup, coordinator, journal) = begun.inspect_err(|_| wire.send_setup(None))?;
    if verbose && setup.is_new {
        let (source, target) = (&setup.source(), &setup.target());
        notes.print(&ferry::job::copied_line(&Copied {
            source,
            target,
            backup: None,
            means: None,
            is_way: false,
        }));
    }
    let mut shown = Instant::now();
    let tick = |coordinator: &Coordinator| {
        if copy.progress && shown.elapsed() >= TICK {
            shown = Instant::now();
            show(coordinator);
        }
        None
    };
    Ok(Job::start(wire, setup, coordinator, (Some(journal), notes), hear).run(tick))
}

/// Finds the copy's place, and opens its journal.
fn begin(copy: &Copy, ranks: u32) -> Result<(Setup, Coordinator, Journal), String> {
    let (Place { source, target, journal }, existing) = (place::find(copy)?, copy.existing);
    let root = fs::metadata(&source).map_err(cannot("stat", &source))?;
    if copy.journaling.restart && copy.may_keep {
        refuse_incomplete(&journal, &target)?;
    }
    let found = Journal::open(&journal, copy.journaling.restart, copy.fsync)?;
    let is_new = make(&target, first_mode(copy.preserve, root.mode()))?;
    let identity = (root.ino(), fs::metadata(&target).map_err(cannot("stat", &target))?.ino());
    let (mut journal, header) = (found.journal, found.header);
    let is_resumed = header.is_some();
    let (settings, by_rules) = match header {
        Some(header) => {
            check(&header, copy, (&source, &target), (identity, is_new))?;
            // Offsets depend on the other sizes.
            let Settings { lease_entries, lease_bytes, .. } = copy.division.settings(ranks);
            (Settings { lease_entries, lease_bytes, ..header.settings }, header.by_rules)
        }
        None => {
            let settings = settings(copy, ranks, &target)?;
            let by_rules = !(copy.is_plain && is_new) && existing == Existing::Replaced;
            let header = Header::new(existing.task(), (text(&source), text(&target)), identity, settings);
            journal.begin(&header.with_options(&copy.deciding, by_rules))?;
            (settings, by_rules)
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
    let task = Task::Copy { existing, identity, options: copy.options.clone() };
    let mut setup = Setup::new(&source, &target, task, settings);
    (setup.ranks, setup.by_rules) = (ranks, by_rules);
    (setup.is_resumed, setup.is_new) = (is_resumed, is_new && !is_resumed);
    setup.is_recorded = copy.is_recorded;
    Ok((setup, coordinator, journal))
}

/// Refuses to go on with the journal of a job that is not this copy.
fn check(
    header: &Header,
    copy: &Copy,
    (source, target): (&Path, &Path),
    (identity, is_new): ((u64, u64), bool),
) -> Result<(), String> {
    let is_same = (&header.source, &header.target) == (&text(source), &text(target));
    let is_same_task = header.task.as_bytes() == copy.existing.task().as_bytes();
    if !is_same_task || !is_same || header.identity.0 != identity.0 {
        return Err("the journal is that of another job: see --restart and --journal".to_owned());
    }
    if is_new || header.identity.1 != identity.1 {
        if is_new {
            // The next attempt must not find it.
            fs::remove_dir(target).map_err(cannot("remove directory", target))?;
        }
        let target = target.display();
        return Err(format!("'{target}' is not the folder that the journal is about: see --restart"));
    }
    // Other rules may keep files that the interrupted copy has left incomplete.
    if header.options.as_bytes() != copy.deciding.as_bytes() {
        return Err(
            "the journal is that of a copy with other options: see --restart and --journal".to_owned()
        );
    }
    Ok(())
}

/// Refuses to forget a copy that has left incomplete files under their names, if this copy may keep them.
fn refuse_incomplete(journal: &Path, target: &Path) -> Result<(), String> {
    let Some(header) = journal::header(journal) else { return Ok(()) };
    let is_copy = header.task.as_bytes() == Existing::Replaced.task().as_bytes();
    if !is_copy || header.by_rules || header.target != text(target) || !target.exists() {
        return Ok(());
    }
    let target = target.display();
    Err(format!(
        "an interrupted copy has left incomplete files in '{target}', and -n and -u may keep them: complete it first, by its own command"
    ))
}

/// Returns the mode that the target is made with. The ranks set the rest at the end.
fn first_mode(preserve: Preserve, source: u32) -> u32 {
    if preserve.mode || preserve.ownership {
        0o700
    } else if preserve.refuse_mode {
        0o755 | source & 0o1000
    } else {
        0o700 | source & 0o1755
    }
}

/// Makes the target, if it is missing. Nobody else may write to it before it has its attributes.
fn make(target: &Path, mode: u32) -> Result<bool, String> {
    match fs::DirBuilder::new().mode(mode).create(target) {
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

fn settings(copy: &Copy, ranks: u32, target: &Path) -> Result<Settings, String> {
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
pub(crate) fn end(ended: Ended, shown: Option<Shown>) -> ExitCode {
    let Ended { totals, stopped, journal, notes } = ended;
    let mut unwritten = notes.end();
    if let Some(Err(error)) = shown.map(|shown| stats::print(&totals, &shown)) {
        unwritten.push(format!("cannot print the totals: {error}"));
    }
    unwritten.iter().for_each(|why| complain(why));
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
            if unwritten.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

/// Returns the copy of these arguments of `cp`.
#[cfg(test)]
pub(crate) fn of_words(words: &[&str]) -> Copy {
    let words = ["ferry-mpi", "cp"].iter().chain(words).map(std::ffi::OsString::from).collect();
    match crate::options::parse_words(words).map(|options| options.command) {
        Ok(crate::options::Command::Cp(cp)) => {
            let copies = ferry::job::cp_copies(&cp.arguments);
            of_cp(&cp, copies.unwrap_or_else(|refused| panic!("{refused:?}")))
        }
        other => panic!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_was_asked_for_is_the_only_size() {
        let place = tempfile::tempdir().unwrap();
        let copy = of_words(&["-aT", "/", place.path().to_str().unwrap(), "--range", "64K"]);
        let settings = settings(&copy, 4, place.path()).unwrap();
        assert_eq!((settings.range(1 << 20), settings.range(1 << 30)), (65_536, 65_536));
        assert_eq!(settings.large(), 131_072);
    }

    #[test]
    fn a_target_that_was_removed_is_not_the_one_of_the_journal() {
        let place = tempfile::tempdir().unwrap();
        let (source, target) = (place.path().join("source"), place.path().join("target"));
        fs::create_dir(&source).unwrap();
        let copy = of_words(&["-aT", source.to_str().unwrap(), target.to_str().unwrap()]);
        let begun = || begin(&copy, 2).map(|(setup, ..)| setup.is_resumed);
        assert_eq!(begun(), Ok(false));
        assert_eq!(begun(), Ok(true));
        fs::remove_dir(&target).unwrap();
        assert!(begun().is_err_and(|why| why.contains("not the folder")));
        // Nor is the new one, which an earlier attempt has made.
        assert!(begun().is_err_and(|why| why.contains("not the folder")));
    }

    #[test]
    fn a_copy_with_other_options_neither_goes_on_nor_keeps_incomplete_files() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("source")).unwrap();
        let begun = |options: &[&str]| {
            let (source, target) = (path("source"), path("target"));
            let places = [source.to_str().unwrap(), target.to_str().unwrap()];
            let copy = of_words(&[&["-T"], options, &places].concat());
            begin(&copy, 2).map(|(setup, ..)| (setup.is_resumed, setup.by_rules))
        };
        assert_eq!(begun(&["-a"]), Ok((false, false)));
        let journal = fs::read(path(".target.ferry-mpi")).unwrap();
        for other in ["-au", "-an", "-r"] {
            assert!(begun(&[other]).is_err_and(|why| why.contains("other options")), "{other}");
        }
        for other in ["-au", "-an"] {
            assert!(
                begun(&[other, "--restart"]).is_err_and(|why| why.contains("incomplete files")),
                "{other}"
            );
        }
        assert_eq!(fs::read(path(".target.ferry-mpi")).unwrap(), journal);
        assert_eq!(begun(&["-av", "--bwlimit=4K", "--lease=5"]), Ok((true, false)));
        assert_eq!(begun(&["-a", "--restart"]), Ok((false, true)), "the target was there before");
        assert_eq!(begun(&["-a"]), Ok((true, true)), "the rules are those of the first job");
        assert_eq!(begun(&["-au", "--restart"]), Ok((false, true)));
    }

    #[test]
    fn another_copy_does_not_go_on_with_a_journal() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for source in ["one", "other"] {
            fs::create_dir(path(source)).unwrap();
        }
        let copy = |source: &str, more: &[&str]| {
            let (source, target) = (path(source), path("target"));
            of_words(&[&["-aT", source.to_str().unwrap(), target.to_str().unwrap()], more].concat())
        };
        let begun =
            |source: &str, more: &[&str]| begin(&copy(source, more), 2).map(|(setup, ..)| setup.is_resumed);
        assert_eq!(begun("one", &[]), Ok(false));
        let sync = Copy { existing: Existing::Kept, ..copy("one", &[]) };
        let sync = begin(&sync, 2).map(|(setup, ..)| setup.is_resumed);
        assert!(sync.is_err_and(|why| why.contains("another job")), "a sync finds less done than a copy");
        assert!(begun("other", &[]).is_err_and(|why| why.contains("another job")));
        assert_eq!(begun("other", &["--restart"]), Ok(false));
    }
}
