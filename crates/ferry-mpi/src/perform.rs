//! A rank at work: takes leases, and performs them by the copier.
//!
//! Runs in a thread of its own. Several tasks of a lease are performed at once, each by a fiber: on a network filesystem each
//! waits most of the time. All fibers run on the first worker. The number of workers is the rank's share of the processors, and
//! limits how many files may be incomplete under their names. A task's changes are
//! reported only once the task is over. A task that a signal or a full filesystem has cut short is not reported, so that
//! the next run repeats its lease.
//!
//! In a job that goes on, each entry is compared with its target first, and one that is complete stays. In a sync, every existing
//! entry of the target stays as it is.

mod entries;
mod large;
mod links;
mod way;

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use ferry_cluster::{Grant, Next, Stop, Task, Text, ToCoordinator, ToRank, Totals, Walk, Work};
use ferry_copy::{Copier, Failure, FailureKind, Listing, Pair, Progress, Start, Verb};
use ferry_io::{Dir, Io, Name, Paths, Queue, Scope, Semaphore, scope};

use crate::failures::{Collecting, Failures};
use crate::note::{Note, Sent};
use crate::recording;
use crate::rules::Rules;
use crate::setup::{CopyOptions, Setup, Task as JobTask, host, words};
use crate::talk::{PAUSE, Talk};
use way::Way;

/// Times that TARGET is looked for: on a network filesystem a new one may take a moment to appear.
const ATTEMPTS: u32 = 50;
/// Time between them.
const RETRY: Duration = Duration::from_millis(100);

/// Returns the options of this rank, the inode numbers of SOURCE and TARGET on rank 0, and true if failures are for a file, too.
fn settle(setup: &Setup, workers: NonZeroUsize) -> Option<(Rules, (u64, u64), bool)> {
    let JobTask::Copy { identity, options, .. } = &setup.task else { return None };
    Some(match options {
        CopyOptions::Sync { fsync } => (Rules::of_sync(*fsync, workers), *identity, false),
        CopyOptions::Cp { arguments, records } => {
            (Rules::of_cp(&words(arguments), setup, workers)?, *identity, *records)
        }
    })
}

/// Performs leases until the job ends.
///
/// # Errors
/// A message, if the job can't be begun here.
pub(crate) fn run(
    setup: &Setup,
    workers: NonZeroUsize,
    inbox: &Receiver<ToRank>,
    outbox: &Sender<Sent>,
) -> Result<(), String> {
    let settled = settle(setup, workers);
    let (rules, identity, records) =
        settled.ok_or("the options are not those of this version of ferry-mpi")?;
    let ran = ferry_io::run(&rules.io, async |io: Io| {
        // Without handlers a signal kills the process.
        io.stop_on_signals().ok();
        let failures = Arc::new(Failures::default());
        let explains_each = rules.options.explain && rules.options.verbose;
        let observer = Collecting { failures: Arc::clone(&failures), explains_each, records };
        let (options, progress) = (rules.options.clone(), Arc::new(Progress::default()));
        let copier = Copier::with_options(io.clone(), options, progress, Arc::new(observer));
        let root = open(&io, &copier, setup, identity).await?;
        let (source, target) =
            copier.folders(&root).await.map_err(|kind| format!("cannot open the directories: {kind:?}"))?;
        let device =
            source.stat().await.map_err(|error| format!("cannot stat the source: {}", error.cause))?.device;
        let rank = Rank {
            target,
            device,
            copier: &copier,
            setup,
            rules: &rules,
            way: Way::new(&copier, root, setup.keeps_existing()),
            talk: Talk::new(inbox, outbox, setup.is_recorded),
            failures,
            spent: Cell::new(0),
            ranges: Semaphore::new(1),
            reported: Cell::default(),
            entries: Cell::new(0),
            directories: Cell::new(0),
            made: Cell::new(0),
            kept: Cell::new(0),
            listing: RefCell::new(None),
        };
        let stopped = rank.work().await.err();
        let Rank { way, failures, talk, .. } = rank;
        let spans = talk.recorder().take();
        let is_recorded = talk.recorder().is_on();
        way.end().await;
        copier.end().await;
        let note = Note { spans, host: is_recorded.then(host), ..failures.take_note() };
        // Nobody listens any more if the job has ended.
        if !note.is_empty() {
            outbox.send(Sent::Note(Box::new(note))).ok();
        }
        if let Some(stop) = stopped {
            outbox.send(ToCoordinator::Stopped(stop, failures.take()).into()).ok();
        }
        Ok(())
    });
    match ran {
        Ok((done, _)) => done,
        Err(error) => Err(error.to_string()),
    }
}

/// Opens both roots, which have to be those of rank 0.
async fn open(io: &Io, copier: &Copier, setup: &Setup, identity: (u64, u64)) -> Result<Pair, String> {
    let (source_path, target_path) = (setup.source(), setup.target());
    let opened = async |path: &Path, inode: u64| {
        // New ones each time: they keep the folder that they have opened.
        let paths = Paths::new();
        let cannot =
            |error: ferry_io::Error| format!("cannot open directory '{}': {}", path.display(), error.cause);
        let dir = io.folder(&paths, path).map_err(cannot)?;
        let is_same = dir.stat().await.map_err(cannot)?.inode == inode;
        let other = || format!("'{}' is another directory here than on rank 0", path.display());
        if is_same { Ok(dir) } else { Err(other()) }
    };
    let source = opened(&source_path, identity.0).await?;
    let mut attempt = 1;
    let target = loop {
        match opened(&target_path, identity.1).await {
            Ok(target) => break target,
            Err(why) if attempt == ATTEMPTS || ferry_io::sleep(RETRY).await.is_err() => return Err(why),
            Err(_) => attempt += 1,
        }
    };
    let start = Start { source, target, source_path, target_path, is_new: setup.is_new };
    copier.start(start).await.map_err(|kind| format!("cannot open the directories: {kind:?}"))
}

/// One rank.
struct Rank<'a> {
    copier: &'a Copier,
    setup: &'a Setup,
    /// The target's top folder.
    target: Dir,
    /// Device of the source's top folder, as this machine numbers it.
    device: u64,
    rules: &'a Rules,
    way: Way<'a>,
    talk: Talk<'a>,
    failures: Arc<Failures>,
    /// The copier's bytes that leases have spent.
    spent: Cell<u64>,
    /// Held while a range is copied: several at once would only share the bandwidth.
    ranges: Semaphore,
    /// The copier's totals at the last report.
    reported: Cell<Totals>,
    /// Entries found since the last report.
    entries: Cell<u64>,
    /// Folders entered since the last report.
    directories: Cell<u64>,
    /// Those of them that were made.
    made: Cell<u64>,
    /// Entries found complete since the last report.
    kept: Cell<u64>,
    /// The listing that goes on.
    listing: RefCell<Option<Listing>>,
}

impl Rank<'_> {
    /// Performs leases until the job is complete.
    ///
    /// # Errors
    /// The reason to end before.
    async fn work(&self) -> Result<(), Stop> {
        let mut idle = None;
        loop {
            self.talk.receive();
            self.check()?;
            let next = self.talk.next_step();
            if !matches!(next, Next::Wait)
                && let Some(began) = idle.take()
            {
                self.talk.recorder().add_idle(began);
            }
            match next {
                Next::Perform(grant) => self.perform(grant).await?,
                Next::Wait => {
                    idle.get_or_insert_with(recording::now);
                    self.pause().await?;
                }
                Next::End => return Ok(()),
                Next::Stop(stop) => return Err(stop),
            }
        }
    }

    async fn pause(&self) -> Result<(), Stop> {
        ferry_io::sleep(PAUSE).await.map_err(|_| self.reason())
    }

    /// Returns an error if the run was stopped.
    fn check(&self) -> Result<(), Stop> {
        if self.copier.is_stopped() {
            return Err(self.reason());
        }
        self.talk.stopped().map_or(Ok(()), Err)
    }

    fn reason(&self) -> Stop {
        if self.copier.totals().out_of_space { Stop::NoSpace } else { Stop::Interrupted }
    }

    async fn perform(&self, grant: Grant) -> Result<(), Stop> {
        let mut began = recording::now();
        let is_recorded = self.talk.recorder().is_on();
        let pieces = if is_recorded { recording::pieces(&grant.works) } else { String::new() };
        let walk = RefCell::new(Walk::new(grant, &self.setup.settings));
        loop {
            self.perform_tasks(&walk).await?;
            self.sync().await?;
            self.check()?;
            let report = walk.borrow_mut().report(self.take_totals(), self.failures.take());
            let ended = report.ended;
            let name = || recording::lease(report.lease, &pieces, &report.totals);
            self.talk.recorder().add(began, name);
            began = recording::now();
            self.talk.note(self.failures.take_note());
            self.talk.report(report);
            while self.talk.is_awaited() {
                self.talk.receive();
                self.check()?;
                self.pause().await?;
            }
            self.talk.recorder().add(began, || "waits for the journal".to_owned());
            began = recording::now();
            if ended {
                return Ok(());
            }
        }
    }

    /// Performs tasks of a lease until a report is due, as many at once as the copier enters folders.
    ///
    /// # Errors
    /// The reason to end before. The tasks that were begun have ended then, too.
    async fn perform_tasks(&self, walk: &RefCell<Walk>) -> Result<(), Stop> {
        let at_once = self.copier.folders_at_once();
        let in_flight = &Cell::new(0);
        let ended = &Queue::new(at_once);
        scope(async |fibers: Scope<'_, Stop>| {
            loop {
                self.talk.receive();
                walk.borrow_mut().note_idle(self.talk.take_idle());
                let stopped = self.check();
                let may_begin = stopped.is_ok() && in_flight.get() < at_once;
                let task = if may_begin { walk.borrow_mut().next_task() } else { None };
                if let Some(task) = task {
                    in_flight.set(in_flight.get() + 1);
                    fibers.spawn(async move {
                        self.perform_task(walk, task).await;
                        in_flight.set(in_flight.get() - 1);
                        // If it is full, the other side does not wait.
                        ended.try_push(()).ok();
                        Ok(())
                    });
                    ferry_io::give_way().await;
                } else if in_flight.get() == 0 {
                    return stopped;
                } else if ended.pop().await.is_err() {
                    // A signal: the tasks' calls are cancelled, too.
                    return Err(self.reason());
                }
            }
        })
        .await
    }

    async fn perform_task(&self, walk: &RefCell<Walk>, task: Task) {
        match task {
            Task::Folder { folder, path, .. } => self.enter(walk, folder, &path).await,
            Task::Continue { folder, path } => self.go_on(walk, folder, &path).await,
            Task::Finish { folder, path, is_new } => {
                self.finish(&path, is_new).await;
                walk.borrow_mut().finished(folder);
            }
            Task::Work { index, work } => {
                // What was not begun is given back.
                if let Some(is_done) = self.perform_work(walk, index, work).await {
                    walk.borrow_mut().performed(index, is_done);
                }
            }
        }
    }

    /// Performs work. Returns true if it was done, false if it failed, and `None` if it was not begun.
    async fn perform_work(&self, walk: &RefCell<Walk>, index: usize, work: Work) -> Option<bool> {
        Some(match work {
            // The walk makes a task of it.
            Work::Folder { .. } => false,
            Work::Files { folder, names } => {
                let found = self.copy_batch(walk, &folder, &names).await;
                walk.borrow_mut().found_in_batch(index, found);
                true
            }
            Work::Owner { folder, name } => self.copy_owner(&folder, &name).await,
            Work::Range { file, start, size, makes_part } => {
                let has_to_wait = self.ranges.free() == 0;
                let Ok(_turn) = self.ranges.acquire().await else { return None };
                self.talk.receive();
                walk.borrow_mut().note_idle(self.talk.take_idle());
                if self.check().is_err() || has_to_wait && walk.borrow().idle() > 0 {
                    return None;
                }
                let is_done = self.copy_range(&file, start..start + size, makes_part).await;
                self.spend_bytes(walk);
                is_done
            }
            Work::Close { file } => self.close(&file).await,
            Work::Discard { file } => self.discard(&file).await,
            Work::Link { first_folder, first, folder, name } => {
                self.link((&first_folder, &first), (&folder, &name)).await
            }
            Work::Finish { path, is_new } => {
                self.finish(&path, is_new).await;
                true
            }
        })
    }

    /// Notes the bytes copied since the last time. Those of tasks beside this one may be among them.
    fn spend_bytes(&self, walk: &RefCell<Walk>) {
        let now = self.copier.totals().bytes();
        walk.borrow_mut().spend(0, now - self.spent.replace(now));
    }

    /// Sets the attributes of a folder in which everything is done; `is_new` if a rank is known to have made it.
    async fn finish(&self, path: &Text, is_new: bool) {
        let clear = async |pair: &Pair| {
            if self.setup.is_resumed
                && !pair.is_new()
                && let Err(kind) = self.copier.clear_hidden(pair).await
            {
                self.fail_folder(path, kind);
            }
        };
        self.way.finish(path, is_new, clear).await;
    }

    /// Makes what the lease has written durable, if that is requested. A failure ends the job, and the lease is repeated.
    async fn sync(&self) -> Result<(), Stop> {
        if !self.rules.options.fsync {
            return Ok(());
        }
        let synced = ferry_io::protect(self.target.sync_filesystem()).await;
        synced.map_err(|error| {
            self.fail_folder(&Text::default(), FailureKind::Io { verb: Verb::Sync, error });
            Stop::Failed
        })
    }

    /// Returns the numbers since the last report.
    fn take_totals(&self) -> Totals {
        let now = self.copier.totals();
        let total = Totals {
            files: now.files,
            symlinks: now.symlinks,
            hard_links: now.hard_links,
            specials: now.specials,
            bytes: now.bytes(),
            failed: now.failed,
            ..Totals::default()
        };
        let before = self.reported.replace(total);
        Totals {
            entries: self.entries.take(),
            directories: self.directories.take(),
            made: self.made.take(),
            kept: self.kept.take(),
            files: total.files - before.files,
            symlinks: total.symlinks - before.symlinks,
            hard_links: total.hard_links - before.hard_links,
            specials: total.specials - before.specials,
            bytes: total.bytes - before.bytes,
            failed: total.failed - before.failed,
        }
    }

    /// Reports the failure of an entry, if there is one. Returns true if there is none.
    fn note(&self, pair: &Pair, name: &Name, outcome: Result<(), FailureKind>) -> bool {
        match outcome {
            Ok(()) => true,
            Err(kind) => {
                self.copier.fail(pair, name, kind);
                false
            }
        }
    }

    fn fail_folder(&self, path: &Text, kind: FailureKind) {
        let below = way::path(path);
        let (source, target) = (self.setup.source().join(&below), self.setup.target().join(&below));
        self.copier.fail_at(Failure { source, target, kind });
    }
}
