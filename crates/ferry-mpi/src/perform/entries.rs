//! Folders and batches of files: what is copied at once, what is left for others, and what is complete already.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use ferry_cluster::{Found, SHARED, Text, Version, Walk, batch_size, names_for};
use ferry_copy::{FailureKind, Listing, Pair, Sides, is_complete};
use ferry_io::{Entry, FileKind, Name, Stat, for_each};

use super::Rank;
use super::way::may_hold;
use crate::setup::MARK;

/// Names of a folder that are read before its listing is left open. Smaller folders are listed as a whole.
const WHOLE: usize = 2048;
/// Most entries copied between two looks at messages.
const AT_ONCE: usize = 256;
/// Fewest of them, where each takes long.
const LEAST: usize = 32;
/// Time that they should take.
const STRETCH: Duration = Duration::from_millis(500);

/// Returns the version of a source file.
pub(super) fn version(stat: &Stat) -> Version {
    Version {
        inode: stat.inode,
        size: stat.size,
        seconds: stat.times.modified.seconds,
        nanoseconds: stat.times.modified.nanoseconds,
    }
}

fn text(name: &Name) -> Text {
    Text::from(name.as_bytes())
}

/// Returns the name of a file's part, the same on every rank, and another one for another version of the source.
pub(super) fn part(name: &[u8], version: Version) -> Option<Name> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name);
    for number in [version.inode, version.size, version.seconds.cast_unsigned(), version.nanoseconds.into()] {
        hasher.update(&number.to_le_bytes());
    }
    let hash = hasher.finalize().to_hex();
    Name::new(format!(".ferry-mpi-{}", &hash[..16]).as_bytes())
}

impl Rank<'_> {
    /// Makes and lists a folder, and copies what it holds.
    pub(super) async fn enter(&self, walk: &RefCell<Walk>, folder: usize, path: &Text) {
        if self.is_marked_in_source(path).await {
            walk.borrow_mut().finished(folder);
            return;
        }
        let Some((pair, listing)) = self.way.list(path).await else {
            walk.borrow_mut().finished(folder);
            return;
        };
        let listing = match self.is_left_alone(&pair, path).await {
            Ok(false) => listing,
            Ok(true) => {
                walk.borrow_mut().finished(folder);
                return;
            }
            Err(kind) => Err(kind),
        };
        let mut listing = match listing {
            Ok(listing) => listing,
            Err(kind) => {
                self.count_folder();
                self.fail_folder(path, kind);
                walk.borrow_mut().found(folder, Found::default(), true);
                return;
            }
        };
        let entries = self.read(&mut listing, path, WHOLE).await;
        let is_whole = listing.is_over() || entries.len() < WHOLE;
        if pair.is_new() && self.rules.notes_made() {
            walk.borrow_mut().note_made(folder);
        }
        if !is_whole && !walk.borrow_mut().keeps_listing(folder) {
            return;
        }
        self.count_folder();
        if pair.is_new() {
            self.made.set(self.made.get() + 1);
        }
        let found = self.copy_entries(walk, folder, &pair, entries).await;
        if !is_whole {
            self.listing.replace(Some(listing));
        }
        walk.borrow_mut().found(folder, found, is_whole);
    }

    /// Returns true for a folder of the source that a sync leaves to `ferry sync`: a trash, which it copies or passes over as a whole.
    /// A folder in which no mark can be looked for counts as one.
    async fn is_marked_in_source(&self, path: &Text) -> bool {
        match Name::new(MARK) {
            Some(mark) if self.setup.keeps_existing() => self.way.source_may_hold(path, &mark).await,
            _ => false,
        }
    }

    /// Returns true for an existing folder of the target that a sync leaves to `ferry sync`: a trash, or one of which a side is a
    /// mount point, because that may be a part of the other tree.
    async fn is_left_alone(&self, pair: &Pair, path: &Text) -> Result<bool, FailureKind> {
        if !self.setup.keeps_existing() || pair.is_new() || path.is_empty() {
            return Ok(false);
        }
        let (source, target) = self.copier.folders(pair).await?;
        let Some(mark) = Name::new(MARK) else { return Ok(false) };
        let is_mounted = source.is_mount_root() || target.is_mount_root();
        Ok(is_mounted || may_hold(&target, &mark).await)
    }

    fn count_folder(&self) {
        self.directories.set(self.directories.get() + 1);
    }

    /// Reads entries until there are `most`, or no more.
    async fn read(&self, listing: &mut Listing, path: &Text, most: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        while entries.len() < most && !listing.is_over() {
            match listing.next().await {
                Ok(more) => {
                    let takes_part = |entry: &Entry| !self.setup.leaves_out(path, entry.name.as_bytes());
                    entries.extend(more.into_iter().filter(takes_part));
                }
                Err(kind) => {
                    self.fail_folder(path, kind);
                    break;
                }
            }
        }
        entries
    }

    /// Goes on with the folder whose listing is open.
    pub(super) async fn go_on(&self, walk: &RefCell<Walk>, folder: usize, path: &Text) {
        let listing = self.listing.take();
        let (Some(pair), Some(mut listing)) = (self.way.go(path).await, listing) else {
            walk.borrow_mut().found(folder, Found::default(), true);
            return;
        };
        // For idle ranks, too, if there are any.
        let most = AT_ONCE + names_for(walk.borrow().idle());
        let entries = self.read(&mut listing, path, most).await;
        let is_whole = listing.is_over() || entries.is_empty();
        let found = self.copy_entries(walk, folder, &pair, entries).await;
        if !is_whole {
            self.listing.replace(Some(listing));
        }
        walk.borrow_mut().found(folder, found, is_whole);
    }

    /// Copies entries of a folder. If ranks are idle, the files that are left are given back in batches: the report goes out
    /// at once, and this rank gets some of them again.
    async fn copy_entries(
        &self,
        walk: &RefCell<Walk>,
        folder: usize,
        pair: &Pair,
        entries: Vec<Entry>,
    ) -> Found {
        self.entries.set(self.entries.get() + entries.len() as u64);
        let mut found = Found::default();
        let (folders, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.kind == Some(FileKind::Directory));
        found.folders.extend(folders.iter().map(|entry| text(&entry.name)));
        // What is copied beside this folder is not begun if these spend the budget.
        walk.borrow_mut().spend((folders.len() + others.len()) as u64, 0);
        let mut rest = VecDeque::from(others);
        let is_alone = self.setup.ranks == 1;
        let mut at_once = if is_alone { AT_ONCE } else { 2 * LEAST };
        while !rest.is_empty() && self.check().is_ok() {
            self.talk.receive();
            walk.borrow_mut().note_idle(self.talk.take_idle());
            if walk.borrow().idle() > 0 && rest.len() >= SHARED {
                give_back(&mut walk.borrow_mut(), folder, &mut rest);
            }
            let now: Vec<_> = rest.drain(..rest.len().min(at_once)).collect();
            let begun = ferry_io::now();
            self.copy_some(walk, pair, now, &mut found).await;
            if !is_alone {
                at_once = next_size(at_once, ferry_io::now().saturating_duration_since(begun));
            }
        }
        found
    }

    /// Copies entries at once, and sorts what was left of them.
    async fn copy_some(&self, walk: &RefCell<Walk>, pair: &Pair, entries: Vec<Entry>, found: &mut Found) {
        let left = if pair.is_new() {
            self.copier.copy_new(pair, entries, &|stat: &Stat| self.is_left(stat)).await
        } else {
            let names = entries.into_iter().map(|entry| entry.name).collect();
            self.copy_seen(pair, names).await
        };
        for (name, stat) in left {
            if let Err(kind) = self.sort(pair, &name, &stat, found).await {
                self.copier.fail(pair, &name, kind);
            }
        }
        self.spend_bytes(walk);
    }

    /// Returns true for files that are not copied where they are found: large ones, and those with several names.
    fn is_left(&self, stat: &Stat) -> bool {
        self.rules.is_left(stat, self.setup.settings.large())
    }

    /// Notes an entry that was left.
    async fn sort(
        &self,
        pair: &Pair,
        name: &Name,
        stat: &Stat,
        found: &mut Found,
    ) -> Result<(), FailureKind> {
        if stat.kind == FileKind::Directory {
            found.folders.push(text(name));
        } else if self.rules.is_linked(stat) {
            let stays = self.setup.leaves_linked()
                || self.rules.keeps_existing() && self.copier.look(pair, name).await?.1.is_some();
            if stays {
                return Ok(());
            }
            // Its owner copies it whole: no rank has made the part that ranges need.
            // Machines number the device of a network filesystem as they like.
            let device = if stat.device == self.device { 0 } else { stat.device };
            found.linked.push((text(name), (device, stat.inode), stat.links, None));
        } else if self.rules.by_rules
            && let (_, Some(target)) = self.copier.look(pair, name).await?
        {
            // By its rules `ferry cp` may keep it, or give the copy some of its attributes.
            self.copy_over(pair, name, stat, Some(&target)).await?;
        } else if self.setup.compares() && self.is_kept(pair, name, stat).await? {
            self.kept.set(self.kept.get() + 1);
        } else {
            self.sort_large(pair, name, stat, found).await?;
        }
        Ok(())
    }

    /// Notes a file that is to be copied in ranges, and sees to its part.
    async fn sort_large(
        &self,
        pair: &Pair,
        name: &Name,
        stat: &Stat,
        found: &mut Found,
    ) -> Result<(), FailureKind> {
        let version = version(stat);
        let part = part(name.as_bytes(), version).ok_or(FailureKind::Changed)?;
        if !self.setup.is_resumed {
            // No other rank knows of the file yet.
            self.copier.begin_ranges_of(pair, &part, stat).await?;
        } else if !may_hold(&self.copier.folders(pair).await?.1, &part).await {
            // An empty part would count as one with the ranges that the journal lists.
            found.without_part.push((text(name), version));
            return Ok(());
        }
        found.large.push((text(name), version));
        Ok(())
    }

    /// Returns true if the target of a source stays as it is.
    pub(super) async fn is_kept(&self, pair: &Pair, name: &Name, source: &Stat) -> Result<bool, FailureKind> {
        let (_, target) = self.copier.look(pair, name).await?;
        Ok(target.is_some_and(|target| self.setup.keeps_existing() || is_complete(source, &target)))
    }

    /// Copies entries whose targets may exist. Returns those that were left.
    async fn copy_seen(&self, pair: &Pair, names: Vec<Name>) -> Vec<(Name, Stat)> {
        let left = RefCell::new(Vec::new());
        let ended = for_each(self.copier.entries_at_once(), names, async |name: Name| {
            if ferry_io::is_cancelled() {
                return Err(());
            }
            match self.copy_one(pair, &name).await {
                Ok(None) => {}
                Ok(Some(stat)) => left.borrow_mut().push((name, stat)),
                Err(kind) => self.copier.fail(pair, &name, kind),
            }
            Ok(())
        });
        // Ends early only in a cancelled run.
        ended.await.ok();
        left.into_inner()
    }

    async fn copy_one(&self, pair: &Pair, name: &Name) -> Result<Option<Stat>, FailureKind> {
        let (source, target) = self.copier.look(pair, name).await?;
        let Some(source) = source else {
            // `ferry cp` reports a symbolic link that it can't follow.
            let copied = if self.rules.by_rules {
                self.copier.copy_by_rules(pair, name).await
            } else {
                Err(FailureKind::Changed)
            };
            return copied.map(|()| None);
        };
        if source.kind == FileKind::Directory || self.is_left(&source) {
            return Ok(Some(source));
        }
        self.copy_over(pair, name, &source, target.as_ref()).await.map(|()| None)
    }

    /// Copies an entry to a target that may exist. In a job that goes on, a complete one stays; in a sync, any.
    pub(super) async fn copy_over(
        &self,
        pair: &Pair,
        name: &Name,
        source: &Stat,
        target: Option<&Stat>,
    ) -> Result<(), FailureKind> {
        let is_done = |target: &Stat| self.setup.is_resumed && is_complete(source, target);
        match target {
            Some(target) if self.rules.by_rules && self.rules.keeps_times() && is_done(target) => {
                self.kept.set(self.kept.get() + 1);
                Ok(())
            }
            _ if self.rules.by_rules => self.copier.copy_by_rules(pair, name).await,
            Some(_) if self.setup.keeps_existing() => {
                self.kept.set(self.kept.get() + 1);
                Ok(())
            }
            Some(target) if is_done(target) => {
                self.kept.set(self.kept.get() + 1);
                let differs = (target.mode, target.uid, target.gid) != (source.mode, source.uid, source.gid);
                // A file that was killed before it got its last attributes has this mode.
                let is_private = target.kind == FileKind::Regular && target.mode == 0o600;
                if differs || is_private {
                    self.copier.set_attributes(pair, name, source, target).await?;
                }
                Ok(())
            }
            Some(target) if target.kind == FileKind::Directory => Err(FailureKind::FileOverDirectory),
            target => self.copier.copy(pair, name, Sides { source, target }).await,
        }
    }

    /// Copies a batch of files that another rank has given back.
    pub(super) async fn copy_batch(&self, walk: &RefCell<Walk>, folder: &Text, names: &[Text]) -> Found {
        let mut found = Found::default();
        let Some(pair) = self.way.go(folder).await else { return found };
        let mut rest: VecDeque<Name> = names.iter().filter_map(|name| Name::new(name.as_bytes())).collect();
        while !rest.is_empty() && self.check().is_ok() {
            let now: Vec<Name> = rest.drain(..rest.len().min(AT_ONCE)).collect();
            walk.borrow_mut().spend(now.len() as u64, 0);
            for (name, stat) in self.copy_seen(&pair, now).await {
                let sorted = match stat.kind {
                    // It was a file when it was listed.
                    FileKind::Directory => Err(FailureKind::Changed),
                    FileKind::Regular
                    | FileKind::Symlink
                    | FileKind::Fifo
                    | FileKind::Socket
                    | FileKind::CharDevice
                    | FileKind::BlockDevice => self.sort(&pair, &name, &stat, &mut found).await,
                };
                if let Err(kind) = sorted {
                    self.copier.fail(&pair, &name, kind);
                }
            }
            self.spend_bytes(walk);
            self.talk.receive();
        }
        found
    }
}

/// Returns the number of entries to be copied at once after `at_once` have taken this long.
fn next_size(at_once: usize, took: Duration) -> usize {
    let next = if took > 2 * STRETCH {
        at_once / 2
    } else if took < STRETCH / 2 {
        at_once * 2
    } else {
        at_once
    };
    next.clamp(LEAST, AT_ONCE)
}

/// Gives the files of a folder back, in about as many batches as there are ranks to copy them. Entries of other or
/// unknown kinds stay.
fn give_back(walk: &mut Walk, folder: usize, rest: &mut VecDeque<Entry>) {
    let (files, others): (Vec<_>, Vec<_>) =
        rest.drain(..).partition(|entry| entry.kind == Some(FileKind::Regular));
    rest.extend(others);
    for batch in files.chunks(batch_size(files.len(), walk.idle())) {
        walk.give_back(folder, batch.iter().map(|entry| text(&entry.name)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_entries_are_copied_between_two_looks_where_each_takes_long() {
        let after = |milliseconds| next_size(64, Duration::from_millis(milliseconds));
        assert_eq!([after(2_000), after(500), after(1)], [32, 64, 128]);
        assert_eq!(next_size(LEAST, Duration::from_secs(60)), LEAST);
        assert_eq!(next_size(AT_ONCE, Duration::ZERO), AT_ONCE);
    }
}
