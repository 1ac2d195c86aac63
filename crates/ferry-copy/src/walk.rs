//! The walk: folders are jobs; each lists a chunk of entries and copies them, and the folders in it become jobs.
//!
//! A worker takes the folders that it has found itself newest first, another worker's oldest first, and the rest of a
//! large folder when there is nothing else. So at most a chunk or two wait for each worker and each level of one path
//! (guard: `a_million_subfolders_are_not_a_million_jobs`). A rest that merely waited beneath its chunk's folders could be
//! taken while another worker still adds these, and they would then wait until the end.

mod enter;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use ferry_io::{Entry as ListedEntry, FileKind, Jobs, Name, for_each};

use crate::entry::{self, Listed, Outcome};
use crate::file::plain;
use crate::finish;
use crate::folder::{Folder, Role};
use crate::listing::{Chunk, Listing};
use crate::options::Dereference;
use crate::place::{Entry, Subject};
use crate::report::Verb;
use crate::run::Run;

pub(crate) use enter::enter;

/// Chunks with fewer entries are not shared with other workers.
const SPLIT: usize = 32;
/// Number of entries put in order at a time.
const ORDERED: usize = 10_000;

/// One piece of work that any worker can take.
pub(crate) enum Job {
    /// Open a folder, make its copy, and go on with its entries.
    Enter(Arc<Folder>),
    /// Go on with a folder's listing.
    List(Arc<Folder>, Listing),
    /// Copy some entries of a folder.
    Copy(Arc<Folder>, VecDeque<ListedEntry>),
}

/// Copies a folder with all that it holds.
pub(crate) async fn copy_tree(run: &Arc<Run>, top: Arc<Folder>) {
    let work = {
        let run = Arc::clone(run);
        async move |jobs: &Jobs<Job>, job| do_job(&run, jobs, job).await
    };
    run.io.share(vec![Job::Enter(top)], run.limits.folders_at_once, work).await;
}

/// Does a job. Its folder is finished if nothing else in it is pending.
async fn do_job(run: &Arc<Run>, jobs: &Jobs<Job>, job: Job) {
    let (Job::Enter(named) | Job::List(named, _) | Job::Copy(named, _)) = &job;
    ferry_io::name_fiber(named.source_name().map(Name::as_bytes).unwrap_or_default());
    let (folder, entries, later) = match job {
        Job::Enter(folder) | Job::List(folder, _) if run.devices.ends_operand() => {
            run.walk_shrinks();
            (folder, VecDeque::new(), None)
        }
        Job::Enter(folder) => match enter(run, &folder, plain::preload(run, &folder)).await {
            Some(chunk) => {
                let Begun { entries, later } = begin(run, jobs, &folder, chunk).await;
                (folder, entries, later)
            }
            None => {
                run.walk_shrinks();
                (folder, VecDeque::new(), None)
            }
        },
        Job::List(folder, listing) => match listing.next().await {
            Ok(chunk) => {
                let Begun { entries, later } = begin(run, jobs, &folder, chunk).await;
                (folder, entries, later)
            }
            Err(error) => {
                run.fail(Subject::Folder(&folder), Verb::ReadDirectory.failed(error));
                run.walk_shrinks();
                (folder, VecDeque::new(), None)
            }
        },
        Job::Copy(folder, entries) => (folder, entries, None),
    };
    copy_entries(run, jobs, &folder, entries).await;
    if let Some(rest) = later {
        jobs.push(rest);
    }
    finish::end_one(run, folder).await;
}

/// A chunk that is about to be copied.
struct Begun {
    entries: VecDeque<ListedEntry>,
    /// The rest of the folder, if it must not begin before the chunk is copied.
    later: Option<Job>,
}

/// Counts a chunk, and hands the rest of the folder to any free worker.
async fn begin(run: &Run, jobs: &Jobs<Job>, folder: &Arc<Folder>, mut chunk: Chunk) -> Begun {
    if run.options.filtered {
        let path = folder.source_path();
        chunk.entries.retain(|entry| !run.observer.leaves_out(&path, &entry.name));
    }
    let keeps_order = run.keeps_order(folder);
    let chunk = if keeps_order { in_order(chunk).await } else { chunk };
    run.progress.entries_found.add(chunk.entries.len() as u64);
    let folders = chunk.entries.iter().filter(|entry| may_be_folder(run, entry)).count();
    run.walk_grows(folders as u64);
    let rest = chunk.rest.map(|rest| {
        folder.begin();
        Job::List(Arc::clone(folder), rest)
    });
    let mut later = None;
    match rest {
        None => run.walk_shrinks(),
        Some(rest) if run.asks() => jobs.push(rest),
        Some(rest) if keeps_order => later = Some(rest),
        Some(rest) => jobs.push_behind(rest),
    }
    Begun { entries: chunk.entries.into(), later }
}

/// Puts a chunk, and those after it up to a bound, in GNU cp's order.
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
                // Reported after the entries listed before it.
                rest = Some(Listing::failed(error));
                break;
            }
        }
    }
    entries.sort_by_key(|entry| entry.inode);
    Chunk { entries, rest }
}

/// Returns true if an entry could turn out to be a folder, so that the walk may grow.
fn may_be_folder(run: &Run, entry: &ListedEntry) -> bool {
    match entry.kind {
        None | Some(FileKind::Directory) => true,
        Some(FileKind::Symlink) => run.options.dereference == Dereference::Always,
        Some(_) => false,
    }
}

/// An entry that needs a fiber.
enum Left<'a> {
    Listed(ListedEntry),
    /// The file that ended a run of plain ones.
    Last(Box<plain::Last<'a>>),
}

/// Copies entries of a folder: plain files and folders in front without fibers, the others each as a fiber, or several
/// plain files as one. Folders among them become jobs.
async fn copy_entries(
    run: &Arc<Run>,
    jobs: &Jobs<Job>,
    folder: &Arc<Folder>,
    entries: VecDeque<ListedEntry>,
) {
    let rest = RefCell::new(entries);
    let keeps_order = run.keeps_order(folder);
    let at_once = if keeps_order { 1 } else { run.limits.entries_at_once };
    let next = || {
        // Folders that are left stay in the count of those to be listed. So the walk does not count as ended before the run.
        if run.devices.ends_operand() {
            return None;
        }
        let mut rest = rest.borrow_mut();
        if !keeps_order && rest.len() >= SPLIT && jobs.is_someone_idle() {
            let half = rest.len() / 2;
            folder.begin();
            jobs.push(Job::Copy(Arc::clone(folder), rest.split_off(half)));
        }
        rest.pop_front()
    };
    let next_file = || {
        let is_file = rest.borrow().front().is_some_and(|next| next.kind == Some(FileKind::Regular));
        if is_file { next() } else { None }
    };
    let first = match keeps_order {
        true => next().map(Left::Listed),
        false => copy_ahead(run, jobs, folder, next, next_file).await,
    };
    let Some(first) = first else { return };
    let left = std::iter::once(first).chain(std::iter::from_fn(|| next().map(Left::Listed)));
    let ended = for_each(at_once, left, async |left: Left<'_>| {
        let begun = match left {
            // Also in a cancelled run: its target may be begun, and is to be removed or reported.
            Left::Last(last) => plain::Ended::Last(last),
            Left::Listed(_) if ferry_io::is_cancelled() => return Err(()),
            Left::Listed(listed) => {
                ferry_io::name_fiber(listed.name.as_bytes());
                plain::copy_run(run, folder, listed, next_file).await
            }
        };
        let listed = match begun {
            plain::Ended::NotBegun(listed) => listed,
            plain::Ended::Copied => return Ok(()),
            plain::Ended::Last(last) => {
                Box::pin(entry::end_run(run, folder, *last)).await;
                return Ok(());
            }
        };
        let entry = Entry::of(folder, &listed.name);
        let found = Listed { kind: listed.kind, is_operand: false };
        let mut is_done = true;
        let outcome = entry::copy(run, entry, found).await.unwrap_or_else(|kind| {
            is_done = !kind.is_cancelled();
            run.fail(entry, kind);
            Outcome::Done
        });
        if let Outcome::Folder { follow } = outcome {
            if run.asks() {
                // The newest job is begun first: the folder, and then the entries after it.
                folder.begin();
                jobs.push_own(Job::Copy(Arc::clone(folder), std::mem::take(&mut *rest.borrow_mut())));
            }
            enter_later(jobs, folder, &listed, follow);
        } else if may_be_folder(run, &listed) {
            run.walk_shrinks();
        }
        run.progress.entries_done.add(u64::from(is_done));
        Ok(())
    });
    // Ends early only in a cancelled run.
    ended.await.ok();
}

/// Copies the entries in front that never wait: runs of plain files, and folders, which become jobs. Returns the first
/// entry that needs a fiber. Most folders have none, and a set of fibers costs as much as a small file.
async fn copy_ahead<'a>(
    run: &'a Arc<Run>,
    jobs: &Jobs<Job>,
    folder: &Arc<Folder>,
    next: impl Fn() -> Option<ListedEntry>,
    next_file: impl Fn() -> Option<ListedEntry>,
) -> Option<Left<'a>> {
    while let Some(listed) = next() {
        match listed.kind {
            Some(FileKind::Regular) => match plain::copy_run(run, folder, listed, &next_file).await {
                plain::Ended::NotBegun(listed) => return Some(Left::Listed(listed)),
                plain::Ended::Copied => {}
                plain::Ended::Last(last) => return Some(Left::Last(last)),
            },
            Some(FileKind::Directory) if !ferry_io::is_cancelled() => {
                enter_later(jobs, folder, &listed, false);
                run.progress.entries_done.add(1);
            }
            Some(_) | None => return Some(Left::Listed(listed)),
        }
    }
    None
}

/// Makes a job of a folder found in another.
fn enter_later(jobs: &Jobs<Job>, folder: &Arc<Folder>, listed: &ListedEntry, follow: bool) {
    let name = Some(listed.name.detached());
    let role = if folder.role == Role::New { Role::New } else { Role::Inner };
    jobs.push_own(Job::Enter(Folder::beneath(folder, name.clone(), name, follow, role)));
}
