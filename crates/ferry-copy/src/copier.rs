//! Copies of entries that a caller chooses one by one, by the code that the walk uses.
//!
//! `run_from` decides about each entry by cp's rules. A [`Copier`] decides nothing: its caller has looked at both
//! sides, and passes what it saw. A source or target that is another file by then is refused
//! ([`FailureKind::Changed`]), and nothing of it changes.
//!
//! A new entry is made under its name. An existing one is replaced by way of a hidden name: the copy is made there, both
//! names are exchanged, and only then the old entry, which has the hidden name now, is compared with the one that the
//! caller saw. A foreign one gets its name back. So the target is never missing and never incomplete.
//!
//! Many new entries of one folder are copied together ([`Copier::copy_new`]), and several processes can copy one large
//! file ([`Copier::copy_range`]).
//!
//! Folders are entered as [`Pair`]s. A pair in which nothing changes keeps its attributes; in any other the source's are
//! set when it is finished.

mod attributes;
mod entries;
mod listed;
mod overwrite;
mod own;
mod ranges;
mod recover;
mod rules;
mod run_mark;
mod shown;
mod swap;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Dir, Errno, FileKind, Io, Name, Paths, Semaphore, Stat, protect};

use crate::abilities::DevicePair;
use crate::acl;
use crate::claim::{self, Ended};
use crate::devices::Devices;
use crate::digest::{Algorithm, Digest, Known};
use crate::entry::settle::settle;
use crate::finish;
use crate::folder::{Dirs, Facts, Folder, Role, Root, open_target};
use crate::identity::identity;
use crate::lent;
use crate::links::{NameClaim, NameLook};
use crate::load::Gate;
use crate::meta;
use crate::mutex::lock;
use crate::options::{Dereference, Existing, Options, Preserve, Resume};
use crate::place::{Entry, Subject};
use crate::report::{During as _, Failure, FailureKind, Observer, Progress, Summary, Verb};
use crate::run::Run;
use crate::staging;
use crate::sync;
use crate::target::{Ahead, Seen};
use crate::trail::{self, AtLink};
use crate::walk;

pub use attributes::{is_complete, is_kept_xattr, kept_mode};
pub use listed::Listing;
use own::OwnTimes;
use shown::Shown;

/// Options of a copier.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Existing files are overwritten in place instead of being replaced.
    pub in_place: bool,
    /// Everything is durable at the end.
    pub fsync: bool,
    /// Each file is read back from its device, and compared with its source, before it gets its name.
    pub verify: bool,
    /// Each file gets its name only when it is complete, unless it is overwritten in place.
    pub atomic: bool,
    /// Comparison of parts with their sources. Without it, and in place, none are left or gone on with.
    pub resume: Option<Resume>,
    /// Set if [`Observer::hashed`] is called for each regular file.
    pub digest: Option<Algorithm>,
    /// Bytes written per second at most.
    pub bandwidth: Option<NonZeroU64>,
    /// Holds the run back while others wait for I/O.
    pub gate: Option<Arc<Gate>>,
    /// The devices of both sides, if they are asked after errors.
    pub devices: Option<Arc<Devices>>,
}

/// A run whose entries the caller chooses.
pub struct Copier {
    run: Arc<Run>,
    in_place: bool,
    /// Set if new entries are copied by cp's rules, too.
    by_rules: bool,
    /// Held while one name of a file with several names is copied: its other names then find it complete.
    linked: Semaphore,
    own: OwnTimes,
}

/// Folders that a run starts from, with the paths that the user gave.
pub struct Start {
    /// The source folder.
    pub source: Dir,
    /// The target folder.
    pub target: Dir,
    /// Path of the source.
    pub source_path: PathBuf,
    /// Path of the target.
    pub target_path: PathBuf,
    /// Set if the target was made for this run.
    pub is_new: bool,
}

/// A folder of the source and the folder of the target that is its copy.
#[derive(Clone)]
pub struct Pair(Arc<Folder>);

/// An entry of the target that has left its name.
#[must_use = "it has no name"]
pub struct Lifted(swap::Lifted);

/// An entry as the caller saw it.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The source.
    pub source: &'a Stat,
    /// The target, if there is one.
    pub target: Option<&'a Stat>,
}

impl Copier {
    /// Returns a copier that keeps everything, as `cp -a` does, for use within a run of the runtime.
    #[must_use]
    pub fn new(io: Io, settings: Settings, progress: Arc<Progress>, observer: Arc<dyn Observer>) -> Self {
        let options = Options {
            recursive: true,
            dereference: Dereference::Never,
            preserve: Preserve::ARCHIVE,
            // What has appeared since the caller looked stays.
            existing: Existing::Refuse,
            fsync: settings.fsync,
            verify: settings.verify,
            resume: settings.resume.filter(|_| !settings.in_place),
            atomic: settings.atomic || settings.verify && !settings.in_place,
            digest: settings.digest,
            bandwidth: settings.bandwidth,
            ..Options::default()
        };
        let devices = settings.devices.unwrap_or_else(|| Arc::new(Devices::new(io.clone())));
        let shared = (options, settings.gate, devices);
        Self { in_place: settings.in_place, ..Self::build(io, shared, progress, observer) }
    }

    fn build(
        io: Io,
        (options, gate, devices): (Options, Option<Arc<Gate>>, Arc<Devices>),
        progress: Arc<Progress>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        // The other half is the caller's.
        let descriptors = io.descriptors() / 2;
        let mut run = Run::new((io, descriptors), Paths::new(), options, progress, Arc::new(Shown(observer)));
        (run.gate, run.devices) = (gate, devices);
        // The caller's own walk ends last.
        run.walk_grows(1);
        Self {
            run: Arc::new(run),
            in_place: false,
            by_rules: false,
            linked: Semaphore::new(1),
            own: OwnTimes::default(),
        }
    }

    /// Returns the pair that a run starts from.
    ///
    /// # Errors
    /// If one of the two can't be examined.
    pub async fn start(&self, start: Start) -> Result<Pair, FailureKind> {
        let Start { source, target, source_path, target_path, is_new } = start;
        let (source_dir, target_dir) = (source.clone(), target.clone());
        let base = Folder::root(Root { source, target, source_path, target_path });
        self.run.adapt_to(&base, &source_dir, &target_dir).await;
        let folder = Folder::beneath(&base, None, None, false, Role::Operand);
        self.open(folder, Dirs { source: source_dir, target: target_dir }, is_new).await
    }

    /// Returns the pair of two folders with this name that both exist.
    ///
    /// # Errors
    /// If one of the two can't be opened.
    pub async fn enter(&self, parent: &Pair, name: &Name) -> Result<Pair, FailureKind> {
        let Dirs { source, target } = self.run.dirs(&parent.0).await.during(Verb::OpenDirectory)?;
        let source = source.open_dir(name).await.during(Verb::OpenDirectory)?;
        let target = open_target(&target, name, false).await.during(Verb::StatTarget)?;
        let name = Some(name.detached());
        let folder = Folder::beneath(&parent.0, name.clone(), name, false, Role::Inner);
        self.open(folder, Dirs { source, target }, false).await
    }

    async fn open(&self, folder: Arc<Folder>, dirs: Dirs, is_new: bool) -> Result<Pair, FailureKind> {
        let opened = self.try_open(&folder, dirs, is_new).await;
        if opened.is_err() {
            // Without facts, this sets no attributes.
            finish::end_one(&self.run, Arc::clone(&folder)).await;
        }
        opened.map(|()| Pair(folder))
    }

    async fn try_open(&self, folder: &Arc<Folder>, dirs: Dirs, is_new: bool) -> Result<(), FailureKind> {
        let run = &self.run;
        let source = dirs.source.stat().await.during(Verb::OpenDirectory)?;
        if folder.role == Role::Operand {
            run.operands.set_root_device(source.device);
        }
        let target = dirs.target.stat().await.during(Verb::StatTarget)?;
        let xattrs = meta::found(run, Subject::Folder(folder), dirs.source.as_file().xattrs().await)?;
        let leftovers = staging::clear_unused(run, &dirs.target).await;
        run.meet(folder, DevicePair { source: source.device, target: target.device }, &dirs.target);
        if run.options.fsync {
            run.durable.meet(target.device, &dirs.target, || folder.target_path()).await;
        }
        folder.is_untouched.store(!is_new && !leftovers.is_changed, Ordering::Relaxed);
        *lock(&folder.asides) = leftovers.asides;
        *lock(&folder.marks) = leftovers.marks;
        let gives_acl = acl::has_default(&dirs.target).await;
        let facts = Facts {
            source,
            target: identity(&target),
            xattrs,
            is_new,
            gives_acl,
            gives_owner: None,
            follows: false,
            lent: 0,
        };
        folder.open_with(facts, dirs);
        run.open_folders.add(folder);
        Ok(())
    }

    /// Makes a folder of the target like the source's, without its entries. One that exists is entered. Returns `None`
    /// after a failure, which is reported.
    pub async fn make(&self, parent: &Pair, name: &Name) -> Option<Pair> {
        self.make_as(parent, name, Role::Inner).await
    }

    /// As [`Self::make`], but a folder that exists is refused with [`FailureKind::Unlisted`].
    pub async fn make_new(&self, parent: &Pair, name: &Name) -> Option<Pair> {
        self.make_as(parent, name, Role::New).await
    }

    /// As [`Self::make`], and begins to list the source.
    pub async fn make_listed(&self, parent: &Pair, name: &Name) -> Option<(Pair, Listing)> {
        self.make_and_list(parent, name, Role::Inner).await
    }

    async fn make_as(&self, parent: &Pair, name: &Name, role: Role) -> Option<Pair> {
        self.make_and_list(parent, name, role).await.map(|(pair, _)| pair)
    }

    async fn make_and_list(&self, parent: &Pair, name: &Name, role: Role) -> Option<(Pair, Listing)> {
        let folder = self.beneath(parent, name, role);
        self.run.walk_grows(1);
        let entered = walk::enter(&self.run, &folder, None).await;
        self.run.walk_shrinks();
        match entered {
            Some(chunk) => Some((Pair(folder), Listing::of(chunk))),
            None => {
                finish::end_one(&self.run, folder).await;
                None
            }
        }
    }

    /// Copies a folder that the target lacks, with everything in it, and returns the number of entries made. Failures
    /// are reported; folders that exist in the target are refused with [`FailureKind::Unlisted`].
    pub async fn copy_tree(&self, parent: &Pair, name: &Name) -> u64 {
        let before = self.run.tally.entries();
        let folder = self.beneath(parent, name, Role::New);
        self.run.walk_grows(1);
        walk::copy_tree(&self.run, folder).await;
        self.run.tally.entries() - before
    }

    fn beneath(&self, parent: &Pair, name: &Name, role: Role) -> Arc<Folder> {
        parent.touch();
        let name = Some(name.detached());
        Folder::beneath(&parent.0, name.clone(), name, self.follows(), role)
    }

    /// Sets the attributes of a pair's target, unless nothing in it has changed. Call it once, after the pairs beneath.
    pub async fn finish(&self, pair: Pair) {
        finish::end_one(&self.run, pair.0).await;
    }

    /// Lets a user change entries of a target that they own, whatever its mode, until the pair is finished. With
    /// `and_source` entries may also be moved from the source.
    pub async fn lend(&self, pair: &Pair, and_source: bool) {
        lent::lend(&self.run, &pair.0, and_source).await;
    }

    /// Finishes a pair whose target has other attributes to get, by another pair.
    pub async fn finish_bare(&self, pair: Pair) {
        pair.0.is_untouched.store(true, Ordering::Relaxed);
        finish::end_one(&self.run, pair.0).await;
    }

    /// Returns the attributes of both sides; `None` for a missing one.
    ///
    /// # Errors
    /// The kernel's, except ENOENT.
    pub async fn look(&self, pair: &Pair, name: &Name) -> Result<(Option<Stat>, Option<Stat>), FailureKind> {
        self.run.pass().await.during(Verb::Stat)?;
        let Dirs { source, target } = self.run.dirs(&pair.0).await.during(Verb::Stat)?;
        let source = if_there(source.stat_entry(name, self.follows()).await).during(Verb::Stat)?;
        let target = if_there(target.stat_entry(name, false).await).during(Verb::StatTarget)?;
        Ok((source, target))
    }

    /// Returns the descriptors of a pair's folders, source first.
    ///
    /// # Errors
    /// If they were closed meanwhile and can't be opened again.
    pub async fn folders(&self, pair: &Pair) -> Result<(Dir, Dir), FailureKind> {
        let Dirs { source, target } = self.run.dirs(&pair.0).await.during(Verb::OpenDirectory)?;
        Ok((source, target))
    }

    /// Copies an entry that is no folder. It takes the place of the target that the caller saw.
    ///
    /// # Errors
    /// [`FailureKind::Changed`] if the source or the target is another file by now; others as with cp.
    pub async fn copy(&self, pair: &Pair, name: &Name, sides: Sides<'_>) -> Result<(), FailureKind> {
        let run = &self.run;
        run.pass().await.during(Verb::Open)?;
        let entry = Entry { folder: &pair.0, source: name, target: name };
        pair.touch();
        let _turn = match sides.source.links > 1 {
            true => Some(self.linked.acquire().await.during(Verb::Open)?),
            false => None,
        };
        let ahead = match sides.target {
            None => Ahead::Free,
            Some(target) => {
                let dir = run.dirs(entry.folder).await.during(Verb::StatTarget)?.target;
                let trash = pair.trash();
                let folder = self.folder(pair, &dir, trash.as_ref());
                if !self.may_overwrite(sides.source, target) {
                    let replaced = swap::replace(run, entry, sides.source, target, &folder).await;
                    if replaced.is_ok() && lock(&pair.0.marks).iter().any(|mark| mark.is_of(name)) {
                        staging::unmark(&dir, folder.inode, name, target).await;
                    }
                    return replaced;
                }
                if !folder.is_it(&dir, name, target).await.during(Verb::StatTarget)? {
                    return Err(FailureKind::Changed);
                }
                return self.overwrite_marked(entry, (&dir, folder.inode), sides.source, target).await;
            }
        };
        self.make_entry(entry, sides.source, ahead).await
    }

    async fn make_entry(&self, entry: Entry<'_>, source: &Stat, ahead: Ahead) -> Result<(), FailureKind> {
        let seen = Seen { follow: false, stat: Some(*source), ahead };
        let ended = swap::make(&self.run, entry, &seen).await?;
        settle(&self.run, entry, seen.look(), ended).await
    }

    fn folder<'a>(&'a self, pair: &Pair, dir: &'a Dir, trash: Option<&'a Dir>) -> swap::Folder<'a> {
        let inode = pair.0.facts().map_or(0, |facts| facts.target.1);
        swap::Folder { run: &self.run, inode, dir, own: &self.own, trash }
    }

    fn may_overwrite(&self, source: &Stat, target: &Stat) -> bool {
        let are_files = source.kind == FileKind::Regular && target.kind == FileKind::Regular;
        self.in_place && are_files && source.links == 1 && target.links == 1
    }

    /// Notes that a target with this name stays: further names of its source become links to it. Returns false if another
    /// name of the source has been copied already: then the target is to be replaced, and becomes a link to that copy.
    /// `digest` is the hash that the target had with these attributes, if names that become links to it are reported with
    /// theirs.
    ///
    /// # Errors
    /// As with [`Self::copy`].
    pub async fn keep(
        &self,
        pair: &Pair,
        name: &Name,
        source: &Stat,
        (target, digest): (&Stat, Option<Digest>),
    ) -> Result<bool, FailureKind> {
        let run = &self.run;
        let entry = Entry { folder: &pair.0, source: name, target: name };
        let _turn = self.linked.acquire().await.during(Verb::Stat)?;
        let look = NameLook { follow: false, found_free: false };
        match claim::claim_unopened(run, entry, source, look).await? {
            NameClaim::Alone | NameClaim::Left => Ok(true),
            NameClaim::First(file) => {
                let copy = claim::existing_copy(run, entry).await;
                let known = digest.map(|digest| Known::of(digest, target).or_time_of(source));
                let copy = copy.map(|copy| copy.with_hash(known));
                settle(run, entry, look, Ended::First(file, Ok(copy))).await.map(|()| true)
            }
            NameClaim::Linked(_, first) if first.is_copy(target) => Ok(true),
            NameClaim::Linked(..) => Ok(false),
        }
    }

    /// Returns the hash of a file of the target, for a manifest. `known` is the hash that the file had when both sides were
    /// examined. If `target` shows that nothing was written to it since, the file is not read again.
    ///
    /// # Errors
    /// [`Verb::Hash`]: with ESTALE if it is another file than `target` by now, or was written to; those of reading it.
    pub async fn hash(
        &self,
        pair: &Pair,
        name: &Name,
        target: &Stat,
        algorithm: Algorithm,
        known: Option<(Digest, Sides<'_>)>,
    ) -> Result<Digest, FailureKind> {
        let known = known.and_then(|(digest, Sides { source, target })| {
            // The run may have set the time of the source.
            target.map(|seen| Known::of(digest, seen).or_time_of(source))
        });
        if let Some(digest) = known.and_then(|known| known.digest_of(target)) {
            return Ok(digest);
        }
        let entry = Entry { folder: &pair.0, source: name, target: name };
        // Boxed: its state would be part of every entry's.
        Box::pin(trail::of_target(&self.run, entry, target, algorithm, AtLink::Refuse)).await
    }

    /// Takes away an entry: moves it to the pair's trash, or removes it. A folder has to be empty.
    ///
    /// # Errors
    /// [`FailureKind::Changed`] if it is another file by now.
    pub async fn remove(&self, pair: &Pair, name: &Name, target: &Stat) -> Result<(), FailureKind> {
        pair.touch();
        let dir = self.run.dirs(&pair.0).await.during(Verb::Remove)?.target;
        self.folder(pair, &dir, pair.trash().as_ref()).take_away(name, target).await
    }

    /// Takes an entry from its name to make room for another: to the pair's trash, or aside. Pass it to
    /// [`Self::put_away`] or [`Self::give_back`].
    ///
    /// # Errors
    /// [`FailureKind::Changed`] if it is another file by now.
    pub async fn lift(&self, pair: &Pair, name: &Name, target: &Stat) -> Result<Lifted, FailureKind> {
        pair.touch();
        let dir = self.run.dirs(&pair.0).await.during(Verb::Remove)?.target;
        self.folder(pair, &dir, pair.trash().as_ref()).lift(name, target).await.map(Lifted)
    }

    /// Removes an entry that was lifted, unless it is in the trash. If it can't be removed, it gets its name back,
    /// unless another entry has it.
    ///
    /// # Errors
    /// Those of unlinkat(2); [`FailureKind::KeptAside`].
    pub async fn put_away(&self, pair: &Pair, name: &Name, lifted: Lifted) -> Result<(), FailureKind> {
        let dir = protect(self.run.dirs(&pair.0)).await.during(Verb::Remove)?.target;
        self.folder(pair, &dir, pair.trash().as_ref()).put_away(&lifted.0, name).await
    }

    /// Gives an entry that was lifted its name back.
    ///
    /// # Errors
    /// [`FailureKind::KeptAside`].
    pub async fn give_back(&self, pair: &Pair, name: &Name, lifted: Lifted) -> Result<(), FailureKind> {
        let dir = protect(self.run.dirs(&pair.0)).await.during(Verb::Restore)?.target;
        self.folder(pair, &dir, pair.trash().as_ref()).give_back(&lifted.0, name).await
    }

    /// Moves an entry from the source to the target, where its name has to be free. The target may not be on another
    /// filesystem.
    ///
    /// # Errors
    /// Those of renameat2(2).
    pub async fn restore(&self, pair: &Pair, name: &Name) -> Result<(), FailureKind> {
        pair.touch();
        let Dirs { source, target } = self.run.dirs(&pair.0).await.during(Verb::Restore)?;
        protect(staging::rename_into(&source, name, &target, name)).await.during(Verb::Restore)
    }

    /// Removes a folder of the source if it is empty.
    pub async fn remove_if_empty(&self, pair: &Pair, name: &Name) {
        if let Ok(Dirs { source, .. }) = self.run.dirs(&pair.0).await {
            // One with entries stays.
            source.remove_dir(name).await.ok();
        }
    }

    /// Sets the attributes of an entry of any kind to its source's.
    ///
    /// # Errors
    /// [`FailureKind::Changed`] if the source or the target is another file by now.
    pub async fn set_attributes(
        &self,
        pair: &Pair,
        name: &Name,
        source: &Stat,
        target: &Stat,
    ) -> Result<(), FailureKind> {
        self.run.pass().await.during(Verb::Stat)?;
        let entry = Entry { folder: &pair.0, source: name, target: name };
        attributes::set(&self.run, &self.own, entry, source, target).await
    }

    /// Sets the attributes of a pair's target itself to its source's, at once and once more when it is finished.
    ///
    /// # Errors
    /// If its folders can't be opened again.
    pub async fn set_attributes_of(&self, pair: &Pair) -> Result<(), FailureKind> {
        pair.touch();
        attributes::set_folder(&self.run, &pair.0).await
    }

    /// Returns true if this run has given a file with several names the modification time that it has.
    #[must_use]
    pub fn is_own_time(&self, found: &Stat) -> bool {
        self.own.is_own_time(found)
    }

    /// Reports a failure of one entry; the run goes on.
    pub fn fail(&self, pair: &Pair, name: &Name, kind: FailureKind) {
        trail::fail(&self.run, Entry { folder: &pair.0, source: name, target: name }, kind);
    }

    /// Reports a failure of paths that no pair leads to.
    pub fn fail_at(&self, failure: Failure) {
        self.run.fail_at(failure.source, failure.target, failure.kind);
    }

    /// Returns true if something has failed, and was reported, other than reading a target for its hash.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.run.tally.failed.get() > self.run.tally.unhashed.get()
    }

    /// Returns true if the run was interrupted, or ended by a full filesystem or a failing device.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.run.io.is_stopped()
    }

    /// Returns the totals so far. The caller adds those of the runtime.
    #[must_use]
    pub fn totals(&self) -> Summary {
        self.run.summary()
    }

    /// Number of folders to be worked in at once, by all workers.
    #[must_use]
    pub fn folders_at_once(&self) -> usize {
        self.run.limits.folders_at_once * self.run.io.workers()
    }

    /// Ends the run: makes everything durable if requested, and returns the totals. The caller adds those of the runtime.
    pub async fn end(self) -> Summary {
        self.run.walk_shrinks();
        sync::filesystems(&self.run, true).await;
        self.run.summary()
    }
}

impl Pair {
    /// Returns true if the copier has made the target: nothing is in it that the copier has not put there.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.0.facts().is_some_and(|facts| facts.is_new)
    }

    /// Notes a change of the target: it gets its attributes again when the pair is finished.
    pub fn touch(&self) {
        self.0.is_untouched.store(false, Ordering::Relaxed);
    }

    fn trash(&self) -> Option<Dir> {
        lock(&self.0.trash).clone()
    }

    /// Moves entries that are replaced or removed from now on to this folder; `None` removes them.
    pub fn set_trash(&self, trash: Option<Dir>) {
        *lock(&self.0.trash) = trash;
    }
}

fn if_there(found: ferry_io::Result<Stat>) -> ferry_io::Result<Option<Stat>> {
    match found {
        Err(error) if error.is(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}
