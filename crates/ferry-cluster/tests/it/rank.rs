//! A rank that performs its leases on the trees in memory.

use std::collections::VecDeque;

use ferry_cluster::{
    Found, LargeFile, Leases, Next, Settings, Stop, Task, Text, ToCoordinator, ToRank, Totals, Version, Walk,
    Work,
};
use ferry_tree::fill::SplitMix64;

use crate::model::{Copied, File, Model};

/// Names read from a folder at once.
const CHUNK: usize = 6;
/// Pieces performed at once.
const AT_ONCE: usize = 4;

/// The rest of a folder's listing.
#[derive(Debug, Default)]
struct Rest {
    folders: VecDeque<Text>,
    files: VecDeque<File>,
}

pub(crate) struct Rank {
    pub(crate) inbox: VecDeque<ToRank>,
    leases: Leases,
    settings: Settings,
    walk: Option<Walk>,
    /// Pieces that are begun and not answered.
    doing: Vec<Task>,
    rest: Rest,
    totals: Totals,
    is_resumed: bool,
    /// Set once it has ended.
    pub(crate) is_over: bool,
    /// Percentage of ranges that fail.
    fails: u64,
    /// Paths that were changed since the last report: what a kill makes it repeat.
    pub(crate) unreported: Vec<Text>,
    has_reported: bool,
}

impl Rank {
    pub(crate) fn new(settings: Settings, is_resumed: bool, fails: u64) -> Self {
        Self {
            inbox: VecDeque::new(),
            leases: Leases::default(),
            settings,
            walk: None,
            doing: Vec::new(),
            rest: Rest::default(),
            totals: Totals::default(),
            is_resumed,
            is_over: false,
            fails,
            unreported: Vec::new(),
            has_reported: false,
        }
    }

    /// Takes a message, or performs one piece. Returns what it sends.
    pub(crate) fn step(
        &mut self,
        model: &Model,
        copied: &mut Copied,
        random: &mut SplitMix64,
    ) -> Vec<ToCoordinator> {
        if self.is_over {
            return Vec::new();
        }
        if !self.inbox.is_empty() && random.percent(60) {
            let message = self.inbox.pop_front().unwrap();
            let mut sent = self.leases.take(message);
            if !self.leases.is_awaited() && self.has_reported {
                self.has_reported = false;
                self.unreported.clear();
            }
            sent.extend(self.leases.asks());
            return sent;
        }
        let Some(mut walk) = self.walk.take() else { return self.begin() };
        walk.note_idle(self.leases.take_idle());
        if let Some(stop) = self.leases.stopped() {
            return self.stop(stop);
        }
        if self.leases.is_awaited() {
            self.walk = Some(walk);
            return Vec::new();
        }
        if self.doing.len() < AT_ONCE {
            self.doing.extend(walk.next_task());
        }
        if !self.doing.is_empty() {
            // Pieces end in any order.
            if random.percent(60) {
                let task = self.doing.swap_remove(random.index(self.doing.len()));
                self.perform(&mut walk, task, model, copied, random);
            }
            self.walk = Some(walk);
            return Vec::new();
        }
        let report = walk.report(std::mem::take(&mut self.totals), Vec::new());
        self.has_reported = true;
        self.leases.report(report.lease, report.ended);
        if !report.ended {
            self.walk = Some(walk);
        }
        vec![ToCoordinator::Report(Box::new(report))].into_iter().chain(self.leases.asks()).collect()
    }

    fn begin(&mut self) -> Vec<ToCoordinator> {
        match self.leases.next_step() {
            Next::Perform(grant) => {
                self.walk = Some(Walk::new(grant, &self.settings));
                self.leases.asks()
            }
            Next::Wait => self.leases.asks(),
            Next::End => {
                self.is_over = true;
                Vec::new()
            }
            Next::Stop(stop) => self.stop(stop),
        }
    }

    fn stop(&mut self, stop: Stop) -> Vec<ToCoordinator> {
        self.is_over = true;
        vec![ToCoordinator::Stopped(stop, Vec::new())]
    }

    fn perform(
        &mut self,
        walk: &mut Walk,
        task: Task,
        model: &Model,
        copied: &mut Copied,
        random: &mut SplitMix64,
    ) {
        match task {
            Task::Folder { folder, path, .. } => {
                if copied.made.insert(path.clone()) {
                    walk.note_made(folder);
                }
                let is_finished = copied.finished.contains(&path);
                assert!(self.is_resumed || !is_finished, "{path:?} is listed after it was finished");
                self.unreported.push(path.clone());
                let source = &model.folders[&path];
                let folders = source.folders.iter().cloned().collect();
                let rest = Rest { folders, files: source.files.iter().cloned().collect() };
                let count = rest.folders.len() + rest.files.len();
                let is_long = count > 2 * CHUNK;
                if is_long && !walk.keeps_listing(folder) {
                    return;
                }
                *copied.listed.entry(path.clone()).or_default() += 1;
                let most = if is_long { CHUNK } else { usize::MAX };
                self.go_on(walk, (folder, path, rest), most, copied, model);
            }
            Task::Continue { folder, path } => {
                let rest = std::mem::take(&mut self.rest);
                self.go_on(walk, (folder, path, rest), CHUNK, copied, model);
            }
            Task::Finish { folder, path, is_new } => {
                assert!(is_new || self.is_resumed, "it is not known that {path:?} was made");
                copied.finish(model, &path);
                walk.finished(folder);
                self.unreported.push(path);
            }
            Task::Work { index, work } => {
                let fails = random.percent(self.fails);
                let is_done = self.do_work(walk, (index, work), fails, model, copied);
                walk.performed(index, is_done);
            }
        }
    }

    /// Copies the next names of a folder.
    fn go_on(
        &mut self,
        walk: &mut Walk,
        (folder, path, mut rest): (usize, Text, Rest),
        most: usize,
        copied: &mut Copied,
        model: &Model,
    ) {
        let mut found = Found::default();
        let folders = rest.folders.len().min(most);
        found.folders.extend(rest.folders.drain(..folders));
        let mut files: VecDeque<File> = rest.files.drain(..rest.files.len().min(most)).collect();
        if walk.idle() > 0 && files.len() > 2 {
            let given = files.split_off(files.len() / 2);
            walk.give_back(folder, given.into_iter().map(|file| file.name).collect());
        }
        self.totals.entries += (folders + files.len()) as u64;
        for file in files {
            self.copy(walk, &path, &file, &mut found, copied, model);
        }
        let is_whole = rest.folders.is_empty() && rest.files.is_empty();
        if !is_whole {
            self.rest = rest;
        }
        walk.found(folder, found, is_whole);
    }

    /// Copies a file, or notes it as found.
    fn copy(
        &mut self,
        walk: &mut Walk,
        folder: &Text,
        file: &File,
        found: &mut Found,
        copied: &mut Copied,
        model: &Model,
    ) {
        let path = folder.join(&file.name);
        let links = model.links[&file.inode];
        let version = Version { inode: file.inode, size: file.size, seconds: 0, nanoseconds: 0 };
        if links > 1 {
            found.linked.push((file.name.clone(), (0, file.inode), links, Some(version)));
        } else if file.size >= self.settings.large() {
            if !(self.is_resumed && copied.has(&path)) {
                if !self.is_resumed {
                    copied.parts.insert(path.clone());
                }
                let has_part = copied.parts.contains(&path);
                let large = if has_part { &mut found.large } else { &mut found.without_part };
                large.push((file.name.clone(), version));
            }
        } else if !(self.is_resumed && copied.has(&path)) {
            self.make(folder, &path, copied);
        }
        walk.spend(1, file.size);
    }

    fn make(&mut self, folder: &Text, path: &Text, copied: &mut Copied) {
        copied.touch(folder);
        *copied.files.entry(path.clone()).or_default() += 1;
        self.totals.files += 1;
        self.unreported.push(path.clone());
    }

    fn copy_range(
        &mut self,
        walk: &mut Walk,
        file: &LargeFile,
        (start, size, makes_part): (u64, u64, bool),
        fails: bool,
        (model, copied): (&Model, &mut Copied),
    ) -> bool {
        let path = file.folder.join(&file.name);
        if self.is_resumed && copied.has(&path) {
            return true;
        }
        copied.touch(&file.folder);
        assert!(start + size <= file.version.size, "a range ends behind its file");
        if makes_part {
            copied.parts.insert(path.clone());
        }
        if fails || !has_part(model, copied, file) {
            return false;
        }
        copied.ranges.entry(path.clone()).or_default().insert(start, size);
        *copied.range_copies.entry((path.clone(), start)).or_default() += 1;
        self.totals.bytes += size;
        self.unreported.push(path);
        walk.spend(0, size);
        true
    }

    fn close(&mut self, file: &LargeFile, model: &Model, copied: &mut Copied) -> bool {
        let path = file.folder.join(&file.name);
        if self.is_resumed && copied.has(&path) {
            return true;
        }
        if !has_part(model, copied, file) {
            copied.failed.insert(path);
            return false;
        }
        let mut end = 0;
        for (&start, &size) in &copied.ranges[&path] {
            assert_eq!(start, end, "{path:?} is closed with a gap or an overlap");
            end = start + size;
        }
        assert_eq!(end, file.version.size, "{path:?} is closed before its last range");
        copied.parts.remove(&path);
        self.make(&file.folder, &path, copied);
        true
    }

    fn do_work(
        &mut self,
        walk: &mut Walk,
        (index, work): (usize, Work),
        fails: bool,
        model: &Model,
        copied: &mut Copied,
    ) -> bool {
        match work {
            Work::Folder { .. } => panic!("a folder is a task of its own"),
            Work::Files { folder, names } => {
                let mut found = Found::default();
                for name in &names {
                    let files = &model.folders[&folder].files;
                    let file = files.iter().find(|file| file.name == *name).unwrap();
                    self.copy(walk, &folder, file, &mut found, copied, model);
                }
                walk.found_in_batch(index, found);
            }
            Work::Owner { folder, name } => {
                let path = folder.join(&name);
                if !(self.is_resumed && copied.has(&path)) {
                    self.make(&folder, &path, copied);
                }
            }
            Work::Range { file, start, size, makes_part } => {
                let range = (start, size, makes_part);
                return self.copy_range(walk, &file, range, fails, (model, copied));
            }
            Work::Close { file } => return self.close(&file, model, copied),
            Work::Discard { file } => {
                copied.lose(&file.folder.join(&file.name));
                copied.failed.insert(file.folder.join(&file.name));
                return false;
            }
            Work::Link { first_folder, first, folder, name } => {
                let first = first_folder.join(&first);
                assert!(copied.has(&first), "{first:?} is linked to before it is copied");
                // It may be a link itself that an interrupted job has made.
                let first = copied.links.get(&first).cloned().unwrap_or(first);
                let path = folder.join(&name);
                if path != first && !copied.links.contains_key(&path) && !copied.files.contains_key(&path) {
                    copied.touch(&folder);
                    copied.links.insert(path.clone(), first);
                    self.unreported.push(path);
                }
            }
            Work::Finish { path, is_new } => {
                assert!(is_new || self.is_resumed, "it is not known that {path:?} was made");
                copied.finish(model, &path);
                self.unreported.push(path);
            }
        }
        true
    }
}

/// Returns true if a large file has its part. One with several names is copied without.
fn has_part(model: &Model, copied: &Copied, file: &LargeFile) -> bool {
    model.links[&file.version.inode] > 1 || copied.parts.contains(&file.folder.join(&file.name))
}
