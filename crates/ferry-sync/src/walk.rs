//! The walk that plans: both trees, folder by folder, in the order of their names.
//!
//! Each folder is listed on both sides, and both listings are merged into rows (`merge.rs`). Some rows at a time are
//! examined, many at once, and decided one after another (`examined.rs`, `settle.rs`, `names.rs`). Their actions go to a [`Sink`],
//! which prints, records or performs them. Then the folders among the rows are entered, before the next rows. Folders that
//! both trees have are examined ahead, on all workers (`ahead.rs`). Apart from these, memory is bounded by one listing
//! for each level of the path, of which each keeps [`crate::sorted::IN_MEMORY`] names at most.
//!
//! Deletions are put aside in a temporary file until everything else is done (`aside.rs`). If it fails, nothing is
//! deleted.
//!
//! Nothing is deleted in a folder, and beneath it, whose listing failed, or in which the target's filesystem takes a name of
//! the source for another one: the entry that the source seems to lack may be the one that this name leads to. Nothing is
//! deleted on another filesystem than the target's root, or beyond the root of a mount.

mod ahead;
mod aside;
mod choices;
mod examined;
mod level;
mod listed;
mod once;
mod reopen;
mod run_marks;
mod select;
mod settle;
mod together;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{Failure, FailureKind, Observer, Progress, RunMark, Takes, Verb};
use ferry_io::{Cause, Dir, Errno, Error, Io, Name, Operation};

use crate::decide::Reason;
use crate::list::Cursor;
use crate::manifest::collect::Manifest;
use crate::merge::Row;
use crate::names::Names;
use crate::plan::{Action, Verb as Act};
use crate::request::Explain;
use crate::sink::{Batch, Sink};
use ahead::{Ahead, Ready, Task};
use aside::Aside;
use examined::Examined;
use level::{Descent, Level, Listed, Part, ROWS, Rows, To, Which};
use run_marks::RunMarks;

pub(crate) use choices::{Choices, content_permits};
pub(crate) use level::TRASH;
pub(crate) use once::Once;

/// Folders beside the one that is entered that are to be examined ahead.
const AHEAD: usize = 64;
/// Levels of the path that stay open, with two descriptors each.
const OPEN_LEVELS: usize = 64;

/// Returns the number of levels that stay open with so many descriptors.
fn open_levels(descriptors: usize) -> usize {
    (descriptors / 16).clamp(1, OPEN_LEVELS)
}

/// Results of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Entries that the target had.
    pub(crate) targets: u64,
    /// Entries to be deleted.
    pub(crate) deletions: u64,
    /// Entries that failed.
    pub(crate) failed: u64,
    /// Files of the target among these that could not be read for their hashes. It tells nothing of the source.
    pub(crate) unhashed: u64,
}

/// A walk under way.
pub(crate) struct Walk<'a> {
    io: &'a Io,
    choices: Arc<Choices>,
    observer: &'a dyn Observer,
    levels: Vec<Level>,
    names: Names,
    aside: Aside,
    /// Folders in which a name of the source leads to an entry with another name: nothing in them is deleted.
    spared: HashSet<PathBuf>,
    found: Found,
    /// Device of the target's root.
    device: u64,
    /// Device of the source's root.
    source_device: u64,
    /// Folders that are examined ahead.
    ahead: Option<Ahead>,
    /// Position in the list of the names that take part.
    cursor: Option<Cursor>,
    /// The source's root.
    source_root: Option<Dir>,
    /// Receiver of entries that take no part.
    explain: Option<Explain<'a>>,
    /// Counters for a progress bar.
    progress: Arc<Progress>,
    /// Receiver of the hashes of files that stay.
    manifest: Option<Arc<Manifest>>,
    /// Marks of other runs in the target's root.
    run_marks: RunMarks,
    /// Set if the sink counts the entries that it copies.
    sink_counts_copies: bool,
}

impl<'a> Walk<'a> {
    /// Returns a walk of two open folders. Without a target everything is new.
    ///
    /// # Errors
    /// If one of the roots can't be listed.
    pub(crate) async fn new(
        io: &'a Io,
        mut choices: Choices,
        observer: &'a dyn Observer,
        roots: (Dir, Option<Dir>),
    ) -> Result<Self, FailureKind> {
        let failed = |verb| move |error| FailureKind::Io { verb, error };
        let (source, target) = roots;
        let stat = source.stat().await.map_err(failed(Verb::Stat))?;
        let source = level::list(source, stat, None, Which::Source, true).await?;
        let mut listings_are_whole = source.error.is_none();
        let (mut target_listed, mut run_marks) = (None, RunMarks::default());
        if let Some(target) = target {
            let stat = target.stat().await.map_err(failed(Verb::StatTarget))?;
            let mut listed = level::list(target.clone(), stat, None, Which::Target, true).await?;
            let marks = std::mem::take(&mut listed.run_marks);
            (choices.rules.doubted_since, run_marks) =
                run_marks::look(io, marks, (&target, stat.inode)).await;
            listings_are_whole &= listed.error.is_none();
            target_listed = Some(listed);
        }
        let broken = |error: std::io::Error| unreadable(&error);
        let cursor = choices.list.clone().map(Cursor::new).transpose().map_err(broken)?;
        let device = target_listed.as_ref().map_or(0, |listed| listed.stat.device);
        let mut walk = Self {
            io,
            choices: Arc::new(choices),
            observer,
            levels: Vec::new(),
            names: Names::default(),
            aside: Aside::default(),
            spared: HashSet::new(),
            found: Found::default(),
            device,
            source_device: source.stat.device,
            ahead: None,
            cursor,
            source_root: source.dir.clone(),
            explain: None,
            progress: Arc::default(),
            manifest: None,
            run_marks,
            sink_counts_copies: false,
        };
        let listed = std::iter::once(&source).chain(&target_listed);
        for error in listed.filter_map(|listed| listed.error.clone()) {
            walk.fail(Path::new(""), error);
        }
        let mut root = Level::new(PathBuf::new(), Some(source), target_listed).map_err(broken)?;
        root.part = walk.part_of(Path::new("")).await.map_err(broken)?;
        root.may_delete = walk.choices.deletes && listings_are_whole;
        walk.read_rules(&mut root).await;
        walk.levels.push(root);
        Ok(walk)
    }

    /// Has entries explained that take no part.
    pub(crate) fn explain_to(&mut self, explain: Option<Explain<'a>>) {
        self.explain = explain;
    }

    /// Counts the entries that it examines.
    pub(crate) fn count_in(&mut self, progress: Arc<Progress>) {
        self.progress = progress;
    }

    /// Notes the hashes of files that stay.
    pub(crate) fn note_in(&mut self, manifest: Option<Arc<Manifest>>) {
        self.manifest = manifest;
    }

    /// Walks both trees; all actions but deletions go to `sink`.
    ///
    /// # Errors
    /// Those of the sink and of the temporary file.
    pub(crate) async fn run<S: Sink>(&mut self, sink: &mut S) -> std::io::Result<()> {
        self.sink_counts_copies = sink.begins_to_count();
        // What takes part in a folder depends on the way to it, which jobs do not know.
        if self.choices.selector.is_active() || self.choices.list.is_some() {
            return self.walk(sink).await;
        }
        let ahead = Ahead::new(self.io, &self.choices);
        self.ahead = Some(ahead.clone());
        // Boxed: the walk's state holds that of all that a sink does.
        let done = ahead.beside(Box::pin(self.walk(sink))).await;
        self.ahead = None;
        done
    }

    async fn walk<S: Sink>(&mut self, sink: &mut S) -> std::io::Result<()> {
        while let Some(level) = self.levels.last_mut() {
            if self.io.is_stopped() || self.choices.pass().await.is_err() {
                break;
            }
            if std::mem::take(&mut level.has_leftovers) {
                // A folder that is entered is seen to, also if nothing else is to be done in it.
                let folder = level.path.clone();
                sink.take(Batch { folder, actions: Vec::new() }).await?;
                continue;
            }
            if let Some(descent) = level.folders.pop_front() {
                self.descend(descent, sink).await?;
                continue;
            }
            let actions = if let Some((rows, examined)) = level.ready.take() {
                self.settle(rows, examined)
            } else if let Some(Rows { rows, missing, unlisted }) = level.next_rows(ROWS)? {
                self.explain_unlisted(&unlisted);
                self.report_missing(&missing).await;
                self.decide(rows).await
            } else {
                self.leave(sink).await?;
                continue;
            };
            let folder = self.levels.last().map(|level| level.path.clone()).unwrap_or_default();
            if !actions.is_empty() {
                sink.take(Batch { folder, actions }).await?;
            }
        }
        if !self.io.is_stopped() {
            self.pass_groups(None).await?;
        }
        Ok(())
    }

    /// Returns the results so far.
    pub(crate) fn found(&self) -> Found {
        self.found
    }

    /// Takes the marks of other runs that mean nothing if this run succeeds.
    pub(crate) fn take_run_marks(&mut self) -> Vec<RunMark> {
        let marks = self.run_marks.take(self.is_whole());
        if self.found.failed == 0 && !self.io.is_stopped() { marks } else { Vec::new() }
    }

    /// Returns true if files may lack bytes because a run ended with its session, and neither this walk nor the other parts of
    /// its plan compare all of them.
    pub(crate) fn leaves_doubts(&self) -> bool {
        self.run_marks.has_doubts() && !self.is_whole() && !self.choices.is_part
    }

    /// Returns true if everything takes part.
    fn is_whole(&self) -> bool {
        !self.choices.selector.is_active() && self.choices.list.is_none() && !self.choices.is_part
    }

    /// Returns what the run takes away from the target; only what is replaced unless it `may_delete`.
    pub(crate) fn takes(&self, may_delete: bool) -> Takes {
        let deletes = self.choices.deletes && may_delete;
        Takes { deletes, excluded: deletes && self.choices.selector.deletes_excluded() }
    }

    /// Passes the deletions to `sink`, once everything else is done.
    ///
    /// # Errors
    /// Those of the sink and of the temporary file.
    pub(crate) async fn delete<S: Sink>(&mut self, sink: &mut S) -> std::io::Result<()> {
        let mut deletions = std::mem::take(&mut self.aside).read()?;
        while let Some(mut batch) = deletions.next_batch()?.filter(|_| !self.io.is_stopped()) {
            if batch.folder.ancestors().any(|above| self.spared.contains(above)) {
                self.spare(&mut batch);
            }
            if !batch.actions.is_empty() {
                sink.take(batch).await?;
            }
        }
        Ok(())
    }

    /// Takes deletions out of a batch. A folder that was to give way stays, and is reported.
    fn spare(&mut self, batch: &mut Batch) {
        for planned in batch.actions.drain(..) {
            if planned.action.verb == Act::Exchange {
                self.fail(&planned.action.path.0, FailureKind::FileOverDirectory);
            }
        }
    }

    /// Enters a folder. One that can't be entered is reported, and left as it is.
    async fn descend<S: Sink>(&mut self, descent: Descent, sink: &mut S) -> std::io::Result<()> {
        let Descent { name, to } = descent;
        let Some(above) = self.levels.last() else { return Ok(()) };
        let path = above.path.join(name.as_os_str());
        let (above_may_delete, above_is_excluded) = (above.may_delete, above.is_excluded);
        let part = match above.part {
            Part::Everything => Part::Everything,
            Part::Listed(..) | Part::Nothing => self.part_of(&path).await?,
        };
        let has_sides = to.sides();
        let at_end = match to {
            To::New(make) => {
                sink.take(Batch { folder: folder_of(&path), actions: vec![make] }).await?;
                if !self.choices.expands {
                    return Ok(());
                }
                None
            }
            To::Both(action) => action,
            To::Gone(action) => Some(action),
        };
        let Entered { source, target, ready } = match self.enter(&path, &name, has_sides).await {
            Ok(entered) => entered,
            Err(kind) => {
                self.fail(&path, kind);
                self.keep_last();
                return Ok(());
            }
        };
        if self.passes_over(&path, source.as_ref(), target.as_ref()) {
            return Ok(());
        }
        let is_elsewhere =
            target.as_ref().is_some_and(|target| target.stat.device != self.device || target.is_mount_root);
        match self.apart(source.as_ref(), target.as_ref(), is_elsewhere) {
            Apart::Not => {}
            Apart::Entries => {
                let folder = folder_of(&path);
                return match at_end {
                    Some(action) => sink.take(Batch { folder, actions: vec![action] }).await,
                    None => Ok(()),
                };
            }
            Apart::Whole { is_wanted } => {
                let exchanges = at_end.is_some_and(|action| action.action.verb == Act::Exchange);
                if is_wanted || exchanges {
                    self.fail(&path, FailureKind::FileOverDirectory);
                }
                self.keep_last();
                return Ok(());
            }
        }
        let mut is_whole = true;
        for error in [&source, &target].into_iter().flatten().filter_map(|listed| listed.error.clone()) {
            self.fail(&path, error);
            is_whole = false;
        }
        let mut level = Level::new(path, source, target)?;
        level.part = part;
        level.ready = ready;
        level.may_delete = above_may_delete && is_whole && !is_elsewhere;
        level.is_kept = !is_whole;
        let reason = at_end.as_ref().and_then(|action| action.action.reason);
        level.is_excluded = above_is_excluded || reason == Some(Reason::Excluded);
        level.at_end = at_end;
        self.read_rules(&mut level).await;
        self.push(level);
        Ok(())
    }

    /// Takes what is known of a folder of both trees that is entered. Those that follow it are examined ahead.
    async fn take_ready(&mut self, path: &Path) -> Option<Ready> {
        let ahead = self.ahead.clone()?;
        let ready = ahead.take(path).await;
        self.add_next(&ahead).await;
        ready
    }

    /// Adds the folders that follow in the last level to those that are examined ahead, before they run out.
    async fn add_next(&mut self, ahead: &Ahead) {
        let Some(level) = self.levels.last() else { return };
        let both = |next: &&Descent| matches!(next.to, To::Both(_));
        let mut soon = level.folders.iter().filter(both);
        let Some(first) = soon.next() else { return };
        let soon = soon.nth(AHEAD / 2).unwrap_or(first);
        let [first, soon] = [first, soon].map(|next| level.path.join(next.name.as_os_str()));
        if !ahead.lacks(&first, &soon) {
            return;
        }
        // A failure comes again when the folder is opened.
        if self.reopen().await.is_err() {
            return;
        }
        let Some(level) = self.levels.last() else { return };
        let (Some(source), Some(target)) = (&level.source.dir, &level.target.dir) else { return };
        let next = level.folders.iter().filter(both).take(AHEAD);
        ahead.add(next.map(|next| Task::new(&level.path, &next.name, source, target)).collect());
    }

    /// Adds a level, and closes the one that is too far above.
    fn push(&mut self, level: Level) {
        self.levels.push(level);
        let open = self.levels.len();
        let most = open_levels(self.io.descriptors());
        if open > most + 1 {
            let closed = &mut self.levels[open - most - 1];
            (closed.source.dir, closed.target.dir) = (None, None);
        }
    }

    /// Returns true for a folder that both trees share: nothing in it is examined.
    fn passes_over(&mut self, path: &Path, source: Option<&Listed>, target: Option<&Listed>) -> bool {
        match self.shared(path, source, target) {
            Shared::Nothing => return false,
            Shared::Folder => {}
            Shared::Tree(failure) => {
                self.report(&failure);
                self.keep_last();
            }
        }
        true
    }

    /// Returns what both trees share of a folder that is entered. By way of bind mounts, one can be in the other.
    fn shared(&self, path: &Path, source: Option<&Listed>, target: Option<&Listed>) -> Shared {
        let [source, target] = [source, target].map(|listed| listed.map(Listed::identity));
        if source.is_some() && source == target {
            return Shared::Folder;
        }
        let Choices { source_path, target_path, .. } = &*self.choices;
        let [of_source, of_target] = [source_path, target_path].map(|root| beneath(root, path));
        let same = |source, target| Shared::Tree(Failure { source, target, kind: FailureKind::SameFile });
        for level in &self.levels {
            if source.is_some() && level.target.identity == source {
                return same(of_source, beneath(target_path, &level.path));
            }
            if target.is_some() && level.source.identity == target {
                return same(beneath(source_path, &level.path), of_target);
            }
        }
        Shared::Nothing
    }

    /// Returns which part of a folder is no part of the trees.
    fn apart(&self, source: Option<&Listed>, target: Option<&Listed>, is_elsewhere: bool) -> Apart {
        let [source_is_trash, target_is_trash] =
            [source, target].map(|side| side.is_some_and(|listed| listed.is_trash));
        if target.is_some() && (source_is_trash || target_is_trash) {
            return Apart::Whole { is_wanted: source.is_some() && !source_is_trash };
        }
        let Some(source) = source else {
            // A folder where something is mounted stays.
            return if is_elsewhere { Apart::Whole { is_wanted: false } } else { Apart::Not };
        };
        let leaves_filesystem = source.stat.device != self.source_device || source.is_mount_root;
        match leaves_filesystem && self.choices.selector.stays_on_filesystem() {
            true => Apart::Entries,
            false => Apart::Not,
        }
    }

    /// Lists a folder of the last level on the sides that have it, unless it was examined ahead.
    async fn enter(
        &mut self,
        path: &Path,
        name: &Name,
        (has_source, has_target): (bool, bool),
    ) -> Result<Entered, FailureKind> {
        if has_source
            && has_target
            && let Some(Ready { source, target, rows, examined }) = self.take_ready(path).await
        {
            let ready = Some((rows, examined));
            return Ok(Entered { source: Some(source), target: Some(target), ready });
        }
        self.reopen().await?;
        let mut entered = Entered::default();
        let Some(above) = self.levels.last() else { return Ok(entered) };
        let of_source = if has_target { Which::Source } else { Which::NewSource };
        let of_target = if has_source { Which::Target } else { Which::GoneTarget };
        if let Some(dir) = above.source.dir.as_ref().filter(|_| has_source) {
            let mut source = level::open(dir, name, of_source).await?;
            if self.choices.selector.stays_on_filesystem() {
                source.note_mount();
            }
            entered.source = Some(source);
        }
        if let Some(dir) = above.target.dir.as_ref().filter(|_| has_target) {
            let mut target = level::open(dir, name, of_target).await?;
            if self.choices.deletes || !has_source {
                target.note_mount();
            }
            entered.target = Some(target);
        }
        Ok(entered)
    }

    /// Leaves the last level: what follows on the folder itself is decided now.
    async fn leave<S: Sink>(&mut self, sink: &mut S) -> std::io::Result<()> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        let Some(action) = level.at_end else {
            return Ok(());
        };
        let folder = self.levels.last().map(|above| above.path.clone()).unwrap_or_default();
        if action.source.is_some() && level.source.identity.is_some() {
            return sink.take(Batch { folder, actions: vec![action] }).await;
        }
        if level.is_kept {
            if action.action.verb == Act::Exchange {
                self.fail(&level.path, FailureKind::FileOverDirectory);
            }
            self.keep_last();
            return Ok(());
        }
        self.put_aside(&action.action);
        Ok(())
    }

    fn put_aside(&mut self, action: &Action) {
        // Without deletions, empty folders alone are put aside, which give way to other entries.
        self.found.deletions += u64::from(self.choices.deletes);
        self.aside.add(action);
    }

    /// Notes that nothing in the last level and beneath it is deleted, not even what was put aside already.
    fn spare_last(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.may_delete = false;
            self.spared.insert(level.path.clone());
        }
    }

    /// Notes that something in the last level stays, so that this folder can't go.
    fn keep_last(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.is_kept = true;
        }
    }

    fn fail(&mut self, path: &Path, kind: FailureKind) {
        if matches!(&kind, FailureKind::Io { error, .. } if error.is_cancelled()) {
            return;
        }
        self.report(&Failure {
            source: beneath(&self.choices.source_path, path),
            target: beneath(&self.choices.target_path, path),
            kind,
        });
    }

    fn report(&mut self, failure: &Failure) {
        if !self.choices.devices.lets_report(&failure.kind) {
            return;
        }
        self.found.failed += 1;
        let is_of_hash = matches!(failure.kind, FailureKind::Io { verb: Verb::Hash, .. });
        self.found.unhashed += u64::from(is_of_hash);
        self.observer.failed(failure);
    }
}

/// The sides of a folder that is entered, and its rows if they were examined ahead.
#[derive(Default)]
struct Entered {
    source: Option<Listed>,
    target: Option<Listed>,
    ready: Option<(Vec<Row>, Vec<Examined>)>,
}

/// The part of a folder that is no part of the trees.
enum Apart {
    Not,
    /// What is in it.
    Entries,
    /// All of it. With `is_wanted` the source has a folder of this name that is not copied.
    Whole {
        is_wanted: bool,
    },
}

/// Part of a folder that is in both trees.
enum Shared {
    Nothing,
    /// Both sides are this folder.
    Folder,
    /// One side is a folder that the other side's walk came through, and must not be changed.
    Tree(Failure),
}

/// Returns the path of the folder that an entry is in.
fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Joins a path to a root; the root itself gets no slash.
fn beneath(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { root.to_owned() } else { root.join(path) }
}

fn unreadable(error: &std::io::Error) -> FailureKind {
    let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let error = Error { operation: Operation::List, cause: Cause::Errno(errno) };
    FailureKind::Io { verb: Verb::ReadDirectory, error }
}
