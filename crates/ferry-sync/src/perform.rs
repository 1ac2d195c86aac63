//! Performing actions: the sink that changes the target.
//!
//! Three ways through the trees are kept open, each a stack of pairs from the roots down to the folder of the last
//! action: from the source to the target for copies, within the target for removals, and from the target to the trash.
//! A pair is finished when the next action is elsewhere: it then gets its attributes again, which the changes in it have
//! touched.
//!
//! An action that comes from a file, or was put aside, is checked first: both sides must be the versions that it was
//! decided from.

mod trash;
mod way;

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{Algorithm, Copier, Digest, FailureKind, OwnRunMark, Pair, RunMark, Sides, Takes};
use ferry_io::{Dir, FileKind, Name, Stat, for_each};

use crate::decide::Reason;
use crate::manifest::collect::Manifest;
use crate::plan::{Action, Verb, Version};
use crate::sink::{Batch, Planned, Sink};
pub(crate) use trash::{MARK, Place, Trash, is_trash, marks_trash, remove_if_empty};
pub(crate) use way::{Missing, Way, names};

/// Maximum number of entries left aside by killed runs that one run sees to; the next run sees to more. Only many killed
/// runs leave so many entries.
const MOST_ASIDES: usize = 4096;

/// Numbers of actions performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Entries that were made.
    pub created: u64,
    /// Entries that were replaced, also by another kind.
    pub replaced: u64,
    /// Entries of which only attributes were set.
    pub attributes: u64,
    /// Entries that were taken away.
    pub deleted: u64,
}

impl Done {
    pub(crate) fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.replaced += other.replaced;
        self.attributes += other.attributes;
        self.deleted += other.deleted;
    }

    /// Counts an action.
    pub(crate) fn count(&mut self, verb: Verb) {
        match verb {
            Verb::Create => self.created += 1,
            Verb::Replace | Verb::Exchange => self.replaced += 1,
            Verb::Attributes => self.attributes += 1,
            Verb::Delete => self.deleted += 1,
            Verb::Keep => {}
        }
    }
}

/// The sink that performs actions.
pub(crate) struct Performer<'a> {
    copier: &'a Copier,
    /// From the source to the target.
    main: Way<'a>,
    /// Within the target.
    within: Way<'a>,
    /// Where replaced and removed entries go; without it they are removed.
    trash: Option<Trash<'a>>,
    source: Dir,
    /// Set if a new folder is copied with everything in it.
    whole_trees: bool,
    tell: &'a dyn Fn(&Action),
    /// The last folder that could not be made: its entries come next, and must not go to a folder that another program
    /// has made there.
    refused: Option<PathBuf>,
    /// Entries that killed runs have left aside, by folder.
    asides: Vec<(PathBuf, Vec<Name>)>,
    /// Number of entries that were noted there, at most [`MOST_ASIDES`].
    asides_noted: usize,
    /// Set if the walk has reported failures, other than to read the target for its hashes.
    walk_has_failed: bool,
    /// Set once deletions have begun: true if nothing is removed for good.
    spares: Option<bool>,
    /// Receiver of the hashes of files that stay.
    manifest: Option<Arc<Manifest>>,
    /// The mark of this run, once it has made or replaced an entry.
    run_mark: Option<OwnRunMark>,
    /// Set then, also if the mark can't be made.
    has_begun: bool,
    /// Marks of other runs that mean nothing if this run succeeds.
    run_marks: Vec<RunMark>,
    /// Set if it counts the entries that it copies for a progress bar; and the number of those of the present batch.
    counts: bool,
    counted: Cell<usize>,
    /// Number of entries spared.
    pub(crate) spared: u64,
    pub(crate) done: Done,
}

/// Both sides of an action as they are now.
struct Now {
    source: Option<Stat>,
    target: Option<Stat>,
}

impl<'a> Performer<'a> {
    pub(crate) fn new(
        copier: &'a Copier,
        (main, within): (Way<'a>, Way<'a>),
        trash: Option<Trash<'a>>,
        source: Dir,
        whole_trees: bool,
        tell: &'a dyn Fn(&Action),
    ) -> Self {
        Self {
            copier,
            main,
            within,
            trash,
            source,
            whole_trees,
            tell,
            refused: None,
            asides: Vec::new(),
            asides_noted: 0,
            walk_has_failed: false,
            spares: None,
            manifest: None,
            run_mark: None,
            has_begun: false,
            run_marks: Vec::new(),
            counts: false,
            counted: Cell::new(0),
            spared: 0,
            done: Done::default(),
        }
    }

    /// Notes the hashes of files that stay.
    pub(crate) fn note_in(&mut self, manifest: Option<Arc<Manifest>>) {
        self.manifest = manifest;
    }

    /// Finishes all folders, and returns the trash if it was made.
    pub(crate) async fn finish(mut self) -> (Done, Option<PathBuf>) {
        self.recover(Takes::default()).await;
        self.within.finish_below().await;
        let trash = match self.trash {
            Some(trash) => trash.finish().await,
            None => None,
        };
        let ended = if self.copier.has_failed() { Vec::new() } else { self.run_marks };
        self.main.unmark_run(self.run_mark, &ended).await;
        // The root gets the source's attributes last.
        self.main.finish().await;
        (self.done, trash)
    }

    /// Counts entries that are copied.
    fn count(&self, number: usize) {
        if self.counts {
            self.counted.set(self.counted.get() + number);
            self.copier.count_entries(number as u64);
        }
    }

    /// Notes the outcome of an action.
    fn note(&mut self, pair: &Pair, name: &Name, action: &Action, outcome: Result<(), FailureKind>) {
        match outcome {
            Ok(()) => self.succeed(action),
            Err(kind) => self.copier.fail(pair, name, kind),
        }
    }

    fn succeed(&mut self, action: &Action) {
        self.done.count(action.verb);
        (self.tell)(action);
    }

    /// Opens the folder of the trash for entries of a folder, if there is a trash.
    async fn trash_for(&mut self, folder: &Path) -> Result<Option<Dir>, ()> {
        match &mut self.trash {
            Some(trash) => {
                // It may be made in the root.
                self.main.touch_root();
                self.main.lend_root().await;
                trash.folder(folder).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Copies and changes entries of one folder, many at once.
    async fn change(&mut self, batch: Batch) {
        let Batch { folder, actions } = batch;
        let Some(pair) = self.go(&folder).await else { return };
        // Names of files that stay are known before others are linked to them.
        let (others, stay): (Vec<_>, Vec<_>) = actions.into_iter().partition(Planned::copies);
        let mut others: Vec<_> = others.into_iter().map(|planned| (planned, true)).collect();
        for mut planned in stay {
            let Some(name) = last_name(&planned.action) else { continue };
            match settle_kept(self.copier, &pair, &name, &planned).await {
                Ok(true) => {
                    self.succeed(&planned.action);
                    self.note_stays(&pair, &name, &planned).await;
                }
                Ok(false) => {
                    planned.action.verb = Verb::Replace;
                    planned.action.reason = Some(Reason::Links);
                    // It is counted already.
                    others.push((planned, false));
                }
                Err(kind) => self.copier.fail(&pair, &name, kind),
            }
        }
        let replaces = |planned: &Planned| matches!(planned.action.verb, Verb::Replace | Verb::Exchange);
        let trash = match others.iter().any(|(planned, _)| replaces(planned)) {
            true => self.trash_for(&folder).await,
            false => Ok(None),
        };
        let Ok(trash) = trash else { return };
        if !others.is_empty() {
            // After the folder of the trash is made, which gets this folder's mode.
            self.copier.lend(&pair, false).await;
        }
        pair.set_trash(trash);
        let outcomes = std::cell::RefCell::new(Vec::with_capacity(others.len()));
        let copier = self.copier;
        let ended = for_each(copier.entries_at_once(), &others, async |(planned, is_counted)| {
            if ferry_io::is_cancelled() {
                return Err(());
            }
            if let Some(name) = last_name(&planned.action) {
                let outcome = perform(copier, &pair, &name, planned).await;
                outcomes.borrow_mut().push((name, planned, outcome));
            }
            self.count(usize::from(*is_counted));
            Ok(())
        });
        // Ends early only in a cancelled run.
        ended.await.ok();
        for (name, planned, outcome) in outcomes.into_inner() {
            self.note(&pair, &name, &planned.action, outcome);
        }
        pair.set_trash(None);
    }

    /// Goes to a folder of both trees, and notes what killed runs have left aside in it.
    async fn go(&mut self, folder: &Path) -> Option<Pair> {
        let pair = self.main.go(folder).await?;
        let mut asides = self.copier.take_asides(&pair);
        if self.asides.iter().any(|(noted, _)| noted == folder) {
            return Some(pair);
        }
        asides.truncate(MOST_ASIDES - self.asides_noted);
        if !asides.is_empty() {
            self.asides_noted += asides.len();
            self.asides.push((folder.to_owned(), asides));
        }
        Some(pair)
    }

    /// Sees to entries that killed runs have left aside, after all that may need their names.
    async fn recover(&mut self, takes: Takes) {
        for (folder, asides) in std::mem::take(&mut self.asides) {
            if self.copier.is_stopped() {
                return;
            }
            let Some(pair) = self.main.go(&folder).await else { continue };
            if let Ok(trash) = self.trash_for(&folder).await {
                self.copier.lend(&pair, false).await;
                pair.set_trash(trash);
                self.copier.recover(&pair, asides, takes).await;
                pair.set_trash(None);
            }
        }
    }

    /// Returns true if nothing is removed for good, because something has failed: what could not be read may be what the
    /// source has of an entry under another name.
    fn removes_nothing(&self) -> bool {
        self.trash.is_none() && (self.walk_has_failed || self.copier.has_failed())
    }

    /// Notes the hash of a file that stays, with the attributes that it has by now.
    async fn note_stays(&self, pair: &Pair, name: &Name, planned: &Planned) {
        let (Some(manifest), Some(hashed)) = (&self.manifest, planned.digest) else { return };
        match self.hash_of(pair, name, planned, (manifest.algorithm(), hashed.ok())).await {
            Ok((digest, target)) => manifest.add(&planned.action.path.0, digest, &target),
            Err(kind) => self.copier.fail(pair, name, kind),
        }
    }

    /// Returns the hash and the attributes of a file that stays. One that could not be read before has its source's mode
    /// by now, and is tried again. One that was written to since is read again.
    async fn hash_of(
        &self,
        pair: &Pair,
        name: &Name,
        planned: &Planned,
        (algorithm, digest): (Algorithm, Option<Digest>),
    ) -> Result<(Digest, Stat), FailureKind> {
        let (_, target) = self.copier.look(pair, name).await?;
        let is_file = |found: &Stat| found.kind == FileKind::Regular;
        let target = target.filter(is_file).ok_or(FailureKind::Changed)?;
        let seen = planned.source.as_ref();
        let seen = seen.map(|source| Sides { source, target: planned.target.as_ref() });
        let digest = self.copier.hash(pair, name, &target, algorithm, digest.zip(seen)).await?;
        Ok((digest, target))
    }

    /// Makes, exchanges or changes a folder, or puts another entry in its place.
    ///
    /// Returns false if that failed, which is reported.
    async fn change_folder(&mut self, folder: &Path, planned: &Planned) -> bool {
        let action = &planned.action;
        let Some(name) = last_name(action) else {
            self.change_root(action).await;
            return true;
        };
        let Some(pair) = self.go(folder).await else { return false };
        let now = match look(self.copier, &pair, &name, planned).await {
            Ok(now) => now,
            Err(kind) => {
                self.copier.fail(&pair, &name, kind);
                return false;
            }
        };
        let was_folder = now.target.is_some_and(|target| target.kind == FileKind::Directory);
        if was_folder && action.verb == Verb::Exchange {
            // Its entries are in the trash, and so is its like.
            if self.trash_for(&action.path.0).await.is_err() {
                return false;
            }
        }
        let trash = match action.verb == Verb::Exchange {
            true => self.trash_for(folder).await,
            false => Ok(None),
        };
        let Ok(trash) = trash else { return false };
        if action.verb != Verb::Attributes {
            self.copier.lend(&pair, false).await;
        }
        pair.set_trash(trash.filter(|_| !was_folder));
        let is_folder = now.source.is_some_and(|source| source.kind == FileKind::Directory);
        let outcome = match (action.verb, now.target) {
            (Verb::Create | Verb::Exchange, target) if is_folder => {
                self.make_folder(&pair, &name, target.as_ref()).await
            }
            _ => act(self.copier, &pair, &name, action.verb, &now).await.map(|()| 1),
        };
        pair.set_trash(None);
        match outcome {
            // Reported already.
            Ok(0) => false,
            Ok(made) => {
                self.succeed(action);
                self.done.created += made - 1;
                true
            }
            Err(kind) => {
                self.copier.fail(&pair, &name, kind);
                false
            }
        }
    }

    /// Makes a folder in the place of what is there. Returns the number of entries made; 0 after a failure, which is
    /// reported.
    async fn make_folder(
        &mut self,
        pair: &Pair,
        name: &Name,
        target: Option<&Stat>,
    ) -> Result<u64, FailureKind> {
        let lifted = match target {
            Some(target) => Some(self.copier.lift(pair, name, target).await?),
            None => None,
        };
        let made = if self.whole_trees {
            self.copier.copy_tree(pair, name).await
        } else {
            u64::from(self.main.make(name).await.is_some())
        };
        match lifted {
            Some(lifted) if made > 0 => self.copier.put_away(pair, name, lifted).await?,
            Some(lifted) => self.copier.give_back(pair, name, lifted).await?,
            None => {}
        }
        Ok(made)
    }

    async fn change_root(&mut self, action: &Action) {
        let Some(pair) = self.main.go(Path::new("")).await else { return };
        match action.verb {
            Verb::Attributes => match self.copier.set_attributes_of(&pair).await {
                Ok(()) => self.succeed(action),
                Err(kind) => self.main.fail_root(kind),
            },
            // The roots were made or opened before.
            Verb::Create => self.succeed(action),
            Verb::Replace | Verb::Exchange | Verb::Delete | Verb::Keep => {
                self.main.fail_root(FailureKind::Changed);
            }
        }
    }

    /// Takes entries of one folder away.
    async fn remove(&mut self, batch: Batch) {
        for planned in &batch.actions {
            let action = &planned.action;
            let Some(name) = last_name(action) else { continue };
            let is_folder = action.kind == crate::plan::Kind::Directory;
            // The like of a folder in the trash has its attributes; the folder itself is then removed.
            let like = if is_folder { self.trash_for(&action.path.0).await } else { Ok(None) };
            let trash = self.trash_for(&batch.folder).await;
            let (Ok(_), Ok(trash)) = (like, trash) else { continue };
            self.main.touch_root();
            let Some(pair) = self.within.go(&batch.folder).await else { continue };
            self.copier.lend(&pair, false).await;
            pair.set_trash(trash.filter(|_| !is_folder));
            let outcome = self.remove_one(&pair, &name, action).await;
            pair.set_trash(None);
            self.note(&pair, &name, action, outcome);
        }
    }

    async fn remove_one(&self, pair: &Pair, name: &Name, action: &Action) -> Result<(), FailureKind> {
        let (_, target) = self.copier.look(pair, name).await?;
        let Some(target) =
            target.filter(|found| is_version(self.copier, action.target.as_ref(), Some(found)))
        else {
            return Err(FailureKind::Changed);
        };
        let may_be_there = action.reason == Some(Reason::Excluded);
        if !may_be_there && !is_missing(&self.source, &action.path.0).await {
            return Err(FailureKind::Changed);
        }
        self.copier.remove(pair, name, &target).await
    }
}

impl Sink for Performer<'_> {
    fn note_run_marks(&mut self, marks: Vec<RunMark>) {
        self.run_marks = marks;
    }

    fn begins_to_count(&mut self) -> bool {
        self.counts = true;
        true
    }

    fn note_failures(&mut self) {
        self.walk_has_failed = true;
    }

    async fn end_changes(&mut self, takes: Takes) {
        self.within.leave(0).await;
        let takes = if self.removes_nothing() { Takes::default() } else { takes };
        self.recover(takes).await;
    }

    async fn take(&mut self, batch: Batch) -> io::Result<()> {
        let is_refused = |refused: &PathBuf| batch.folder.starts_with(refused);
        let is_copied = |planned: &&Planned| planned.copies() && last_name(&planned.action).is_some();
        let copied = batch.actions.iter().filter(is_copied).count();
        if self.copier.is_stopped() {
            return Ok(());
        }
        if self.refused.as_ref().is_some_and(is_refused) {
            self.count(copied);
            self.counted.set(0);
            return Ok(());
        }
        if !self.has_begun && copied > 0 {
            self.has_begun = true;
            self.run_mark = self.main.mark_run().await;
        }
        // A pair reads the attributes that it is to keep when it is entered. So the ways are never in a folder together.
        match &batch.actions[..] {
            [planned, ..] if planned.action.verb == Verb::Delete => {
                let spares = self.removes_nothing();
                if *self.spares.get_or_insert(spares) {
                    self.spared += batch.actions.len() as u64;
                    return Ok(());
                }
                // A plan that is applied does not tell where its deletions begin.
                self.recover(Takes::default()).await;
                self.main.leave(0).await;
                self.remove(batch).await;
            }
            [planned] if planned.action.is_on_folder() => {
                self.within.leave(0).await;
                let is_done = self.change_folder(&batch.folder, planned).await;
                let is_new = matches!(planned.action.verb, Verb::Create | Verb::Exchange);
                if is_new && !is_done {
                    self.refused = Some(planned.action.path.0.clone());
                }
            }
            _ => {
                self.within.leave(0).await;
                self.change(batch).await;
            }
        }
        // Those that were not tried are over, too.
        self.count(copied - self.counted.take().min(copied));
        self.counted.set(0);
        Ok(())
    }
}

/// Leaves a target where it is, and sets its attributes if they differ. Returns false if it has to be replaced instead,
/// because another name of its source was copied in a new folder, whose entries the walk has not seen.
async fn settle_kept(
    copier: &Copier,
    pair: &Pair,
    name: &Name,
    planned: &Planned,
) -> Result<bool, FailureKind> {
    let now = look(copier, pair, name, planned).await?;
    let (Some(source), Some(target)) = (&now.source, &now.target) else { return Err(FailureKind::Changed) };
    let has_names = source.links > 1 && source.kind != FileKind::Directory;
    let digest = planned.digest.and_then(Result::ok);
    if has_names && !copier.keep(pair, name, source, (target, digest)).await? {
        return Ok(false);
    }
    if planned.action.verb == Verb::Attributes {
        copier.set_attributes(pair, name, source, target).await?;
    }
    Ok(true)
}

/// Performs an action on an entry that is no folder, or sets attributes.
async fn perform(copier: &Copier, pair: &Pair, name: &Name, planned: &Planned) -> Result<(), FailureKind> {
    let now = look(copier, pair, name, planned).await?;
    act(copier, pair, name, planned.action.verb, &now).await
}

async fn act(copier: &Copier, pair: &Pair, name: &Name, verb: Verb, now: &Now) -> Result<(), FailureKind> {
    let Some(source) = &now.source else { return Err(FailureKind::Changed) };
    match (verb, &now.target) {
        (Verb::Create | Verb::Replace | Verb::Exchange, target) => {
            copier.copy(pair, name, Sides { source, target: target.as_ref() }).await
        }
        (Verb::Attributes, Some(target)) => copier.set_attributes(pair, name, source, target).await,
        (Verb::Attributes, None) | (Verb::Keep | Verb::Delete, _) => Err(FailureKind::Changed),
    }
}

/// Returns both sides of an action: as they were seen, or as they are now if they are the versions that it names.
async fn look(copier: &Copier, pair: &Pair, name: &Name, planned: &Planned) -> Result<Now, FailureKind> {
    if planned.source.is_some() {
        return Ok(Now { source: planned.source, target: planned.target });
    }
    let (source, target) = copier.look(pair, name).await?;
    let action = &planned.action;
    let is_right = is_version(copier, action.source.as_ref(), source.as_ref())
        && is_version(copier, action.target.as_ref(), target.as_ref())
        && source.is_none_or(|source| crate::plan::Kind::from(source.kind) == action.kind);
    if is_right { Ok(Now { source, target }) } else { Err(FailureKind::Changed) }
}

/// Returns true if a version, or its absence, is what was found.
fn is_version(copier: &Copier, wanted: Option<&Version>, found: Option<&Stat>) -> bool {
    match (wanted, found) {
        (Some(wanted), Some(found)) => wanted.is(found, |found| copier.is_own_time(found)),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Returns true if a path is certainly missing below a folder.
async fn is_missing(root: &Dir, path: &Path) -> bool {
    let Some(mut names) = names(path) else { return false };
    let Some(last) = names.pop() else { return false };
    let mut at = root.clone();
    for name in names {
        at = match at.reach_dir(&name, false).await {
            Ok(dir) => dir,
            // A file or a link in the place of a folder: nothing is beneath it.
            Err(error) => return is_absence(&error),
        };
    }
    at.stat_entry(&last, false).await.is_err_and(|error| is_absence(&error))
}

fn is_absence(error: &ferry_io::Error) -> bool {
    [ferry_io::Errno::NOENT, ferry_io::Errno::NOTDIR, ferry_io::Errno::LOOP].iter().any(|&no| error.is(no))
}

fn last_name(action: &Action) -> Option<Name> {
    action.path.0.file_name().and_then(|name| Name::new(name.as_encoded_bytes()))
}
