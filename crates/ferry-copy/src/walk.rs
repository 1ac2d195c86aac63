//! The walk: folders are jobs; each lists a chunk of entries and copies them, folders in it becoming jobs themselves.
//!
//! Jobs are taken newest first, and what is left of a large folder when there is nothing else, so the jobs that wait are
//! at most a chunk or two for each level of one path and worker (guard: `a_million_subfolders_are_not_a_million_jobs`). If
//! it merely waited beneath the folders of its chunk, a worker could list on while another still adds those, which
//! would then stay until the end.

mod enter;
mod listing;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Entry, FileKind, Jobs, Name, for_each};

use crate::copier::{Copier, Place};
use crate::durable;
use crate::entry::{self, Found};
use crate::folder::{Folder, Role};
use crate::meta;
use crate::options::Dereference;
use crate::report::{FailureKind, Verb};

pub(crate) use listing::OpenListings;
use listing::{Chunk, Listing};

/// A chunk with fewer entries left is not worth sharing.
const SPLIT: usize = 32;
/// So many entries are put in order at a time.
const ORDERED: usize = 10_000;

/// One piece of work that any worker can take.
pub(crate) enum Job {
    /// Open a folder, make its copy, and go on with its entries.
    Enter(Arc<Folder>),
    /// Go on with a folder's listing.
    List(Arc<Folder>, Listing),
    /// Copy some entries of a folder.
    Copy(Arc<Folder>, VecDeque<Entry>),
}

/// Runs a job to its end; its folder is finished if nothing else is pending in it.
pub(crate) async fn run(copier: &Arc<Copier>, jobs: &Jobs<Job>, job: Job) {
    let (Job::Enter(named) | Job::List(named, _) | Job::Copy(named, _)) = &job;
    ferry_io::name_fiber(named.source_name().map(Name::as_bytes).unwrap_or_default());
    let folder = match job {
        Job::Enter(folder) => {
            match enter::enter(copier, &folder).await {
                Some(chunk) => go_on(copier, jobs, &folder, chunk).await,
                None => copier.walk_shrinks(),
            }
            folder
        }
        Job::List(folder, listing) => {
            match listing.next().await {
                Ok(chunk) => go_on(copier, jobs, &folder, chunk).await,
                Err(error) => {
                    copier.fail_io(&itself(&folder), Verb::ReadDirectory, error);
                    copier.walk_shrinks();
                }
            }
            folder
        }
        Job::Copy(folder, entries) => {
            copy_entries(copier, jobs, &folder, entries).await;
            folder
        }
    };
    finish(copier, folder).await;
}

/// Makes a folder on the way to an operand; whether the operand can be reached.
pub(crate) async fn make_way(copier: &Copier, folder: &Arc<Folder>) -> bool {
    enter::enter(copier, folder).await.is_some()
}

/// The folder as a place: for messages about the folder itself.
fn itself(folder: &Arc<Folder>) -> Place<'_> {
    Place { folder, source: None, target: None }
}

/// Copies a chunk; what comes after it is for whoever is free.
async fn go_on(copier: &Arc<Copier>, jobs: &Jobs<Job>, folder: &Arc<Folder>, chunk: Chunk) {
    let keeps_order = copier.keeps_order(folder);
    let chunk = if keeps_order { in_order(chunk).await } else { chunk };
    copier.progress.entries_found.add(chunk.entries.len() as u64);
    let folders = chunk.entries.iter().filter(|entry| may_be_folder(copier, entry)).count();
    copier.walk_grows(folders as u64);
    let rest = chunk.rest.map(|rest| {
        folder.begin();
        Job::List(Arc::clone(folder), rest)
    });
    let mut later = None;
    match rest {
        None => copier.walk_shrinks(),
        Some(rest) if copier.asks() => jobs.push(rest),
        Some(rest) if keeps_order => later = Some(rest),
        Some(rest) => jobs.push_behind(rest),
    }
    copy_entries(copier, jobs, folder, chunk.entries.into()).await;
    if let Some(rest) = later {
        jobs.push(rest);
    }
}

/// The chunk and what comes after it, up to a bound, in GNU cp's order.
async fn in_order(chunk: Chunk) -> Chunk {
    let Chunk { mut entries, mut rest } = chunk;
    while entries.len() < ORDERED
        && let Some(listing) = rest.take()
    {
        match listing.next().await {
            Ok(more) => {
                entries.extend(more.entries);
                rest = more.rest;
            }
            Err(error) => {
                // It is reported after what was listed before it.
                rest = Some(Listing::failed(error));
                break;
            }
        }
    }
    entries.sort_by_key(|entry| entry.inode);
    Chunk { entries, rest }
}

/// Whether an entry could turn out to be a folder: until then the walk may grow.
fn may_be_folder(copier: &Copier, entry: &Entry) -> bool {
    match entry.kind {
        None | Some(FileKind::Directory) => true,
        Some(FileKind::Symlink) => copier.options.dereference == Dereference::Always,
        Some(_) => false,
    }
}

async fn copy_entries(
    copier: &Arc<Copier>,
    jobs: &Jobs<Job>,
    folder: &Arc<Folder>,
    entries: VecDeque<Entry>,
) {
    let rest = RefCell::new(entries);
    let keeps_order = copier.keeps_order(folder);
    let at_once = if keeps_order { 1 } else { copier.entries_at_once };
    let next = || {
        let mut rest = rest.borrow_mut();
        if !keeps_order && rest.len() >= SPLIT && jobs.is_someone_idle() {
            let half = rest.len() / 2;
            folder.begin();
            jobs.push(Job::Copy(Arc::clone(folder), rest.split_off(half)));
        }
        rest.pop_front()
    };
    let ended = for_each(at_once, std::iter::from_fn(next), async |entry: Entry| {
        if ferry_io::is_cancelled() {
            return Err(());
        }
        ferry_io::name_fiber(entry.name.as_bytes());
        let place = Place { folder, source: Some(&entry.name), target: Some(&entry.name) };
        if let Found::Folder { follow } = entry::copy(copier, place, entry.kind, false).await {
            if copier.asks() {
                // The newest job is begun first: the folder, and then what comes after it.
                folder.begin();
                jobs.push(Job::Copy(Arc::clone(folder), std::mem::take(&mut rest.borrow_mut())));
            }
            let name = entry.name.detached();
            jobs.push(Job::Enter(Folder::beneath(
                folder,
                Some(name.clone()),
                Some(name),
                follow,
                Role::Inner,
            )));
        } else if may_be_folder(copier, &entry) {
            copier.walk_shrinks();
        }
        copier.progress.entries_done.add(1);
        Ok(())
    });
    // Only a cancelled run ends it early.
    ended.await.ok();
}

/// Sets what is kept on a folder that is filled.
async fn keep(copier: &Copier, folder: &Arc<Folder>) -> Result<(), FailureKind> {
    let Some(facts) = folder.facts().filter(|facts| meta::changes_folder(copier, folder, facts)) else {
        return Ok(());
    };
    let dirs = folder.dirs(&copier.open_folders).await;
    let (_, target) = dirs.map_err(|error| FailureKind::Io { verb: Verb::SetMode, error })?;
    meta::keep_folder(copier, &itself(folder), facts, &target).await
}

/// Whether a folder on the way to an operand is only passed through: as cp does it, those that are there already get the
/// attributes of their sources if the way had to be made further in, and else stay as they are; and all of a way that
/// could not be gone to its end stays as it was made.
fn is_passed_through(folder: &Folder) -> bool {
    let Some(facts) = folder.facts().filter(|_| folder.role == Role::Way) else { return false };
    if folder.is_cut_short.load(Ordering::Relaxed) {
        return true;
    }
    let is_made = facts.is_new || folder.leads_to_new.load(Ordering::Relaxed);
    if let Some(parent) = folder.parent().filter(|_| is_made) {
        parent.leads_to_new.store(true, Ordering::Relaxed);
    }
    !is_made
}

/// One thing less to do in `folder`; where that was the last, its own attributes are set, and so on upwards.
pub(crate) async fn finish(copier: &Copier, folder: Arc<Folder>) {
    let mut folder = folder;
    while folder.end() {
        let kept =
            if is_passed_through(&folder) { Ok(()) } else { ferry_io::protect(keep(copier, &folder)).await };
        if let Err(kind) = kept {
            copier.fail(&itself(&folder), kind);
        }
        if let Err(kind) = durable::end_folder(copier, &folder).await {
            copier.fail(&itself(&folder), kind);
        }
        folder.close();
        let Some(parent) = folder.parent() else { return };
        folder = Arc::clone(parent);
    }
}
