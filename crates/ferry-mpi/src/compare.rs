//! A rank that compares: takes leases, and performs their pieces by threads, with the comparison of `ferry verify`.
//!
//! What is found goes to rank 0 among the messages of each report ([`Heard`]).

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use ferry_cluster::{Found, Grant, Next, Settings, Stop, Task, Text, ToCoordinator, ToRank, Totals, Version};
use ferry_cluster::{Walk, Work};
use ferry_tree::compare::{self, Buffers, Difference, Linked, Listed, Options, Pieces, Progress, Summary};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::performer::PAUSE;
use crate::setup::Setup;
use crate::talk::Talk;

/// Names of a folder that one thread compares at once. Of larger folders, a rank holds the listing of one at a time.
const WHOLE: usize = 2048;
/// Names of a larger folder that are compared between two looks at messages.
const AT_ONCE: usize = 256;
/// Most names in a batch for an idle rank.
const BATCH: usize = 512;
/// Fewest of them.
const SMALL_BATCH: usize = 32;
/// Batches given away from a larger folder at a time.
const BATCHES: usize = 128;

/// What rank 0 hears about a comparison.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Heard {
    /// Counters since the last report.
    Counted(Summary),
    Difference(Difference),
    /// A difference in a range of a large file.
    InRange(Difference),
    /// A name of a file with several.
    Linked(Linked),
}

/// Compares until the job ends.
///
/// # Errors
/// A message, if the trees can't be opened here.
pub(crate) fn run(
    setup: &Setup,
    options: &Options,
    inbox: &Receiver<ToRank>,
    outbox: &Sender<ToCoordinator>,
) -> Result<(), String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Without a handler the signal kills the process.
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).ok();
    }
    let (progress, heard) = (Progress::new(), Mutex::new(Vec::new()));
    let note = |difference| add(&heard, Heard::Difference(difference));
    let (source, target) = (setup.source(), setup.target());
    let roots = (source.as_path(), target.as_path());
    let pieces = Pieces::open(roots, setup.settings.large(), options, &progress, &note)
        .map_err(|error| ferry::job::unread(&error))?;
    let threads = pieces.threads();
    let performer = Performer { pieces: &pieces, heard: &heard };
    let (to_threads, jobs) = mpsc::channel();
    let (to_rank, answers) = mpsc::channel();
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let to_rank = to_rank.clone();
            let (performer, jobs) = (&performer, &jobs);
            scope.spawn(move || performer.run(jobs, &to_rank));
        }
        let talk = Talk::new(inbox, outbox);
        let settings = &setup.settings;
        let (listing, spent, counted) = (None, Summary::default(), Summary::default());
        let rank = Rank {
            settings,
            talk,
            pieces: &pieces,
            progress: &progress,
            heard: &heard,
            interrupted: &interrupted,
            threads,
            to_threads,
            answers,
            listing,
            spent,
            counted,
        };
        rank.run(outbox);
    });
    Ok(())
}

fn add(heard: &Mutex<Vec<Heard>>, what: Heard) {
    heard.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

/// A piece of the comparison.
enum Job {
    /// List a folder, and compare it unless it is large.
    Enter { folder: usize, path: Text },
    /// Go on with a large folder. Some of its names are given back if there are idle ranks.
    Continue { folder: usize, listed: Listed, most: usize, idle: usize },
    /// Compare some names of a folder.
    Files { index: usize, folder: Text, names: Vec<Text> },
    /// Compare a range of a large file.
    Range { index: usize, folder: Text, name: Text, range: Range<u64> },
}

/// What became of a piece.
enum Answer {
    /// A folder that can't be listed on both sides, which was reported.
    Unlisted {
        folder: usize,
    },
    /// A large folder, of which nothing is compared yet.
    Large {
        folder: usize,
        listed: Listed,
    },
    /// Names of a folder were compared, or are given back. A listing that is not over goes on.
    Compared {
        folder: usize,
        found: Found,
        given: Vec<Vec<Text>>,
        rest: Option<Listed>,
    },
    Files {
        index: usize,
        found: Found,
    },
    Range {
        index: usize,
    },
    Panicked,
}

/// A thread that performs pieces.
struct Performer<'a> {
    pieces: &'a Pieces<'a>,
    heard: &'a Mutex<Vec<Heard>>,
}

impl Performer<'_> {
    fn run(&self, jobs: &Mutex<Receiver<Job>>, answers: &Sender<Answer>) {
        let mut buffers = Buffers::default();
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = job else { return };
            let perform = AssertUnwindSafe(|| self.perform(job, &mut buffers));
            let answer = catch_unwind(perform).unwrap_or(Answer::Panicked);
            if answers.send(answer).is_err() {
                return;
            }
        }
    }

    fn perform(&self, job: Job, buffers: &mut Buffers) -> Answer {
        match job {
            Job::Enter { folder, path } => match self.pieces.list(path.as_bytes()) {
                None => Answer::Unlisted { folder },
                Some(listed) if listed.left() > WHOLE => Answer::Large { folder, listed },
                Some(mut listed) => {
                    let found = self.pieces.some(&mut listed, WHOLE, buffers);
                    Answer::Compared { folder, found: of(found), given: Vec::new(), rest: None }
                }
            },
            Job::Continue { folder, mut listed, most, idle } => {
                let mut found = self.pieces.some(&mut listed, most, buffers);
                let given = self.pieces.pass(&mut listed, idle.min(BATCHES) * BATCH, &mut found, buffers);
                let size = given.len().div_ceil(idle + 1).clamp(SMALL_BATCH, BATCH);
                let batch = |names: &[Vec<u8>]| names.iter().map(|name| Text::from(&name[..])).collect();
                let given = given.chunks(size).map(batch).collect();
                let rest = Some(listed).filter(|listed| listed.left() > 0);
                Answer::Compared { folder, found: of(found), given, rest }
            }
            Job::Files { index, folder, names } => {
                let names: Vec<&[u8]> = names.iter().map(Text::as_bytes).collect();
                Answer::Files { index, found: of(self.pieces.files(folder.as_bytes(), &names, buffers)) }
            }
            Job::Range { index, folder, name, range } => {
                let found = self.pieces.range(folder.as_bytes(), name.as_bytes(), range, buffers);
                found.into_iter().for_each(|difference| add(self.heard, Heard::InRange(difference)));
                Answer::Range { index }
            }
        }
    }
}

/// Returns what a piece has found as the coordinator knows it.
fn of(found: compare::Found) -> Found {
    let large = found.large.into_iter().map(|(name, attributes)| {
        let (seconds, nanoseconds) = (attributes.mtime.seconds, attributes.mtime.nanoseconds);
        let version = Version { inode: attributes.inode.number, size: attributes.size, seconds, nanoseconds };
        (Text::from(name), version)
    });
    let large = large.collect();
    Found { folders: found.folders.into_iter().map(Text::from).collect(), large, linked: Vec::new() }
}

/// One rank.
struct Rank<'a> {
    settings: &'a Settings,
    talk: Talk<'a>,
    pieces: &'a Pieces<'a>,
    progress: &'a Progress,
    heard: &'a Mutex<Vec<Heard>>,
    /// Set by a signal.
    interrupted: &'a AtomicBool,
    threads: usize,
    to_threads: Sender<Job>,
    answers: Receiver<Answer>,
    /// The listing of the large folder of this lease, while it is not being compared.
    listing: Option<Listed>,
    /// The counters that leases have spent.
    spent: Summary,
    /// The counters at the last report.
    counted: Summary,
}

impl Rank<'_> {
    fn run(mut self, outbox: &Sender<ToCoordinator>) {
        let stopped = self.work().err();
        // Threads end after the piece that they perform, and that ends soon.
        self.progress.stop();
        if let Some(stop) = stopped {
            // Nobody listens any more if the job has ended.
            outbox.send(ToCoordinator::Stopped(stop, self.take_heard())).ok();
        }
    }

    fn work(&mut self) -> Result<(), Stop> {
        loop {
            self.talk.receive();
            self.check()?;
            match self.talk.next_step() {
                Next::Perform(grant) => self.perform(grant)?,
                Next::Wait => std::thread::sleep(PAUSE),
                Next::End => return Ok(()),
                Next::Stop(stop) => return Err(stop),
            }
        }
    }

    fn check(&self) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::SeqCst) {
            return Err(Stop::Interrupted);
        }
        self.talk.stopped().map_or(Ok(()), Err)
    }

    fn perform(&mut self, grant: Grant) -> Result<(), Stop> {
        let mut walk = Walk::new(grant, self.settings);
        loop {
            self.perform_tasks(&mut walk)?;
            let report = walk.report(Totals::default(), self.take_heard());
            let ended = report.ended;
            self.talk.report(report);
            while self.talk.is_awaited() {
                self.talk.receive();
                self.check()?;
                std::thread::sleep(PAUSE);
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Performs tasks of a lease until a report is due.
    ///
    /// # Errors
    /// The reason to end before.
    fn perform_tasks(&mut self, walk: &mut Walk) -> Result<(), Stop> {
        let mut in_flight = 0;
        loop {
            self.talk.receive();
            self.check()?;
            walk.note_idle(self.talk.take_idle());
            if in_flight < self.threads
                && let Some(task) = walk.next_task()
            {
                let job = self.job(walk, task);
                in_flight += self.send(job);
            } else if in_flight == 0 {
                return Ok(());
            } else {
                match self.answers.recv_timeout(PAUSE) {
                    Ok(answer) => {
                        let next = self.take(walk, answer)?;
                        in_flight = in_flight - 1 + self.send(next);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(Stop::Failed),
                }
            }
        }
    }

    /// Passes a job to the threads. Returns the number of jobs.
    fn send(&self, job: Option<Job>) -> usize {
        let Some(job) = job else { return 0 };
        // If the threads have ended, there are no answers, which shows.
        self.to_threads.send(job).ok();
        1
    }

    /// Returns the job of a task, unless there is nothing to do.
    fn job(&mut self, walk: &mut Walk, task: Task) -> Option<Job> {
        match task {
            Task::Folder { folder, path, .. } => Some(Job::Enter { folder, path }),
            Task::Continue { folder, .. } => {
                let idle = usize::try_from(walk.idle()).unwrap_or(BATCHES);
                let Some(listed) = self.listing.take() else {
                    walk.found(folder, Found::default(), true);
                    return None;
                };
                Some(Job::Continue { folder, listed, most: AT_ONCE, idle })
            }
            Task::Finish { folder, .. } => {
                walk.finished(folder);
                None
            }
            Task::Work { index, work } => match work {
                Work::Files { folder, names } => Some(Job::Files { index, folder, names }),
                Work::Range { file, start, size } => {
                    let range = start..start.saturating_add(size);
                    Some(Job::Range { index, folder: file.folder, name: file.name, range })
                }
                // Attributes were compared when the entry was found.
                Work::Close { .. } | Work::Finish { .. } => {
                    walk.performed(index, true);
                    None
                }
                // No rank has found anything that leads to these.
                Work::Folder { .. } | Work::Owner { .. } | Work::Link { .. } | Work::Discard { .. } => {
                    walk.performed(index, false);
                    None
                }
            },
        }
    }

    /// Takes an answer. Returns the job that follows at once, if there is one.
    fn take(&mut self, walk: &mut Walk, answer: Answer) -> Result<Option<Job>, Stop> {
        match answer {
            Answer::Unlisted { folder } => walk.found(folder, Found::default(), true),
            Answer::Large { folder, listed } => {
                // Without it, another rank lists the folder.
                if walk.keeps_listing(folder) {
                    return Ok(Some(Job::Continue { folder, listed, most: WHOLE, idle: 0 }));
                }
            }
            Answer::Compared { folder, found, given, rest } => {
                for names in given {
                    walk.give_back(folder, names);
                }
                let is_whole = rest.is_none();
                if !is_whole {
                    self.listing = rest;
                }
                walk.found(folder, found, is_whole);
            }
            Answer::Files { index, found } => {
                walk.found_in_batch(index, found);
                walk.performed(index, true);
            }
            Answer::Range { index } => walk.performed(index, true),
            Answer::Panicked => return Err(Stop::Failed),
        }
        let now = self.progress.so_far();
        let before = std::mem::replace(&mut self.spent, now);
        walk.spend(now.entries - before.entries, now.bytes - before.bytes);
        Ok(None)
    }

    /// Returns what was found since the last report.
    fn take_heard(&mut self) -> Vec<String> {
        let now = self.progress.so_far();
        let before = std::mem::replace(&mut self.counted, now);
        let counted = Summary {
            entries: now.entries - before.entries,
            directories: now.directories - before.directories,
            files: now.files - before.files,
            bytes: now.bytes - before.bytes,
            differences: 0,
            shared: now.shared - before.shared,
            stopped: false,
        };
        let heard = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        let linked = self.pieces.linked().into_iter().map(Heard::Linked);
        let all = heard.into_iter().chain(linked).chain([Heard::Counted(counted)]);
        all.filter_map(|heard| serde_json::to_string(&heard).ok()).collect()
    }
}
