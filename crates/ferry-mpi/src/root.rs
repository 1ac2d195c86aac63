//! Rank 0: begins the job or goes on with it, keeps the journal, and answers the ranks.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ferry_cluster::{Coordinator, Header, Line, Settings, Stop, ToCoordinator, Totals};

use crate::failures::cannot;
use crate::journal::{Journal, Unwritten};
use crate::options::{Copy, Options};
use crate::performer::{PAUSE, Performer, Said};
use crate::place::{self, Place};
use crate::setup::{Setup, text};
use crate::wire::Wire;

/// Time between two lines of progress.
const TICK: Duration = Duration::from_secs(2);
/// Time that ranks have to end after a stop. A rank that was killed never answers.
const PATIENCE: Duration = Duration::from_secs(60);
/// A smaller preferred size of a filesystem is no stripe.
const LEAST_STRIPE: u64 = 64 << 10;

/// Runs the job, and reports its result.
pub(crate) fn run(wire: &mut Wire, options: &Options) -> ExitCode {
    let copy = options.copy();
    let (setup, coordinator, journal) = match begin(copy, wire.ranks()) {
        Ok(begun) => begun,
        Err(why) => {
            complain(&why);
            wire.send_setup(None);
            return ExitCode::FAILURE;
        }
    };
    wire.send_setup(Some(&setup));
    let performer = Performer::start(setup, options);
    let job = Job { wire, performer, coordinator, journal, shown: Instant::now(), stopped: None };
    job.run(copy)
}

/// Finds the copy's place, and opens its journal.
fn begin(copy: &Copy, ranks: u32) -> Result<(Setup, Coordinator, Journal), String> {
    let Place { source, target, journal } = place::find(copy)?;
    let root = fs::metadata(&source).map_err(cannot("stat", &source))?;
    let found = Journal::open(&journal, copy.restart, copy.fsync)?;
    let is_new = make(&target)?;
    let identity = (root.ino(), fs::metadata(&target).map_err(cannot("stat", &target))?.ino());
    let (mut journal, header) = (found.journal, found.header);
    let is_resumed = header.is_some();
    let settings = match header {
        Some(header) => {
            if header.source != text(&source)
                || header.target != text(&target)
                || header.identity.0 != identity.0
            {
                return Err("the journal is that of another copy: see --restart and --journal".to_owned());
            }
            if is_new || header.identity.1 != identity.1 {
                if is_new {
                    // The next attempt must not find it.
                    fs::remove_dir(&target).map_err(cannot("remove directory", &target))?;
                }
                let target = target.display();
                return Err(format!("'{target}' is not the folder that the journal is about: see --restart"));
            }
            header.settings
        }
        None => {
            let settings = settings(copy, ranks, &target)?;
            journal.begin(&Header::new(text(&source), text(&target), identity, settings))?;
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
    let mut setup = Setup::new(&source, &target, settings);
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
    let mut settings = Settings { lease_entries: copy.lease, ..Settings::new(ranks) };
    if let Some(range) = copy.range {
        (settings.range_least, settings.range_most) = (range, range);
        settings.stripe = 1;
    }
    let preferred = fs::metadata(target).map_err(cannot("stat", target))?.blksize();
    if copy.range.is_none() && preferred >= LEAST_STRIPE {
        settings.stripe = preferred;
    }
    settings.stripe = copy.stripe.unwrap_or(settings.stripe);
    Ok(settings)
}

/// A job under way.
struct Job<'a> {
    wire: &'a mut Wire,
    performer: Performer,
    coordinator: Coordinator,
    journal: Journal,
    shown: Instant,
    /// Time of the stop.
    stopped: Option<Instant>,
}

impl Job<'_> {
    fn run(mut self, copy: &Copy) -> ExitCode {
        self.send();
        loop {
            let mut is_quiet = true;
            for (rank, message) in self.wire.receive() {
                is_quiet = false;
                match serde_json::from_slice(&message) {
                    Ok(message) => self.take(rank, message),
                    Err(error) => self.fail(&format!("a message of rank {rank}: {error}"), Stop::Failed),
                }
            }
            let is_ended = match self.performer.next() {
                Said::Message(message) => {
                    is_quiet = false;
                    self.take(0, message);
                    false
                }
                Said::Nothing => false,
                Said::Ended => true,
            };
            if is_ended && self.coordinator.is_over() {
                return self.end(copy);
            }
            if self.stopped.is_some_and(|since| since.elapsed() > PATIENCE) {
                complain("some ranks have not ended");
                return self.end(copy);
            }
            if copy.progress && self.shown.elapsed() >= TICK {
                self.shown = Instant::now();
                self.show();
            }
            if is_quiet {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn take(&mut self, rank: u32, message: ToCoordinator) {
        let failures = match &message {
            ToCoordinator::Report(report) => report.failures.clone(),
            ToCoordinator::Stopped(_, failures) => failures.clone(),
            ToCoordinator::Want => Vec::new(),
        };
        failures.iter().for_each(|failure| complain(failure));
        match self.coordinator.take(rank, message) {
            Ok(Some(record)) => {
                let added = self.journal.add(&Line::Record(Box::new(record)));
                if self.journal.is_broken() {
                    // Nothing that depends on the record is sent.
                    drop(self.coordinator.sends());
                }
                if let Err(Unwritten { why, is_full }) = added {
                    self.fail(&why, if is_full { Stop::NoSpace } else { Stop::Failed });
                }
            }
            Ok(None) => {}
            Err(error) => self.fail(&format!("rank {rank}: {error}"), Stop::Failed),
        }
        if self.coordinator.stopped().is_some() && self.stopped.is_none() {
            self.stopped = Some(Instant::now());
        }
        self.send();
    }

    fn fail(&mut self, why: &str, stop: Stop) {
        complain(why);
        self.coordinator.stop(stop);
        self.stopped.get_or_insert_with(Instant::now);
        self.send();
    }

    fn send(&mut self) {
        for (rank, message) in self.coordinator.sends() {
            if rank == 0 {
                self.performer.pass(message);
            } else {
                self.wire.send_json(rank, &message);
            }
        }
    }

    fn show(&self) {
        let (totals, load) = (self.coordinator.totals(), self.coordinator.load());
        let Totals { entries, bytes, failed, .. } = totals;
        let (frontier, leases) = (load.frontier, load.leases);
        eprintln!(
            "ferry-mpi: {entries} entries, {bytes} bytes, {failed} failed; {frontier} pieces wait, {leases} leases"
        );
    }

    /// Reports the end.
    fn end(self, copy: &Copy) -> ExitCode {
        let totals = self.coordinator.totals();
        if copy.stats {
            print_totals(&totals);
        }
        match self.coordinator.stopped() {
            None => {
                if let Err(why) = self.journal.remove() {
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

fn complain(why: &str) {
    // Without a standard error there is nobody to tell.
    writeln!(std::io::stderr(), "ferry-mpi: {why}").ok();
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
            <Options as clap::Parser>::try_parse_from(all).map_err(|error| error.to_string()).unwrap()
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
        let options = <Options as clap::Parser>::try_parse_from(arguments).unwrap();
        let begun = || begin(options.copy(), 2).map(|(setup, ..)| setup.is_resumed);
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
        let begun = |source: &str, more: &[&str]| {
            let arguments = ["ferry-mpi", "cp", "-aT"].iter().chain(more).map(std::ffi::OsString::from);
            let arguments = arguments.chain([path(source).into(), path("target").into()]);
            let options = <Options as clap::Parser>::try_parse_from(arguments).unwrap();
            begin(options.copy(), 2).map(|(setup, ..)| setup.is_resumed)
        };
        assert_eq!(begun("one", &[]), Ok(false));
        assert!(begun("other", &[]).is_err_and(|why| why.contains("another copy")));
        assert_eq!(begun("other", &["--restart"]), Ok(false));
    }
}
