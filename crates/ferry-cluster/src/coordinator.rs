//! The coordinator: the frontier, who holds which lease, and what a report changes.
//!
//! [`Coordinator::take`] applies a report and returns its record. The caller writes it to the journal *before* it sends
//! what [`Coordinator::sends`] returns, because grants may depend on it.
//!
//! [`Coordinator::replay`] applies the records of an interrupted job. It changes the same state by the same code
//! (`apply.rs`). Who held a lease is not replayed: what was not reported is in the frontier again.
//!
//! Bounds: one node for each folder that is not finished and was found in a lease that ended before it; one entry for
//! each batch, large file and name with other names that is not copied yet; and one for each file of which a name was
//! copied and others have not been found.

mod apply;
mod files;
mod frontier;
mod links;
mod tree;

use std::collections::{HashMap, VecDeque};

use crate::message::{
    Grant, Key, LargeFile, Line, NewFiles, Outcome, Record, Report, Settings, Stop, ToCoordinator, ToRank,
    Totals, Work,
};
use crate::text::Text;

use files::Files;
use frontier::Frontier;
use links::Links;
use tree::Tree;

/// Folders, names and other small pieces in one lease, at most.
const WORKS: usize = 64;

/// A record or report that does not belong to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a report names work that nobody was given")]
pub struct OutOfStep;

/// Sizes of the coordinator's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Folders that are not finished.
    pub folders: usize,
    /// Pieces of work that no rank holds.
    pub frontier: usize,
    /// Leases that ranks hold.
    pub leases: usize,
    /// Files and names in tables: batches, large files, names with other names.
    pub files: usize,
    /// Bytes of names and tables, estimated.
    pub bytes: usize,
}

#[derive(Debug)]
struct Lease {
    rank: u32,
    keys: Vec<Key>,
}

#[derive(Debug, Default, Clone)]
struct Seat {
    /// Leases that it holds.
    held: usize,
    /// Requests that are not answered yet.
    wants: usize,
    /// Set while a request to split is not answered by a report.
    is_asked: bool,
    /// Set once it was told to end, or has ended.
    is_over: bool,
}

/// State of a job, on rank 0.
#[derive(Debug)]
pub struct Coordinator {
    settings: Settings,
    tree: Tree,
    files: Files,
    links: Links,
    batches: HashMap<u64, NewBatch>,
    next_batch: u64,
    frontier: Frontier,
    leases: HashMap<u64, Lease>,
    next_lease: u64,
    /// Leases that are a folder whose listing goes on.
    listing: u32,
    seats: Vec<Seat>,
    /// Ranks in the order in which they asked.
    asking: VecDeque<u32>,
    outbox: VecDeque<(u32, ToRank)>,
    totals: Totals,
    stop: Option<Stop>,
    is_complete: bool,
}

/// Files of a folder that were given back.
#[derive(Debug)]
struct NewBatch {
    node: u64,
    names: Vec<Text>,
}

impl Coordinator {
    /// Returns the state of a job that has just begun: the root is to be listed. `ranks` may differ from those of the
    /// settings, which an interrupted job has begun with.
    #[must_use]
    pub fn new(settings: Settings, ranks: u32) -> Self {
        let mut coordinator = Self {
            settings,
            tree: Tree::new(),
            files: Files::default(),
            links: Links::default(),
            batches: HashMap::new(),
            next_batch: 0,
            frontier: Frontier::default(),
            leases: HashMap::new(),
            next_lease: 0,
            listing: 0,
            seats: vec![Seat::default(); usize::try_from(ranks).unwrap_or(0)],
            asking: VecDeque::new(),
            outbox: VecDeque::new(),
            totals: Totals::default(),
            stop: None,
            is_complete: false,
        };
        coordinator.frontier.open(Key::Folder(tree::ROOT));
        coordinator
    }

    /// Applies a line of an interrupted job's journal. Call [`Self::begin`] after the last.
    ///
    /// # Errors
    /// [`OutOfStep`] if it does not belong to the lines before.
    pub fn replay(&mut self, line: &Line) -> Result<(), OutOfStep> {
        self.frontier.replay();
        match line {
            Line::Record(record) => self.apply(&record.keys, &record.report).map(drop),
            Line::Resumed => {
                self.resume();
                Ok(())
            }
        }
    }

    /// Begins to grant leases. If lines were replayed, [`Line::Resumed`] is written to the journal before.
    pub fn begin(&mut self) {
        self.resume();
        // The others were listed, and all batches of their names copied.
        for node in self.files.awaited() {
            self.release(node);
        }
        for key in self.files.begin() {
            self.frontier.open(key);
        }
        self.frontier.begin();
        self.check_end();
    }

    /// Has folders listed again whose listing an interrupted job has not ended.
    fn resume(&mut self) {
        let relisted = self.tree.relist();
        // Their files are found once more.
        let batches = &self.batches;
        let mut dropped: Vec<_> =
            batches.iter().filter(|(_, batch)| relisted.contains(&batch.node)).map(|(&id, _)| id).collect();
        dropped.sort_unstable();
        for id in dropped {
            if let Some(batch) = self.batches.remove(&id) {
                self.frontier.close(Key::Files(id));
                self.tree.end_one(batch.node);
            }
        }
        for node in relisted {
            self.frontier.open(Key::Folder(node));
        }
        self.files.await_files(|node| self.tree.is_listed_again(node));
    }

    /// Takes a message. Returns the record that the journal is to have before anything is sent.
    ///
    /// # Errors
    /// [`OutOfStep`] if a report answers no lease.
    pub fn take(&mut self, rank: u32, message: ToCoordinator) -> Result<Option<Record>, OutOfStep> {
        let at = usize::try_from(rank).map_err(|_| OutOfStep)?;
        let seat = self.seats.get_mut(at).ok_or(OutOfStep)?;
        let record = match message {
            ToCoordinator::Want => {
                seat.wants += 1;
                self.asking.push_back(rank);
                None
            }
            ToCoordinator::Stopped(stop, _) => {
                seat.is_over = true;
                self.stop(stop);
                None
            }
            ToCoordinator::Report(report) => {
                seat.is_asked = false;
                self.answer(rank, *report)?
            }
        };
        if self.stop.is_none() {
            self.check_end();
            self.dispatch();
        }
        Ok(record)
    }

    /// Stops the job: nothing more is granted, and every rank is told to end.
    pub fn stop(&mut self, stop: Stop) {
        if self.stop.is_some() || self.is_complete {
            return;
        }
        self.stop = Some(stop);
        for rank in 0..self.ranks() {
            self.outbox.push_back((rank, ToRank::Stop(stop)));
        }
    }

    /// Returns the messages to be sent, in order.
    pub fn sends(&mut self) -> Vec<(u32, ToRank)> {
        self.outbox.drain(..).collect()
    }

    /// Returns true once everything is done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the reason for which the job was stopped.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// Returns true once no rank will send anything more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_complete || self.stop.is_some() && self.seats.iter().all(|seat| seat.is_over)
    }

    /// Returns the numbers of all that was done, by interrupted jobs too.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the sizes of the state.
    #[must_use]
    pub fn load(&self) -> Load {
        let batches: usize = self.batches.values().map(|batch| 48 + 24 * batch.names.len()).sum();
        let keys: usize = self.leases.values().map(|lease| 48 + 24 * lease.keys.len()).sum();
        let (files, links) = (self.files.len(), self.links.len());
        Load {
            folders: self.tree.len(),
            frontier: self.frontier.len(),
            leases: self.leases.len(),
            files: self.batches.len() + files + links,
            bytes: self.tree.bytes() + batches + keys + 160 * files + 120 * links + 24 * self.frontier.len(),
        }
    }

    fn ranks(&self) -> u32 {
        u32::try_from(self.seats.len()).unwrap_or(u32::MAX)
    }

    fn answer(&mut self, rank: u32, report: Report) -> Result<Option<Record>, OutOfStep> {
        let lease = self.leases.get(&report.lease).filter(|lease| lease.rank == rank).ok_or(OutOfStep)?;
        let keys = lease.keys.clone();
        if report.outcomes.len() != keys.len() {
            return Err(OutOfStep);
        }
        let is_listing = matches!(keys[..], [Key::Folder(node)] if self.tree.is_listing(node));
        let listing = self.apply(&keys, &report)?;
        for (key, outcome) in keys.iter().zip(&report.outcomes) {
            if *outcome == Outcome::Untouched {
                self.frontier.open(*key);
            }
        }
        match (report.ended, listing) {
            (false, Some(folder)) => {
                self.listing += u32::from(!is_listing);
                self.leases.insert(report.lease, Lease { rank, keys: vec![Key::Folder(folder)] });
            }
            (false, None) => return Err(OutOfStep),
            (true, _) => {
                self.listing -= u32::from(is_listing);
                self.leases.remove(&report.lease);
                if let Some(seat) = usize::try_from(rank).ok().and_then(|rank| self.seats.get_mut(rank)) {
                    seat.held = seat.held.saturating_sub(1);
                }
            }
        }
        self.outbox.push_back((rank, ToRank::Taken(report.lease)));
        let is_empty = report.outcomes.iter().all(|outcome| *outcome == Outcome::Untouched)
            && report.totals == Totals::default()
            && report.failures.is_empty();
        Ok((!is_empty).then_some(Record { keys, report }))
    }

    fn check_end(&mut self) {
        if self.tree.is_empty() && !self.is_complete {
            self.is_complete = true;
            for rank in 0..self.ranks() {
                self.outbox.push_back((rank, ToRank::End));
            }
        }
    }

    /// Grants leases while there is work and someone who wants it: idle ranks first. Asks others to split if ranks stay
    /// idle.
    fn dispatch(&mut self) {
        if self.is_complete {
            return;
        }
        for idle_only in [true, false] {
            let mut left = self.asking.len();
            while left > 0 && !self.frontier.is_empty() {
                left -= 1;
                let Some(rank) = self.asking.pop_front() else { break };
                let Some(seat) = usize::try_from(rank).ok().and_then(|rank| self.seats.get_mut(rank)) else {
                    continue;
                };
                if idle_only && seat.held > 0 {
                    self.asking.push_back(rank);
                    continue;
                }
                seat.wants -= 1;
                seat.held += 1;
                self.grant(rank);
            }
        }
        if self.frontier.is_empty() {
            self.split();
        }
    }

    fn grant(&mut self, rank: u32) {
        let share = self.frontier.len() / (2 * self.seats.len().max(1));
        let keys = self.take_keys(share.clamp(1, WORKS));
        let works = keys.iter().filter_map(|&key| self.work(key)).collect();
        let lease = self.next_lease;
        self.next_lease += 1;
        self.leases.insert(lease, Lease { rank, keys });
        self.outbox.push_back((rank, ToRank::Grant(Grant { lease, works })));
    }

    /// Takes pieces from the frontier: up to `most`, and no more than a lease's entries or bytes.
    fn take_keys(&mut self, most: usize) -> Vec<Key> {
        let (mut keys, mut entries, mut bytes) = (Vec::new(), 0, 0);
        while keys.len() < most && entries < self.settings.lease_entries && bytes < self.settings.lease_bytes
        {
            let Some(key) = self.frontier.take() else { break };
            let key = match key {
                // Its incomplete copy is removed.
                Key::Range(file, _) if self.files.has_failed(file) => continue,
                Key::Range(file, _) => {
                    let (start, more) = self.files.next_range(file, key);
                    if let Some(more) = more {
                        self.frontier.open(more);
                    }
                    bytes += self.files.range(file, start).map_or(0, |(_, _, size)| size);
                    Key::Range(file, start)
                }
                other @ (Key::Folder(_)
                | Key::Files(_)
                | Key::Owner(_)
                | Key::Close(_)
                | Key::Discard(_)
                | Key::Link(_)
                | Key::Finish(_)) => other,
            };
            entries += match key {
                Key::Folder(_) => 32,
                Key::Files(id) => self.batches.get(&id).map_or(0, |batch| batch.names.len() as u64),
                Key::Owner(_) | Key::Range(..) | Key::Close(_) | Key::Discard(_) => 1,
                Key::Link(_) | Key::Finish(_) => 1,
            };
            keys.push(key);
        }
        keys
    }

    /// Returns the work of a key.
    fn work(&self, key: Key) -> Option<Work> {
        let large = |file: u64| {
            let (node, name, version) = self.files.file(file)?;
            Some(LargeFile { folder: self.tree.path(node), name: name.clone(), version })
        };
        Some(match key {
            Key::Folder(node) => {
                let (again, is_new) = (self.tree.is_listed_again(node), self.tree.is_new(node));
                Work::Folder { path: self.tree.path(node), again, is_new }
            }
            Key::Files(id) => {
                let batch = self.batches.get(&id)?;
                Work::Files { folder: self.tree.path(batch.node), names: batch.names.clone() }
            }
            Key::Owner(id) => {
                let (node, name) = self.links.name(id)?;
                Work::Owner { folder: self.tree.path(node), name: name.clone() }
            }
            Key::Range(file, start) => {
                let (_, start, size) = self.files.range(file, start)?;
                Work::Range { file: large(file)?, start, size, makes_part: !self.files.has_part(file) }
            }
            Key::Close(file) => Work::Close { file: large(file)? },
            Key::Discard(file) => Work::Discard { file: large(file)? },
            Key::Link(id) => {
                let (node, name) = self.links.name(id)?;
                let (first_folder, first) = self.links.copy(id)?;
                let (first_folder, first) = (first_folder.clone(), first.clone());
                Work::Link { first_folder, first, folder: self.tree.path(node), name: name.clone() }
            }
            Key::Finish(node) => Work::Finish { path: self.tree.path(node), is_new: self.tree.is_new(node) },
        })
    }

    /// Asks as many ranks to split as are idle. Those whose folder is being listed are asked before ranks run dry, because
    /// only they know its files.
    fn split(&mut self) {
        let idle = self.seats.iter().filter(|seat| seat.held == 0 && seat.wants > 0).count();
        let asked = self.seats.iter().filter(|seat| seat.is_asked && seat.held > 0).count();
        let mut more = idle.saturating_sub(asked);
        if self.asking.is_empty() || more == 0 && self.listing == 0 {
            return;
        }
        let mut busy: Vec<(bool, u64, u32)> = self
            .leases
            .iter()
            .map(|(&number, lease)| {
                let is_listing = matches!(lease.keys[..], [Key::Folder(node)] if self.tree.is_listing(node));
                (!is_listing, number, lease.rank)
            })
            .collect();
        busy.sort_unstable();
        let number = u32::try_from(self.asking.len()).unwrap_or(u32::MAX);
        for (is_other, _, rank) in busy {
            let Some(seat) = usize::try_from(rank).ok().and_then(|rank| self.seats.get_mut(rank)) else {
                continue;
            };
            if !seat.is_asked && (more > 0 || !is_other) {
                seat.is_asked = true;
                more = more.saturating_sub(1);
                self.outbox.push_back((rank, ToRank::Split(number)));
            }
        }
    }

    fn add_batch(&mut self, node: u64, files: &NewFiles) {
        let id = self.next_batch;
        self.next_batch += 1;
        self.tree.begin_one(node);
        self.batches.insert(id, NewBatch { node, names: files.names.clone() });
        self.frontier.open(Key::Files(id));
    }
}
