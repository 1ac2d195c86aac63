//! A rank that compares: takes leases, and performs them by threads, with the comparison of `ferry verify`.
//!
//! One thread walks each lease. It hands pieces to the others: a folder to be listed, some of its names, a range of a
//! file. Names that take long are divided among the threads, or given back if ranks are idle. What is found goes to rank 0
//! among the messages of each report ([`Heard`]).
//!
//! Bounds: the names of one large folder, and up to `pieces::WHOLE` names for each folder being listed; [`MOST_HEARD`] bytes of
//! messages, and those of the pieces in flight.

mod heard;
mod pieces;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use ferry_cluster::{
    Found, Grant, Next, SHARED, Settings, Stop, Task, Text, ToCoordinator, ToRank, Totals, Walk, Work,
    batch_size, names_for,
};
use ferry_tree::compare::{Listed, Options, Pieces, Progress, Summary};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::note::Sent;
use crate::setup::Setup;
use crate::talk::{PAUSE, Talk};
pub(crate) use heard::Heard;
use heard::Messages;
use pieces::{Answer, Chunk, Origin, Piece, Thread};

/// Names of a large folder for each thread that are compared between two looks at messages.
const AT_ONCE: usize = 64;
/// Fewest and most names for a thread. Of names that were left because others took long, it may be one.
const CHUNK: [usize; 2] = [8, 256];
/// Bytes of messages after which a lease ends.
const MOST_HEARD: usize = 4 << 20;

/// Compares until the job ends.
///
/// # Errors
/// A message, if the trees can't be opened here.
pub(crate) fn run(
    setup: &Setup,
    options: &Options,
    inbox: &Receiver<ToRank>,
    outbox: &Sender<Sent>,
) -> Result<(), String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM].into_iter().filter(|&signal| !ferry_io::is_ignored(signal)) {
        // Without a handler the signal kills the process.
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).ok();
    }
    let (progress, messages) = (Progress::new(), Messages::default());
    let note = |difference| messages.add(&Heard::Difference(difference));
    let (source, target) = (setup.source(), setup.target());
    let roots = (source.as_path(), target.as_path());
    let unread = |error| ferry::job::unread(&error);
    let compared = Pieces::open(roots, setup.settings.large(), options, &progress, &note).map_err(unread)?;
    // Every piece would fail here, while other ranks could perform it.
    compared.check().map_err(unread)?;
    let thread = Thread { pieces: &compared, messages: &messages };
    let (to_threads, pieces) = mpsc::channel();
    let (to_rank, answers) = mpsc::channel();
    let pieces = Mutex::new(pieces);
    thread::scope(|scope| {
        let mut threads = 0;
        for _ in 0..compared.threads() {
            let to_rank = to_rank.clone();
            let (thread, pieces) = (&thread, &pieces);
            let spawned = thread::Builder::new().spawn_scoped(scope, move || thread.run(pieces, &to_rank));
            threads += usize::from(spawned.is_ok());
        }
        if threads == 0 {
            return Err("cannot start a thread".to_owned());
        }
        let rank = Rank {
            settings: &setup.settings,
            talk: Talk::new(inbox, outbox, false),
            pieces: &compared,
            progress: &progress,
            messages: &messages,
            interrupted: &interrupted,
            threads,
            to_threads,
            answers,
            in_flight: 0,
            chunks: VecDeque::new(),
            open: HashMap::new(),
            listing: None,
            spent: Summary::default(),
            counted: Summary::default(),
        };
        rank.run(outbox);
        Ok(())
    })
}

/// Names of a folder or a batch that are being compared.
#[derive(Default)]
struct Open {
    found: Found,
    /// Number of chunks that wait or are being compared.
    chunks: usize,
    /// The rest of a large folder.
    rest: Option<Listed>,
}

/// One rank.
struct Rank<'a> {
    settings: &'a Settings,
    talk: Talk<'a>,
    pieces: &'a Pieces<'a>,
    progress: &'a Progress,
    messages: &'a Messages,
    /// Set by a signal.
    interrupted: &'a AtomicBool,
    threads: usize,
    to_threads: Sender<Piece>,
    answers: Receiver<Answer>,
    /// Pieces that threads have.
    in_flight: usize,
    chunks: VecDeque<Chunk>,
    open: HashMap<Origin, Open>,
    /// The large folder of this lease, while nothing of it is being compared.
    listing: Option<Listed>,
    /// The counters that leases have spent.
    spent: Summary,
    /// The counters at the last report.
    counted: Summary,
}

impl Rank<'_> {
    fn run(mut self, outbox: &Sender<Sent>) {
        let stopped = self.work().err();
        // Threads end after the piece that they perform, and that ends soon.
        self.progress.stop();
        if let Some(stop) = stopped {
            // Nobody listens any more if the job has ended.
            outbox.send(ToCoordinator::Stopped(stop, self.take_messages()).into()).ok();
        }
    }

    fn work(&mut self) -> Result<(), Stop> {
        loop {
            self.talk.receive();
            self.check()?;
            match self.talk.next_step() {
                Next::Perform(grant) => self.perform(grant)?,
                Next::Wait => thread::sleep(PAUSE),
                Next::End => return Ok(()),
                Next::Stop(stop) => return Err(stop),
            }
        }
    }

    fn check(&self) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::SeqCst) {
            return Err(Stop::Interrupted);
        }
        if self.messages.is_broken() {
            return Err(Stop::Failed);
        }
        self.talk.stopped().map_or(Ok(()), Err)
    }

    fn perform(&mut self, grant: Grant) -> Result<(), Stop> {
        let mut walk = Walk::new(grant, self.settings);
        loop {
            self.perform_tasks(&mut walk)?;
            let report = walk.report(Totals::default(), self.take_messages());
            let ended = report.ended;
            self.talk.report(report);
            while self.talk.is_awaited() {
                self.talk.receive();
                self.check()?;
                thread::sleep(PAUSE);
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
        loop {
            self.talk.receive();
            self.check()?;
            walk.note_idle(self.talk.take_idle());
            self.share(walk);
            if self.in_flight < self.threads {
                if let Some(chunk) = self.chunks.pop_front() {
                    self.send(Piece::Compare(chunk));
                    continue;
                }
                if let Some(task) = walk.next_task() {
                    self.begin(walk, task)?;
                    continue;
                }
                if self.in_flight == 0 {
                    return Ok(());
                }
            }
            match self.answers.recv_timeout(PAUSE) {
                Ok(answer) => {
                    self.in_flight -= 1;
                    self.take(walk, answer)?;
                    self.spend(walk);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Failed),
            }
        }
    }

    fn send(&mut self, piece: Piece) {
        self.in_flight += 1;
        // If the threads have ended, there are no answers, which shows.
        self.to_threads.send(piece).ok();
    }

    fn begin(&mut self, walk: &mut Walk, task: Task) -> Result<(), Stop> {
        match task {
            Task::Folder { folder, path, .. } => self.send(Piece::Enter { folder, path }),
            Task::Continue { folder, path } => {
                let listed = self.listing.take().ok_or(Stop::Failed)?;
                self.send(Piece::Pass { folder, path, listed, most: self.names_at_once(walk) });
            }
            Task::Finish { folder, .. } => walk.finished(folder),
            Task::Work { index, work } => match work {
                Work::Files { folder, names } => {
                    let names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
                    self.cut(Origin::Work(index), &folder, (names, true), CHUNK[0]);
                    self.end_if_done(walk, Origin::Work(index), &folder);
                }
                Work::Range { file, start, size, .. } => {
                    let range = start..start.saturating_add(size);
                    self.send(Piece::Range { index, file, range });
                }
                // Attributes were compared when the entry was found.
                Work::Close { .. } | Work::Finish { .. } => walk.performed(index, true),
                // No rank has found anything that leads to these.
                Work::Folder { .. } | Work::Owner { .. } | Work::Link { .. } | Work::Discard { .. } => {
                    return Err(Stop::Failed);
                }
            },
        }
        Ok(())
    }

    /// Number of names of a large folder that are passed at once.
    fn names_at_once(&self, walk: &Walk) -> usize {
        AT_ONCE * self.threads + names_for(walk.idle())
    }

    fn take(&mut self, walk: &mut Walk, answer: Answer) -> Result<(), Stop> {
        match answer {
            Answer::Unreadable { folder } => walk.found(folder, Found::default(), true),
            Answer::TooLong { folder, path } => {
                // Without it, another lease lists the folder.
                if walk.keeps_listing(folder) {
                    self.send(Piece::List { folder, path });
                }
            }
            Answer::Listed { folder, path, listed } => {
                self.send(Piece::Pass { folder, path, listed, most: self.names_at_once(walk) });
            }
            Answer::Passed { folder, path, found, leaves, others, rest } => {
                let origin = Origin::Folder(folder);
                self.open.insert(origin, Open { found, chunks: 0, rest });
                self.cut(origin, &path, (others, false), CHUNK[0]);
                self.cut(origin, &path, (leaves, true), CHUNK[0]);
                self.share(walk);
                self.end_if_done(walk, origin, &path);
            }
            Answer::Compared { left, found } => {
                let Chunk { origin, path, names, are_leaves } = left;
                let open = self.open.get_mut(&origin).ok_or(Stop::Failed)?;
                open.chunks -= 1;
                open.found.folders.extend(found.folders);
                open.found.large.extend(found.large);
                self.cut(origin, &path, (names, are_leaves), 1);
                self.end_if_done(walk, origin, &path);
            }
            Answer::Range { index } => walk.performed(index, true),
            Answer::Panicked => return Err(Stop::Failed),
        }
        Ok(())
    }

    /// Cuts names into chunks for the threads.
    fn cut(&mut self, origin: Origin, path: &Text, (names, are_leaves): (Vec<Vec<u8>>, bool), least: usize) {
        let size = names.len().div_ceil(self.threads).clamp(least, CHUNK[1]);
        let open = self.open.entry(origin).or_default();
        for names in names.chunks(size) {
            open.chunks += 1;
            let names = names.to_vec();
            self.chunks.push_back(Chunk { origin, path: path.clone(), names, are_leaves });
        }
    }

    /// Gives files of folders that wait for a thread back, if ranks are idle.
    fn share(&mut self, walk: &mut Walk) {
        let may_go = |chunk: &Chunk| chunk.are_leaves && matches!(chunk.origin, Origin::Folder(_));
        let files: usize =
            self.chunks.iter().filter(|chunk| may_go(chunk)).map(|chunk| chunk.names.len()).sum();
        if walk.idle() == 0 || files < SHARED {
            return;
        }
        let (going, staying): (Vec<_>, Vec<_>) = self.chunks.drain(..).partition(may_go);
        self.chunks.extend(staying);
        let size = batch_size(files, walk.idle());
        let mut folders: HashMap<usize, (Text, Vec<Vec<u8>>)> = HashMap::new();
        for Chunk { origin, path, names, .. } in going {
            if let (Origin::Folder(folder), Some(open)) = (origin, self.open.get_mut(&origin)) {
                open.chunks -= 1;
                folders.entry(folder).or_insert_with(|| (path, Vec::new())).1.extend(names);
            }
        }
        for (folder, (path, names)) in folders {
            for batch in names.chunks(size) {
                walk.give_back(folder, batch.iter().map(|name| Text::from(&name[..])).collect());
            }
            self.end_if_done(walk, Origin::Folder(folder), &path);
        }
    }

    /// Answers the walk if all names of a folder or a batch were compared or given back.
    fn end_if_done(&mut self, walk: &mut Walk, origin: Origin, path: &Text) {
        if self.open.get(&origin).is_none_or(|open| open.chunks > 0) {
            return;
        }
        let Open { mut found, rest, .. } = self.open.remove(&origin).unwrap_or_default();
        match origin {
            Origin::Folder(folder) => {
                let is_whole = rest.is_none();
                if !is_whole {
                    self.listing = rest;
                }
                walk.found(folder, found, is_whole);
            }
            Origin::Work(index) => {
                for name in found.folders.drain(..) {
                    // It was a file when it was listed.
                    self.pieces.exchanged(path.as_bytes(), name.as_bytes());
                }
                walk.found_in_batch(index, found);
                walk.performed(index, true);
            }
        }
    }

    /// Spends what was compared and reported.
    fn spend(&mut self, walk: &mut Walk) {
        let now = self.progress.so_far();
        let before = std::mem::replace(&mut self.spent, now);
        let differences = now.differences - before.differences;
        walk.spend(now.entries - before.entries + differences, now.bytes - before.bytes);
        if self.messages.bytes() > MOST_HEARD {
            walk.spend(self.settings.lease_entries, 0);
        }
    }

    /// Returns what was found since the last report.
    fn take_messages(&mut self) -> Vec<String> {
        let now = self.progress.so_far();
        let before = std::mem::replace(&mut self.counted, now);
        self.pieces.linked().into_iter().for_each(|name| self.messages.add(&Heard::Linked(name)));
        self.messages.add(&Heard::Counted(Summary {
            entries: now.entries - before.entries,
            directories: now.directories - before.directories,
            files: now.files - before.files,
            bytes: now.bytes - before.bytes,
            shared: now.shared - before.shared,
            // Rank 0 counts what it hears.
            differences: 0,
            stopped: false,
        }));
        self.messages.take()
    }
}
