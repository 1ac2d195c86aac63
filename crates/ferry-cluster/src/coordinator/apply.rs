//! Changes of the state by a report, the same when it arrives and when it is replayed.

use super::links::Step;
use super::tree::Added;
use super::{Coordinator, OutOfStep};
use crate::message::{At, Key, NewLarge, NewLinked, Outcome, Report, State, Version};

/// Numbers of a report's folders; `None` for one that an interrupted job has reported.
type Folders = Vec<Option<u64>>;

impl Coordinator {
    /// Applies a report on these pieces of work. Returns the folder whose listing goes on, if there is one.
    pub(super) fn apply(&mut self, keys: &[Key], report: &Report) -> Result<Option<u64>, OutOfStep> {
        let is_replayed = self.frontier.is_replayed();
        let mut listing = None;
        let mut folders: Folders = Vec::with_capacity(report.folders.len());
        let mut settled = Vec::new();
        for new in &report.folders {
            let number = match self.place(keys, &folders, new.at)? {
                Some(parent) => match self.tree.add(parent, &new.name, new.state, is_replayed) {
                    Some(Added::New(number)) => Some(number),
                    Some(Added::Known) => None,
                    None => return Err(OutOfStep),
                },
                None => None,
            };
            folders.push(number);
            match (number, new.state) {
                (Some(number), State::Unlisted) => self.frontier.open(Key::Folder(number)),
                (Some(number), State::Listing) => listing = Some(number),
                (Some(number), State::Listed) => settled.push(number),
                (None, _) => {}
            }
        }
        for &made in &report.made {
            if let Some(node) = self.place(keys, &folders, made)? {
                self.tree.note_made(node);
            }
        }
        for files in &report.files {
            if let Some(node) = self.place(keys, &folders, files.at)? {
                self.add_batch(node, files);
            }
        }
        for large in &report.large {
            if let Some(node) = self.place(keys, &folders, large.at)? {
                self.add_large(node, large);
            }
        }
        for linked in &report.linked {
            if let Some(node) = self.place(keys, &folders, linked.at)? {
                self.add_linked(node, linked);
            }
        }
        for (&key, &outcome) in keys.iter().zip(&report.outcomes) {
            if outcome == Outcome::Untouched {
                self.give_back(key);
                continue;
            }
            self.frontier.close(key);
            if let (Key::Folder(number), Outcome::Listing) = (key, outcome) {
                listing = Some(number);
            }
            self.end(key, outcome)?;
        }
        for number in settled {
            self.settle(number, State::Listed);
        }
        self.totals.add(&report.totals);
        Ok(listing)
    }

    /// Returns the number of the folder at a place; `None` if an interrupted job has reported it.
    fn place(&self, keys: &[Key], folders: &Folders, at: At) -> Result<Option<u64>, OutOfStep> {
        let index = |index: u32| usize::try_from(index).map_err(|_| OutOfStep);
        let number = match at {
            At::Work(work) => match keys.get(index(work)?) {
                Some(&Key::Folder(number)) => Some(number),
                Some(Key::Files(id)) => Some(self.batches.get(id).ok_or(OutOfStep)?.node),
                Some(_) | None => return Err(OutOfStep),
            },
            At::New(new) => *folders.get(index(new)?).ok_or(OutOfStep)?,
        };
        match number {
            Some(number) if !self.tree.has(number) => Err(OutOfStep),
            number => Ok(number),
        }
    }

    fn add_large(&mut self, node: u64, new: &NewLarge) {
        if self.tree.is_listed_again(node) {
            let (is_known, keys) = self.files.find_again(node, new);
            keys.into_iter().for_each(|key| self.open_file(key));
            if is_known {
                return;
            }
        }
        let key = self.files.add((node, &new.name), (new.version, !new.lacks_part), None, &self.settings);
        self.tree.begin_one(node);
        self.open_file(key);
    }

    /// Adds the first piece of a file. While records are replayed, such pieces are not noted one by one.
    fn open_file(&mut self, key: Key) {
        if !self.frontier.is_replayed() {
            self.frontier.open(key);
        }
    }

    fn add_linked(&mut self, node: u64, linked: &NewLinked) {
        let again = self.tree.is_listed_again(node);
        let step = self.links.add(node, linked, again);
        if matches!(step, Step::Known) {
            return;
        }
        self.tree.begin_one(node);
        match step {
            Step::Own(id) => self.own(id, linked.version),
            Step::Link(id) => self.frontier.open(Key::Link(id)),
            Step::Wait | Step::Known => {}
        }
    }

    /// Has a name copied as the first of its file.
    fn own(&mut self, id: u64, version: Option<Version>) {
        let large = version.filter(|version| version.size >= self.settings.large());
        let (Some(version), Some((node, name))) = (large, self.links.name(id)) else {
            self.frontier.open(Key::Owner(id));
            return;
        };
        let name = name.clone();
        let key = self.files.add((node, &name), (version, true), Some(id), &self.settings);
        self.open_file(key);
    }

    /// Applies the outcome of a piece of work.
    fn end(&mut self, key: Key, outcome: Outcome) -> Result<(), OutOfStep> {
        let is_done = outcome == Outcome::Done;
        match key {
            Key::Folder(number) | Key::Finish(number) if !self.tree.has(number) => return Err(OutOfStep),
            Key::Folder(number) => match outcome {
                Outcome::Listing => self.settle(number, State::Listing),
                Outcome::Listed => self.settle(number, State::Listed),
                Outcome::Done | Outcome::Failed | Outcome::Untouched => self.end_folder(number),
            },
            Key::Finish(number) => self.remove(number),
            Key::Files(id) => {
                let batch = self.batches.remove(&id).ok_or(OutOfStep)?;
                self.release(batch.node);
                self.end_one(batch.node);
            }
            Key::Owner(id) => self.end_owner(id, is_done)?,
            Key::Link(id) => {
                let node = self.links.linked(id).ok_or(OutOfStep)?;
                self.end_one(node);
            }
            Key::Range(file, start) => {
                self.files.file(file).ok_or(OutOfStep)?;
                let end = self.files.end_range(file, start, is_done, self.frontier.is_replayed());
                self.open_end(file, end);
            }
            Key::Close(file) | Key::Discard(file) => {
                let ended = self.files.end(file).ok_or(OutOfStep)?;
                let is_whole = is_done && matches!(key, Key::Close(_));
                match ended.owner {
                    Some(id) => self.end_owner(id, is_whole)?,
                    None => self.end_one(ended.node),
                }
            }
        }
        Ok(())
    }

    /// Adds the end of a large file, after which none of its ranges is to be copied.
    fn open_end(&mut self, file: u64, end: Option<Key>) {
        if let Some(end) = end {
            self.frontier.drop_ranges(file);
            self.frontier.open(end);
        }
    }

    /// Takes back a piece that was not begun.
    fn give_back(&mut self, key: Key) {
        let Key::Range(file, _) = key else { return };
        if !self.frontier.is_replayed() {
            let end = self.files.give_back(file);
            self.open_end(file, end);
        }
    }

    fn end_owner(&mut self, id: u64, is_done: bool) -> Result<(), OutOfStep> {
        if !is_done {
            let (node, next) = self.links.failed(id).ok_or(OutOfStep)?;
            if let Some(next) = next {
                self.frontier.open(Key::Owner(next));
            }
            self.end_one(node);
            return Ok(());
        }
        let (node, _) = self.links.name(id).ok_or(OutOfStep)?;
        let folder = self.tree.path(node);
        let (node, waiting) = self.links.copied(id, folder).ok_or(OutOfStep)?;
        for id in waiting {
            self.frontier.open(Key::Link(id));
        }
        self.end_one(node);
        Ok(())
    }

    fn settle(&mut self, number: u64, state: State) {
        if self.tree.set(number, state) {
            self.frontier.open(Key::Finish(number));
        }
        self.release(number);
    }

    /// Has large files of a folder wait no more if all names in it were found again. The others are complete or removed.
    pub(super) fn release(&mut self, node: u64) {
        let is_found = self.tree.is_listed_again(node) && self.tree.is_listed(node);
        if !is_found || !self.files.is_awaited(node) || self.batches.values().any(|batch| batch.node == node)
        {
            return;
        }
        for key in self.files.release(node) {
            self.open_file(key);
        }
    }

    fn end_one(&mut self, node: u64) {
        if self.tree.end_one(node) {
            self.frontier.open(Key::Finish(node));
        }
    }

    /// Removes a folder that was reported as finished, unless an interrupted job has found something in it that is not done.
    fn end_folder(&mut self, number: u64) {
        if self.tree.has_pending(number) {
            self.settle(number, State::Listed);
        } else {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(parent) = self.tree.remove(number) {
            self.frontier.open(Key::Finish(parent));
        }
    }
}
